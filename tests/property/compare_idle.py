#!/usr/bin/env python3
"""Compares `gputally idle --output json` with the idle scan of the reference calculator.

    compare_idle.py BINARY [--scenarios whole,gaps] [--days 8] [--step 300] [--seed 1]

Over simulated fleets and the cases idle-* of tests/fleetsim/cases: verdicts, daily means (0.01 points), checks,
sufficiency, CPU (0.01 points) and network of nodes, work on CPUs and the machine instead, learned idle floors, since
when, and its money. What began before the window is compared from its beginning on."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

import fleets  # noqa: E402
from fleetsim import reference  # noqa: E402

CASES = os.path.join(fleets.TESTS, "fleetsim", "cases")
TOLERANCE_PERCENT = 0.01
HOST_WORDS = {"cpu_peak": "cpu", "network_bytes": "network"}    # the reference's names, and the program's


def expected_of(folder, out):
    """idle.json of a folder, in the folder out."""
    path = os.path.join(out, "idle.json")
    if not os.path.exists(path):
        with open(os.devnull, "w", encoding="utf-8") as quiet, contextlib.redirect_stderr(quiet):
            reference.run_folder(folder, None, None, out)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def actual_of(binary, folder):
    """What the program says."""
    command = [binary, "idle", "--quiet", "--openmetrics", os.path.join(folder, "metrics.om"), "--output", "json",
               *fleets.ledger_arguments(folder)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=600).stdout)


class Comparison:
    """The differences of one folder."""

    def __init__(self, expected, actual, begin):
        self.begin, self.found = begin, []
        devices = {device["gpu"]: device for device in actual["devices"]}
        nodes = {(node["cluster"] or "-", node["node"]): node for node in actual["nodes"]}
        floors = {floor["model"]: floor["percent"] for floor in actual["idle_floor"]}
        for model, percent in expected["idle_floor_percent"].items():
            if abs(floors.get(model, -1) - percent) > TOLERANCE_PERCENT:
                self.tell(model, "floor", percent, floors.get(model))
        for device in expected["devices"]:
            name = f"{device['node']}/{device['device']}"
            found = devices.pop(device["device"], None)
            if found is None:
                self.tell(name, "device", "there", None)
                continue
            self.same(name, "verdict", device["verdict"], found["verdict"])
            self.same(name, "unchecked", sorted(device["unchecked"]), sorted(found["unchecked"]))
            for left, right in zip(device["days"], found["days"], strict=True):
                self.day(f"{name} {left['day']}", left, right)
            self.since(name, device["idle_since"], found["idle_since"])
        for left in devices:
            self.tell(left, "device", None, "there")
        for node in expected["nodes"]:
            found = nodes[node["cluster"], node["node"]]
            self.same(node["node"], "verdict", node["verdict"], found["verdict"])
            self.host(node, found)
            self.since(node["node"], node["idle_since"], found["idle_since"])

    def tell(self, name, what, expected, actual):
        self.found.append(f"{name}: {what}: expected {expected!r}, not {actual!r}")

    def same(self, name, what, expected, actual):
        if expected != actual:
            self.tell(name, what, expected, actual)

    def day(self, name, expected, actual):
        for signal, mean in expected["mean"].items():
            other = actual["mean"][signal]
            if (mean is None) != (other is None) or mean is not None and abs(mean - other) > TOLERANCE_PERCENT:
                self.tell(name, f"mean of {signal}", mean, other)
        for what in ("checks", "sufficient", "failed", "observed_ms", "up_ms"):
            self.same(name, what, expected[what], actual[what])

    def host(self, expected, actual):
        name = expected["node"]
        self.same(name, "unchecked", sorted(HOST_WORDS[word] for word in expected["unchecked"]), sorted(actual["unchecked"]))
        for left, right in zip(expected["days"], actual["days"], strict=True):
            peak, other = left["cpu_peak"], right["cpu_peak_percent"]
            if (peak is None) != (other is None) or peak is not None and abs(peak - other) > TOLERANCE_PERCENT:
                self.tell(f"{name} {left['day']}", "CPU", peak, other)
            moved, other = left["network_bytes"], right["network_bytes"]
            if (moved is None) != (other is None) or moved is not None and abs(moved - other) > 1:
                self.tell(f"{name} {left['day']}", "network", moved, other)
        self.same(name, "work on the CPU", expected["cpu_bound"], actual["cpu_bound"])
        instead, other = expected.get("instead"), actual["instead"]
        if instead and other:
            self.same(name, "machine instead", instead["instance_type"], other["instance_type"])
            self.same(name, "saving an hour", instead["saving_per_hour"], round(float(other["saving_per_hour"]) * 1e9))
        else:
            self.same(name, "machine instead", instead, other)

    def since(self, name, expected, actual):
        if (expected["from"] is None) != (actual is None):
            self.tell(name, "idle since", expected, actual)
        elif actual:
            self.same(name, "idle since", max(expected["from"], self.begin), actual["from"])
            if expected["from"] >= self.begin and expected["cost"] is not None and \
                    abs(expected["cost"] - float(actual["cost"]) * 1e9) > 1:
                self.tell(name, "cost since", expected["cost"], actual["cost"])


def compare(name, binary, folder, out):
    """Print the verdict on one folder; True where it agrees."""
    expected, actual = expected_of(folder, out), actual_of(binary, folder)
    found = Comparison(expected, actual, fleets.config(folder)["from"]).found
    print(f"{'FAIL' if found else 'ok  '} {name}: {len(expected['devices'])} GPUs, {len(found)} differences", flush=True)
    for words in found[:10]:
        print("    " + words)
    return not found


def case(binary, name):
    """A hand-made case; its days are read from their beginning, which is before its ledger's window."""
    with tempfile.TemporaryDirectory() as out:
        for file in os.listdir(os.path.join(CASES, name)):
            os.symlink(os.path.join(CASES, name, file), os.path.join(out, file))
        expected = expected_of(out, out)
        actual = actual_of(binary, out)
        found = Comparison(expected, actual, actual["from"]).found
    print(f"{'FAIL' if found else 'ok  '} case {name}: {len(found)} differences", flush=True)
    for words in found[:10]:
        print("    " + words)
    return not found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--scenarios", default="whole,gaps,inference,stuck,cpubound,mig")
    parser.add_argument("--days", type=float, default=8)
    parser.add_argument("--step", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    binary = os.path.abspath(options.binary)
    good = [case(binary, name) for name in sorted(os.listdir(CASES)) if name.startswith("idle-")]
    for scenario in options.scenarios.split(","):
        folder = fleets.fleet(scenario, options.seed, options.days, options.step, with_reference=False)
        good.append(compare(f"{scenario} seed {options.seed}", binary, folder, folder))
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
