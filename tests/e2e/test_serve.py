#!/usr/bin/env python3
"""gputally serve, whole: test_serve.py BINARY [--only NAMES] [--seed N]

A simulated fleet in a real Prometheus, played in fleet time (hours in seconds), is collected by the service
while it is asked, killed, reloaded, and has its database taken away; the ledger in the end is that of one
undisturbed `gputally export`, byte for byte. The seed is printed first, and gives the same run again."""

import argparse
import contextlib
import http.server
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, PATIENCE_S, attempt, verdict, wait  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402
from service import END_S, Service, units, write_config  # noqa: E402

STEP_S = 60
HOURS = 6
SPEED = 1800


class Lab:
    """The fleet in a Prometheus, and what its ledger is."""

    def __init__(self, binary, rng, url, folder, work):
        self.binary, self.rng, self.url, self.folder, self.work = binary, rng, url, folder, work
        arguments = fleets.ledger_arguments(folder)
        self.facts = arguments[:arguments.index("--window")]
        self.window = fleets.window(folder)
        self.low, self.high = (units.parse_time(text) for text in self.window.split(","))
        self.whole = self.export(["--prometheus", url])
        self.count = 0

    def path(self, name):
        return os.path.join(self.work, name)

    def fresh(self, name="ledger.db"):
        """A database that is not there yet, in a folder of its own."""
        self.count += 1
        folder = self.path(f"{self.count}")
        os.makedirs(folder)
        return os.path.join(folder, name)

    def export(self, source, window=None, more=()):
        facts = [] if source[0] == "--db" else self.facts
        done = subprocess.run([self.binary, "export", "ledger", *source, *facts, "--window", window or self.window,
                               *more, "--output", "csv"], capture_output=True, timeout=600)
        if done.returncode:
            raise Failed(f"export {source}: {done.stderr.decode()[-500:]}")
        return done.stdout

    def run(self, *command):
        return subprocess.run([self.binary, *command], capture_output=True, timeout=600, text=True)

    def serve(self, database, clock=None, sources=None, more=(), **keys):
        """A service over the fleet; clock: hours after its begin, at full speed unless said."""
        begin, speed = clock or (1.5, SPEED)
        arguments = [*(sources if sources is not None else ["--prometheus", self.url]), *self.facts,
                     "--db", database, "--history", "12h", "--every", "5m", *more]
        return Service(self.binary, arguments, os.path.dirname(database),
                       (self.low + int(begin * units.HOUR_MS), speed), **keys).wait()

    def same(self, got, what, whole=None):
        whole = self.whole if whole is None else whole
        if got != whole:
            old, new = set(whole.splitlines()), got.splitlines()
            kept = tempfile.mkdtemp(prefix="gputally-e2e-")
            for name, text in (("expected.csv", whole), ("actual.csv", got)):
                with open(os.path.join(kept, name), "wb") as file:
                    file.write(text)
            raise Failed(f"{what}: {len(new)} rows against {len(old)}, {sum(row not in old for row in new)} differ "
                         f"(kept in {kept})")


def closed_to(service, cluster=None):
    """Up to where the log says that the books are closed, ms; 0 not yet."""
    found = re.findall(r"msg=booked cluster=(\S+) .*?watermark=(\S+)", service.logged())
    marks = [units.parse_time(mark) for name, mark in found if mark != "none" and cluster in (None, name)]
    return max(marks, default=0)


def until_closed(lab, service, cluster=None):
    service.until(f"the end of the fleet {cluster or ''}", lambda: closed_to(service, cluster) >= lab.high)


# ---------------------------------------------------------------- the checks

def equals_a_run(lab):
    """What is collected as the hours go is what one run over all of them gives; and it answers meanwhile."""
    database = lab.fresh()
    with lab.serve(database) as service:
        asked = 0
        end = time.monotonic() + PATIENCE_S
        while closed_to(service) < lab.high:
            if time.monotonic() > end:
                raise Failed(f"not through: {service.logged()[-1000:]}")
            status, _ = service.ask("/healthz")
            if status != 200:
                raise Failed(f"/healthz says {status}")
            if closed_to(service):
                status, text = service.ask("/api/v1/report?window=" + lab.window)
                if status != 200 or not text.startswith("{"):
                    raise Failed(f"/api/v1/report says {status}: {text[:300]}")
                asked += 1
            time.sleep(0.1)
        if not asked:
            raise Failed("never asked for a report")
        status, text = service.ready()
        if status != 200 and "catching up" not in text:   # the fleet's time is fast, this machine may not be
            raise Failed(f"/readyz says {status}: {text}")
        service.end()
    lab.same(lab.export(["--db", database]), "collected live")
    done = lab.run("db", "check", "--db", database)
    if done.returncode:
        raise Failed(f"db check: {done.stderr}")


def killed(lab):
    """kill -9 at random moments, each time taken up by the next service: the same ledger."""
    database = lab.fresh()
    kills = 0
    at = 1.5
    while at < HOURS + 2:
        with lab.serve(database, clock=(at, SPEED), name=f"serve-{kills}") as service:
            seconds = lab.rng.uniform(0.05, 2.5)
            time.sleep(seconds)
            service.kill()
        at += seconds * SPEED / 3600 * lab.rng.uniform(0.4, 1.0)   # sometimes the clock has gone back
        kills += 1
    with lab.serve(database, clock=(HOURS + 2, SPEED), name="serve-last") as service:
        until_closed(lab, service)
        service.end()
    lab.same(lab.export(["--db", database]), f"killed {kills} times")


def goes_on_from_collect(lab):
    """A database that collect filled is gone on with, and the other way round."""
    database = lab.fresh()
    middle = lab.low + 3 * units.HOUR_MS
    first = f"{units.format_time(lab.low)},{units.format_time(middle)}"
    done = lab.run("collect", "--prometheus", lab.url, *lab.facts, "--window", first, "--db", database)
    if done.returncode:
        raise Failed(done.stderr)
    with lab.serve(database, clock=(4.5, SPEED / 4)) as service:
        service.until("a booking", lambda: "msg=booked" in service.logged())
        service.end()
    done = lab.run("collect", "--prometheus", lab.url, *lab.facts, "--window", lab.window, "--db", database)
    if done.returncode:
        raise Failed(done.stderr)
    lab.same(lab.export(["--db", database]), "collect, serve, collect")


class Slow(http.server.BaseHTTPRequestHandler):
    """Takes connections and never answers."""
    held = None

    def do_POST(self):
        self.held.wait(10 * END_S)

    do_GET = do_POST

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def silent_server():
    """A server that never answers anything."""
    held = threading.Event()
    with servers.answering(type("Held", (Slow,), {"held": held})) as address:
        try:
            yield "http://" + address
        finally:
            held.set()


def clusters(lab):
    """Two clusters in one database, a third that never answers: both are booked in time, each as if it were
    alone, and it ends although a request is waiting."""
    database = lab.fresh()
    with silent_server() as silent:
        sources = [{"cluster": "one", "url": lab.url},
                   {"cluster": "two", "url": lab.url, "api": "query"},
                   {"cluster": "dead", "url": silent}]
        with open(lab.facts[lab.facts.index("--config") + 1], encoding="utf-8") as file:
            config = json.load(file)
        config["sources"] = sources
        path = write_config(os.path.join(os.path.dirname(database), "config.json"), config)
        facts = ["--config", path, *lab.facts[2:]]
        arguments = [*facts, "--db", database, "--history", "12h", "--every", "5m"]
        with Service(lab.binary, arguments, os.path.dirname(database),
                     (lab.low + 90 * 60_000, SPEED)).wait() as service:
            until_closed(lab, service, "one")
            until_closed(lab, service, "two")
            service.end()
    head, *rows = lab.export(["--db", database]).splitlines()
    at = head.decode().split(",").index("cluster")
    alone = lab.whole.splitlines()[1:]
    wanted = [named(row, at, name) for name in (b"one", b"two") for row in alone]
    if sorted(rows) != sorted(wanted):
        raise Failed(f"two clusters: {len(rows)} rows, {len(wanted)} from each alone, "
                     f"{len(set(rows) - set(wanted))} others")


def named(row, at, name):
    """The row as it is where series that do not say their cluster are of this one."""
    fields = row.split(b",")
    return row if fields[at] != b"-" else b",".join(fields[:at] + [name] + fields[at + 1:])


def reload(lab):
    """SIGHUP: a wrong configuration is refused as a whole and said with its place; a right one takes effect."""
    database = lab.fresh()
    folder = os.path.dirname(database)
    path = os.path.join(folder, "config.json")
    good = {"serve": {"db": database, "every": "5m", "history": "12h"}, "sources": [{"cluster": "a", "url": lab.url}]}
    write_config(path, good)
    with Service(lab.binary, ["--config", path], folder, (lab.low + 3 * units.HOUR_MS, 1)).wait() as service:
        service.until("a booking", lambda: "msg=booked cluster=a" in service.logged())
        write_config(path, {**good, "sources": [{"cluster": "b", "url": lab.url, "colour": "red"}]})
        service.send(signal.SIGHUP)
        service.until("the refusal", lambda: "the last one stays" in service.logged())
        if not re.search(r"config\.json:\d+:\d+: unknown key 'colour'", service.logged()):
            raise Failed(f"without its place: {service.logged()[-600:]}")
        service.says(503, "colour")
        for wrong in ({"access": {"tokens": [{"name": "me"}]}},
                      {"sources": [{"url": lab.url, "bearer_token_file": "/nowhere"}]},
                      {"rules": {"idle-workload": {"held": "soon"}}}):
            seen = service.logged().count("the last one stays")
            write_config(path, {**good, **wrong})
            service.send(signal.SIGHUP)
            service.until(f"the refusal of {wrong}",
                          lambda: service.logged().count("the last one stays") > seen)
        write_config(path, {**good, "sources": [*good["sources"], {"cluster": "b", "url": lab.url}]})
        service.send(signal.SIGHUP)
        service.until("the other cluster", lambda: "msg=booked cluster=b" in service.logged())
        service.until("being ready", lambda: service.ready()[0] == 200)
        os.unlink(path)
        service.send(signal.SIGHUP)
        service.until("the refusal of nothing", lambda: "No such file" in service.logged())
        service.end()


def make_cert(folder, name):
    """(certificate, key) of its own name."""
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                    "-subj", f"/CN={name}", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return {"cert": cert, "key": key}


def served(port, tls=True):
    """The PEM that a port shows, or whether it answers plainly."""
    if tls:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=PATIENCE_S)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S) as answer:
        return answer.status


def answered(port, n):
    """Of n connections at a time, how many get an answer."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)) for _ in range(n)]
        count = 0
        for one in sockets:
            with contextlib.suppress(OSError):
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                count += one.recv(100).startswith(b"HTTP/1.1 200")
        return count


def refuses(port):
    """Nobody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return False
    except ConnectionRefusedError:
        return True


def reload_server(lab):
    """SIGHUP changes limits, certificates and the address, without a refused connection where the address stays;
    with one thing wrong it changes nothing; the database and the journal need a restart, and it says so."""
    database = lab.fresh()
    folder = os.path.dirname(database)
    path = os.path.join(folder, "config.json")
    here, there = servers.free_port(), servers.free_port()
    one, two = make_cert(folder, "one"), make_cert(folder, "two")
    serve = {"db": database, "every": "5m", "history": "12h", "listen": f"127.0.0.1:{here}"}
    source = {"cluster": "a", "url": lab.url}

    def configure(sources=(), **keys):
        write_config(path, {"serve": {**serve, **keys}, "sources": [source, *sources]})
    configure()
    with Service(lab.binary, ["--config", path], folder, (lab.low + 3 * units.HOUR_MS, 1), listen=None).wait() as service:
        def reload_with(what, words="the configuration was read again", **keys):
            seen = service.logged().count(words)
            configure(**keys)
            service.send(signal.SIGHUP)
            service.until(what, lambda: service.logged().count(words) > seen)

        def refused_with(what, why, **keys):
            words = "the last one stays"
            reload_with(what, words, sources=[{"cluster": "b", "url": lab.url}], **keys)
            if not re.search(why, [line for line in service.logged().splitlines() if words in line][-1]) or "cluster=b" in service.logged():
                raise Failed(f"{what}: {service.logged()[-600:]}")
        with Asking(here) as asking:
            if answered(here, 8) != 8:
                raise Failed("8 connections are too many before")
            for n in itertools.count(100):
                reload_with("other limits", limits={"connections_per_address": n})
                if n >= 102 and asking.n >= 20:
                    break
            reload_with("the limits of before")
        if asking.failed:
            raise Failed(f"{asking.n} requests while it reloads: {asking.failed}")
        reload_with("fewer connections", limits={"connections_per_address": 4})
        if answered(here, 8) > 4:
            raise Failed("limits: connections_per_address has no effect")
        reload_with("TLS", tls=one)
        if served(here) != open(one["cert"], encoding="ascii").read():
            raise Failed("another certificate than one")
        reload_with("other files", tls=two)
        refused_with("a key of another certificate", "is not that of certificate", tls={**one, "key": two["key"]})
        refused_with("no such file", r"nowhere\.pem", tls={**one, "cert": os.path.join(folder, "nowhere.pem")})
        shutil.copy(one["cert"], two["cert"])
        refused_with("the same path, other bytes", "is not that of certificate", tls=two)
        shutil.copy(one["key"], two["key"])
        reload_with("a renewed certificate", tls=two)
        if served(here) != open(one["cert"], encoding="ascii").read():
            raise Failed("the renewed certificate is not served")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            refused_with("an address that is taken", "in use", listen="127.0.0.1:%d" % taken.getsockname()[1])
        refused_with("an open address", "loopback", listen="0.0.0.0:%d" % there)
        refused_with("another database", r"serve\.db changes with a restart only", db=database + "2")
        refused_with("another journal", r"serve\.journal changes with a restart only", journal=os.path.join(folder, "j"))
        served(here)   # still there, still TLS
        if os.path.exists(database + "2"):
            raise Failed("the other database was made")
        reload_with("another address, without TLS", listen=f"127.0.0.1:{there}")
        if served(there, tls=False) != 200:
            raise Failed("it does not answer at the other address")
        if not wait(lambda: refuses(here)):
            raise Failed("the last address still answers")
        service.url = f"http://127.0.0.1:{there}"
        service.until("being ready", lambda: service.ready()[0] == 200)
        service.end()


FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def clock_steps(lab):
    """The machine's clock goes back an hour, a day ahead, and is right again, in a zone with summer time: nothing is
    booked twice, nothing of the future is, and it goes on by itself."""
    if not os.path.exists(FAKETIME):
        raise Failed(f"{FAKETIME} is missing: scripts/deps test")
    database = lab.fresh()
    path = os.path.join(os.path.dirname(database), "clock")

    def set_clock(hours):
        """To so many hours after the fleet's begin."""
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{(lab.low + hours * units.HOUR_MS) / 1000 - time.time():+.3f}\n")
        os.replace(path + ".new", path)
    set_clock(3.5)
    env = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": path, "FAKETIME_NO_CACHE": "1",
           "FAKETIME_DONT_FAKE_MONOTONIC": "1", "TZ": "America/New_York"}
    with Service(lab.binary, ["--prometheus", lab.url, *lab.facts, "--db", database, "--history", "12h", "--every", "1s"],
                 os.path.dirname(database), env=env).wait() as service:
        two_hours = lab.low + 2 * units.HOUR_MS
        service.until("two closed hours", lambda: closed_to(service) == two_hours)
        set_clock(2.5)
        service.until("the step back", lambda: "the clock was set" in service.logged())
        service.two_rounds()
        if closed_to(service) != two_hours:
            raise Failed("the watermark moved with the clock's step back")
        set_clock(3.5 + 24)
        service.until("doubt", lambda: "the clock jumped forward" in service.ready()[1])
        time.sleep(2)
        if closed_to(service) != two_hours:
            raise Failed("hours of the future are closed")
        set_clock(3.6)
        service.until("trust", lambda: service.ready()[0] == 200)
        service.two_rounds()
        set_clock(3.65)   # a small step: believed at once
        service.two_rounds()
        if closed_to(service) != two_hours:
            raise Failed("the watermark moved")
        if service.logged().count("the clock was set") < 3:
            raise Failed(f"steps are not told: {service.logged()[-800:]}")
        service.end()
    window = f"{units.format_time(lab.low)},{units.format_time(two_hours)}"
    lab.same(lab.export(["--db", database], window), "after steps of the clock", lab.export(["--prometheus", lab.url], window))
    head, *rows = lab.export(["--db", database]).decode().splitlines()
    hours = {row.split(",")[0] for row in rows}
    if max(hours) != units.format_time(two_hours):
        raise Failed(f"{head.split(',')[0]}s {sorted(hours)} are booked, the last should be the open one")


class Asking:
    """Asks a port again and again, each time over a connection of its own."""

    def __init__(self, port):
        self.port, self.n, self.failed, self.stop = port, 0, [], False

    def run(self):
        while not self.stop:
            try:
                served(self.port, tls=False)
            except OSError as error:
                self.failed.append(str(error))
            self.n += 1

    def __enter__(self):
        self.threads = [threading.Thread(target=self.run) for _ in range(3)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        for thread in self.threads:
            thread.join()


def ends(lab):
    """SIGINT ends it like SIGTERM; a second signal at once; nothing is left behind but the ledger."""
    database = lab.fresh()
    with lab.serve(database) as service:
        service.end(signal.SIGINT)
    if os.path.exists(database + ".lock"):
        raise Failed("the lock stayed")
    with silent_server() as silent, lab.serve(database, sources=["--prometheus", silent]) as service:
        time.sleep(0.3)
        service.send(signal.SIGTERM)
        service.send(signal.SIGTERM)
        service.process.wait(timeout=END_S)


def source_down(lab):
    """A source that is down is told, waited for longer and longer, and caught up with when it is back."""
    database = lab.fresh()
    port = servers.free_port()
    front = [sys.executable, "-c", FORWARD, str(port), lab.url.rsplit(":", 1)[1]]
    with lab.serve(database, clock=(2.5, SPEED / 4), sources=["--prometheus", f"http://127.0.0.1:{port}"]) as service:
        service.until("three failures", lambda: service.logged().count("cannot read a source") >= 3)
        service.says(503, "onnect")
        pauses = [int(text) for text in re.findall(r"again_in_s=(\d+)", service.logged())]
        if pauses != sorted(pauses):
            raise Failed(f"pauses of {pauses} s")
        process = subprocess.Popen(front)
        try:
            service.until("a booking", lambda: "msg=booked" in service.logged())
            service.until("being ready", lambda: service.ready()[0] == 200)
            service.end()
        finally:
            process.kill()
            process.wait()


FORWARD = """
import socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    finally:
        for s in (a, b):
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    near, _ = server.accept()
    far = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def database_taken(lab):
    """Another process has the database: it says who, answers from what is there, and writes once it may."""
    database = lab.fresh()
    done = lab.run("collect", "--prometheus", lab.url, *lab.facts, "--window", lab.window, "--db", database)
    if done.returncode:
        raise Failed(done.stderr)
    import fcntl
    with open(database + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        with lab.serve(database, clock=(HOURS + 3, 60)) as service:
            service.says(503, f"process {os.getpid()}")
            status, text = service.ask("/api/v1/report?window=" + lab.window)
            if status != 200:
                raise Failed(f"/api/v1/report says {status}: {text[:300]}")
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.unlink(lock.name)
            service.until("being ready", lambda: service.ready()[0] == 200)
            service.end()


def database_damaged(lab):
    """A damaged database: it answers that and what to do; what db repair makes of it is taken up."""
    database = lab.fresh()
    done = lab.run("collect", "--prometheus", lab.url, *lab.facts, "--window", lab.window, "--db", database)
    if done.returncode:
        raise Failed(done.stderr)
    with open(database, "r+b") as file:   # the root of the schema
        file.seek(100)
        file.write(os.urandom(60000))
    with lab.serve(database, clock=(HOURS + 3, 60)) as service:
        service.says(503, "damaged", "db repair")
        if service.ask("/healthz")[0] != 200:
            raise Failed("it does not answer")
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(database + end)
        service.until("being ready", lambda: service.ready()[0] == 200)
        service.end()


def disk_full(lab):
    """No room on the disk: it says so, keeps answering, and goes on once there is room."""
    database = lab.fresh()
    with lab.serve(database, clock=(HOURS + 3, 60), limit=200_000) as service:
        service.until("the full disk", lambda: "no room left" in service.logged())
        service.says(503, "no room left")
        if service.ask("/healthz")[0] != 200:
            raise Failed("it does not answer")
        subprocess.run(["prlimit", "--pid", str(service.process.pid), "--fsize=unlimited"], check=True)
        service.until("being ready", lambda: service.ready()[0] == 200)
        until_closed(lab, service)
        service.end()
    lab.same(lab.export(["--db", database]), "after a full disk")


def backup(lab):
    """db backup copies what a service writes; db commands that need the file for themselves say who has it."""
    database = lab.fresh()
    with lab.serve(database) as service:
        service.until("a booking", lambda: "msg=booked" in service.logged())
        for number in range(3):
            done = lab.run("db", "backup", "--db", database, f"{database}.{number}")
            if done.returncode:
                raise Failed(f"db backup: {done.stderr}")
            time.sleep(0.3)
        done = lab.run("db", "vacuum", "--db", database)
        if done.returncode != 1 or f"process {service.process.pid}" not in done.stderr:
            raise Failed(f"db vacuum: {done.returncode} {done.stderr}")
        service.end()
    for number in range(3):
        done = lab.run("db", "check", "--db", f"{database}.{number}")
        if done.returncode:
            raise Failed(f"db check of a copy: {done.stderr}")


def notifies(lab):
    """systemd hears that it is ready, alive, reloading and stopping."""
    database = lab.fresh()
    path = os.path.join(os.path.dirname(database), "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(PATIENCE_S)
        heard = []

        def hear(word):
            while not any(word in text for text in heard):
                heard.append(listener.recv(1000).decode())
        with lab.serve(database, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}) as service:
            hear("READY=1")
            hear("WATCHDOG=1")
            service.send(signal.SIGHUP)
            hear("RELOADING=1\nMONOTONIC_USEC=")
            heard.clear()
            hear("READY=1")
            service.send(signal.SIGTERM)
            hear("STOPPING=1")
            service.process.wait(timeout=END_S)


def fails_closed(lab):
    """tests/cases/19-serve-fail-open: it does not start open to the world, and shows no secret."""
    folder = os.path.join(os.path.dirname(HERE), "cases", "19-serve-fail-open")
    done = lab.run("serve", "--config", os.path.join(folder, "config.json"), "--db", lab.fresh())
    if done.returncode == 0 or "SECRET" in done.stdout + done.stderr:
        raise Failed(f"the config as it is: {done.returncode} {done.stderr}")
    database = lab.fresh()
    work = os.path.dirname(database)
    secret = os.path.join(work, "token")
    with open(secret, "w", encoding="ascii") as file:
        file.write("SECRET-prom-5f1c\n")
    config = {"serve": {"db": database, "listen": "0.0.0.0:9475", "log": {"level": "debug"}},
              "sources": [{"cluster": "c", "url": "http://user:SECRET-ak-77aa@127.0.0.1:1",
                           "bearer_token_file": secret}]}
    path = write_config(os.path.join(work, "config.json"), config)
    done = lab.run("serve", "--config", path)
    if done.returncode == 0 or "loopback" not in done.stderr or "SECRET" in done.stderr:
        raise Failed(f"open to the world: {done.returncode} {done.stderr}")
    token, digest = re.search(r": (gpt_\S+)\n.*hash: '(\S+)'", lab.run("config", "token").stdout, re.S).groups()
    config["access"] = {"tokens": [{"name": "me", "hash": digest, "scopes": ["read"]}]}
    config["serve"]["hosts"] = ["gputally.example"]
    write_config(path, config)
    with Service(lab.binary, ["--config", path], work).wait() as service:
        seen = []
        for line in open(os.path.join(folder, "requests.txt"), encoding="utf-8"):
            method, target = line.split()[:2]
            host = re.search(r"header Host: (\S+)", line)
            for headers in ({}, {"Authorization": f"Bearer {token}"}):
                with_host = {**headers, **({"Host": host[1]} if host else {})}
                status, text = service.ask(target.replace("<", "%3C").replace(">", "%3E"), with_host, method,
                                           b"g5.xlarge,on-demand,0.01,1,A10G" if method != "GET" else None)
                seen.append(text)
                if method != "GET" and status not in (401, 403, 404, 405):
                    raise Failed(f"{line.strip()}: {status}")
                if ".." in target or "%2e" in target or host:
                    if status not in (400, 401, 403, 404, 421):
                        raise Failed(f"{line.strip()}: {status}")
                if target == "/metrics" and not headers and status != 401:
                    raise Failed(f"{line.strip()} without a token: {status}")
        status, text = service.ask("/api/v1/report?window=9999999d", {"Authorization": f"Bearer {token}"})
        seen.append(text)
        if status != 400:
            raise Failed(f"a window of 9999999 days: {status} {text[:200]}")
        service.until("the source's failure", lambda: "cannot read a source" in service.logged())
        seen += [service.ready()[1], service.logged()]
        if any("SECRET" in text for text in seen):
            raise Failed("a secret is shown")
        service.end()


CHECKS = (equals_a_run, killed, goes_on_from_collect, clusters, reload, reload_server, ends, source_down, clock_steps, database_taken,
          database_damaged, disk_full, backup, notifies, fails_closed)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--scenario", default="mixed")
    options = parser.parse_args(argv)
    print(f"serve: --seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    folder = fleets.fleet(options.scenario, rng.randrange(1, 10_000), HOURS / 24, STEP_S, with_reference=False)
    work = tempfile.mkdtemp(prefix="gputally-e2e-work-")
    tsdb = os.path.join(folder, "tsdb")
    servers.load_tsdb(os.path.join(folder, "metrics.om"), tsdb)
    own = os.path.join(work, "tsdb")
    shutil.copytree(tsdb, own)
    whole = True
    with servers.prometheus(own, work) as url:
        lab = Lab(os.path.abspath(options.binary), rng, url, folder, work)
        for check in CHECKS:
            if options.only and check.__name__ not in options.only.split(","):
                continue
            whole &= attempt(check.__name__, check, lab)
    if whole:
        shutil.rmtree(work, ignore_errors=True)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
