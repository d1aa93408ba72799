#!/usr/bin/env python3
"""Alerts from a ledger to receivers that are there, refuse, come back and forget: each is told once, and told the end.

    tests/peers/test_alerts.py BINARY
"""

import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
import servers  # noqa: E402


class Receiver:
    """An HTTP server that keeps what it was sent; `status` is what it answers."""

    def __init__(self):
        self.got, self.status = [], 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.path, dict(self.headers), body, outer.status))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def taken(self):
        return [each for each in self.got if each[3] == 200]


CONFIG = """
serve: {{db: {db}, listen: "127.0.0.1:{port}"}}
alerts:
  every: 2s
  findings: {findings}
  idle: 24h
  link: http://dashboard.example/
  routes:
    - {{owner: nobody-*, to: []}}
    - {{to: [hook, chat, manager]}}
  receivers:
    - {{name: hook, kind: webhook, url: "{hook}{way}", secret_file: secret}}
    - {{name: chat, kind: slack, url_file: chat.url}}
    - {{name: manager, kind: alertmanager, url: "{manager}"}}
"""


WAY = "/in/api/v1/query/?sig=a%2Bb&v=1"     # webhooks have addresses of many shapes: it is asked as it is


def configure(folder, port, receivers, findings=1):
    hook, chat, manager = receivers
    path = os.path.join(folder, "config.yaml")
    with open(os.path.join(folder, "secret"), "w", encoding="utf-8") as file:
        file.write("s3cret\n")
    with open(os.path.join(folder, "chat.url"), "w", encoding="utf-8") as file:
        file.write(chat.url + "/services/T0/B0/x\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(db=os.path.join(folder, "gpu.db"), port=port, findings=findings, hook=hook.url, way=WAY,
                                 manager=manager.url))
    return path


def is_signed(message):
    path, headers, body, _ = message
    parts = dict(part.split("=", 1) for part in headers["X-Gputally-Signature"].split(","))
    expected = hmac.new(b"s3cret", parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return path == WAY and hmac.compare_digest(expected, parts["v1"]) and abs(time.time() - int(parts["t"])) < 600


def alerts_of(messages):
    return [alert for message in messages for alert in json.loads(message[2])["alerts"]]


@contextlib.contextmanager
def served(binary, config, port, log):
    command = [binary, "serve", "--config", config]
    with servers.started(command, f"http://127.0.0.1:{port}/healthz", log):
        yield


def active(url):
    """Alerts that an Alertmanager holds for firing, by alertname."""
    with urllib.request.urlopen(f"{url}/api/v2/alerts?active=true", timeout=10) as answer:
        alerts = json.load(answer)
    return sorted(alert["labels"]["alertname"] for alert in alerts if alert["status"]["state"] == "active"), alerts


def real_alertmanager(binary, folder, port, receivers):
    """Debian's Alertmanager: what fires, goes on over a kill and in quiet hours, and ends."""
    hook = receivers[0]
    at, state = servers.free_port(), os.path.join(folder, "alertmanager")
    url = f"http://127.0.0.1:{at}"
    with open(os.path.join(folder, "alertmanager.yml"), "w", encoding="utf-8") as file:
        file.write("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    command = ["prometheus-alertmanager", f"--config.file={folder}/alertmanager.yml", f"--storage.path={state}",
               f"--web.listen-address=127.0.0.1:{at}", "--cluster.listen-address="]
    sources = f"sources:\n  - {{kind: prometheus, cluster: x, url: 'http://127.0.0.1:{servers.free_port()}'}}\n"
    manager = type("At", (), {"url": url})

    def write(findings, quiet=""):
        path = configure(folder, port, (receivers[0], receivers[1], manager), findings)
        with open(path, "r+", encoding="utf-8") as file:
            text = file.read().replace("alerts:\n  every: 2s\n", f"alerts:\n  every: 1s\n{quiet}")
            file.seek(0)
            file.write(text + sources)
        return path

    def told():
        return len(hook.taken())

    with servers.started(command, f"{url}/-/ready", os.path.join(folder, "am.log")):
        config = write(1)
        serve, before = [binary, "serve", "--config", config], told()
        with open(os.path.join(folder, "log"), "ab") as log:
            process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=log)
            try:
                check("a real Alertmanager has what fires", wait(lambda: "GputallyFinding" in active(url)[0]), active(url)[0])
                names, alerts = active(url)
                first = alerts[0]
                check("with labels, words and where to look", {"alertname", "key", "owner", "severity"} <= set(first["labels"])
                      and first["annotations"]["summary"] and first["generatorURL"] == "http://dashboard.example/", first)
                wait(lambda: told() > before)
                for _ in range(2):  # rounds later all of that is on disk
                    stamp = active(url)[1][0]["updatedAt"]
                    wait(lambda: active(url)[1][0]["updatedAt"] != stamp)
                before = told()
                process.kill()  # no chance to write anything
                process.wait()
                process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=log)
                time.sleep(4)
                check("a kill -9 rings nobody again", told() == before, (before, told()))
                check("and ends nothing", wait(lambda: active(url)[0] == names), (names, active(url)[0]))
                write(1, "  quiet: {days: [mon, tue, wed, thu, fri, sat, sun]}\n")
                process.send_signal(signal.SIGHUP)
                time.sleep(8)  # twice as long as silence would need to end them
                check("quiet hours end nothing either", wait(lambda: active(url)[0] == names), (names, active(url)[0]))
                write(10**9, "  quiet: {days: [mon, tue, wed, thu, fri, sat, sun]}\n")
                process.send_signal(signal.SIGHUP)
                time.sleep(6)
                check("in quiet hours nobody is told of an end", told() == before, (before, told()))
                write(10**9)
                process.send_signal(signal.SIGHUP)
                check("then it is over", wait(lambda: "GputallyFinding" not in active(url)[0]), active(url)[0])
                check("and the webhook hears of it once", wait(lambda: told() == before + 1), (before, told()))
            finally:
                process.terminate()
                process.wait(timeout=60)


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return float(re.search(rf"^{name} (\S+)", answer.read().decode(), re.M)[1])


def is_ready(port):
    """(is it, the check `alerts`)."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    ready = json.loads(text)
    return ready["ready"], next(check for check in ready["checks"] if check["name"] == "alerts")


@contextlib.contextmanager
def unreadable(db):
    """No reader can make anything of the database, until the block ends."""
    kept = {end: db + end + ".kept" for end in ("", "-wal", "-shm") if os.path.exists(db + end)}
    for end, path in kept.items():
        os.rename(db + end, path)
    with open(db, "wb") as file:
        file.write(b"no database " * 1000)
    try:
        yield
    finally:
        for end, path in kept.items():
            os.replace(path, db + end)


def blind(binary, config, port, folder, hook, manager):
    """Nobody can read the ledger: Alertmanager goes on hearing of what it knows, for a day; the others of nothing."""
    db, log = os.path.join(folder, "gpu.db"), os.path.join(folder, "log")
    rounds = "gputally_alerts_blind_rounds_total"
    with served(binary, config, port, log):
        seen = len(manager.taken())
        check("Alertmanager is told as long as it looks", wait(lambda: len(manager.taken()) > seen))
        names = sorted(each["labels"]["key"] for each in json.loads(manager.taken()[-1][2]))
        told = len(hook.taken())
        check("it says that it looks", is_ready(port)[1]["ok"] and metric(port, rounds) == 0, is_ready(port))
        with unreadable(db):
            check("rounds go by in which nothing is read", wait(lambda: metric(port, rounds) >= 2))
            seen, before = len(manager.taken()), metric(port, rounds)
            check("and more than Alertmanager would wait", wait(lambda: metric(port, rounds) >= before + 5))
            check("it is told in each of them", len(manager.taken()) >= seen + 4, (seen, len(manager.taken())))
            last = json.loads(manager.taken()[-1][2])
            check("of all that fires, and that it goes on", sorted(each["labels"]["key"] for each in last) == names
                  and all(each["endsAt"] > each["startsAt"] for each in last), last[:1])
            ready, alerts = is_ready(port)
            check("readyz says since when, and until when", not ready and not alerts["ok"]
                  and len(re.findall(r"20\d\d-\d\d-\d\dT", alerts["why"])) == 2 and db not in alerts["why"], alerts)
        check("then it looks again", wait(lambda: is_ready(port)[1]["ok"]), is_ready(port))
        check("and nobody was told of an end or twice", len(hook.taken()) == told, (told, len(hook.taken())))
    os.environ["GPUTALLY_TEST_CLOCK"] = time.strftime("%Y-%m-%dT%H:%M:%SZ,3600", time.gmtime())    # an hour a second
    try:
        with served(binary, config, port, log):
            seen = len(manager.taken())
            wait(lambda: len(manager.taken()) > seen)
            with unreadable(db):
                began = wait(lambda: metric(port, rounds) >= 1)
                first = len(manager.taken())
                over = wait(lambda: "goes_on=nothing" in open(log, encoding="utf-8").read())
                last, n = len(manager.taken()), metric(port, rounds)
                check("for a day, and no longer", began and over and last >= first
                      and wait(lambda: metric(port, rounds) >= n + 3) and len(manager.taken()) <= last,
                      (began, over, first, last, len(manager.taken())))
    finally:
        del os.environ["GPUTALLY_TEST_CLOCK"]


def main(binary):
    receivers = hook, chat, manager = Receiver(), Receiver(), Receiver()
    with tempfile.TemporaryDirectory() as folder:
        port = servers.free_port()
        config = configure(folder, port, receivers)
        log = os.path.join(folder, "log")
        # A ledger of the last three days, in which some of 24 GPUs are idle: no source is needed any more.
        subprocess.run([binary, "demo", "--gpus", "24", "--days", "3", "--step", "5m", "--gap", "15m", "--quiet", "--db",
                        os.path.join(folder, "gpu.db")], check=True, stdout=subprocess.DEVNULL)
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"sources:\n  - {{kind: prometheus, cluster: x, url: 'http://127.0.0.1:{servers.free_port()}'}}\n")

        listed = subprocess.run([binary, "alerts", "list", "--config", config], capture_output=True, text=True,
                                check=True).stdout
        count = int(listed.strip().splitlines()[-1].split()[0])
        check("list tells nobody", count > 0 and not hook.got and "hook, chat, manager" in listed, listed)

        test = subprocess.run([binary, "alerts", "test", "--config", config], capture_output=True, text=True, check=False)
        check("test reaches all", test.returncode == 0 and test.stdout.count("delivered") == 3, test.stdout + test.stderr)
        chat.status = 403
        test = subprocess.run([binary, "alerts", "test", "--config", config], capture_output=True, text=True, check=False)
        check("test says who was not reached, and not where", test.returncode == 1 and "/services" not in test.stdout
              and "chat.url" in test.stdout, test.stdout)
        for receiver in receivers:
            receiver.got.clear()

        with served(binary, config, port, log):
            check("the webhook is told, signed", wait(lambda: hook.taken()) and is_signed(hook.taken()[0]))
            check("everything in one message", len(alerts_of(hook.taken())) == count, f"{count} listed")
            check("a receiver that refuses is tried again", wait(lambda: len(chat.got) >= 2))
            chat.status = 200
            check("and told when it takes it", wait(lambda: chat.taken()))
            text = json.loads(chat.taken()[0][2])["text"]
            check("Slack has the dashboard", "<http://dashboard.example/|" in text, text)
            check("Alertmanager is told in each round", wait(lambda: len(manager.taken()) >= 3))
            check("its path", manager.taken()[0][0] == "/api/v2/alerts")
            check("nobody else is told twice", len(hook.taken()) == 1 and len(chat.taken()) == 1)

        with served(binary, config, port, log):
            check("after a restart Alertmanager hears again", wait(lambda: len(manager.taken()) >= 5))
            check("and the others do not", len(hook.taken()) == 1 and len(chat.taken()) == 1)

        blind(binary, config, port, folder, hook, manager)

        configure(folder, port, receivers, findings=10**9)
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"sources:\n  - {{kind: prometheus, cluster: x, url: 'http://127.0.0.1:{servers.free_port()}'}}\n")
        with served(binary, config, port, log):
            check("what is over is told after three rounds", wait(lambda: len(hook.taken()) >= 2))
            over = alerts_of(hook.taken()[1:])
            check("as resolved", over and all(each["status"] == "resolved" and each["kind"] == "finding" for each in over),
                  over)
        real_alertmanager(binary, folder, port, receivers)
        state = os.path.join(folder, "gpu.db.alerts.json")
        check("the state is kept beside the database", os.path.exists(state) and os.stat(state).st_mode & 0o77 == 0)
    for receiver in receivers:
        receiver.server.shutdown()
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
