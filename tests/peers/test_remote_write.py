#!/usr/bin/env python3
"""Real senders of remote write, a Prometheus and a vmagent, push to a receiver that is slow, answers 5xx, and is
killed and started again. Afterwards every sample that the Prometheus has is in the journal, exactly.

    tests/peers/test_remote_write.py BINARY     (ingest_peer lies beside what BINARY points to)
"""

import contextlib
import http.server
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
import servers  # noqa: E402

METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "up")
GPUS = 16
SCRAPE_MS = 200
PUSH_S = 6


@contextlib.contextmanager
def exporter():
    """Address of a target whose values change with every scrape, and whose GPUs change their pods."""
    state = {"n": 0}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            state["n"] += 1
            lines = ["# HELP go_goroutines nobody wants these", "# TYPE go_goroutines gauge", "go_goroutines 7"]
            for gpu in range(GPUS):
                pod = f"run-{(state['n'] // 9 + gpu) % 5}"
                labels = f'UUID="GPU-{gpu}",pod="{pod}",note="a\\"b\\\\c"'
                lines.append(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {(state['n'] * 7 + gpu) % 101}")
                lines.append(f"DCGM_FI_DEV_FB_USED{{{labels}}} {state['n'] * 1.1 + gpu / 3}")
            body = ("\n".join(lines) + "\n").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with servers.answering(Handler) as address:
        yield address


class Receiver:
    """An ingest_peer that comes and goes; senders find it on one port, by a relay of TCP."""

    def __init__(self, peer, journal):
        self.peer, self.journal, self.process, self.port = peer, journal, None, None
        self.said = []

    def start(self, *options):
        self.process = subprocess.Popen([self.peer, "serve", self.journal, *options], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.port = None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.said += self.process.stdout.read().splitlines()
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.port = None
        return status


@contextlib.contextmanager
def relay(receiver):
    """A front with a port that stays; 502 while nobody is behind it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = 502, b""
            if receiver.port:
                request = urllib.request.Request(f"http://127.0.0.1:{receiver.port}{self.path}", data=body, method="POST")
                for name in ("Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version"):
                    if self.headers.get(name):
                        request.add_header(name, self.headers[name])
                try:
                    with urllib.request.urlopen(request, timeout=20) as answer:
                        status, text = answer.status, answer.read()
                except urllib.error.HTTPError as error:
                    status, text = error.code, error.read()
                except OSError:
                    pass
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args):
            pass

    with servers.answering(Handler) as address:
        yield f"http://{address}/api/v1/write"


def sender_config(target, write):
    config = f"""global: {{scrape_interval: {SCRAPE_MS}ms, external_labels: {{cluster: prod, prometheus_replica: a}}}}
scrape_configs:
- job_name: dcgm
  static_configs: [{{targets: ["{target}"], labels: {{node: gpu-1}}}}]
"""
    if write:
        config += f"""remote_write:
- url: {write}
  queue_config: {{min_backoff: 30ms, max_backoff: 300ms, batch_send_deadline: 200ms, max_shards: 4}}
"""
    return config


@contextlib.contextmanager
def prometheus(work, target, write):
    port = servers.free_port()
    url = f"http://127.0.0.1:{port}"
    path = os.path.join(work, "prometheus.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(sender_config(target, write))
    command = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={work}/tsdb",
               f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with servers.started(command, url + "/-/ready", os.path.join(work, "prometheus.log")):
        yield url


@contextlib.contextmanager
def vmagent(work, target, write):
    port = servers.free_port()
    path = os.path.join(work, "vmagent.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(sender_config(target, None))
    command = ["vmagent", f"-promscrape.config={path}", f"-remoteWrite.url={write}",
               f"-remoteWrite.tmpDataPath={work}/vmagent-data", "-remoteWrite.flushInterval=200ms",
               f"-httpListenAddr=127.0.0.1:{port}", "-loggerLevel=WARN"]
    with servers.started(command, f"http://127.0.0.1:{port}/health", os.path.join(work, "vmagent.log")):
        yield port


def key_of(labels):
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def bits(value):
    """A value as its bits: NaN and -0 are told apart."""
    return struct.pack(">d", float(value))


def of_prometheus(url, until):
    """{(series, ms): bits} of raw samples up to a time, without stale markers."""
    out = {}
    for metric in METRICS:
        query = urllib.parse.urlencode({"query": f"{metric}[1h]", "time": f"{until / 1000:.3f}"})
        with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=30) as answer:
            for series in json.load(answer)["data"]["result"]:
                labels = {**series["metric"], "cluster": "prod"}
                for stamp, value in series["values"]:
                    out[key_of(labels), round(stamp * 1000)] = bits(value)
    return out


def read_labels(text):
    """Labels of a dumped line's head."""
    name, _, rest = text.partition("{")
    labels, i = {"__name__": name}, 0
    while i < len(rest) and rest[i] != "}":
        end = rest.index('="', i)
        label, i, value = rest[i:end], end + 2, ""
        while rest[i] != '"':
            if rest[i] == "\\":
                i += 1
            value += rest[i]
            i += 1
        labels[label] = value
        i += 2 if rest[i + 1:i + 2] == "," else 1
    return labels


def of_journal(peer, journal):
    """The same of a journal; and how often a sample stands there twice, and its stale markers."""
    out, twice, stale = {}, 0, set()
    text = subprocess.run([peer, "dump", journal], check=True, capture_output=True, text=True).stdout
    known = {}
    for line in text.splitlines():
        if line == "# EOF":
            continue
        head, value, stamp = line.rsplit(" ", 2)
        key = known.get(head)
        if key is None:
            key = known[head] = key_of(read_labels(head))
        if value == "stale":
            stale.add((key, int(stamp)))
            continue
        at = key, round(float(stamp) * 1000)
        twice += at in out
        if at in out and out[at] != bits(value):
            raise ValueError(f"two values at {at}")
        out[at] = bits(value)
    return out, twice, stale


def compare(name, expected, actual):
    missing = [at for at in expected if at not in actual]
    other = [at for at in expected if at in actual and actual[at] != expected[at]]
    check(f"{name}: every sample is in the journal", expected and not missing,
          f"{len(missing)} of {len(expected)} are missing, as {missing[:2]}")
    check(f"{name}: with its exact value", not other, f"{len(other)} differ, as {other[:2]}")
    check(f"{name}: and nobody's but the wanted metrics'",
          {dict(key)["__name__"] for key, _ in actual} == set(METRICS))


def wait_until_pushed(receiver, peer, work, whole):
    """Senders catch up when the receiver is well again, in a minute or two: wait until what is in its journal is whole."""
    found = []

    def pushed():
        copy = os.path.join(work, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(receiver.journal, copy)
        found[:] = of_journal(peer, copy)
        return whole(found[0])
    wait(pushed)
    return found


def bad_times(receiver):
    """Slow, then failing, killed again and again, then well."""
    for options in (["--slow-ms", "150"], ["--fail-every", "2"], ["--fail-every", "3", "--slow-ms", "20"]):
        receiver.start("--segment-bytes", "20000", *options)
        time.sleep(PUSH_S / 3)
        receiver.kill()
        time.sleep(0.3)
    receiver.start("--segment-bytes", "20000")
    time.sleep(PUSH_S / 3)


def test_prometheus(peer, work):
    with exporter() as target:
        receiver = Receiver(peer, os.path.join(work, "journal"))
        with relay(receiver) as write, prometheus(work, target, write) as url:
            bad_times(receiver)
            until = int(time.time() * 1000) - 500
            expected = of_prometheus(url, until)
            actual, twice, stale = wait_until_pushed(receiver, peer, work, lambda actual: not set(expected) - set(actual))
            compare("prometheus", expected, actual)
            check("prometheus: pods that left have stale markers", stale)
            print(f"      {len(expected)} samples, {twice} of them twice, {len(stale)} stale markers")
            check("prometheus: the receiver ends cleanly", receiver.stop() == 0)


def holes(actual):
    """(Which answers of the target are missing, as what it was asked the n-th time is in its values; how many came too
    late for the scraper, which it says by up.)"""
    seen = {round(struct.unpack(">d", value)[0] / 1.1) for (key, _), value in actual.items()
            if dict(key)["__name__"] == "DCGM_FI_DEV_FB_USED" and dict(key)["UUID"] == "GPU-0"}
    late = sum(value == bits(0) for (key, _), value in actual.items() if dict(key)["__name__"] == "up")
    return set(range(min(seen, default=0), max(seen, default=0))) - seen, late


def test_vmagent(peer, work):
    """vmagent keeps no samples itself; what it sends again it sends later and later."""
    if not shutil.which("vmagent"):
        print("skip  vmagent is not installed")
        return
    with exporter() as target:
        receiver = Receiver(peer, os.path.join(work, "journal"))
        with relay(receiver) as write:
            receiver.start()
            with vmagent(work, target, write):
                time.sleep(1.5)
                receiver.kill()
                time.sleep(0.5)
                receiver.start("--fail-every", "3")
                time.sleep(1.5)
                receiver.kill()
                receiver.start()
                time.sleep(3)
                wait_until_pushed(receiver, peer, work, lambda actual: len(holes(actual)[0]) <= holes(actual)[1])
            receiver.stop()
    actual, twice, _ = of_journal(peer, os.path.join(work, "journal"))
    stamps = sorted({stamp for key, stamp in actual if dict(key)["__name__"] == "up"})
    check("vmagent: samples arrive", len(stamps) > 8, f"{len(stamps)} scrapes")
    missing, late = holes(actual)
    check("vmagent: without a hole over kills and errors", len(missing) <= late, f"{missing}, {late} late")
    for stamp in stamps:
        names = [dict(key)["__name__"] for key, at in actual if at == stamp]
        if len(names) not in (1, 1 + 2 * GPUS):
            check("vmagent: scrapes are whole", False, f"{len(names)} series at {stamp}")
            break
    else:
        check("vmagent: scrapes are whole", True)
    print(f"      {len(actual)} samples, {twice} of them twice")


def main():
    peer = os.path.join(os.path.dirname(os.path.realpath(sys.argv[1])), "ingest_peer")
    with tempfile.TemporaryDirectory() as work:
        test_prometheus(peer, work)
    with tempfile.TemporaryDirectory() as work:
        test_vmagent(peer, work)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
