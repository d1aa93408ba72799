"""Simulated fleets and their reference ledgers, kept by arguments: the reference takes far longer than
the program under test, and the same fleet is asked for again and again while a difference is hunted.

A folder of the cache has what `fleetsim generate` writes, `ledger.csv` of the reference and, once a
Prometheus was asked for, its blocks in `tsdb/`. Its name carries a hash of fleetsim's own source, so a
changed reference is never compared with old results."""

import functools
import hashlib
import json
import os
import shutil
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

from fleetsim import generate, reference  # noqa: E402
from fleetsim.__main__ import DEFAULT_END  # noqa: E402

CACHE = os.environ.get("GPUTALLY_TEST_CACHE") or os.path.join(tempfile.gettempdir(), "gputally-fleets")


@functools.lru_cache
def source_hash():
    """A short hash of fleetsim's source."""
    digest = hashlib.sha256()
    folder = os.path.join(TESTS, "fleetsim")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()[:8]


def fleet(scenario, seed, days=0.25, step_s=30, nodes=0, end=DEFAULT_END, with_reference=True):
    """Folder of a fleet, with its reference ledger unless that is not wanted; made where it is not there yet."""
    name = f"{scenario}-seed{seed}-{days:g}d-{step_s}s-{nodes}n-{end.replace(':', '')}-{source_hash()}"
    folder = os.path.join(CACHE, name)
    if not os.path.exists(os.path.join(folder, "metrics.om")):
        os.makedirs(CACHE, exist_ok=True)
        making = tempfile.mkdtemp(prefix=name + ".", dir=CACHE)
        generate.write_folder(generate.build_world(scenario, seed, days, nodes, step_s, end), making)
        try:
            os.rename(making, folder)
        except OSError:     # another test has made it meanwhile
            shutil.rmtree(making)
    if with_reference and not os.path.exists(os.path.join(folder, "ledger.csv")):
        write_reference(folder)
    return folder


def write_reference(folder):
    """The reference's ledger of a folder."""
    ledger, rows, *_ = reference.calculate(folder)
    making = os.path.join(folder, f"ledger.csv.making-{os.getpid()}")
    reference.write_ledger(rows, making)
    os.rename(making, os.path.join(folder, "ledger.csv"))


def config(folder):
    """The fleet's settings."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def window(folder):
    """FROM,TO of the fleet."""
    settings = config(folder)
    return f"{settings['from']},{settings['to']}"


def ledger_arguments(folder):
    """Prices, owners, settings and window of a fleet as options of gputally."""
    settings = config(folder)
    out = ["--config", os.path.join(folder, "config.json"), "--prices", os.path.join(folder, "prices.csv"),
           "--owners", os.path.join(folder, "owners.json"), "--step", f"{settings.get('step_s', 30)}s",
           "--gap", f"{settings.get('gap_s', 300)}s"]
    if settings.get("from") and settings.get("to"):
        out += ["--window", window(folder)]
    return out
