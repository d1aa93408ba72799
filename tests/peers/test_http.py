#!/usr/bin/env python3
"""The HTTP server against clients: those that behave, those that do not, and those who ask for more than they may.

    tests/peers/test_http.py BINARY     (http_peer lies beside what BINARY points to)

The ledger is that of gputally demo; http_peer serves it. What each check means stands in its name.
"""

import base64
import contextlib
import gzip
import hashlib
import http.client
import json
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict, wait  # noqa: E402

HEAD_S = 2  # http_peer's limits
IDLE_S = 3


class Server:
    def __init__(self, peer, db, listen="127.0.0.1:0", config="", tls=()):
        self.process = subprocess.Popen([peer, db, listen, config, *tls], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace")
        self.log = []
        first = self.process.stdout.readline()
        self.port = int(first.split()[1]) if first.startswith("port") else 0
        threading.Thread(target=self._read, daemon=True).start()
        self.tls = bool(tls)

    def _read(self):
        for line in self.process.stdout:
            self.log.append(line.strip())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.error = self.process.stderr.read()
        if "anitizer" in self.error or "runtime error" in self.error or self.process.returncode:
            check(f"the server ends well ({self.process.returncode})", False, self.error[:1500])

    def ask(self, path, method="GET", headers=None, body=None, token=None, context=None):
        """(status, headers, body)"""
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = "Bearer " + token
        if self.tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def raw(self, data):
        """What comes back for these bytes, until the other end closes or no more comes for a second."""
        got = b""
        with contextlib.suppress(socket.timeout, ConnectionResetError, BrokenPipeError):
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                s.sendall(data)
                while piece := s.recv(65536):
                    got += piece
                    s.settimeout(1)
        return got

    def gauge(self, name):
        """Of /metrics."""
        return float(re.search(rf"^{name} (\S+)$", self.ask("/metrics")[2].decode(), re.MULTILINE)[1])

    def tells(self, *words):
        """Whether a line of its log comes to have all of them."""
        return wait(lambda: any(all(word in line for word in words) for line in list(self.log)))


@contextlib.contextmanager
def serving(*args, **kwargs):
    server = Server(*args, **kwargs)
    try:
        yield server
    finally:
        server.stop()


# ---- what HTTP says ----

def basics(peer, db):
    with serving(peer, db) as s:
        status, headers, body = s.ask("/healthz")
        check("healthz answers", status == 200 and body == b"ok\n", (status, body))
        status, _, body = s.ask("/readyz")
        check("readyz is ready", status == 200 and json.loads(body)["ready"], body)
        status, headers, body = s.ask("/api/v1/report")
        check("report is JSON", status == 200 and headers["Content-Type"] == "application/json", headers)
        for name, part in [("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
                           ("Content-Security-Policy", "default-src 'none'"), ("X-Frame-Options", "DENY")]:
            check(f"{name} is there", part in headers.get(name, ""), headers)
        etag = headers["ETag"]
        again = s.ask("/api/v1/report")[1]["ETag"]
        check("the same answer has the same ETag", etag == again and not etag.startswith("W/"), (etag, again))
        for value in [etag, f'"x", {etag}', "*", f"W/{etag}"]:
            status, headers, body = s.ask("/api/v1/report", headers={"If-None-Match": value})
            check(f"If-None-Match {value[:8]}… is 304 without a body",
                  status == 304 and body == b"" and headers["ETag"] == etag, (status, body, headers))
        status, _, body = s.ask("/api/v1/report", headers={"If-None-Match": '"other"'})
        check("another ETag gets the answer", status == 200 and body, status)
        status, headers, packed = s.ask("/api/v1/report", headers={"Accept-Encoding": "gzip"})
        plain = s.ask("/api/v1/report")[2]
        check("gzip where it is accepted", headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain)
        check("the packed form has its own ETag", headers["ETag"] != etag)
        status, _, body = s.ask("/api/v1/report", headers={"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})
        check("and its own 304", status == 304 and body == b"", status)
        for refused in ["identity", "gzip;q=0", "br", ""]:
            _, headers, body = s.ask("/api/v1/report", headers={"Accept-Encoding": refused})
            check(f"no gzip for '{refused}'", "Content-Encoding" not in headers and body == plain, headers)
        status, headers, body = s.ask("/api/v1/report", method="HEAD")
        check("HEAD has the headers and no body", status == 200 and body == b"" and
              int(headers["Content-Length"]) == len(plain) and headers["ETag"] == etag, headers)
        status, headers, body = s.ask("/api/v1/report", method="OPTIONS")
        check("OPTIONS says what there is", status == 204 and headers["Allow"] == "GET, HEAD, OPTIONS", headers)
        status, headers, body = s.ask("/api/v1/report", method="DELETE")
        check("another method is 405 with Allow", status == 405 and "GET" in headers["Allow"] and
              json.loads(body)["error"]["code"] == "method_not_allowed", (status, body))
        for path in ["/nothing", "/api/v1/", "/api/v1/report/", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                     "/api/v1/report%00x"]:
            status, _, body = s.ask(path)
            check(f"{path} is 404 in JSON", status == 404 and json.loads(body)["error"]["code"] == "not_found",
                  (status, body))
        for query, word in [("by=team,nothing", "nothing"), ("windw=7d", "did you mean window"),
                            ("window=yes", "window"), ("filter=x", "filter"), ("limit=0", "limit"),
                            ("tz=Mars/Olympus", "Mars"), ("sort=beauty", "beauty")]:
            status, _, body = s.ask("/api/v1/report?" + query)
            check(f"?{query} is 400 and says why", status == 400 and word in json.loads(body)["error"]["message"],
                  (status, body))
        status, headers, body = s.ask("/echo", method="POST", body=b"abc")
        check("POST is taken where it is a route", status == 200 and body == b"abc", (status, body))
        many = "&".join(f"filter=team%3D{i}" for i in range(100))
        check("too many parameters are 400", s.ask("/api/v1/report?" + many)[0] == 400)


def connections(peer, db):
    with serving(peer, db) as s:
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=10)
        sockets = set()
        for path in ["/healthz", "/api/v1/report", "/nothing", "/api/v1/report?by=x", "/stream?bytes=100000", "/healthz"]:
            connection.request("GET", path)
            connection.getresponse().read()
            sockets.add(connection.sock.getsockname())
        check("a connection is kept over answers of all kinds", len(sockets) == 1, sockets)
        connection.close()
        got = s.raw(b"".join(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n" % p for p in [
            (b"/healthz", b""), (b"/api/v1/report", b""), (b"/nothing", b""), (b"/healthz", b"Connection: close\r\n")]))
        check("pipelined requests are answered in their order",
              re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200", b"200", b"404", b"200"], got[:400])
        got = s.raw(b"GET /healthz HTTP/1.0\r\n\r\n")
        check("HTTP/1.0 without Host is answered and closed", got.startswith(b"HTTP/1.") and b" 200 " in got[:20], got)
        got = s.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        check("Connection: close is obeyed", b" 200 " in got[:20] and b"close" in got.lower(), got)


def malformed(peer, db):
    with serving(peer, db) as s:
        for name, data, wanted in [
            ("no request line", b"\r\n\r\nx\r\n\r\n", None),
            ("binary", bytes(range(256)) * 8 + b"\r\n\r\n", None),
            ("a method without a path", b"GET\r\n\r\n", None),
            ("HTTP/1.1 without Host", b"GET /healthz HTTP/1.1\r\n\r\n", b"400"),
            ("a Content-Length that is no number", b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n", b"4"),
            ("a negative Content-Length", b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", b"4"),
            ("chunks that are none", b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n", b"4"),
        ]:
            got = s.raw(data)
            fine = not got or got.startswith(b"HTTP/1.")
            if wanted and got:
                fine = got.split()[1].startswith(wanted)
            check(f"{name}: refused or closed", fine, got[:200])
        got = s.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"a" * 70000 + b"\r\n\r\n")
        check("headers over the limit are refused", not got or got.split()[1] in (b"431", b"413", b"400"), got[:200])
        got = s.raw(b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        check("a path over the limit is refused", not got or got.split()[1] in (b"414", b"431", b"413", b"400"), got[:200])
        status, _, body = s.ask("/echo", method="POST", body=b"x" * 5000)
        check("a body over the route's cap is 413", status == 413 and json.loads(body)["error"]["code"] == "too_large", status)
        got = s.raw(b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 999999\r\n\r\n")
        check("a large body is refused before it is sent", got.split()[1] == b"413" and b"100" not in got.split()[:1], got[:100])
        chunk = b"1000\r\n" + b"y" * 4096 + b"\r\n"
        got = s.raw(b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
        check("a chunked body over the cap is 413", b" 413 " in got[:30], got[:100])
        got = s.raw(b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
        check("a chunked body up to it is taken", b" 200 " in got[:30] and got.endswith(b"y" * 100), got[:100])
        random.seed(20261130)
        good = b"GET /api/v1/report?window=1d&by=team HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"
        for _ in range(200):
            data = bytearray(good)
            for _ in range(random.randint(1, 6)):
                data[random.randrange(len(data))] = random.randrange(256)
            with contextlib.suppress(OSError):
                with socket.create_connection(("127.0.0.1", s.port), timeout=5) as c:
                    c.sendall(bytes(data))
                    c.settimeout(0.02)
                    c.recv(1000)
        check("200 damaged requests (seed 20261130) and it still answers", s.ask("/healthz")[0] == 200)


def ends_of_its_own(s, data):
    """Whether the server ends a connection on which this has come, and nothing comes any more."""
    with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:
        c.sendall(data)
        try:
            while c.recv(1000):
                pass
        except ConnectionResetError:
            pass
        except socket.timeout:
            return False
    return True


def refused_connections(s, n):
    """Of n connections at a time, how many are closed before any could be for being idle; None: this machine was slow."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", s.port), timeout=60)) for _ in range(n)]

        def closed():
            count = 0
            for c in held:
                try:
                    count += c.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
                except BlockingIOError:
                    pass
                except ConnectionResetError:
                    count += 1
            return count
        wait(lambda: closed() >= 20, HEAD_S / 2)
        count = closed()
        return count if time.monotonic() - began < HEAD_S else None


def slow_clients(peer, db):
    with serving(peer, db) as s:
        cut, going = [], threading.Semaphore(0)

        def drip(data):
            with contextlib.suppress(ConnectionError):
                with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:
                    for byte in data:
                        c.sendall(bytes([byte]))
                        going.release()
                        c.settimeout(0.2)
                        with contextlib.suppress(socket.timeout):
                            if not c.recv(1000):
                                break
                    else:
                        return
            cut.append(True)
        head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200   # 50 s of drops
        threads = [threading.Thread(target=drip, args=(head,)) for _ in range(30)]
        for t in threads:
            t.start()
        for _ in range(30):
            going.acquire()
        check("30 clients that drip do not hold up another", s.ask("/api/v1/report")[0] == 200 and len(cut) < 30, cut)
        for t in threads:
            t.join()
        check("a head that drips is cut", len(cut) == 30, len(cut))
        check("a body that does not come is cut",
              ends_of_its_own(s, b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"))
        check("an idle connection is closed", ends_of_its_own(s, b""))
        answered = []
        slow = [threading.Thread(target=lambda: answered.append(s.ask("/slow?ms=5000")[0])) for _ in range(4)]
        for t in slow:
            t.start()
        time.sleep(0.5)
        check("healthz answers while every worker is busy", s.ask("/healthz")[0] == 200 and not answered, answered)
        for t in slow:
            t.join()
        statuses = []
        many = [threading.Thread(target=lambda: statuses.append(s.ask("/slow?ms=1000")[0])) for _ in range(60)]
        for t in many:
            t.start()
        for t in many:
            t.join()
        check("requests over the queue's length are 503, the others 200", set(statuses) == {200, 503}, statuses)
        tried = [refused_connections(s, 130)]
        while tried[-1] is None and len(tried) < 10:
            tried.append(refused_connections(s, 130))
        check("connections over an address's share are refused", tried[-1] is None or tried[-1] >= 20, tried)
        check("and it answers again", wait(lambda: answers(s)))


def answers(s):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return s.ask("/healthz")[0] == 200


def streams(peer, db):
    with serving(peer, db) as s:
        status, headers, body = s.ask("/stream?bytes=3000000")
        check("a stream arrives whole", status == 200 and body == b"x" * 3000000, len(body))
        status, headers, body = s.ask("/stream?bytes=3000000", headers={"Accept-Encoding": "gzip"})
        check("and packed", headers["Content-Encoding"] == "gzip" and gzip.decompress(body) == b"x" * 3000000)
        status, headers, body = s.ask("/stream?bytes=3000000", method="HEAD")
        check("HEAD of a stream ends", status == 200 and body == b"", status)
        with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:
            c.sendall(b"GET /stream?bytes=4000000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            c.recv(1000)
            time.sleep(0.5)
            rss = int(open(f"/proc/{s.process.pid}/statm").read().split()[1]) * 4096
            check("a reader that does not read costs little memory", rss < 150e6, rss)
        wait(lambda: s.gauge("gputally_http_streams") == 0)
        with socket.create_connection(("127.0.0.1", s.port), timeout=60) as c:
            c.sendall(b"GET /stream?bytes=4000000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            wait(lambda: s.gauge("gputally_http_streams") == 1)
            wait(lambda: s.gauge("gputally_http_streams") == 0)
            total = 0
            with contextlib.suppress(OSError):
                while piece := c.recv(1 << 20):
                    total += len(piece)
                    if total > 100e6:
                        break
            check("a stream that nobody takes is given up", total < 100e6, total)
        both = [socket.create_connection(("127.0.0.1", s.port), timeout=60) for _ in range(2)]
        for c in both:
            c.sendall(b"GET /stream?bytes=4000000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            c.recv(1000)
        status, headers, _ = s.ask("/stream?bytes=10")
        check("one stream too many is 503 with Retry-After", status == 503 and "Retry-After" in headers, status)
        s.stop()
        check("stopping cuts streams", s.process.returncode == 0, s.process.returncode)
        for c in both:
            c.close()
    server = Server(peer, db)
    answers = []
    held = threading.Thread(target=lambda: answers.append(server.ask("/slow?ms=1000")[0]))
    held.start()
    wait(lambda: server.gauge("gputally_http_working") >= 2)    # one of them asks for this
    server.stop()
    held.join()
    check("stopping waits for what is in work, which is still answered",
          answers == [200] and server.process.returncode == 0, (answers, server.process.returncode))


def hosts(peer, db):
    with serving(peer, db) as s:
        for host, wanted in [("127.0.0.1", 200), (f"127.0.0.1:{s.port}", 200), ("localhost", 200), ("LOCALHOST:80", 200),
                             ("gputally.test", 200), ("gputally.test.", 200), ("[::1]:80", 200), ("10.1.2.3", 200),
                             ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example", 421),
                             ("xgputally.test", 421), ("[evil]", 421), (":80", 421)]:
            got = s.raw(b"GET /healthz HTTP/1.1\r\nHost: " + host.encode() + b"\r\nConnection: close\r\n\r\n")
            check(f"Host {host}: {wanted}", got.split()[1:2] == [str(wanted).encode()], got[:100])
        check("a refused Host is told to the log", s.tells("refused=Host"), s.log[-3:])


# ---- the API ----

def opencost(s, report):
    """What OpenCost's page and kubectl-cost ask for, its filters and its calendar."""
    window = f'{report["window"]["from"]},{report["window"]["to"]}'

    def cells(path="/allocation/compute", **parameters):
        status, _, body = s.ask(path + "?" + urllib.parse.urlencode({"window": window, **parameters}))
        return json.loads(body)["data"] if status == 200 else (status, json.loads(body)["message"])

    def nano(sets):
        return sum(round(cell["totalCost"] * 1e9) for each in sets for cell in each.values())

    by_namespace = cells(aggregate="namespace")[0]
    names = sorted(by_namespace)
    one, two = names[0], names[1]
    cost = {name: round(by_namespace[name]["totalCost"] * 1e9) for name in names}
    page = cells(aggregate="namespace", includeIdle="true", step="1d", accumulate="false", filter=f'namespace:"{one}"')
    check("OpenCost's page: a namespace, by days", nano(page) == cost[one] and len(page) > 1, (len(page), cost[one]))
    command = cells("/model/allocation", accumulate="true")
    check("kubectl-cost: names of five parts", all(name.count("/") == 4 for name in command[0]) and
          nano(command) == sum(cost.values()), list(command[0])[:3])
    for text, wanted in ((f'namespace:"{one}" | namespace:"{two}"', cost[one] + cost[two]),
                         (f'namespace:"{one}","{two}"', cost[one] + cost[two]),
                         (f'(namespace:"{one}" | namespace:"{two}") + namespace!:"{two}"', cost[one]),
                         (f'namespace!:"{one}"', sum(cost.values()) - cost[one]),
                         (f'(pod<~:"" + namespace:"{one}") | (pod~:"no such pod")', cost[one])):
        got = cells(aggregate="namespace", filter=text)
        check(f"filter {text}", isinstance(got, list) and nano(got) == wanted, (got, wanted))
    for parameters, why in (({"filter": 'namespace:"a" | pod:"b" + node:"c"'}, "do not mix"),
                            ({"filter": 'label[app]:"a"'}, "has no"), ({"filterLabels": "app:a"}, "filterLabels"),
                            ({"shareNamespaces": "kube-system"}, "shareNamespaces"), ({"accumulate": "decade"}, "quarter")):
        got = cells(aggregate="namespace", **parameters)
        check(f"refused with words: {parameters}", isinstance(got, tuple) and got[0] == 400 and why in got[1], got)
    # 2026-11-25T00Z to 30T00Z, a Wednesday to a Monday: a Sunday is in it
    long = {"window": "2026-09-20T00:00:00Z,2026-11-30T00:00:00Z", "aggregate": "namespace"}
    for word, starts in (("month", ["2026-09-20", "2026-10-01", "2026-11-01"]), ("quarter", ["2026-09-20", "2026-10-01"]),
                         ("week", ["2026-09-20"] + 10 * [None])):
        sets = cells(accumulate=word, **long)
        check(f"accumulate={word}: sets of the calendar", len(sets) == len(starts) and nano(sets) == nano(cells(**long)), len(sets))
        start = next(iter(sets[-1].values()))["start"] if sets[-1] else None
        check(f"the last {word} begins on its first day", start == {"month": "2026-11-01T00:00:00Z", "week": "2026-11-29T00:00:00Z",
                                                                    "quarter": "2026-10-01T00:00:00Z"}[word], start)


def documents(peer, db):
    with serving(peer, db) as s:
        document = json.loads(s.ask("/api/v1/openapi.json")[2])
        check("the document is OpenAPI 3.1", document["openapi"] == "3.1.0")
        gpus = json.loads(s.ask("/api/v1/gpus")[2])
        held = next(g for g in gpus if g["holder"])
        findings = json.loads(s.ask("/api/v1/findings")[2])["findings"]
        fills = {"device": held["device"], "node": held["node"], "namespace": held["holder"]["namespace"],
                 "workload": held["holder"]["workload"], "hour": held["at"].replace(":00:00Z", ":00:00Z"),
                 "of": findings[0]["id"], "window": "2d"}
        fills["hour"] = json.loads(s.ask("/api/v1/fleet")[2])["hours"][-2]
        schemas = document["components"]["schemas"]

        def valid(value, schema):
            jsonschema.Draft202012Validator(
                {**schema, "components": {"schemas": schemas}},
                format_checker=jsonschema.FormatChecker()).validate(value)

        for path, item in document["paths"].items():
            if "get" not in item:
                continue  # the receiver, which the service has
            operation = item["get"]
            needed = {p["name"]: fills[p["name"]] for p in operation.get("parameters", []) if p["required"]}
            status, headers, body = s.ask(path + ("?" + urllib.parse.urlencode(needed) if needed else ""))
            content = operation["responses"]["200"]["content"]
            kind = headers["Content-Type"].split(";")[0]
            check(f"{path}: the type that is documented", status == 200 and kind in content, (status, headers["Content-Type"], content, body[:200]))
            schema = content.get(kind, {}).get("schema", {})
            if "$ref" in schema and status == 200:
                try:
                    valid(json.loads(body), schema)
                    check(f"{path}: as its schema says", True)
                except jsonschema.ValidationError as error:
                    check(f"{path}: as its schema says", False, f"{error.json_path}: {error.message}")
            if needed:
                status, _, body = s.ask(path)
                if not path.startswith(("/allocation", "/model")):
                    check(f"{path}: without what it needs 400", status == 400, (status, body[:100]))
                    valid(json.loads(body), {"$ref": "#/components/schemas/Error"})
            # every documented parameter is taken, none else is
            if path.startswith("/api/v1/") and operation.get("parameters"):
                status, _, body = s.ask(path + "?" + urllib.parse.urlencode({**needed, "surely-not": 1}))
                check(f"{path}: an unknown parameter is 400", status == 400, (status, body[:100]))
        routes = {line.split("route=")[1].split()[0] for line in s.log if "route=" in line}
        known = set(document["paths"])
        check("every route that was asked is in the document", routes - {"-"} <= known, routes - known)
        report = json.loads(s.ask("/api/v1/report?by=team")[2])
        cells = json.loads(s.ask("/allocation/compute?" + urllib.parse.urlencode(
            {"window": f'{report["window"]["from"]},{report["window"]["to"]}', "aggregate": "namespace", "includeIdle": "true"}))[2])
        total = sum(round(a["totalCost"] * 1e9) for a in cells["data"][0].values())
        cost = round(float(report["totals"]["cost"]) * 1e9)
        check("allocations with idle add up to the report", abs(total - cost) < 1000, (total, cost))
        cells = json.loads(s.ask("/model/allocation?window=2d&aggregate=controller&shareIdle=true&accumulate=true")[2])["data"]
        plain = json.loads(s.ask("/model/allocation?window=2d&aggregate=controller&accumulate=true&idle=true")[2])["data"]
        check("sharing idle loses nothing", len(cells) == 1 and "__idle__" not in cells[0] and
              abs(sum(a["totalCost"] for a in cells[0].values()) - sum(a["totalCost"] for a in plain[0].values())) < 1e-5)
        check("controllers are kind:name", all(":" in name or name.startswith("__") for name in cells[0]), list(cells[0])[:5])
        sets = json.loads(s.ask("/allocation?window=2d&step=1d&aggregate=namespace")[2])["data"]
        check("a set a step", len(sets) == 2, len(sets))
        opencost(s, report)
        status, _, body = s.ask("/allocation?aggregate=namespace")
        check("errors of /allocation are OpenCost's", status == 400 and json.loads(body)["code"] == 400, body)
        rows = s.ask("/api/v1/export/ledger")[2].decode().splitlines()
        column = rows[0].split(",").index("cost")
        check("the exported rows add up to the report",
              abs(sum(int(r.split(",")[column]) for r in rows[1:]) / 1e9 - float(json.loads(s.ask(
                  "/api/v1/report?window=60d")[2])["totals"]["cost"])) < 1e-6)
        lines = s.ask("/api/v1/export/ledger?format=json&window=2d")[2].decode().splitlines()
        check("export as JSON lines", all("cost" in json.loads(line) for line in lines[:50]) and len(lines) > 50)


def same_as_commands(peer, db, binary):
    with serving(peer, db) as s:
        for path, command in [("report?by=workload&limit=5", ["report", "--by", "workload", "--limit", "5"]),
                              ("report?by=day&filter=team%3Dsearch&tz=Europe/Berlin",
                               ["report", "--by", "day", "--filter", "team=search", "--tz", "Europe/Berlin"]),
                              ("findings", ["recommend"]), ("doctor", ["doctor"]), ("idle", ["idle"])]:
            printed = subprocess.run([binary, *command, "--db", db, "--output", "json"], capture_output=True, text=True)
            answer = json.loads(s.ask("/api/v1/" + path)[2])
            check(f"/{path} is what the command prints", printed.returncode == 0 and answer == json.loads(printed.stdout),
                  printed.stderr)


def series(peer, db):
    """SM and tensor activity of a series are what the exported rows have, each row by its share of the GPU."""
    with serving(peer, db) as s:
        rows = rows_of(s.ask("/api/v1/export/ledger?window=2d")[2].decode())
        held = [r for r in rows if r["pod"] not in ("", "-")]
        work = max(held, key=lambda r: float(r["tensor_ms"] or 0))
        shared = next((r for r in held if r["instance"] not in ("", "-") and int(r["sm_seen_ms"])), work)
        for what, ask, is_of in [
                ("a node", {"node": work["node"]}, lambda r: r["node"] == work["node"]),
                ("a GPU in instances", {"device": shared["device"]}, lambda r: r["device"] == shared["device"]),
                ("a workload", {"namespace": work["namespace"], "workload": work["workload"]},
                 lambda r: (r["namespace"], r["workload"]) == (work["namespace"], work["workload"]))]:
            got = json.loads(s.ask("/api/v1/series?window=2d&" + urllib.parse.urlencode(ask))[2])
            for name, column in [("sm_activity", "sm"), ("tensor_activity", "tensor")]:
                line = next(v["v"] for v in got["series"] if v["name"] == name)
                sums = {}
                for r in held:
                    if is_of(r) and int(r["held_ms"]):
                        share = float(r["gpu_held_ms"]) / int(r["held_ms"])
                        total = sums.setdefault(r["hour"], [0, 0])
                        total[0] += float(r[column + "_ms"]) * share
                        total[1] += int(r[column + "_seen_ms"]) * share
                wrong = [(t, v, sums.get(t)) for t, v in zip(got["t"], line)
                         if (v is None) != (not sums.get(t, [0, 0])[1]) or
                         v is not None and abs(v - sums[t][0] / sums[t][1]) > 2e-3]
                check(f"{what}: {name} is of its rows", not wrong and any(v for v in line), wrong[:3])
        plain = json.loads(s.ask("/api/v1/series?window=2d&team=search")[2])
        check("of a team, whose rows may be everywhere, there is none", all(v["name"] != "sm_activity" for v in plain["series"]))


def metrics(peer, db):
    with serving(peer, db) as s:
        s.ask("/api/v1/report")
        s.ask("/nothing")
        counted = (b'gputally_http_requests_total{route="/api/v1/report",status="2xx"} 1\n',
                   b'gputally_http_requests_total{route="none",status="4xx"} 1\n')
        check("requests are counted by route and status", wait(lambda: all(line in s.ask("/metrics")[2] for line in counted)))
        status, headers, body = s.ask("/metrics")
        check("metrics have Prometheus's type", headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", headers)
        lint = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True)
        check("promtool finds nothing to say", lint.returncode == 0 and not lint.stderr, lint.stderr)
        text = body.decode()
        end = float(re.search(r"^gputally_counters_end_timestamp_seconds (\S+)", text, re.M)[1])
        begin = float(re.search(r"^gputally_counters_begin_timestamp_seconds (\S+)", text, re.M)[1])
        stamp = lambda t: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))
        report = json.loads(s.ask(f"/api/v1/report?by=team&window={stamp(begin)},{stamp(end)}")[2])
        counted = {}
        for team, value in re.findall(r'gputally_cost_usd_total\{team="([^"]*)",category="[^"]*"\} (\S+)', text):
            counted[team] = counted.get(team, 0) + float(value)
        wanted = {row["team"] or "-": float(row["cost"]) for row in report["rows"]}
        check("counters are the report of their time", counted.keys() == wanted.keys() and
              all(abs(counted[t] - wanted[t]) < 1e-6 for t in wanted), (counted, wanted))
        check("that time is within one UTC month", stamp(begin)[:7] == stamp(end - 1)[:7])
        status, headers, body = s.ask("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        check("OpenMetrics where it is asked for", headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
              and body.endswith(b"# EOF\n") and b"# TYPE gputally_cost_usd counter" in body)
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            pass
        else:
            check("and it parses", len(list(text_string_to_metric_families(body.decode()))) > 20)


# ---- access ----

def token_of(name):
    token = "gpt_" + hashlib.sha256(name.encode()).hexdigest()
    return token, "sha256:" + hashlib.sha256(token.encode()).hexdigest()


ADMIN, ADMIN_HASH = token_of("admin")
SEARCH, SEARCH_HASH = token_of("search")
SPACE, SPACE_HASH = token_of("space")
WRITER, WRITER_HASH = token_of("writer")
SCRAPER, SCRAPER_HASH = token_of("scraper")
NOBODY, NOBODY_HASH = token_of("nobody")
ACCESS = f"""
access:
  tokens:
    - {{name: admin, hash: "{ADMIN_HASH}", scopes: [read, write]}}
    - {{name: search, hash: "{SEARCH_HASH}", scopes: [read], teams: [search]}}
    - {{name: space, hash: "{SPACE_HASH}", scopes: [read], namespaces: [vision]}}
    - {{name: nobody, hash: "{NOBODY_HASH}", scopes: [read], teams: [there-is-none]}}
    - {{name: writer, hash: "{WRITER_HASH}", scopes: [write]}}
    - {{name: scraper, hash: "{SCRAPER_HASH}", scopes: [metrics]}}
"""


def scopes(peer, db, folder):
    path = os.path.join(folder, "access.yaml")
    with open(path, "w") as f:
        f.write(ACCESS)
    with serving(peer, db, config=path) as s:
        for token, name in [(None, "no token"), ("nonsense", "an unknown token"), (ADMIN[:-1], "a shortened token"),
                            (ADMIN + "x", "a lengthened token")]:
            status, headers, body = s.ask("/api/v1/report", token=token)
            check(f"{name} is 401 and says how", status == 401 and "Bearer" in headers["WWW-Authenticate"], status)
        status, _, _ = s.ask("/api/v1/report", headers={"Authorization": "Basic YTpi"})
        check("another scheme is 401", status == 401)
        for path, wanted in [("/healthz", 200), ("/readyz", 200), ("/api/v1/openapi.json", 200), ("/nothing", 404)]:
            check(f"{path} needs no token", s.ask(path)[0] == wanted)
        check("readyz without a token says only whether", json.loads(s.ask("/readyz")[2])["checks"] == [])
        check("readyz with one says more", json.loads(s.ask("/readyz", token=ADMIN)[2])["checks"] != [])
        table = {ADMIN: (200, 200, 200), SEARCH: (200, 200, 403), WRITER: (403, 403, 200), SCRAPER: (403, 200, 403)}
        for token, (report, scraped, written) in table.items():
            got = (s.ask("/api/v1/report", token=token)[0], s.ask("/metrics", token=token)[0],
                   s.ask("/echo", method="POST", body=b"x", token=token)[0])
            check(f"scopes of {hashlib.sha256(token.encode()).hexdigest()[:4]}", got == (report, scraped, written), got)
        status, _, body = s.ask("/api/v1/report", token=WRITER)
        check("a missing scope is 403 and named", status == 403 and "read" in json.loads(body)["error"]["message"], body)
        check("the log says who and why, and no token", s.tells("refused=unknown token") and
              s.tells("identity=writer refused=the scope is missing") and
              not any(t in line for line in s.log for t in (ADMIN, SEARCH, "nonsense")), s.log[-5:])
        _, headers, _ = s.ask("/api/v1/report", token=ADMIN)
        check("answers differ by token for caches", "Authorization" in headers["Vary"])
    bad = subprocess.run([peer, db, "0.0.0.0:0"], capture_output=True, text=True, timeout=60)
    check("listening elsewhere without access is refused, with what to do",
          bad.returncode == 1 and "gputally config token" in bad.stderr, bad.stderr)
    open_path = os.path.join(folder, "open.yaml")
    with open(open_path, "w") as f:
        f.write("access: {allow_anonymous: true}\n")
    with serving(peer, db, listen="0.0.0.0:0", config=open_path) as s:
        check("unless it is said explicitly", s.ask("/api/v1/report")[0] == 200)
    with serving(peer, db, listen="0.0.0.0:0", config=path if os.path.exists(path) else os.path.join(folder, "access.yaml")) as s:
        check("or there are tokens", s.ask("/api/v1/report")[0] == 401)
    proxy = os.path.join(folder, "proxy.yaml")
    for addresses, wanted in [("[127.0.0.0/8]", 200), ("[10.0.0.0/8]", 401)]:
        with open(proxy, "w") as f:
            f.write(f"access: {{proxy: {{addresses: {addresses}, header: X-Forwarded-User, users: "
                    f"[{{name: 'ann*', scopes: [read]}}]}}}}\n")
        with serving(peer, db, config=proxy) as s:
            status = s.ask("/api/v1/report", headers={"X-Forwarded-User": "anna"})[0]
            check(f"a proxy's name from {addresses}: {wanted}", status == wanted, status)
            check(f"another name from {addresses}: 401", s.ask("/api/v1/report", headers={"X-Forwarded-User": "bob"})[0] == 401)
    with open(proxy, "w") as f:
        f.write("access: {proxy: {addresses: [127.0.0.0/8], header: X-User, users: [{name: '*@example.com', scopes: [read]}]}}\n")
    with serving(peer, db, config=proxy) as s:
        host, user = b"Host: 127.0.0.1\r\n", b"X-User: a@example.com\r\n"
        for name, head, wanted in [
            ("a proxy's name", host + user, b"200"),
            ("a name that a client sent before the proxy's", host + user + b"X-User: evil\r\n", b"401"),
            ("or after it", host + b"x-user: evil\r\n" + user, b"401"),
            ("or joined to it", host + b"X-User: evil, a@example.com\r\n", b"401"),
            ("two Hosts", host + b"Host: evil.example\r\n" + user, b"400"),
            ("two Authorizations", host + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", b"400"),
            ("two lengths", host + user + b"Content-Length: 0\r\nContent-Length: 0\r\n", b"400"),
            ("a length and chunks", host + user + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", b"400"),
        ]:
            got = s.raw(b"GET /api/v1/meta HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n")
            check(f"{name}: {wanted.decode()}", got.split()[1:2] == [wanted], got[:100])
    for text, word in [("access: {tokens: [{name: a, hash: md5:1}]}", "sha256"), ("access: {tokns: []}", "did you mean"),
                       ("access: {tokens: [{name: a, hash: 'sha256:" + "0" * 64 + "', scopes: [all]}]}", "no scope"),
                       ("access: {tokens: [{name: a, hash: 'sha256:" + "0" * 64 + "', teams: []}]}", "list of names"),
                       ("access: {proxy: {addresses: [nowhere], header: X}}", "no address")]:
        with open(proxy, "w") as f:
            f.write(text + "\n")
        bad = subprocess.run([peer, db, "127.0.0.1:0", proxy], capture_output=True, text=True, timeout=60)
        check(f"'{word}' in the error of {text[:40]}", bad.returncode == 1 and word in bad.stderr and ".yaml:1:" in bad.stderr, bad.stderr)


WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def rows_of(text):
    lines = text.splitlines()
    names = lines[0].split(",")
    return [dict(zip(names, line.split(","))) for line in lines[1:]]


def foreign_names(rows, is_mine):
    """Names that only rows of others have, and amounts of money that tell what others cost."""
    keys = ["namespace", "pod", "pod_uid", "container", "workload", "owner"]
    mine = {r[k] for r in rows if is_mine(r) for k in keys} | {r[k].split("/")[-1] for r in rows if is_mine(r) for k in keys}
    others = {r[k] for r in rows if not is_mine(r) for k in keys}
    others |= {name.split("/")[-1] for name in others}
    generic = {"", "-", "server", "main", "worker", "platform", "unowned", "Deployment", "Job"}
    names = {n for n in others - mine - generic if len(n) > 3}
    nodes_of_others = {r["node"] for r in rows} - {r["node"] for r in rows if is_mine(r)}
    sums = {}
    for r in rows:
        for k in ["owner", "namespace", "node"]:
            sums[k, r[k]] = sums.get((k, r[k]), 0) + int(r["cost"])
    mine_sums = {}
    for r in rows:
        if is_mine(r):
            for k in ["owner", "namespace", "node"]:
                mine_sums[k, r[k]] = mine_sums.get((k, r[k]), 0) + int(r["cost"])
    total = sum(int(r["cost"]) for r in rows)
    money = {v for k, v in sums.items() if v != mine_sums.get(k, 0)} | {total}
    money -= set(mine_sums.values())
    # round sums (a GPU at its price for a day) are those of many
    return names | nodes_of_others, {f"{v // 10**9}.{v % 10**9:09d}" for v in money if v > 10**9 and v % 10**4}


def leak(body, names, money):
    text = body.decode(errors="replace")
    words = set(WORD.findall(text))
    found = [n for n in names if n in words or ("/" in n and n in text)]
    return found[:5] + [m for m in money if m in text][:5]


def idle_view(s, token, name, rows, is_mine):
    """Of the idle scan a view has its own GPUs, what they did in hours that are its own alone, and nobody's money."""
    everything = json.loads(s.ask("/api/v1/idle?days=3", token=ADMIN)[2])
    status, _, body = s.ask("/api/v1/idle?days=3", token=token)
    check(f"{name}: the idle scan is answered", status == 200, (status, body[:200]))
    seen = json.loads(body)
    hours = {}
    for r in rows:
        hours.setdefault((r["device"], r["hour"]), []).append(is_mine(r))
    own = {device for (device, _), mine in hours.items() if any(mine)}
    gpus = {d["gpu"]: d for d in seen["devices"]}
    check(f"{name}: of its GPUs", gpus and set(gpus) <= own and set(gpus) < {d["gpu"] for d in everything["devices"]}, len(gpus))
    check(f"{name}: without money", all(d["idle_since"] is None or d["idle_since"]["cost"] is None
                                        for d in seen["devices"] + seen["nodes"]))
    check(f"{name}: without verdicts and hosts of whole nodes",
          all(n["verdict"] != "idle" and n["idle_since"] is None and all(d["network_bytes"] is None for d in n["days"])
              for n in seen["nodes"]), seen["nodes"][:1])
    same = other = 0
    for d in everything["devices"]:
        for i, day in enumerate(d["days"]):
            mine = [all(m) for (device, hour), m in hours.items() if device == d["gpu"] and hour[:10] == day["day"]]
            if d["gpu"] not in gpus:
                continue
            got = gpus[d["gpu"]]["days"][i]
            if mine and all(mine):
                same += 1
                if (got["mean"], got["observed_ms"]) != (day["mean"], day["observed_ms"]):
                    check(f"{name}: {d['gpu']} on {day['day']} is what it is", False, (got, day))
            elif not any(mine):
                other += 1
                if got["observed_ms"] or any(v is not None for v in got["mean"].values()):
                    check(f"{name}: {d['gpu']} on {day['day']} is not seen", False, got)
    check(f"{name}: days that are its own are as everybody sees them", same > 0, same)
    check(f"{name}: a picture of the same", {g["gpu"] for n in json.loads(s.ask("/api/v1/idle/days?days=3", token=token)[2])["nodes"]
                                             for g in n["devices"]} == set(gpus))
    nobody = json.loads(s.ask("/api/v1/idle?days=3", token=NOBODY)[2])
    check(f"{name}: who has nothing sees nothing", nobody["devices"] == [] and nobody["nodes"] == [] and nobody["idle_floor"] == [])


def views(peer, db, folder):
    path = os.path.join(folder, "access.yaml")
    with open(path, "w") as f:
        f.write(ACCESS)
    with serving(peer, db, config=path) as s:
        everything = s.ask("/api/v1/export/ledger", token=ADMIN)[2].decode()
        rows = rows_of(everything)
        document = json.loads(s.ask("/api/v1/openapi.json")[2])
        keys = json.loads(s.ask("/api/v1/meta", token=ADMIN)[2])["keys"]
        gpus = json.loads(s.ask("/api/v1/gpus", token=ADMIN)[2])
        findings = json.loads(s.ask("/api/v1/findings", token=ADMIN)[2])["findings"]
        hour = sorted({r["hour"] for r in rows})[-3]
        # what is said to somebody who sees nothing at all
        words = set()
        for q in list(document["paths"]) + ["/api/v1/report?by=x", "/api/v1/explain?of=x", "/api/v1/report?filter=x"]:
            words |= set(WORD.findall(s.ask(q, token=NOBODY)[2].decode(errors="replace")))
        for token, name, is_mine in [(SEARCH, "team search", lambda r: r["owner"] == "search"),
                                     (SPACE, "namespace vision", lambda r: r["namespace"] == "vision")]:
            names, money = foreign_names(rows, is_mine)
            names -= words  # of texts that everybody gets
            own = rows_of(s.ask("/api/v1/export/ledger", token=token)[2].decode())
            check(f"{name}: the export is exactly its rows", own == [r for r in rows if is_mine(r)] and own, len(own))
            report = json.loads(s.ask("/api/v1/report?window=60d", token=token)[2])
            cost = sum(int(r["cost"]) for r in own)
            check(f"{name}: totals are of the view", report["totals"]["cost"] == f"{cost // 10**9}.{cost % 10**9:09d}" and
                  report["balance"]["price"] == report["totals"]["cost"], report["balance"])
            check(f"{name}: nobody's rows are not in it", report["totals"]["node_idle"] == "0.000000000" and
                  report["totals"]["unattributed"] == "0.000000000")
            told = s.ask("/api/v1/report?by=namespace,workload", token=ADMIN)[2]
            check(f"{name}: what others have is found where it is", leak(told, names, money), len(names))
            asked = leaks = 0
            questions = []
            for p, item in document["paths"].items():
                questions.append(p)
                for q in item.get("get", {}).get("parameters", []):
                    if q["name"] == "by" and p != "/api/v1/findings":
                        questions += [f"{p}?by={k}" for k in keys if not (p.endswith("diff") and k in ("day", "hour"))]
                        questions += [f"{p}?by=node,team,workload,pod&window=3d"]
            for other in sorted({r["owner"] for r in rows} | {r["namespace"] for r in rows} - {"-", ""}):
                for p in ["report?filter=team%3D", "report?by=pod&filter=namespace%3D", "series?team=", "series?namespace=",
                          "explain?of=", "explain?of=team+", "explain?of=team%3D", "explain?of=namespace+"]:
                    questions.append("/api/v1/" + p + urllib.parse.quote(other))
            for r in random.Random(7).sample(rows, 60):
                questions.append("/api/v1/workload?" + urllib.parse.urlencode({"namespace": r["namespace"], "workload": r["workload"]}))
                questions.append("/api/v1/explain?" + urllib.parse.urlencode({"of": f'{r["namespace"]}/{r["workload"]}'}))
                questions.append("/api/v1/explain?" + urllib.parse.urlencode({"of": r["workload"].split("/")[-1][:-1]}))
                questions.append("/api/v1/explain?" + urllib.parse.urlencode({"of": r["pod"]}))
            for g in gpus:
                questions += [f"/api/v1/gpu?device={g['device']}", f"/api/v1/node?node={g['node']}",
                              f"/api/v1/series?device={g['device']}", f"/api/v1/series?node={g['node']}&step=day",
                              f"/api/v1/fleet/cell?device={g['device']}&hour={hour}", f"/api/v1/explain?of={g['node']}"]
            questions += [f"/api/v1/explain?of={f['id']}" for f in findings]
            for p in ["/allocation", "/allocation/compute", "/model/allocation"]:
                for a in ["namespace", "controller", "node", "team", "cluster", "pod", "all", ""]:
                    questions.append(f"{p}?window=7d&aggregate={a}&includeIdle=true&idleByNode=true")
                    questions.append(f"{p}?window=3d&step=1d&aggregate={a}&shareIdle=true")
            questions += ["/api/v1/report?filter=node%3D*", "/api/v1/report?filter=team!%3Dsearch", "/api/v1/export/ledger?format=json",
                          "/api/v1/report?by=node&filter=namespace%3D-", "/api/v1/meta?window=60d"]
            for q in questions:
                # the admin's answer is in the cache when the view asks for the same
                s.ask(q, token=ADMIN) if asked % 3 == 0 else None
                status, _, body = s.ask(q, token=token)
                asked += 1
                # what was asked for may be repeated in the answer: that is no leak
                echoed = urllib.parse.unquote_plus(q)
                found = [x for x in leak(body, names, money) if x not in echoed]
                if found or status not in (200, 400, 403, 404):
                    leaks += 1
                    if leaks < 6:
                        check(f"{name}: {q}", False, (status, found, body[:300]))
            check(f"{name}: {asked} questions over all routes name nobody else", leaks == 0, leaks)
            idle_view(s, token, name, rows, is_mine)
            metrics_text = s.ask("/metrics", token=token)[2].decode()
            teams = set(re.findall(r'team="([^"]*)"', metrics_text))
            check(f"{name}: metrics have its teams only", teams == {r["owner"] for r in own}, teams)


# ---- the page with its first answers ----

DATA = re.compile(rb'<script type="application/json" id="gputally-first">(.*?)</script>', re.DOTALL)


def page(s, **how):
    """Headers, and the answers inside by what would be asked for them; None: it has none."""
    status, headers, body = s.ask("/", **how)
    data = DATA.search(body)
    if status != 200 or not data or not headers["Content-Type"].startswith("text/html"):
        check("the page is there for everybody", False, (status, headers, body[:200]))
    return headers, body, json.loads(data[1]) if data and data[1] != b"@@DATA@@" else None


def whole_page(s, **how):
    """As page(), once it has all that is made before it is asked for."""
    came = wait(lambda: (p := page(s, **how))[2] and "findings" in p[2] and p)
    check("the first answers come into the page", bool(came))
    return came


def policy_of(headers, name):
    return next(part.split()[1:] for part in headers["Content-Security-Policy"].split(";") if part.split()[0] == name)


def first_answers(peer, db, folder, binary):
    with serving(peer, db) as s:
        if s.ask("/")[0] == 404:
            return  # a build without the page
        headers, body, data = whole_page(s)
        told = s.ask("/api/v1/report")[1]
        for element, policy in [("script", "script-src"), ("style", "style-src")]:
            inside = re.findall(rf"<{element}>(.*?)</{element}>".encode(), body, re.DOTALL)
            hashes = ["'sha256-" + base64.b64encode(hashlib.sha256(text).digest()).decode() + "'" for text in inside]
            check(f"the policy allows the page's own {element} and no other", len(inside) == 1 and
                  policy_of(headers, policy) == ["'self'", *hashes] and policy_of(told, policy) == ["'self'"], headers)
        check("and is else that of all paths", re.sub(r" 'sha256-\S+'", "", headers["Content-Security-Policy"]) ==
              told["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"], headers)
        check("a page with figures is stored nowhere", headers["Cache-Control"] == "private, no-store", headers)
        check("what is inside", {"meta", "report?by=team", "report?by=day", "report?window=30d&by=team", "findings"} <= set(data), list(data))
        for asked, answer in data.items():
            same = json.loads(s.ask("/api/v1/" + asked)[2])
            if asked == "meta":
                same["now"] = answer["now"]
            check(f"in the page {asked} is what the API says", answer == same)
        status, _, body = s.ask("/", headers={"Host": "evil.example"})
        check("another Host gets no page", status == 421 and not DATA.search(body), status)
        _, packed, body = s.ask("/", headers={"Accept-Encoding": "gzip"})
        check("packed it is the same", packed["Content-Encoding"] == "gzip" and DATA.search(gzip.decompress(body))[1][:1] == b"{")
    only_who_sees_everything(peer, db, folder)
    never_of_another_state(peer, folder, binary)


def only_who_sees_everything(peer, db, folder):
    path = os.path.join(folder, "page.yaml")

    def nobody_else(s, others):
        bare = None
        for name, how in others:
            headers, body, data = page(s, **how)
            bare = bare or body
            check(f"{name}: the page without figures, as everybody gets it", data is None and body == bare and
                  headers["Cache-Control"] == "no-cache", (headers, body[-300:]))
    with open(path, "w") as f:
        f.write(ACCESS)
    with serving(peer, db, config=path) as s:
        whole_page(s, token=ADMIN)
        nobody_else(s, [("no token", {}), ("an unknown token", {"token": "nonsense"}),
                        *((n, {"token": t}) for n, t in [("a team", SEARCH), ("a namespace", SPACE), ("a view of nothing", NOBODY),
                                                         ("who only writes", WRITER), ("who only scrapes", SCRAPER)]),
                        ("another scheme", {"headers": {"Authorization": "Basic YTpi"}})])
    with open(path, "w") as f:
        f.write("access: {proxy: {addresses: [127.0.0.0/8], header: X-User, users: [{name: root, scopes: [read]}, "
                "{name: ann, scopes: [read], teams: [search]}, {name: wil, scopes: [write]}]}}\n")
    with serving(peer, db, config=path) as s:
        user = lambda name: {"headers": {"X-User": name}}
        whole_page(s, **user("root"))
        nobody_else(s, [("no name", {}), *((name, user(name)) for name in ["ann", "wil", "bob", "root, ann", ""])])
    with open(path, "w") as f:
        f.write("access: {proxy: {addresses: [10.0.0.0/8], header: X-User, users: [{name: root, scopes: [read]}]}}\n")
    with serving(peer, db, config=path) as s:
        time.sleep(1)  # by then there would be some
        nobody_else(s, [("a name from elsewhere", {"headers": {"X-User": "root"}})])
    with open(path, "w") as f:
        f.write(ACCESS + "  allow_anonymous: true\n")
    with serving(peer, db, config=path) as s:
        whole_page(s)
        nobody_else(s, [("a team, where all may read", {"token": SEARCH}), ("an unknown token", {"token": "nonsense"})])


def never_of_another_state(peer, folder, binary):
    """A page has the ledger's state of the moment it was asked for, or no figures."""
    db = os.path.join(folder, "page.db")
    grow = lambda day: subprocess.run([binary, "demo", "--gpus", "16", "--days", "1", "--end", f"2026-11-{day}T00:00:00Z",
                                       "--db", db, "--quiet"], check=True, capture_output=True)
    grow(27)
    with serving(peer, db) as s:
        whole_page(s)
        for day in (28, 29):
            grow(day)
            data = page(s)[2]
            check("no page of the state before", data is None or data["meta"]["extent"]["to"] == f"2026-11-{day}T00:00:00Z", data and data["meta"])
            fresh = whole_page(s)[2]
            check("and soon one of the new one", fresh["meta"]["extent"]["to"] == f"2026-11-{day}T00:00:00Z" and
                  fresh["report?by=team"]["window"]["to"] == f"2026-11-{day}T00:00:00Z", fresh["meta"])


# ---- TLS ----

def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def certificate(folder, name, cn, ca=None, days="30", extra="subjectAltName=IP:127.0.0.1", usage=None):
    key, cert = os.path.join(folder, name + ".key"), os.path.join(folder, name + ".pem")
    more = ["-addext", extra] if extra else []
    if usage:
        more += ["-addext", "extendedKeyUsage=" + usage]
    signed = ["-CA", ca[0], "-CAkey", ca[1]] if ca else []
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
            "-days", days, "-subj", "/CN=" + cn, *signed, *more)
    return cert, key


def serial_of(port):
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    return hashlib.sha256(pem.encode()).hexdigest()


def tls(peer, db, folder):
    ca = certificate(folder, "ca", "test authority", extra="basicConstraints=critical,CA:true")
    other = certificate(folder, "other", "other authority", extra="basicConstraints=critical,CA:true")
    cert, key = certificate(folder, "server", "127.0.0.1", ca)
    config = os.path.join(folder, "tls.yaml")
    with open(config, "w") as f:
        f.write("access: {certificates: [{name: 'reader*', scopes: [read]}, {name: searcher, scopes: [read], teams: [search]}]}\n")
    trusting = ssl.create_default_context(cafile=ca[0])
    with serving(peer, db, tls=(cert, key)) as s:
        status, _, body = s.ask("/api/v1/report", context=trusting)
        check("TLS answers", status == 200 and body.startswith(b"{"), status)
        status, _, body = s.ask("/stream?bytes=3000000", context=trusting)
        check("and streams", body == b"x" * 3000000, len(body))
        got = s.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        check("plain HTTP is not answered there", b"200" not in got[:20], got[:50])
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        before = serial_of(s.port)
        kept = http.client.HTTPSConnection("127.0.0.1", s.port, timeout=10, context=trusting)
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        certificate(folder, "server", "127.0.0.1", ca)
        s.process.send_signal(signal.SIGHUP)
        done = s.tells("reload: done")
        after = serial_of(s.port)
        check("a renewed certificate is used after a reload", before != after and done, s.log[-2:])
        kept.request("GET", "/healthz")
        check("a connection of before goes on", kept.getresponse().read() == b"ok\n")
        kept.close()
        with open(cert, "w") as f:
            f.write("nonsense")
        s.process.send_signal(signal.SIGHUP)
        check("a broken one is refused with its name, and the last stays", s.tells("reload: certificate") and
              serial_of(s.port) == after, s.log[-2:])
        certificate(folder, "mixed", "127.0.0.1", ca)
        os.replace(os.path.join(folder, "mixed.pem"), cert)
        s.process.send_signal(signal.SIGHUP)
        check("a certificate without its key is refused", s.tells("is not that of certificate") and
              serial_of(s.port) == after, s.log[-2:])
    cert, key = certificate(folder, "server", "127.0.0.1", ca)
    reader = certificate(folder, "reader", "reader-1", ca, extra=None, usage="clientAuth")
    searcher = certificate(folder, "searcher", "searcher", ca, extra=None, usage="clientAuth")
    stranger = certificate(folder, "stranger", "reader-9", other, extra=None, usage="clientAuth")
    nobody = certificate(folder, "nobody", "nobody", ca, extra=None, usage="clientAuth")
    wrong_use = certificate(folder, "wrong", "reader-2", ca, extra=None, usage="serverAuth")
    with serving(peer, db, listen="0.0.0.0:0", config=config, tls=(cert, key, ca[0])) as s:
        for pair, wanted, name in [(reader, 200, "a certificate with rights"), (searcher, 200, "one with a view"),
                                   (nobody, 401, "one without rights"), (None, 401, "no certificate"),
                                   (stranger, 401, "one of another authority"), (wrong_use, 401, "one that is not for clients")]:
            context = ssl.create_default_context(cafile=ca[0])
            if pair:
                context.load_cert_chain(*pair)
            try:
                status = s.ask("/api/v1/report", context=context)[0]
            except (ssl.SSLError, OSError) as error:
                status = 401 if wanted == 401 else error
            check(f"{name}: {wanted}", status == wanted, status)
        context = ssl.create_default_context(cafile=ca[0])
        context.load_cert_chain(*searcher)
        teams = {row["team"] for row in json.loads(s.ask("/api/v1/report", context=context)[2])["rows"]}
        check("a certificate's view holds", teams == {"search"}, teams)


def reading_while_written(peer, folder, binary):
    """Answers are of one state, and new hours show without a restart."""
    db = os.path.join(folder, "growing.db")
    subprocess.run([binary, "demo", "--gpus", "16", "--days", "1", "--end", "2026-11-28T00:00:00Z", "--db", db, "--quiet"],
                   check=True, capture_output=True)
    with serving(peer, db) as s:
        first = json.loads(s.ask("/api/v1/meta")[2])["extent"]["to"]
        etag = s.ask("/api/v1/report")[1]["ETag"]
        bad = []
        stop = threading.Event()
        def watch():
            while not stop.is_set():
                report = json.loads(s.ask("/api/v1/report?window=60d")[2])
                if not report["balance"]["balanced"]:
                    bad.append(report["balance"])
        threads = [threading.Thread(target=watch) for _ in range(2)]
        for t in threads:
            t.start()
        subprocess.run([binary, "demo", "--gpus", "16", "--days", "2", "--end", "2026-11-29T00:00:00Z", "--db", db, "--quiet"],
                       check=True, capture_output=True)
        stop.set()
        for t in threads:
            t.join()
        check("no answer is of half a write", not bad, bad[:2])
        last = json.loads(s.ask("/api/v1/meta")[2])["extent"]["to"]
        check("another process's hours show", first < last, (first, last))
        check("and the ETag changes", s.ask("/api/v1/report")[1]["ETag"] != etag)
    with serving(peer, os.path.join(folder, "nothing.db")) as s:
        check("without a database it is not ready", s.ask("/readyz")[0] == 503 and s.ask("/healthz")[0] == 200)
        status, _, body = s.ask("/api/v1/report")
        check("and says so", status in (404, 503) and "error" in json.loads(body) and folder.encode() not in body, body)
        subprocess.run([binary, "demo", "--gpus", "8", "--days", "1", "--db", os.path.join(folder, "nothing.db"), "--quiet"],
                       check=True, capture_output=True)
        check("until there is one", s.ask("/readyz")[0] == 200 and s.ask("/api/v1/report")[0] == 200)


def main():
    binary = os.path.realpath(sys.argv[1])
    peer = os.path.join(os.path.dirname(binary), "http_peer")
    only = sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="gputally-http-") as folder:
        db = os.path.join(folder, "demo.db")
        subprocess.run([binary, "demo", "--gpus", "64", "--days", "5", "--end", "2026-11-30T00:00:00Z", "--db", db, "--quiet"],
                       check=True, capture_output=True)
        steps = {"basics": lambda: basics(peer, db), "connections": lambda: connections(peer, db),
                 "malformed": lambda: malformed(peer, db), "slow": lambda: slow_clients(peer, db),
                 "streams": lambda: streams(peer, db), "hosts": lambda: hosts(peer, db),
                 "documents": lambda: documents(peer, db), "commands": lambda: same_as_commands(peer, db, binary),
                 "metrics": lambda: metrics(peer, db), "series": lambda: series(peer, db), "scopes": lambda: scopes(peer, db, folder),
                 "views": lambda: views(peer, db, folder), "page": lambda: first_answers(peer, db, folder, binary), "tls": lambda: tls(peer, db, folder),
                 "writing": lambda: reading_while_written(peer, folder, binary)}
        for name, step in steps.items():
            if not only or name in only:
                step()
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
