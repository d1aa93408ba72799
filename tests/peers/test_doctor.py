#!/usr/bin/env python3
"""What doctor asks a real server: clocks, targets that are down, how often values are kept, hidden labels, series.

    tests/peers/test_doctor.py BINARY

Two hours of two nodes with one GPU each, scraped every 15 s and measured every 30 s. The clock of node b is 40 s
behind; the exporter of node c is down; kube-state-metrics lets no label through.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import servers  # noqa: E402

FROM, TO, STEP = 1_795_996_800, 1_796_004_000, 15          # 2026-11-30T00:00Z, two hours


def series(out, name, labels, value, kind="gauge"):
    text = ",".join(f'{key}="{label}"' for key, label in labels.items())
    for t in range(FROM, TO + 1, STEP):
        out.append(f"{name}{{{text}}} {value(t)} {t}")


def telemetry(healthy):
    """OpenMetrics text; healthy: nothing that doctor should name."""
    families = {}
    for node in ("a", "b"):
        gpu = {"job": "dcgm", "instance": f"{node}:9400", "gpu": "0", "UUID": f"GPU-{node}", "Hostname": node,
               "modelName": "NVIDIA H100 80GB HBM3"}
        every = STEP if healthy else 2 * STEP
        families.setdefault("DCGM_FI_DEV_GPU_UTIL", []).append((gpu, lambda t: 55))
        families.setdefault("DCGM_FI_DEV_POWER_USAGE", []).append((gpu, lambda t: 300))
        families.setdefault("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", []).append(
            (gpu, lambda t, every=every: (t - FROM) // every * every * 300_000 + 1_000_000))
        families.setdefault("DCGM_FI_DEV_SM_CLOCK", []).append((gpu, lambda t: 1980))
        families.setdefault("up", []).append(({"job": "dcgm", "instance": f"{node}:9400"}, lambda t: 1))
        off = 0 if healthy or node == "a" else 40
        families.setdefault("node_time_seconds", []).append(
            ({"job": "node", "instance": f"{node}:9100", "node": node}, lambda t, off=off: t - off))
        families.setdefault("kube_node_info", []).append(({"job": "ksm", "node": node}, lambda t: 1))
        if healthy:
            families.setdefault("kube_node_labels", []).append(
                ({"job": "ksm", "node": node, "label_node_kubernetes_io_instance_type": "p5"}, lambda t: 1))
    families["up"].append(({"job": "dcgm", "instance": "c:9400"}, lambda t: 1 if healthy else 0))
    out = []
    for name in sorted(families):
        out.append(f"# TYPE {name} gauge")
        for labels, value in families[name]:
            series(out, name, labels, value)
    return "\n".join(out + ["# EOF", ""])


def doctor(binary, url):
    window = "2026-11-30T00:00:00Z,2026-11-30T02:00:00Z"
    ran = subprocess.run([binary, "doctor", "--prometheus", url, "--window", window, "--output", "json", "--quiet"],
                         capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr)
    return {each["id"]: each for each in json.loads(ran.stdout)["checks"]}


def examples(finding):
    return [each["name"] for each in finding.get("examples", [])]


def ask(binary, healthy):
    with tempfile.TemporaryDirectory() as work:
        path, tsdb = os.path.join(work, "metrics.om"), os.path.join(work, "tsdb")
        with open(path, "w", encoding="utf-8") as file:
            file.write(telemetry(healthy))
        servers.load_tsdb(path, tsdb)
        with servers.prometheus(tsdb, work) as url:
            return doctor(binary, url)


def main(binary):
    sick = ask(binary, False)
    check("the node whose clock is behind is named", examples(sick["clock"]) == ["b is 40 s behind"], sick["clock"])
    check("the target that is down is named", examples(sick["down"]) == ["c:9400 of job dcgm"], sick["down"])
    check("values are kept twice", any("every 15 s and measures every 30 s" in text and "2.0 times" in text
                                       for text in examples(sick["oversampled"])), sick["oversampled"])
    check("the allow-list's flag is named", any("--metric-labels-allowlist=nodes=[*]" in text
                                                for text in examples(sick["hidden-labels"])), sick["hidden-labels"])
    # 2 nodes x 4 metrics and 3 up = 11 series, 5,760 scrapes a day; 6 of 8 GPU series are signals, up is none
    check("series are counted", any("11 series every 15 s, 0.1 million samples a day" in text and "55 % of the series"
                                    in text for text in examples(sick["series"])), sick["series"])
    sound = ask(binary, True)
    for name in ("clock", "down", "oversampled", "hidden-labels"):
        check(f"a sound fleet: {name} is fine", sound[name]["status"] == "fine", sound[name])
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
