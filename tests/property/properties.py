#!/usr/bin/env python3
"""Properties of the ledger over random fleets: properties.py BINARY [--rounds N] [--seed N] [--only NAMES]

However the same telemetry is cut, ordered, spread over threads and runs, and however often a run is killed,
the ledger is the same, byte for byte; and the books balance. A round takes one fleet. The seed is printed
first, and gives the same run again."""

import argparse
import collections
import contextlib
import csv
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, attempt, check, verdict  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402
from fleetsim import units  # noqa: E402
from fleetsim.ledger import CATEGORIES  # noqa: E402

SCENARIOS = ("mixed", "mig", "timeslice", "gaps", "churn", "nolabels", "blanks", "twoclusters", "unhealthy", "inference", "cpubound")
HOURS = 6
HOUR_KINDS = ("machine", "workload", "namespace")
STEP_S = 60
TIMEOUT_S = 300


class Round:
    """One fleet, a folder to work in, and the ledger that everything is compared with."""

    def __init__(self, binary, rng, work, scenario=None):
        self.binary, self.rng, self.work = binary, rng, work
        self.scenario = scenario or rng.choice(SCENARIOS)
        self.seed = rng.randrange(1, 10_000)
        self.more = {}      # in the environment of what is run
        self.folder = fleets.fleet(self.scenario, self.seed, HOURS / 24, STEP_S, with_reference=False)
        self.metrics = os.path.join(self.folder, "metrics.om")
        self.facts = fleets.ledger_arguments(self.folder)
        self.facts = self.facts[:self.facts.index("--window")]
        self.window = fleets.window(self.folder)
        self.whole = self.export(["--openmetrics", self.metrics])
        self.hours = {kind: self.export_hours(kind, ["--openmetrics", self.metrics]) for kind in HOUR_KINDS}

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, command):
        """Standard output of the program."""
        done = subprocess.run([self.binary, *command], capture_output=True, timeout=TIMEOUT_S,
                              env={**os.environ, **self.more})
        if done.returncode:
            raise Failed(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-600:].decode()}")
        return done.stdout

    def export(self, source, more=()):
        """The ledger from a source."""
        facts = [] if source[0] == "--db" else self.facts
        return self.run(["export", "ledger", *source, *facts, "--window", self.window, *more, "--output", "csv"])

    def export_hours(self, kind, source, more=()):
        """Hours beside the ledger, in order of their text."""
        facts = [] if source[0] == "--db" else self.facts
        return sorted(self.run(["export", "hours", kind, *source, *facts, "--window", self.window, *more]).splitlines())

    def same_hours(self, what, source, more=(), against=None):
        """They are those of the first run, or of another one that is given."""
        for kind, expected in (against or self.hours).items():
            got = self.export_hours(kind, source, more)
            differ = sorted(set(got) ^ set(expected))
            if differ or got != expected:
                raise Failed(f"{what}: {kind} hours differ: {differ[:4]}")

    def collect(self, database, window=None, source=None, more=()):
        self.run(["collect", *(source or ["--openmetrics", self.metrics]), *self.facts,
                  "--window", window or self.window, "--db", database, *more])

    def same(self, got, what, against=None):
        """The ledger is the one of the first run, or of another one that is given."""
        whole = self.whole if against is None else against
        if got == whole:
            return
        expected, actual = self.path("expected.csv"), self.path("actual.csv")
        for path, text in ((expected, whole), (actual, got)):
            with open(path, "wb") as file:
                file.write(text)
        kept = tempfile.mkdtemp(prefix="gputally-property-")
        for path in (expected, actual):
            shutil.copy(path, kept)
        old, new = whole.splitlines(), got.splitlines()
        differ = sum((collections.Counter(new) - collections.Counter(old)).values())
        raise Failed(f"{what}: {len(new)} rows against {len(old)}, {differ} of them differ (kept in {kept})")


def hours_of(window):
    low, high = (units.parse_time(text) for text in window.split(","))
    return low, high


def span(low, high):
    return f"{units.format_time(low)},{units.format_time(high)}"


# ---------------------------------------------------------------- the properties

def balance(r):
    """The categories of a row add up to its cost, and some rows are there."""
    rows = list(csv.DictReader(r.whole.decode().splitlines()))
    if len(rows) < HOURS:
        raise Failed(f"only {len(rows)} rows")
    for row in rows:
        if sum(int(row[name]) for name in CATEGORIES) != int(row["cost"]):
            raise Failed(f"a row does not add up: {row}")
    hours = {row["hour"] for row in rows}
    if len(hours) != HOURS:
        raise Failed(f"{len(hours)} hours")


def slices(r):
    """Any length of slices gives the same ledger."""
    for hours in (1, r.rng.randrange(2, HOURS)):
        r.same(r.export(["--openmetrics", r.metrics], more=["--slice", f"{hours}h"]), f"--slice {hours}h")
    r.same_hours("--slice 1h", ["--openmetrics", r.metrics], ["--slice", "1h"])


def threads(r):
    """So does any number of threads."""
    for count in (1, 2, r.rng.randrange(3, 9)):
        r.same(r.export(["--openmetrics", r.metrics], more=["--threads", str(count)]),
               f"--threads {count}")
    r.same_hours("--threads 3", ["--openmetrics", r.metrics], ["--threads", "3"])


def order(r):
    """So does any order of the lines, some of which stand there twice, spread over several files."""
    with open(r.metrics, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    lines += r.rng.sample(lines, len(lines) // 50)
    r.rng.shuffle(lines)
    count = r.rng.randrange(1, 4)
    source = []
    for number in range(count):
        path = r.path(f"shuffled-{number}.om")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines[number::count])
            file.write("# EOF\n")
        source += ["--openmetrics", path]
    r.same(r.export(source), f"shuffled lines in {count} files")
    r.same_hours(f"shuffled lines in {count} files", source)


def runs(r):
    """So do several runs into a database, each with a part of the window; and one more changes nothing."""
    database = r.path("runs.db")
    low, high = hours_of(r.window)
    cuts = sorted(r.rng.sample(range(1, HOURS), r.rng.randrange(1, HOURS - 1)))
    edges = [low] + [low + cut * units.HOUR_MS for cut in cuts] + [high]
    for a, b in zip(edges, edges[1:]):
        r.collect(database, span(a, b))
    r.same(r.export(["--db", database]), f"runs cut at hours {cuts}")
    r.same_hours(f"runs cut at hours {cuts}", ["--db", database])
    r.collect(database)
    r.same(r.export(["--db", database]), "one more run over everything")
    r.collect(database, more=["--rebook"])
    r.same(r.export(["--db", database]), "booked again")
    r.same_hours("booked again", ["--db", database])


def overlapping(r):
    """So do runs whose windows overlap."""
    database = r.path("overlap.db")
    low, high = hours_of(r.window)
    middle = low + r.rng.randrange(2, HOURS) * units.HOUR_MS
    r.collect(database, span(low, middle))
    r.collect(database, span(low, high))
    r.same(r.export(["--db", database]), f"overlapping windows at hour {(middle - low) // units.HOUR_MS}")


def kill(r):
    """So does a collect that is killed (SIGKILL) at random moments and taken up again."""
    database = r.path("kill.db")
    command = [r.binary, "collect", "--openmetrics", r.metrics, *r.facts, "--window", r.window, "--db", database,
               "--slice", "1h"]
    begin = time.monotonic()
    r.collect(r.path("time.db"), more=["--slice", "1h"])
    takes = time.monotonic() - begin
    killed = 0
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=r.rng.uniform(0.02, 1.1) * takes)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    r.collect(database, more=["--slice", "1h"])
    r.same(r.export(["--db", database]), f"killed {killed} times")
    r.same_hours(f"killed {killed} times", ["--db", database])


def books(r):
    """Two fleets in one database, each in a book of its own, run in any order and killed at random: each is what
    it is alone."""
    folder = fleets.fleet(r.scenario, r.seed + 1, HOURS / 24, STEP_S, with_reference=False)
    facts = fleets.ledger_arguments(folder)
    other = (["--openmetrics", os.path.join(folder, "metrics.om")], facts[:facts.index("--window")])
    both = {"one": (["--openmetrics", r.metrics], r.facts), "two": other}
    database = r.path("books.db")
    commands = {name: [r.binary, "collect", *source, *more, "--window", r.window, "--db", database, "--slice", "1h",
                       "--book", name] for name, (source, more) in both.items()}
    killed = 0
    for _ in range(6):
        command = commands[r.rng.choice(sorted(both))]
        if r.rng.random() < 0.3:
            command = command + ["--rebook"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=r.rng.uniform(0.02, 1.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    for name in sorted(both, key=lambda _: r.rng.random()):
        r.run(commands[name][1:])
    got = r.export(["--db", database]).splitlines()[1:]
    alone = r.run(["export", "ledger", *other[0], *other[1], "--window", r.window, "--output", "csv"])
    want = r.whole.splitlines()[1:] + alone.splitlines()[1:]
    if sorted(got) != sorted(want):
        differ = sum((collections.Counter(got) - collections.Counter(want)).values())
        raise Failed(f"two books, killed {killed} times: {len(got)} rows against {len(want)}, {differ} of them differ")


def server(r):
    """So does a Prometheus: in one run, in slices, and killed in between."""
    tsdb = r.path("tsdb")
    servers.load_tsdb(r.metrics, tsdb)
    with servers.prometheus(tsdb, r.work) as url:
        source = ["--prometheus", url]
        r.same(r.export(source), "from a Prometheus")
        r.same(r.export(source, more=["--slice", "2h"]), "from a Prometheus in slices of 2 h")
        # A server's sums have no first five minutes of a host, so that they are compared with themselves.
        sums = {kind: r.export_hours(kind, source) for kind in HOUR_KINDS}
        r.same_hours("from a Prometheus in slices of 2 h", source, ["--slice", "2h"], sums)
        r.same_hours("from a Prometheus", source, [], {kind: r.hours[kind] for kind in ("workload", "namespace")})
        database = r.path("server.db")
        process = subprocess.Popen([r.binary, "collect", *source, *r.facts, "--window", r.window, "--db", database,
                                    "--slice", "1h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(r.rng.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        r.collect(database, source=source)
        r.same(r.export(["--db", database]), "from a Prometheus, killed")
        r.same_hours("from a Prometheus, killed", ["--db", database], [], sums)
        front_source = ["--prometheus", url, "--prometheus-api", "query"]
        r.same(r.export(front_source), "from a Prometheus by range selectors")


def moves(r):
    """GPUs that move, and others that come in their place, hours apart: more than a slice reads to its sides."""
    folder = fleets.fleet("churn", r.seed, 1.25, 300, with_reference=False)
    facts = fleets.ledger_arguments(folder)
    tsdb = r.path("tsdb-moves")
    servers.load_tsdb(os.path.join(folder, "metrics.om"), tsdb)
    with servers.prometheus(tsdb, r.work) as url:
        command = ["export", "ledger", "--prometheus", url, *facts[:facts.index("--window")],
                   "--window", fleets.window(folder), "--output", "csv"]
        whole = r.run(command)
        for hours in (1, r.rng.randrange(2, 8)):
            r.same(r.run([*command, "--slice", f"{hours}h"]), f"--slice {hours}h", whole)


def by_time(r, path):
    """The fleet's lines as scrapes bring them; some come twice, some late."""
    def stamp(line):
        return float(line.rsplit(" ", 1)[1])
    with open(r.metrics, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    late = {id(line): r.rng.uniform(0, 4 * 3600) for line in r.rng.sample(lines, len(lines) // 50)}
    lines.sort(key=lambda line: stamp(line) + late.get(id(line), 0))
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(line * (1 + (r.rng.random() < 0.02)))
        file.write("# EOF\n")
    return ["--openmetrics", path]


def kept(database):
    """Notes of the books, and what the next slice is handed."""
    with contextlib.closing(sqlite3.connect(database)) as db:
        notes = db.execute("SELECT first, past, kind, subject, text, book, count FROM note").fetchall()
        return sorted(notes), [row[0] for row in db.execute("SELECT carry FROM progress")]


def packed(r):
    """So does any amount of samples that may lie unpacked, whatever is booked together: from nothing at all to some;
    and so do the notes and the carry."""
    sources = {"by series": ["--openmetrics", r.metrics], "by time": by_time(r, r.path("by-time.om"))}
    for name, source in sources.items():
        slices = ["--slice", f"{r.rng.randrange(1, HOURS)}h"]
        r.more = {}
        plain = r.path(f"plain {name}.db")
        r.collect(plain, source=source, more=slices)
        hours = {kind: r.export_hours(kind, ["--db", plain]) for kind in HOUR_KINDS}
        for size in (1, r.rng.randrange(2, 50_000), r.rng.randrange(50_000, 5_000_000)):
            what = f"{name}, {' '.join(slices)}, packed above {size} bytes"
            database = r.path(f"packed {name} {size}.db")
            r.more = {"GPUTALLY_TEST_PACK_BYTES": str(size)}
            r.collect(database, source=source, more=[*slices, "--threads", str(r.rng.randrange(1, 5))])
            r.more = {}
            r.same(r.export(["--db", database]), what)
            r.same_hours(what, ["--db", database], [], hours)
            if kept(database) != kept(plain):
                raise Failed(f"{what}: notes or the carry differ ({plain}, {database})")
            os.remove(database)


PROPERTIES = (balance, slices, threads, order, runs, overlapping, kill, books, packed, server, moves)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--only", default="", help="properties with commas")
    parser.add_argument("--scenario", default=None)
    options = parser.parse_args(argv)
    wanted = [p for p in PROPERTIES if not options.only or p.__name__ in options.only.split(",")]
    print(f"properties: --seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    for _ in range(options.rounds):
        work = tempfile.mkdtemp(prefix="gputally-property-work-")
        try:
            r = Round(os.path.abspath(options.binary), rng, work, options.scenario)
        except (Failed, subprocess.TimeoutExpired) as error:
            check("the first export", False, error)
            continue
        for holds in wanted:
            attempt(f"{holds.__name__} ({r.scenario} seed {r.seed})", holds, r)
        shutil.rmtree(work, ignore_errors=True)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
