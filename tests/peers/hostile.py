"""A server that misbehaves on purpose, scenario by scenario: http://127.0.0.1:PORT/SCENARIO is the address
to give to a client. It has three series of one metric, a sample a minute, and speaks remote read (streamed
chunks) and the query API as far as a client of raw samples needs them."""

import contextlib
import http.server
import json
import re
import struct
import time
import urllib.parse

import servers

METRIC = "DCGM_FI_DEV_GPU_UTIL"
FIRST = 1_772_917_200_000
STEP = 60_000
LATE = FIRST + 239 * STEP - 1   # a stamp of no sample
COUNT = 240                 # samples of a series, four hours
SERIES = [{"__name__": METRIC, "UUID": f"GPU-{n}", "gpu": str(n)} for n in range(3)]
STREAMED = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
CHUNK = 120


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(at, value):
    return varint(at << 3) + varint(value)


def xor_chunk(first, count, value):
    """Equal values at equal distances: after the second sample every bit is 0."""
    assert count >= 2
    bits = 1 + 2 * (count - 2)
    return struct.pack(">H", count) + varint(first << 1) + struct.pack(">d", value) + varint(STEP) + \
        bytes((bits + 7) // 8)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frames():
    """The whole data as frames of a stream."""
    out = []
    for n, labels in enumerate(SERIES):
        series = b"".join(field(1, field(1, name.encode()) + field(2, text.encode()))
                          for name, text in sorted(labels.items()))
        for start in range(0, COUNT, CHUNK):
            first = FIRST + start * STEP
            chunk = number(1, first) + number(2, first + (CHUNK - 1) * STEP) + number(3, 1) + \
                field(4, xor_chunk(first, CHUNK, 10.0 * (n + 1)))
            series += field(2, chunk)
        message = field(1, series)
        out.append(varint(len(message)) + struct.pack(">I", crc32c(message)) + message)
    return out


FRAMES = frames()
STREAM = b"".join(FRAMES)


def matrix(query, at):
    """Answer to METRIC{…}[Nms] at a time in seconds."""
    length = int(re.search(r"\[(\d+)ms\]", query)[1])
    last = int(float(at) * 1000)
    result = []
    for n, labels in enumerate(SERIES):
        values = [[t / 1000, str(10.0 * (n + 1))] for t in range(FIRST, FIRST + COUNT * STEP, STEP)
                  if last - length < t <= last]
        if values:
            result.append({"metric": labels, "values": values})
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}, length


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state = None   # {"seen": {scenario: requests for data}, …}

    def log_message(self, *args):
        pass

    def send(self, status, body, kind="application/json", headers=(), length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        if length is not None and length != len(body):
            self.wfile.flush()
            self.close_connection = True

    def error(self, status, text, headers=()):
        body = json.dumps({"status": "error", "errorType": "x", "error": text}, separators=(",", ":"))
        self.send(status, body.encode(), headers=headers)

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        path, _, query = self.path.partition("?")
        if path.startswith("http://"):   # asked as a proxy
            path = "/" + path.split("/", 3)[3]
            self.state["as_proxy"] = self.state.get("as_proxy", 0) + 1
        _, scenario, rest = path.split("/", 2)
        form = urllib.parse.parse_qs(query or body.decode("latin-1"))
        self.state["agents"].add(self.headers.get("User-Agent"))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            early = getattr(self, "all_" + scenario, None)
            if early and early():
                return
            if rest == "api/v1/read":
                if b"gputally_probe" in body:   # is remote read there at all?
                    return self.read_probe(scenario)
                self.state["seen"][scenario] = seen = self.state["seen"].get(scenario, 0) + 1
                return getattr(self, "read_" + scenario, lambda _: self.read_good())(seen)
            if rest == "api/v1/query":
                self.state["seen"][scenario] = seen = self.state["seen"].get(scenario, 0) + 1
                return getattr(self, "query_" + scenario, self.query_good)(form, seen)
            if rest == "api/v1/label/__name__/values":
                return getattr(self, "names_" + scenario, self.names_good)()
            self.send(404, b"404 page not found\n", "text/plain")

    # what a good server does
    def read_probe(self, scenario):
        if hasattr(self, "query_" + scenario):
            self.send(400, b'unsupported path requested: "/api/v1/read"', "text/plain")
        else:
            self.send(200, b"", STREAMED)

    def read_good(self):
        self.send(200, STREAM, STREAMED)

    def query_good(self, form, _):
        if "[" not in form["query"][0] or "count" in form["query"][0]:
            return self.send(200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
                {"metric": {"__name__": METRIC}, "value": [1, "3"]}]}}).encode())
        self.send(200, json.dumps(matrix(form["query"][0], form["time"][0])[0]).encode())

    def names_good(self):
        self.send(200, json.dumps({"status": "success", "data": ["up", METRIC]}).encode())

    # remote read that misbehaves
    def read_cut_twice(self, seen):
        if seen <= 2:
            self.send(200, STREAM[:len(STREAM) * 2 // 3], STREAMED, length=len(STREAM))
        else:
            self.read_good()

    def read_cut_always(self, _):
        self.send(200, STREAM[:len(STREAM) // 2], STREAMED, length=len(STREAM))

    def read_short_frame(self, _):
        self.send(200, STREAM[:len(STREAM) - 7], STREAMED)

    def read_busy(self, seen):
        if seen == 1:
            self.state["told_to_wait"] = time.monotonic()
            self.error(429, "too many requests", [("Retry-After", "1")])
        else:
            self.state["came_back"] = time.monotonic()
            self.read_good()

    def read_ill_twice(self, seen):
        if seen <= 2:
            self.error(500, "boom")
        else:
            self.read_good()

    def read_ill(self, _):
        self.error(500, "disk is gone")

    def read_wrong_crc_once(self, seen):
        self.send(200, self.damaged() if seen == 1 else STREAM, STREAMED)

    def read_wrong_crc(self, _):
        self.send(200, self.damaged(), STREAMED)

    def damaged(self):
        return STREAM[:-1] + bytes([STREAM[-1] ^ 1])

    def read_appended_error(self, _):
        self.send(200, FRAMES[0] + b"query processing would load too much\n", STREAMED)

    def read_huge_frame(self, _):
        self.send(200, varint(1 << 40) + b"\0" * 100, STREAMED)

    def read_bomb(self, _):
        self.send(200, varint(3 << 30) + b"\0" * 95, "application/x-protobuf", [("Content-Encoding", "snappy")])

    def read_stuck(self, _):
        self.send_response(200)
        self.send_header("Content-Type", STREAMED)
        self.send_header("Content-Length", str(len(STREAM)))
        self.end_headers()
        self.wfile.write(STREAM[:50])
        self.wfile.flush()
        time.sleep(20)
        self.close_connection = True

    def read_drip(self, _):
        self.send_response(200)
        self.send_header("Content-Type", STREAMED)
        self.send_header("Content-Length", str(len(STREAM)))
        self.end_headers()
        for at in range(60):
            self.wfile.write(STREAM[at:at + 1])
            self.wfile.flush()
            time.sleep(0.25)
        self.close_connection = True

    # everything misbehaves
    def all_web_page(self):
        self.send(200, b"<!DOCTYPE html><html><title>Welcome</title></html>", "text/html; charset=utf-8")
        return True

    def all_nothing(self):
        self.send(200, b"")
        return True

    def all_other_json(self):
        self.send(200, b'{"hello": "world"}')
        return True

    def all_no_json(self):
        self.send(200, b"It works!\n", "text/plain")
        return True

    def all_elsewhere(self):
        self.send(302, b"", headers=[("Location", "http://other.example/login")])
        return True

    def all_login(self):
        if self.headers.get("Authorization") == "Bearer good-token":
            return False
        self.error(401, "Unauthorized")
        return True

    def all_password(self):
        if self.headers.get("Authorization") == "Basic YW5uOnNlY3JldC13b3Jk":   # ann:secret-word
            return False
        self.send(401, b"<html>please log in</html>", "text/html", [("WWW-Authenticate", "Basic")])
        return True

    def all_tenant(self):
        if self.headers.get("X-Scope-OrgID") == "team-a":
            return False
        self.send(401, b"no org id\n", "text/plain")
        return True

    def all_forbidden(self):
        self.error(403, "tenant may not read")
        return True

    def all_not_found(self):
        self.send(404, b"404 page not found\n", "text/plain")
        return True

    # range selectors
    def query_limited(self, form, seen):
        if "[" not in form["query"][0] or "count" in form["query"][0]:
            return self.query_good(form, seen)
        answer, length = matrix(form["query"][0], form["time"][0])
        if length > 1_800_001:
            return self.error(422, "query processing would load too many samples into memory in query execution")
        self.send(200, json.dumps(answer).encode())

    def query_tiny_limit(self, form, seen):
        if "[" not in form["query"][0] or "count" in form["query"][0]:
            return self.query_good(form, seen)
        self.error(422, "query processing would load too many samples into memory in query execution")

    def query_warns(self, form, _):
        answer, _ = matrix(form["query"][0], form["time"][0])
        answer["warnings"] = ["store 10.0.0.7 did not answer"]
        self.send(200, json.dumps(answer).encode())

    def query_nan(self, form, _):
        answer, _ = matrix(form["query"][0], form["time"][0])
        for series in answer["data"]["result"]:
            series["values"].append([LATE / 1000, "NaN"])
        self.send(200, json.dumps(answer).encode())

    def query_victoria(self, form, _):
        answer, _ = matrix(form["query"][0], form["time"][0])
        for series in answer["data"]["result"]:
            series["values"].append([LATE / 1000, "NaN"])
        self.send(200, json.dumps(answer).encode(), headers=[("X-Server-Hostname", "vm")])

    def query_json_cut(self, form, seen):
        text = json.dumps(matrix(form["query"][0], form["time"][0])[0]).encode()
        self.send(200, text if seen % 2 == 0 else text[:-20])

    def query_error_in_200(self, form, _):
        self.send(200, b'{"status":"error","errorType":"bad_data","error":"no such thing"}')

    # names
    def names_no_gpus(self):
        self.send(200, json.dumps({"status": "success", "data": ["up", "node_cpu_seconds_total"]}).encode())

    def names_empty_server(self):
        self.send(200, json.dumps({"status": "success", "data": []}).encode())


@contextlib.contextmanager
def running(tls=None):
    """(URL, state) of the server until the block ends; tls: an ssl.SSLContext."""
    state = {"seen": {}, "agents": set()}
    handler = type("Hostile", (Handler,), {"state": state})
    with servers.answering(handler, tls) as address:
        yield f"{'https' if tls else 'http'}://{address}", state
