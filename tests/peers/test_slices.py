#!/usr/bin/env python3
"""The ledger of a server read in slices of an hour equals that of the file read at once, also across outages
longer than a slice, with and without records of nodes.

    tests/peers/test_slices.py BINARY
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402
from fleetsim.units import parse_time  # noqa: E402

HOUR = 3_600_000


def keep(path, out, wanted):
    """Copy the samples for which wanted(head, ms) holds."""
    with open(path, encoding="utf-8") as source, open(out, "w", encoding="utf-8") as file:
        for line in source:
            if line[0] != "#":
                head, _, stamp = line.rstrip("\n").rsplit(" ", 2)
                whole, _, part = stamp.partition(".")
                if not wanted(head, int(whole) * 1000 + int((part + "000")[:3])):
                    continue
            file.write(line)


def variants(folder):
    """(name, wanted) of what is left of a fleet."""
    start = parse_time(fleets.config(folder)["from"])
    out = range(start + 2 * HOUR + 600_000, start + 6 * HOUR + 1_200_000)
    instance = next(line for line in open(os.path.join(folder, "metrics.om"), encoding="utf-8")
                    if line.startswith("DCGM")).partition('instance="')[2].partition('"')[0]
    return [
        ("whole", lambda head, at: True),
        ("the server was down for four hours", lambda head, at: at not in out),
        ("one exporter was down for four hours", lambda head, at: at not in out or instance not in head),
        ("Kubernetes' records were missing for four hours",
         lambda head, at: at not in out or not head.startswith("kube_")),
        ("no records", lambda head, at: not head.startswith("kube_")),
        ("no records, the server was down", lambda head, at: not head.startswith("kube_") and at not in out),
        ("no records, one exporter was down",
         lambda head, at: not head.startswith("kube_") and (at not in out or instance not in head)),
    ]


def ledger(binary, facts, *source):
    done = subprocess.run([binary, "export", "ledger", *source, *facts, "--output", "csv"], capture_output=True,
                          timeout=300)
    return done.stdout if done.returncode == 0 else b"" + done.stderr


def difference(name, got, expected):
    lines = set(expected.splitlines())
    other = [line for line in got.splitlines() if line not in lines]
    return f"{name}: {len(other)} lines differ: {other[0][:400].decode() if other else 'lines are missing'}"


def main(binary):
    for scenario in ("whole", "timeslice", "gaps"):
        folder = fleets.fleet(scenario, 3, days=0.5, step_s=60, with_reference=False)
        facts = fleets.ledger_arguments(folder)
        for name, wanted in variants(folder):
            compare(binary, folder, facts, f"{scenario}, {name}", wanted)


def compare(binary, folder, facts, name, wanted):
    with tempfile.TemporaryDirectory() as work:
        om = os.path.join(work, "metrics.om")
        keep(os.path.join(folder, "metrics.om"), om, wanted)
        servers.load_tsdb(om, os.path.join(work, "tsdb"))
        expected = ledger(binary, facts, "--openmetrics", om)
        check(f"{name}: there is a ledger", expected.count(b"\n") > 20, expected[:300].decode())
        with servers.prometheus(os.path.join(work, "tsdb"), work) as url:
            for slice_ in ("1h", "3h", "100h"):
                got = ledger(binary, facts, "--prometheus", url, "--slice", slice_)
                check(f"{name}: slices of {slice_}", got == expected, difference(slice_, got, expected))


if __name__ == "__main__":
    main(sys.argv[1])
    sys.exit(verdict())
