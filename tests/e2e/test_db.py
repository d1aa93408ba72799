#!/usr/bin/env python3
"""gputally db on damaged files: test_db.py BINARY [--seed N] [--rounds N]

Random bytes of a database are overwritten. check never takes a ledger whose money has changed for a sound one;
repair never fails but where nothing can be read, its result is sound, all money of it was there before, and what is
gone was named. (SQLite keeps no checksums: a changed letter of a name is not noticed.)"""

import argparse
import collections
import csv
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, attempt, check, verdict  # noqa: E402
import fleets  # noqa: E402

MISSING = ("dropped:", "could not be read")


def run(binary, *command):
    return subprocess.run([binary, *command], capture_output=True, text=True, errors="replace", timeout=120)


def rows(binary, database):
    """Hours and money of the ledger."""
    done = run(binary, "export", "ledger", "--db", database, "--window", "2026-03-01T00:00:00Z,2026-03-09T00:00:00Z",
               "--output", "csv")
    if done.returncode:
        return None
    read = csv.DictReader(io.StringIO(done.stdout, newline=""))
    return collections.Counter((row["hour"], row["cost"], row["used"], row["slack"], row["held_idle"]) for row in read)


def damage(rng, path):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for _ in range(rng.choice((1, 1, 2, 10))):
            file.seek(rng.randrange(100 if rng.random() < 0.1 else 4096, size))
            file.write(rng.randbytes(rng.choice((1, 8, 512, 4096, 65536))))
        file.truncate(size)


def one(binary, rng, work, sound, before):
    database = os.path.join(work, "damaged.db")
    for name in os.listdir(work):
        if name.startswith("damaged.db"):
            os.unlink(os.path.join(work, name))
    shutil.copy(sound, database)
    damage(rng, database)
    checked = run(binary, "db", "check", "--db", database)
    if checked.returncode not in (0, 1):
        raise Failed(f"check: {checked.returncode} {checked.stderr}")
    if checked.returncode == 0:
        if rows(binary, database) != before:
            raise Failed("check says that it is sound, and rows differ")
        return "sound"
    repaired = run(binary, "db", "repair", "--db", database)
    if repaired.returncode == 1:   # nothing can be read: the file is as it was
        if "damaged" not in repaired.stderr and "not a gputally database" not in repaired.stderr and \
                "another program" not in repaired.stderr and "newer gputally" not in repaired.stderr:
            raise Failed(f"repair: {repaired.stderr}")
        return "unreadable"
    if repaired.returncode not in (0, 3):
        raise Failed(f"repair: {repaired.returncode} {repaired.stderr}")
    again = run(binary, "db", "check", "--db", database)
    if again.returncode:
        raise Failed(f"check of what was repaired: {again.stderr}")
    after = rows(binary, database) or collections.Counter()
    if after - before:
        raise Failed(f"{sum((after - before).values())} rows that were not there before")
    if after != before and (repaired.returncode != 3 or not any(word in repaired.stdout for word in MISSING)):
        raise Failed(f"{sum((before - after).values())} rows are gone, unnamed: {repaired.returncode} {repaired.stdout}")
    return "repaired"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args(argv)
    binary = os.path.abspath(options.binary)
    print(f"db: --seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    work = tempfile.mkdtemp(prefix="gputally-db-")
    sound = os.path.join(work, "sound.db")
    folder = fleets.fleet("mixed", rng.randrange(1, 10_000), 0.25, 60, with_reference=False)
    done = run(binary, "collect", "--openmetrics", os.path.join(folder, "metrics.om"),
               *fleets.ledger_arguments(folder), "--db", sound)
    if done.returncode:
        check("collect", False, done.stderr)
        return verdict()
    run(binary, "db", "vacuum", "--db", sound)
    before = rows(binary, sound)
    outcomes, whole = collections.Counter(), True
    for number in range(options.rounds):
        if not attempt(f"round {number}", lambda: outcomes.update([one(binary, rng, work, sound, before)])):
            whole = False
            print(f"(kept in {shutil.copytree(work, tempfile.mkdtemp(prefix='gputally-db-failed-'), dirs_exist_ok=True)})")
    print(f"damaged databases: {dict(outcomes)}")
    if whole:
        shutil.rmtree(work, ignore_errors=True)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
