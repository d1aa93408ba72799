#!/usr/bin/env python3
"""Compares `gputally export ledger` with the reference calculator over simulated fleets.

    compare_fleetsim.py BINARY [--scenarios mig,gaps|all] [--seeds 1,2,5-8] [--days 0.25]
                        [--via file,remote-read,range,victoria] [--cases NAMES|all|none]

Every (scenario, seed) is generated and calculated once and kept in a cache (GPUTALLY_TEST_CACHE, else
/tmp/gputally-fleets). The fleet reaches the program as a file, or from a real Prometheus by remote read,
from the same Prometheus behind a proxy that has no remote read (so that range selectors are used), or from
a VictoriaMetrics. Keys and money have to agree exactly, other numbers to 1e-9 relative, flags as sets.

Differences are printed, the first few of each fleet and how many in which column; so are the commands to
run one again by hand. The ledger stays beside the fleet as actual-VIA.csv. With --cases the hand-made
ledgers of tests/fleetsim/cases are compared as well (by file), with --demo a day of `gputally demo`."""

import argparse
import collections
import concurrent.futures
import contextlib
import csv
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

import fleets  # noqa: E402
import servers  # noqa: E402
from fleetsim import compare, scenarios  # noqa: E402

CASES = os.path.join(fleets.TESTS, "fleetsim", "cases")
VIAS = ("file", "remote-read", "range", "victoria")
TIMEOUT_S = 600
DEMO_STEP_S = 120
# Cases about the idle scan whose ledger window is the last hour of one or two days without Kubernetes
# records: a run looks back an hour or the gap, so these are run from the data's start and then cut.
FROM_START = {"idle-failed-day": "2026-01-01T00:00:00Z", "idle-since": "2026-01-01T00:00:00Z"}
# VictoriaMetrics keeps the values of a block as integers with one exponent: where a DCGM blank of 2^47 stands among
# ratios, it gives the ratios back with four digits.
LOSSY = {("blanks", "victoria"), ("mixed", "victoria")}


def seeds_of(text):
    """[1, 2, 5, 6] of "1,2,5-6"."""
    out = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        out += range(int(low), int(high or low) + 1)
    return out


@contextlib.contextmanager
def source_of(folder, via):
    """The options that name the fleet as a source."""
    metrics = os.path.join(folder, "metrics.om")
    if via == "file":
        yield ["--openmetrics", metrics]
        return
    if via == "victoria":
        with servers.victoria_metrics(metrics, folder) as url:
            yield ["--prometheus", url]
        return
    tsdb = os.path.join(folder, "tsdb")
    servers.load_tsdb(metrics, tsdb)
    with servers.prometheus(tsdb, folder) as url:
        if via == "remote-read":
            yield ["--prometheus", url]
            return
        with servers.without_remote_read(url) as front:
            yield ["--prometheus", front]


def export(binary, source, folder, out, more=()):
    """Run the program; (error text or None, seconds)."""
    command = [binary, "export", "ledger", *source, *fleets.ledger_arguments(folder), *more, "--output", "csv"]
    begin = time.monotonic()
    with open(out, "wb") as file, open(out + ".err", "wb") as errors:
        try:
            status = subprocess.run(command, stdout=file, stderr=errors, timeout=TIMEOUT_S).returncode
        except subprocess.TimeoutExpired:
            status = "time-out"
    seconds = time.monotonic() - begin
    if status == 0:
        return None, seconds
    with open(out + ".err", encoding="utf-8", errors="replace") as file:
        text = file.read()[-1500:].strip()
    return f"exit status {status}: {text}\n  {' '.join(command)}", seconds


def differences(expected, actual, common, ignore):
    """All differences, without columns that only the program has."""
    extra = f"is only in {actual}"
    return [words for words in compare.differences(expected, actual, common, ignore)
            if not (words.startswith("column ") and words.endswith(extra))]


def column_of(words):
    """What kind of a difference it is."""
    found = re.match(r"(\w+) differs at", words)
    if found:
        return found.group(1)
    return "row missing" if words.startswith("row only in") and "actual" not in words.split(":")[0] else \
        "row too many" if words.startswith("row only in") else "column missing"


def report(name, expected, actual, problem, seconds, options, common=False):
    """Print the verdict on one ledger; True where it agrees."""
    if problem is None:
        try:
            found = differences(expected, actual, common, options.ignore)
        except (OSError, ValueError, KeyError) as error:
            problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        print(f"FAIL {name}: {problem}", flush=True)
        return False
    if not found:
        print(f"ok   {name} ({seconds:.2f} s)", flush=True)
        return True
    counts = collections.Counter(column_of(words) for words in found)
    print(f"FAIL {name}: {len(found)} differences: "
          + ", ".join(f"{column} {count}" for column, count in counts.most_common()))
    shown = collections.Counter()
    for words in found:
        column = column_of(words)
        if sum(shown.values()) < options.limit and shown[column] < max(2, options.limit // len(counts)):
            shown[column] += 1
            print("    " + words.replace(fleets.CACHE + "/", "").replace(fleets.TESTS + "/", ""))
    print(f"    {os.path.relpath(expected) if common else expected} against {actual}", flush=True)
    return False


def compare_fleet(options, scenario, seed, via):
    """One fleet by one way."""
    folder = fleets.fleet(scenario, seed, options.days, options.step, options.nodes)
    actual = os.path.join(folder, f"actual-{via}.csv")
    with source_of(folder, via) as source:
        problem, seconds = export(options.binary, source, folder, actual, options.more)
    return report(f"{scenario} seed {seed} via {via}", os.path.join(folder, "ledger.csv"), actual, problem, seconds,
                  options)


def cut(path, since):
    """Drop the rows of earlier hours."""
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line for number, line in enumerate(lines) if number == 0 or line >= since)


def compare_case(options, name):
    """One hand-made case."""
    folder = os.path.join(CASES, name)
    os.makedirs(os.path.join(fleets.CACHE, "cases"), exist_ok=True)
    actual = os.path.join(fleets.CACHE, "cases", f"{name}-actual.csv")
    source = ["--openmetrics", os.path.join(folder, "metrics.om")]
    if name in FROM_START:
        settings = fleets.config(folder)
        more = options.more + ["--window", f"{FROM_START[name]},{settings['to']}"]
        problem, seconds = export(options.binary, source, folder, actual, more)
        cut(actual, settings["from"])
    else:
        problem, seconds = export(options.binary, source, folder, actual, options.more)
    return report(f"case {name}", os.path.join(folder, "expected-ledger.csv"), actual, problem, seconds, options,
                  common=True)


def demo_folder(binary, gpus):
    """The demo's telemetry of a day as a fleet's folder: prices from the catalogue, owners by label."""
    folder = os.path.join(fleets.CACHE, f"demo-{gpus}-{fleets.source_hash()}")
    os.makedirs(folder, exist_ok=True)
    command = [binary, "demo", "--gpus", str(gpus), "--days", "1", "--step", f"{DEMO_STEP_S}s", "--end",
               "2026-11-30T00:00:00Z", "--write", os.path.join(folder, "metrics.om.new"), "--output", "csv", "-q"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
    if not same_file(os.path.join(folder, "metrics.om.new"), os.path.join(folder, "metrics.om")):
        os.replace(os.path.join(folder, "metrics.om.new"), os.path.join(folder, "metrics.om"))
        shutil.rmtree(os.path.join(folder, "tsdb"), ignore_errors=True)
        write_demo_facts(folder)
        fleets.write_reference(folder)
    return folder


def same_file(left, right):
    return os.path.exists(right) and filecmp.cmp(left, right, shallow=False)


def write_demo_facts(folder):
    """What the calculator has to be told of it."""
    with open(os.path.join(os.path.dirname(fleets.TESTS), "data", "prices.csv"), newline="", encoding="utf-8") as file:
        known = [row for row in csv.DictReader(file) if (row["cloud"], row["region"]) == ("aws", "us-east-1")]
    with open(os.path.join(folder, "prices.csv"), "w", encoding="utf-8") as file:
        file.write("cloud,region,instance_type,capacity_type,usd_per_hour,gpus,vcpus,memory_gib\n")
        for row in known:
            for capacity, price in (("on-demand", row["on_demand_usd"]), ("spot", row["spot_usd"])):
                if price:
                    file.write(f"aws,us-east-1,{row['instance_type']},{capacity},{price},{row['gpus']},{row['vcpus']},"
                               f"{row['memory_gib']}\n")
    for name, value in (("owners.json", {"rules": [{"pod_label": "team", "team": "{value}"}],
                                         "types": [{"kind": "*Job", "type": "training"},
                                                   {"kind": "Deployment", "type": "inference"}]}),
                        ("config.json", {"step_s": DEMO_STEP_S, "gap_s": 300, "from": "2026-11-29T00:00:00Z",
                                         "to": "2026-11-30T00:00:00Z"})):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)


def compare_demo(options, via):
    """The demo's fleet by one way."""
    folder = demo_folder(options.binary, options.demo)
    actual = os.path.join(folder, f"actual-{via}.csv")
    with source_of(folder, via) as source:
        problem, seconds = export(options.binary, source, folder, actual, options.more)
    return report(f"demo of {options.demo} GPUs via {via}", os.path.join(folder, "ledger.csv"), actual, problem,
                  seconds, options)


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--scenarios", default="all", help="names with commas, all, or none")
    parser.add_argument("--seeds", default="1", help="1,2,5-8")
    parser.add_argument("--days", type=float, default=0.25)
    parser.add_argument("--step", type=int, default=30, help="scrape interval in s")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--via", default="file", help="with commas: " + ", ".join(VIAS))
    parser.add_argument("--cases", default="none", help="names with commas, all, or none")
    parser.add_argument("--demo", type=int, default=0, help="GPUs of the demo's fleet; 0: leave it out")
    parser.add_argument("--ignore", default="", help="columns to leave out, with commas")
    parser.add_argument("--limit", type=int, default=8, help="differences to print of each ledger")
    parser.add_argument("--more", default="", help="further options of gputally, split at spaces")
    options = parser.parse_args(argv)
    options.binary = os.path.abspath(options.binary)
    options.more = options.more.split()
    options.scenarios = {"all": list(scenarios.NAMES), "none": []}.get(options.scenarios) \
        if options.scenarios in ("all", "none") else options.scenarios.split(",")
    options.cases = {"all": sorted(name for name in os.listdir(CASES)
                                   if os.path.exists(os.path.join(CASES, name, "expected-ledger.csv"))),
                     "none": []}.get(options.cases) if options.cases in ("all", "none") else options.cases.split(",")
    options.vias = options.via.split(",")
    unknown = set(options.vias) - set(VIAS) | set(options.scenarios) - set(scenarios.NAMES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def prepare(options):
    """Make the fleets that are not there yet on all cores: the calculator is what a first run waits for."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        jobs = [pool.submit(fleets.fleet, scenario, seed, options.days, options.step, options.nodes)
                for scenario in reversed(options.scenarios) for seed in seeds_of(options.seeds)]
        for job in jobs:
            job.result()


def main(argv=None):
    options = arguments(argv)
    failed = total = 0
    prepare(options)
    for name in options.cases:
        total += 1
        failed += not compare_case(options, name)
    for via in options.vias if options.demo else []:
        total += 1
        failed += not compare_demo(options, via)
    for scenario in options.scenarios:
        for seed in seeds_of(options.seeds):
            for via in options.vias:
                if (scenario, via) in LOSSY:
                    continue
                total += 1
                failed += not compare_fleet(options, scenario, seed, via)
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
