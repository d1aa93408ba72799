"""Peers for tests: a real Prometheus or VictoriaMetrics filled with a fleet's samples, and a proxy that
takes remote read away. All listen on 127.0.0.1 on a port of their own and end with the `with` block."""

import contextlib
import http.client
import http.server
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

from checks import wait

LIFETIME = "100y"   # of data, so that a fleet of any date stays


PORTS = range(12000, 30000)   # the kernel gives none of them to a connection
_kept = []


def free_port():
    """A port that nobody listens on now, and that no test is given again while this one lives."""
    for port in random.SystemRandom().sample(PORTS, 200):
        keeper = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as probe:
            keeper.bind(f"\0gputally-test-port-{port}")
            probe.bind(("127.0.0.1", port))
            _kept.append(keeper)
            return port
        keeper.close()
    raise RuntimeError("no port is free")


def wait_ready(url, process, log):
    """Until the URL answers 200; the log's end is the error where it does not."""
    def ready():
        with contextlib.suppress(OSError, http.client.HTTPException):
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status == 200
    if not wait(lambda: process.poll() is not None or ready()) or process.poll() is not None:
        with open(log, encoding="utf-8", errors="replace") as file:
            raise RuntimeError(f"{url} is not ready:\n{file.read()[-2000:]}")


@contextlib.contextmanager
def started(command, url, log):
    """Run a server until the block ends."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        wait_ready(url, process, log)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def load_tsdb(metrics_om, tsdb):
    """Make Prometheus blocks of an OpenMetrics file, once."""
    if os.path.isdir(tsdb):
        return
    making = f"{tsdb}.making-{os.getpid()}"
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet",
                    "--max-block-duration=24h", metrics_om, making], check=True, stdout=subprocess.DEVNULL)
    os.rename(making, tsdb)


@contextlib.contextmanager
def prometheus(tsdb, work, settings="global: {}"):
    """A Prometheus over existing blocks; gives its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    config = os.path.join(work, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(settings + "\n")
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tsdb}",
               f"--storage.tsdb.retention.time={LIFETIME}", f"--web.listen-address=127.0.0.1:{port}",
               "--log.level=warn"]
    with started(command, url + "/-/ready", os.path.join(work, "prometheus.log")):
        yield url


def to_exposition(metrics_om, path):
    """Prometheus text (stamps in ms) of an OpenMetrics file (stamps in s)."""
    with open(metrics_om, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as out:
        for line in source:
            if line.startswith("#"):
                continue
            head, stamp = line.rstrip("\n").rsplit(" ", 1)
            whole, _, rest = stamp.partition(".")
            out.write(f"{head} {whole}{(rest + '000')[:3]}\n")


@contextlib.contextmanager
def victoria_metrics(metrics_om, work):
    """A VictoriaMetrics filled with an OpenMetrics file; gives its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    data = os.path.join(work, "victoria-data")
    shutil.rmtree(data, ignore_errors=True)
    command = ["victoria-metrics", f"-storageDataPath={data}", f"-retentionPeriod={LIFETIME}",
               f"-httpListenAddr=127.0.0.1:{port}", "-loggerLevel=WARN", "-search.latencyOffset=0s",
               "-search.maxUniqueTimeseries=1000000", "-memory.allowedPercent=20"]
    with started(command, url + "/health", os.path.join(work, "victoria.log")):
        text = os.path.join(work, "metrics.prom")
        to_exposition(metrics_om, text)
        with open(text, "rb") as file:
            request = urllib.request.Request(url + "/api/v1/import/prometheus", data=file, method="POST",
                                             headers={"Content-Length": str(os.path.getsize(text))})
            urllib.request.urlopen(request, timeout=600).close()
        os.unlink(text)
        urllib.request.urlopen(url + "/internal/force_flush", timeout=60).close()
        try:
            yield url
        finally:
            pass
    shutil.rmtree(data, ignore_errors=True)


@contextlib.contextmanager
def answering(handler, tls=None):
    """The address of an HTTP server with this handler, a thread a connection, until the block ends."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None   # who asks may hang up
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = None   # "127.0.0.1:port"

    def _pass(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        if self.path.partition("?")[0].endswith("/api/v1/read"):
            text = b"404 page not found\n"
            self.send_response(404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        connection = http.client.HTTPConnection(self.upstream, timeout=600)
        try:
            headers = {name: value for name, value in self.headers.items()
                       if name.lower() not in ("host", "connection", "content-length", "expect")}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while block := answer.read(1 << 16):
                self.wfile.write(b"%x\r\n" % len(block) + block + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        finally:
            connection.close()

    do_GET = do_POST = _pass

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def without_remote_read(url):
    """A proxy in front of a server that answers 404 to remote read, as servers without it do."""
    with answering(type("Proxy", (_Proxy,), {"upstream": url.removeprefix("http://")})) as address:
        yield "http://" + address


if __name__ == "__main__":
    sys.exit("a library: see compare_fleetsim.py")
