#!/usr/bin/env python3
"""Findings on simulated fleets, worked out by hand from what each fleet was built to show, and none on a fleet of good
citizens.

    tests/property/expected_findings.py BINARY [--scenarios all] [--seeds 1]

Prices an hour (the fleets' list): p5.48xlarge 98.32, g5.xlarge 1.006, g5.12xlarge 5.672, m5.12xlarge 2.304,
p4de.24xlarge 40.966, g6.12xlarge 4.6016; a month is 730 hours. Fleets of three days at 60 s.
"""

import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
from fleetsim import scenarios  # noqa: E402

DAYS, STEP_S, MONTH_H = 3, 60, 730

# scenario: {(rule, subject): saving a month, None: any, in dollars}. What is not listed must not be found.
EXPECTED = {
    # One node is empty all the time: its price. The notebook idles in all but its bursts. Of eight GPUs one is free for a
    # fifth of the time and less, and two more pools have GPUs that fill no node: nothing is saved there.
    "whole": {
        ("node-empty", "node whole-empty"): 5.672 * MONTH_H,
        ("idle-notebook", "workload notebooks/StatefulSet/jupyter-ada"): None,
        ("node-stranded", "pool p5.48xlarge"): 0,
        ("node-stranded", "pool g5.12xlarge"): 0,
        ("no-unit", "team search"): 0,
    },
    # The cheapest machine with what the pods request is an m5.12xlarge. Next to it a notebook with one of four GPUs.
    "cpubound": {
        ("cpu-on-gpu-node", "node cpubound-1"): (5.672 - 2.304) * MONTH_H,
        ("idle-notebook", "workload notebooks/StatefulSet/jupyter-still"): 5.672 / 4 * MONTH_H,
        ("node-stranded", "pool g5.12xlarge"): 0,
    },
    # 1 + 2 + 2 of 12 GPUs are held: seven are free, which fill one node of four.
    "fragment": {
        ("node-stranded", "pool g5.12xlarge"): 5.672 * MONTH_H,
        ("no-unit", "team search"): 0,
    },
    # One server is never asked. Another is idle in nine tenths of the time between its requests, the third in less.
    "inference": {
        ("idle-server", "workload serving/Deployment/llm-quiet"): 4.6016 / 4 * MONTH_H,
        ("idle-workload", "workload serving/Deployment/llm-0"): None,
        ("low-use", "workload serving/Deployment/llm-1"): 0,
    },
    # Instances are in use, or free beside used ones; none of it fills a node.
    "mig": {
        ("node-stranded", "pool a2-ultragpu-2g"): 0,
        ("node-stranded", "pool a30x2"): 0,
        ("no-unit", "team search"): 0,
    },
    # All eight GPUs hang since 0.45 of the run, in full hours since then.
    "stuck": {("busy-useless", "workload research/Job/hang"): 40.966 * MONTH_H},
    "unlabelled": {
        ("unowned", "namespace scratch"): 0,
        ("node-stranded", "pool g5.12xlarge"): 0,
    },
    "busy": {},
}
# What must be said in the evidence or the action of a finding.
SAID = {
    ("fragment", "node-stranded"): "4 GPUs in one pod at most (research)",
    ("cpubound", "cpu-on-gpu-node"): "m5.12xlarge",
    ("inference", "idle-workload"): "idle between its requests",
    ("stuck", "busy-useless"): "8 of its 8 GPUs",
}


def busy(b):
    """Good citizens: every GPU trains or serves all the time, with owners and counters."""
    for number in range(2):
        node = b.node(f"busy-{number}", "g5.12xlarge")
        b.job(node, "research", f"train-{number}", "train", b.start, None, count=2, labels={"team": "research"})
        b.deployment(node, "serving", "llm", "infer", b.start, number=number, count=2, labels={"team": "search"},
                     tokens_per_s=900, quiet_chance=0.0, traffic_s=900)


def fleet(scenario, seed):
    if scenario == "busy":
        scenarios.SCENARIOS.setdefault("busy", busy)
    return fleets.fleet(scenario, seed, days=DAYS, step_s=STEP_S, with_reference=False)


def recommend(binary, folder):
    command = [binary, "recommend", "--openmetrics", os.path.join(folder, "metrics.om"), "--output", "json", "--quiet",
               *fleets.ledger_arguments(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout)["findings"]


def differences(scenario, findings):
    expected, out = EXPECTED[scenario], []
    found = {(each["rule"], each["subject"]): each for each in findings}
    for key in sorted(set(found) | set(expected)):
        if key not in expected:
            out.append(f"nobody expected {key[0]} on {key[1]}: {found[key]['what']}")
        elif key not in found:
            out.append(f"{key[0]} on {key[1]} is missing")
        elif expected[key] is not None and abs(float(found[key]["month_saving"]) - expected[key]) > 0.01 * max(
                1, expected[key]):
            out.append(f"{key[0]} on {key[1]} saves {found[key]['month_saving']}, expected {expected[key]:.2f}")
    for (of, rule), text in SAID.items():
        if of == scenario and not any(text in json.dumps(each) for each in findings if each["rule"] == rule):
            out.append(f"{rule} does not say '{text}'")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--scenarios", default="all")
    parser.add_argument("--seeds", default="1")
    arguments = parser.parse_args()
    names = list(EXPECTED) if arguments.scenarios == "all" else arguments.scenarios.split(",")
    for name in names:
        for seed in (int(text) for text in arguments.seeds.split(",")):
            lines = differences(name, recommend(os.path.abspath(arguments.binary), fleet(name, seed)))
            check(f"{name} seed {seed}", not lines, "\n".join(lines))
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
