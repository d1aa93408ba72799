#!/usr/bin/env python3
"""gputally serve where nobody keeps history: test_live.py BINARY [--only NAMES] [--seed N]

A fleet's samples are pushed by remote write, or scraped from exporters and a Kubernetes API that fail in many
ways, while the service is killed (-9) again and again. What was acknowledged is in the ledger, once."""

import argparse
import concurrent.futures
import csv
import http.client
import io
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, PATIENCE_S, attempt, verdict, wait  # noqa: E402
from service import Service, units, write_config, write_kubeconfig  # noqa: E402

import fleets  # noqa: E402
from fleetsim.generate import build_world  # noqa: E402
from fleetsim.server import make_server  # noqa: E402

STEP_S = 60
HOUR = units.HOUR_MS
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


# ---------------------------------------------------------------- remote write, by hand

def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def snappy(data):
    """Snappy's block format with literals only."""
    out = [varint(len(data))]
    for at in range(0, len(data), 65536):
        part = data[at:at + 65536]
        out.append(b"\xf4" + struct.pack("<H", len(part) - 1) + part)
    return b"".join(out)


def write_request(series):
    """{label bytes: [(ms, value)]} as a compressed WriteRequest."""
    return snappy(b"".join(message(1, labels + b"".join(
        message(2, b"\x09" + struct.pack("<d", v) + b"\x10" + varint(t)) for t, v in samples))
        for labels, samples in series.items()))


def label_bytes(name, text):
    labels = {"__name__": name}
    for key, value in LABEL.findall(text):
        labels[key] = value.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
    return b"".join(message(1, message(1, key.encode()) + message(2, labels[key].encode()))
                    for key in sorted(labels) if labels[key])


def samples_of(path):
    """All samples of an OpenMetrics file in order of time: (ms, label bytes, value)."""
    known, out = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                continue
            head, value, stamp = line.rstrip("\n").rsplit(" ", 2)
            if head not in known:
                name, _, rest = head.partition("{")
                known[head] = label_bytes(name, rest)
            out.append((round(float(stamp) * 1000), known[head], float(value)))
    out.sort(key=lambda sample: sample[0])
    return out


# ---------------------------------------------------------------- the checks

class Lab:
    def __init__(self, binary, rng, work):
        self.binary, self.rng, self.work = binary, rng, work

    def fleet(self, scenario, hours):
        folder = fleets.fleet(scenario, self.rng.randrange(1, 10_000), hours / 24, STEP_S, with_reference=False)
        arguments = fleets.ledger_arguments(folder)
        low, high = (units.parse_time(text) for text in fleets.window(folder).split(","))
        return folder, arguments[:arguments.index("--window")], low, high

    def export(self, source, window, more=()):
        done = subprocess.run([self.binary, "export", "ledger", *source, *more, "--window", window, "--output", "csv"],
                              capture_output=True, timeout=600)
        if done.returncode:
            raise Failed(f"export {source}: {done.stderr.decode()[-500:]}")
        return done.stdout

    def config(self, name, folder, database, sources):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config.update({"serve": {"db": database, "every": "5m", "history": "12h"}, "sources": sources})
        return write_config(os.path.join(self.work, name), config)


class Clock:
    """Fleet time that goes on while services come and go."""

    def __init__(self, begin, speed):
        self.begin, self.speed, self.real = begin, speed, time.monotonic()

    def now(self):
        return self.begin + int((time.monotonic() - self.real) * 1000 * self.speed)


def watermark(text):
    marks = [units.parse_time(mark) for mark in re.findall(r"watermark=(\S+)", text) if mark != "none"]
    return max(marks, default=0)


class Sender(threading.Thread):
    """Sends what the fleet's time has come to, batch by batch, each until it is taken. `late`: (from, to, when) of
    samples that are sent only then; `late_taken` is of how many batches with such samples it was told so."""

    def __init__(self, samples, clock, url, late=()):
        super().__init__(daemon=True)
        self.late = late
        self.samples = sorted(samples, key=lambda sample: self.due(sample[0])) if late else samples
        self.clock, self.url = clock, url
        self.at, self.retries, self.late_taken, self.refused, self.stop = 0, 0, 0, None, False

    def run(self):
        while not self.stop and self.at < len(self.samples):
            end, series, late = self.at, {}, False
            now = self.clock.now()
            while end < len(self.samples) and self.due(self.samples[end][0]) <= now and end - self.at < 20_000:
                stamp, labels, value = self.samples[end]
                late |= self.due(stamp) > stamp
                series.setdefault(labels, []).append((stamp, value))
                end += 1
            if end == self.at:
                time.sleep(0.05)
                continue
            if self.send(write_request(series)):
                self.at = end
                self.late_taken += late
            else:
                self.retries += 1
                time.sleep(0.1)

    def through(self, service, logged, high):
        """Until all is sent and booked, of a fleet that ends at `high`; `logged` by services before. Ends this one."""
        service.until("the end of the fleet", lambda: self.refused or
                      watermark(logged + service.logged()) >= high and self.at == len(self.samples))
        service.two_rounds()
        self.stop = True
        if self.refused:
            raise Failed(f"refused: {self.refused}")
        service.end()

    def due(self, stamp):
        return next((when for low, high, when in self.late if low <= stamp < high), stamp)

    def send(self, body):
        url = self.url()
        if not url:
            return False
        try:
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
            connection.request("POST", "/api/v1/write", body,
                               {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
                                "X-Prometheus-Remote-Write-Version": "0.1.0"})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
        except (OSError, http.client.HTTPException, urllib.error.URLError):
            return False
        if answer.status // 100 == 4 and answer.status != 429:
            self.refused = f"{answer.status} {text[:200]}"
            self.stop = True
        return answer.status == 204


def pushed(lab):
    """Remote write, with kills: the ledger is that of the file with the same samples, byte for byte."""
    folder, facts, low, high = lab.fleet(lab.rng.choice(("whole", "gaps", "timeslice")), 4)
    database = os.path.join(lab.work, "pushed.db")
    path = lab.config("pushed.json", folder, database, [{"kind": "remote-write", "book": ""}])
    arguments = ["--config", path, *facts[2:]]
    clock = Clock(low, 600)
    services = []
    sender = Sender(samples_of(os.path.join(folder, "metrics.om")), clock,
                    lambda: services[-1].url if services and services[-1].process.poll() is None else None)
    sender.start()
    kills, logged = 0, ""
    while True:
        with Service(lab.binary, arguments, lab.work, (clock.now(), clock.speed), name=f"pushed-{kills}") as service:
            service.wait()
            services.append(service)
            if clock.now() > high - HOUR // 2:
                sender.through(service, logged, high)
                break
            wait(lambda: sender.refused, lab.rng.uniform(1, 9))
            logged += service.logged()
            if sender.refused:
                raise Failed(f"refused: {sender.refused}")
            service.kill()
            kills += 1
    window = f"{units.format_time(low)},{units.format_time(high)}"
    same(lab.export(["--db", database], window),
         lab.export(["--openmetrics", os.path.join(folder, "metrics.om")], window, facts),
         f"after {kills} kills and {sender.retries} retries")
    if not kills or not sender.retries:
        raise Failed(f"{kills} kills, {sender.retries} retries: nothing was tried")


def pushed_late(lab):
    """A sender that was cut off for hours: what it sends then goes into the hours that were closed meanwhile."""
    folder, facts, low, high = lab.fleet("whole", 5)
    database = os.path.join(lab.work, "late.db")
    path = lab.config("late.json", folder, database, [{"kind": "remote-write", "book": ""}])
    clock = Clock(low, 600)
    samples = samples_of(os.path.join(folder, "metrics.om"))
    with Service(lab.binary, ["--config", path, *facts[2:]], lab.work, (clock.now(), clock.speed), name="late") as service:
        service.wait()
        sender = Sender(samples, clock, lambda: service.url, [(low + HOUR, low + 5 * HOUR // 2, low + 19 * HOUR // 4)])
        sender.start()
        service.until("the late samples", lambda: "booked again" in service.logged())
        sender.through(service, "", high)
    window = f"{units.format_time(low)},{units.format_time(high)}"
    got = totals(lab.export(["--db", database], window))
    want = totals(lab.export(["--openmetrics", os.path.join(folder, "metrics.om")], window, facts))
    if got != want:
        raise Failed(f"{got}, in the file {want}")


def pushed_late_killed(lab):
    """Late samples that are acknowledged, and then a kill -9 before anything is booked again: the next service books
    those hours again. The ledger is that of the file with the same samples, byte for byte."""
    folder, facts, low, high = lab.fleet(lab.rng.choice(("whole", "gaps")), 6)
    database = os.path.join(lab.work, "late-killed.db")
    path = lab.config("late-killed.json", folder, database, [{"kind": "remote-write", "book": ""}])
    clock = Clock(low, 600)
    services, late = [], []
    for begin in (1, 3):   # each within an hour, and told when that is closed
        first = low + int(lab.rng.uniform(begin, begin + 0.4) * HOUR)
        late.append((first, first + int(lab.rng.uniform(0.1, 0.5) * HOUR), first + int(lab.rng.uniform(2.5, 3) * HOUR)))
    sender = Sender(samples_of(os.path.join(folder, "metrics.om")), clock,
                    lambda: services[-1].url if services and services[-1].process.poll() is None else None, late)
    sender.start()
    seen, kills, logged = 0, 0, ""
    while True:
        with Service(lab.binary, ["--config", path, *facts[2:]], lab.work, (clock.now(), clock.speed),
                     name=f"late-killed-{kills}") as service:
            service.wait()
            services.append(service)
            until = time.monotonic() + PATIENCE_S
            while sender.late_taken == seen and sender.at < len(sender.samples):
                if sender.refused or time.monotonic() > until:
                    raise Failed(f"refused: {sender.refused}; {service.logged()[-1500:]}")
                time.sleep(0.002)
            if sender.late_taken == seen:
                sender.through(service, logged, high)
                break
            service.kill()
            seen = sender.late_taken
            logged += service.logged()
            kills += 1
    if seen < 2:
        raise Failed(f"{seen} batches were late: nothing was tried")
    window = f"{units.format_time(low)},{units.format_time(high)}"
    same(lab.export(["--db", database], window),
         lab.export(["--openmetrics", os.path.join(folder, "metrics.om")], window, facts), f"late samples, {kills} kills")


def same(got, want, what):
    """Two ledgers are one."""
    if got == want:
        return
    kept = tempfile.mkdtemp(prefix="gputally-e2e-")
    for name, text in (("expected.csv", want), ("actual.csv", got)):
        with open(os.path.join(kept, name), "wb") as file:
            file.write(text)
    old = set(want.splitlines())
    raise Failed(f"{what}: {len(got.splitlines())} rows against {len(want.splitlines())}, "
                 f"{sum(row not in old for row in got.splitlines())} differ (kept in {kept})")


def totals(text):
    """{category: dollars} and the cost of a ledger."""
    out = {}
    for row in csv.DictReader(io.StringIO(text.decode(), newline="")):
        for name in ("cost", "used", "slack", "held_idle", "unobserved", "unattributed"):
            out[name] = out.get(name, 0) + int(row[name]) / 1e9
    return out


def scraped(lab, faults=(), every=5, kubernetes=False):
    """Exporters and a Kubernetes API of a simulated fleet: the same dollars as from its file, as near as other
    scrape times allow; with faults the same. A machine that is too busy for a fleet's minute in so short a time misses
    scrapes: there it is tried again slower."""
    for speed in (400, 100, 40):
        try:
            return scraped_at(speed, lab, faults, every, kubernetes)
        except Failed as error:
            print(f"     {speed} times real: {error}", flush=True)
            last = error
    raise last


def scraped_at(speed, lab, faults, every, kubernetes):
    folder, facts, low, high = lab.fleet("whole", 3)
    made = re.search(r"seed(\d+)", folder)
    world = build_world("whole", int(made[1]), 3 / 24, 0, STEP_S, fleets.DEFAULT_END)
    clock = Clock(low, speed)
    server = make_server(world, 0, clock.speed, 0, faults, every)
    server.handle_error = lambda *_: None   # connections that the service cuts
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"
    targets = [{"targets": [address], "labels": {"__metrics_path__": f"/node/{trace.node.name}/metrics",
                                                 "node": trace.node.name, "instance": f"{trace.node.name}:9400"}}
               for trace in {trace.node.name: trace for trace in world.nodes}.values()]
    name = f"scraped{'-faults' if faults else ''}{'-kubernetes' if kubernetes else ''}-{speed}"
    more = []
    if kubernetes:
        login = write_kubeconfig(os.path.join(lab.work, name + "-kube.json"), f"http://{address}")
        more = [{"kind": "kubernetes", "book": "", "kubeconfig": login}]
    else:
        targets.append({"targets": [address], "labels": {"__metrics_path__": "/ksm/metrics", "instance": "ksm"}})
    files = write_config(os.path.join(lab.work, name + "-targets.json"), targets)
    database = os.path.join(lab.work, name + ".db")
    path = lab.config(name + ".json", folder, database,
                      [{"kind": "scrape", "book": "", "files": [files], "interval": f"{STEP_S}s", "timeout": f"{STEP_S - 5}s"}, *more])
    try:
        with Service(lab.binary, ["--config", path, *facts[2:]], lab.work, (clock.now(), clock.speed), name=name) as service:
            service.wait()
            service.until("the end of the fleet", lambda: watermark(service.logged()) >= high - HOUR // 2,
                          PATIENCE_S + 5 * 3600 / speed)
            status, text = service.ask("/api/v1/gpus")
            if status != 200 or '"node"' not in text:
                raise Failed(f"/api/v1/gpus says {status}: {text[:200]}")
            service.end()
    finally:
        server.shutdown()
        server.server_close()
    window = f"{units.format_time(low + HOUR)},{units.format_time(high)}"
    got = totals(lab.export(["--db", database], window))
    want = totals(lab.export(["--openmetrics", os.path.join(folder, "metrics.om")], window, facts))
    allowed = 0.10 if faults else 0.05
    for name, dollars in want.items():
        if abs(got.get(name, 0) - dollars) > allowed * want["cost"]:
            raise Failed(f"{name}: ${got.get(name, 0):.2f} scraped, ${dollars:.2f} in the file: {got} {want}")


def scraped_with_faults(lab):
    """The same of exporters that are slow, cut, broken, and repeat themselves."""
    scraped(lab, ("http500", "truncate", "badutf8", "hugelabel", "duplicate"), 6)


def scraped_with_kubernetes(lab):
    """Nodes and pods from the Kubernetes API instead of kube-state-metrics."""
    scraped(lab, kubernetes=True)


CHECKS = (pushed, pushed_late, pushed_late_killed, scraped, scraped_with_faults, scraped_with_kubernetes)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args(argv)
    print(f"live: --seed {options.seed}", flush=True)
    work = tempfile.mkdtemp(prefix="gputally-live-")
    checks = [check for check in CHECKS if not options.only or check.__name__ in options.only.split(",")]

    def run(check):
        """True: it holds. They wait most of the time, and so run beside each other."""
        rng = random.Random(f"{options.seed} {check.__name__}")
        return attempt(check.__name__, check, Lab(os.path.abspath(options.binary), rng, work))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        whole = all(list(pool.map(run, checks)))
    if whole:
        shutil.rmtree(work, ignore_errors=True)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
