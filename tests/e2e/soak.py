#!/usr/bin/env python3
"""The service over many scraped targets for a while: soak.py BINARY [--seconds N] [--targets N] [--speed N]

Fleet time runs faster than ours, so that hours are booked, dropped (retention) and released from the journal
within minutes. Resident memory, open files and threads must be flat from a third of the time on, every hour
must be booked with all its GPU-hours, and the database must be sound in the end. The targets are the program
`exporters`, which lies beside what BINARY points to: 8 GPUs each, scraped each 15 s of the fleet's time.

    soak.py BINARY --seconds 1200 --targets 2000 --speed 16"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, attempt, verdict  # noqa: E402
from service import Service, resources, units, write_config  # noqa: E402

GPUS = 8
SIGNALS = 6          # of a GPU, as exporters.c has them
INTERVAL_S = 15
BEGIN = "2026-03-07T00:20:00Z"
HOUR = units.HOUR_MS
GAP_S = 300          # a sample covers so much before it at most
PATIENCE_S = 5       # machines that do other things too may be as late as this
SHOWN = 30           # samples of memory between two lines


def cpu_s(pid):
    """CPU seconds of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def configure(options, work, port):
    files = os.path.join(work, "targets.json")
    with open(files, "w", encoding="utf-8") as file:
        json.dump([{"targets": [f"127.0.0.1:{port}"],
                    "labels": {"__metrics_path__": f"/node/{n}/metrics", "node": f"n{n}", "instance": f"n{n}:9400"}}
                   for n in range(options.targets)], file)
    return write_config(os.path.join(work, "config.json"),
                        {"serve": {"db": os.path.join(work, "soak.db"), "every": "2m", "retain": "1d"},
                         "sources": [{"cluster": "soak", "kind": "scrape", "files": [files], "interval": "15s"}]})


def watch(options, service):
    """[(kB of memory, open files, threads, CPU seconds)] while pages are asked for."""
    seen, end = [], time.monotonic() + options.seconds
    pause = min(1.0, options.seconds / 40)
    while time.monotonic() < end:
        time.sleep(pause)
        if service.process.poll() is not None:
            raise Failed(f"it ended: {service.logged()[-1000:]}")
        for path in ("/metrics", "/readyz", "/api/v1/gpus")[:3 if len(seen) % 10 == 0 else 2]:
            service.ask(path)
        seen.append((*resources(service.process.pid), cpu_s(service.process.pid)))
        if len(seen) % SHOWN == 0:
            print(f"     {len(seen)}: {seen[-1][0] // 1024} MiB, {seen[-1][1]} files, {seen[-1][2]} threads, "
                  f"CPU {seen[-1][3]:.1f} s", flush=True)
    return seen


def flat(seen, seconds):
    third = len(seen) // 3
    room = 8192 if seconds >= 120 else 40960   # a short run is still filling its buffers
    first, last = seen[third:2 * third], seen[2 * third:]
    for what, at, allowed in (("kB of memory", 0, 1.15), ("open files", 1, 1.1), ("threads", 2, 1.1)):
        a, b = max(one[at] for one in first), max(one[at] for one in last)
        if b > a * allowed + (room if at == 0 else 4):
            raise Failed(f"{what} grow: {a}, then {b}")
    return first, last


def booked(options, work, log):
    """Whole hours that were closed, and the share of their GPU time that was observed; all of it must be there."""
    closed = max((units.parse_time(mark) for mark in re.findall(r"watermark=(\S+)", log) if mark != "none"), default=0)
    low = max(units.parse_time(BEGIN) // HOUR * HOUR + HOUR, closed - 20 * HOUR)   # the rest is dropped
    hours = (closed - low) // HOUR
    if hours <= 0:
        return 0, 1.0
    window = f"{units.format_time(low)},{units.format_time(closed)}"
    done = subprocess.run([options.binary, "export", "ledger", "--db", os.path.join(work, "soak.db"), "--window", window,
                           "--output", "csv"], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"export: {done.stderr}")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    time_ms, observed = (sum(int(row[name]) for row in rows) for name in ("gpu_ms", "observed_ms"))
    whole = options.targets * GPUS * hours * HOUR
    print(f"     {hours} whole hours are booked: {time_ms / HOUR:.3f} GPU-hours, {observed / HOUR:.3f} of them observed, "
          f"of {whole // HOUR}", flush=True)
    if GAP_S / options.speed >= PATIENCE_S and (time_ms != whole or observed != whole):
        raise Failed(f"{time_ms} ms of GPUs, {observed} observed, {whole} have been")
    return hours, observed / whole


def run(options, work):
    begin = units.parse_time(BEGIN)
    exporters = subprocess.Popen([os.path.join(os.path.dirname(os.path.realpath(options.binary)), "exporters"),
                                  str(begin), str(options.speed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        config = configure(options, work, int(exporters.stdout.readline()))
        with Service(options.binary, ["--config", config], work, (begin, options.speed)).wait() as service:
            seen = watch(options, service)
            log, ready = service.logged(), service.ready()
            kept = max(float(n) for n in re.findall(r"^gputally_source_samples_total\{[^}]*=\"scraping\"[^}]*\} (\S+)$",
                                                    service.ask("/metrics")[1], re.M))
            service.end()
    finally:
        exporters.communicate()
    hours = int(options.seconds * options.speed // 3600)
    bookings = log.count("msg=booked")
    well = ready[0] == 200 or "catching up" in ready[1]   # the fleet's time is fast, this machine may not be
    if hours > 2 and (bookings < hours // 2 or not well):
        raise Failed(f"{bookings} bookings in {hours} hours; /readyz {ready}: {log[-1500:]}")
    done = subprocess.run([options.binary, "db", "check", "--db", os.path.join(work, "soak.db")],
                          capture_output=True, text=True)
    if hours > 2 and done.returncode:
        raise Failed(f"db check: {done.stderr}")
    first, last = flat(seen, options.seconds)
    whole, observed = booked(options, work, log)
    cpu = (last[-1][3] - first[0][3]) / (options.seconds * 2 / 3)
    due = options.seconds * options.speed / INTERVAL_S * options.targets * GPUS * SIGNALS
    return (f"{options.targets * GPUS} GPUs, {hours} h of the fleet, {whole} of them looked at, {100 * observed:.4g} % "
            f"observed: {max(one[0] for one in first) // 1024}, then {max(one[0] for one in last) // 1024} MiB, "
            f"{max(one[1] for one in last)} files, {max(one[2] for one in last)} threads, {bookings} bookings, "
            f"{100 * cpu:.0f} % of a core at {options.speed:g} times real, {100 * kept / due:.0f} % of the samples that were due")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--targets", type=int, default=24)
    parser.add_argument("--speed", type=float, default=1200)
    options = parser.parse_args(argv)
    options.binary = os.path.abspath(options.binary)
    work = tempfile.mkdtemp(prefix="gputally-soak-")
    if attempt(f"soak in {work}", lambda: print(f"     {run(options, work)}")):
        shutil.rmtree(work, ignore_errors=True)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
