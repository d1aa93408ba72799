#!/usr/bin/env python3
"""SIGHUP changes the limits of HTTP and of collecting, all of them or none: test_reload.py BINARY

What was asked before goes on where the server stays; every limit that is changed is seen to hold afterwards, and not
to hold after a configuration in which anything is wrong."""

import contextlib
import http.server
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, PATIENCE_S, attempt, verdict  # noqa: E402
import servers  # noqa: E402
from service import Service, write_config  # noqa: E402


class Exporter(http.server.BaseHTTPRequestHandler):
    """A GPU that idles; counts how often it is asked."""
    asked = 0
    TEXT = (b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="n1",modelName="NVIDIA A100"} 0\n')

    def do_GET(self):  # noqa: N802
        type(self).asked += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(self.TEXT)))
        self.end_headers()
        self.wfile.write(self.TEXT)

    def log_message(self, *_):
        pass


class Running:
    """A service over a configuration that is written anew."""

    def __init__(self, binary, folder, target):
        self.binary, self.path = binary, os.path.join(folder, "config.json")
        self.db = os.path.join(folder, "gpu.db")
        self.port, self.target = servers.free_port(), target
        subprocess.run([binary, "demo", "--gpus", "8", "--days", "1", "--step", "5m", "--gap", "15m", "--quiet", "--db",
                        self.db], check=True, stdout=subprocess.DEVNULL)
        self.write()
        self.service = Service(binary, ["--config", self.path], folder, listen=None)

    def write(self, serve=None, limits=None, source=None):
        write_config(self.path, {
            "serve": {"db": self.db, "listen": f"127.0.0.1:{self.port}", "every": "1h", **({"limits": limits} if limits else {}),
                      **(serve or {})},
            "sources": [{"kind": "scrape", "cluster": "lab", "targets": [self.target], "interval": "10m", **(source or {})}]})

    def reload(self, words="the configuration was read again", **keys):
        seen = self.service.logged().count(words)
        self.write(**keys)
        self.service.send(signal.SIGHUP)
        self.service.until(words, lambda: self.service.logged().count(words) > seen)

    def refused(self, why, **keys):
        """A reload that is refused as a whole, for this reason."""
        self.reload("the last one stays", **keys)
        status, text = self.service.ready()
        if status != 503 or not re.search(why, text):
            raise Failed(f"{keys}: /readyz says {status}: {text}")

    def check(self, config):
        path = write_config(os.path.join(os.path.dirname(self.path), "wrong.json"), config)
        return subprocess.run([self.binary, "config", "check", path], capture_output=True, text=True, timeout=PATIENCE_S)

    def wrong(self, config, why):
        done = self.check(config)
        if done.returncode == 0 or not re.search(why, done.stderr):
            raise Failed(f"config check of {config}: {done.returncode} {done.stderr}")

    def fine(self, config):
        done = self.check(config)
        if done.returncode:
            raise Failed(f"config check of {config}: {done.stderr}")

    def connect(self, data=b""):
        one = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        one.sendall(data)
        return one

    def status(self, data):
        """Of what comes back for these bytes; 0: nothing did."""
        with self.connect(data) as one:
            got = one.recv(200)
        return int(got.split()[1]) if got else 0

    def rounds(self):
        found = re.search(r'^gputally_collect_rounds_total\S* (\S+)', self.service.ask("/metrics")[1], re.M)
        return float(found[1]) if found else 0


def head(more=b""):
    return b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + more + b"\r\n"


def post(length):
    """All of a request but its body's last byte, and that byte."""
    return (b"POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: snappy\r\nContent-Type: "
            b"application/x-protobuf\r\nContent-Length: %d\r\n\r\n" % length) + b"x" * (length - 1), b"x"


HOUR = {"head_timeout": "1h", "body_timeout": "1h", "idle_timeout": "1h"}
LONG = head(b"X-Long: " + b"y" * 8000 + b"\r\n")


def headers_and_bodies(run):
    """header_bytes, body_bytes_total: what was taken before is not afterwards, and is again."""
    body = b"".join(post(5000))
    before = run.status(LONG), run.status(body)
    if before[0] != 200 or before[1] != 404:   # 404: there is no tenant for it; it was read
        raise Failed(f"before: {before}")
    for wrong, why in (({"limits": {"header_bytes": 4096, "body_bytes_total": 1000, "queue": 0}}, "queue|at least|1"),
                       ({"limits": {"header_bytes": 4096, "body_timeout": "soon"}}, "soon|duration"),
                       ({"limits": {"header_bytes": 4096}, "serve": {"history": "soon"}}, "history|soon"),
                       ({"limits": {"header_bytes": 4096}, "source": {"interval": "never"}}, "interval|never"),
                       ({"limits": {"header_bytes": 4096, "body_bites": 1}}, "did you mean|unknown key")):
        run.refused(why, **wrong)
        if run.status(LONG) != 200 or run.status(body) != 404:
            raise Failed(f"a part of {wrong} took effect")
    run.reload(limits={"header_bytes": 4096, "body_bytes_total": 1000})
    after = run.status(LONG), run.status(body)
    if after[0] not in (400, 413, 431) or after[1] != 503:
        raise Failed(f"with less: {after}")
    run.reload()
    if (run.status(LONG), run.status(body)) != before:
        raise Failed("with the standard limits again")


def times(run):
    """head_timeout, body_timeout, idle_timeout: a connection that would be kept for an hour is ended once they are short."""
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for key, sent, answered in (("head_timeout", b"GET /hea", False), ("body_timeout", post(5000)[0], False),
                                ("idle_timeout", asked, True)):
        run.reload(limits={**HOUR, key: "1s"})
        with run.connect(sent) as one:
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := one.recv(1000):     # its own time limit is the test's
                    got += piece
            if answered != got.startswith(b"HTTP/1.1 200"):
                raise Failed(f"{key}: {got[:200]}")
    run.reload()


def in_hand(run):
    """What is in hand when other keys change: it is answered, however long it takes."""
    begun, rest = post(5000)
    run.reload(limits=HOUR)
    with run.connect(begun) as one, run.connect(b"GET /healthz HTTP/1.1\r\nHost: loc") as two:
        run.reload(limits=HOUR, serve={"every": "2h"})
        run.refused("soon", limits=HOUR, serve={"every": "soon"})
        run.reload(limits=HOUR, serve={"every": "1h"})
        one.sendall(rest)
        two.sendall(b"alhost\r\n\r\n")
        got = one.recv(200).split()[1:2], two.recv(200).split()[1:2]
        if got != ([b"404"], [b"200"]):
            raise Failed(f"after three reloads: {got}")


def collecting(run):
    """A source's interval, and every. A reload makes a round at once; the next one comes when it is due."""
    run.reload(source={"interval": "1s"})
    asked = Exporter.asked
    run.service.until("scrapes every second", lambda: Exporter.asked >= asked + 4)
    run.service.until("being ready", lambda: run.service.ready()[0] == 200)
    before = run.rounds()
    run.refused("soon", serve={"every": "1s", "history": "soon"}, source={"interval": "1s"})
    if run.rounds() > before:      # every is an hour
        raise Failed("rounds of a configuration that was refused")
    run.reload(serve={"every": "1s"}, source={"interval": "1s"})
    begin = run.rounds()
    run.service.until("rounds every second", lambda: run.rounds() >= begin + 4)
    run.reload(serve={"journal_cap": "256MiB", "retain": "30d"})
    run.service.until("being ready", lambda: run.service.ready()[0] == 200)


def certificate(folder):
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                    "-subj", "/CN=x", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def said(run):
    """What is wrong is said before it runs: what, where, and what to do; and neither runs nor is taken at a reload."""
    cert, key = certificate(os.path.dirname(run.db))
    edge = {"name": "edge", "hash": "sha256:" + 64 * "0"}
    writer = {"kind": "remote-write", "cluster": "edge", "tenant": "edge"}
    form = r"ADDRESS:PORT, such as 127\.0\.0\.1:9475"
    for config, why in (
            ({"listen": "127.0.0.1:99999"}, r"wrong\.json:\d+:\d+: '127\.0\.0\.1:99999' .*" + form),
            ({"listen": "127.0.0.1"}, form), ({"listen": 9475}, form), ({"listen": "127.0.0.1:80x"}, form),
            ({"limits": {"head_timeout": "0s"}}, r"wrong\.json:\d+:\d+: a time over 0"),
            ({"tls": {"cert": "/nowhere.pem", "key": key}}, r"wrong\.json:\d+:\d+: cannot read /nowhere\.pem: No such file"),
            ({"tls": {"cert": cert, "key": "/nowhere.key"}}, r"wrong\.json:\d+:\d+: cannot read /nowhere\.key: No such file"),
            ({"tls": {"cert": cert, "key": cert}}, r"key \S+cert\.pem: .* private key in PEM"),
            ({"tls": {"cert": cert, "key": key, "client_ca": "/nowhere.ca"}}, r"wrong\.json:\d+:\d+: cannot read /nowhere\.ca")):
        run.wrong({"serve": {"db": run.db, **config}}, why)
    for access in ({}, {"access": {"tokens": [edge]}}, {"access": {"tokens": [{**edge, "name": "other", "scopes": ["write"]}]}}):
        run.wrong({"serve": {"db": run.db}, "sources": [writer], **access},
                  r"wrong\.json:\d+:\d+: nobody may send samples as 'edge': .* scope write .*gputally config token")
    run.fine({"serve": {"db": run.db, "tls": {"cert": cert, "key": key}}, "sources": [writer],
              "access": {"tokens": [{**edge, "scopes": ["write"]}]}})
    run.fine({"serve": {"db": run.db}, "sources": [writer],
              "access": {"certificates": [{"name": "ed*", "scopes": ["write"]}]}})
    done = subprocess.run([run.binary, "serve", "--db", run.db + "2", "--listen", "127.0.0.1:99999"], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    if done.returncode == 0 or not re.search(form, done.stderr):
        raise Failed(f"--listen 127.0.0.1:99999: {done.returncode} {done.stderr}")
    run.refused("ADDRESS:PORT", serve={"listen": "127.0.0.1:99999"})


CHECKS = (said, headers_and_bodies, times, in_hand, collecting)


def main(binary):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="gputally-e2e-reload-") as folder:
        run = Running(binary, folder, f"127.0.0.1:{server.server_address[1]}")
        with run.service.wait():
            for check in CHECKS:
                attempt(check.__name__, check, run)
            attempt("the end", run.service.end)
    server.shutdown()
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
