#!/usr/bin/env python3
"""What the sources deliver from real servers equals what was put in: counts, sums and stamps by series.

A fleet goes into Prometheus and VictoriaMetrics; `source_dump` reads it back by remote read (streamed chunks
and samples), by range selectors, and from the file; a reader of its own says here what the file holds.

    tests/peers/test_sources.py BINARY     (source_dump lies beside what BINARY points to)
"""

import collections
import math
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402

METRICS = ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_POWER_USAGE", "kube_pod_info",
           "kube_pod_labels", "kube_node_status_capacity", "up", "vllm:generation_tokens_total"]
MATCHED = "kube_node_status_capacity"
MATCH = 'resource=~"nvidia_com_.*"'
LABEL = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)="((?:[^"\\]|\\.)*)"')


def wants():
    return [f"{name}{{{MATCH}}}" if name == MATCHED else name for name in METRICS]


def dump_path(binary):
    return os.path.join(os.path.dirname(os.path.realpath(binary)), "source_dump")


def read_file(path, first, last, keep_nan=True):
    """{series: (count, sum, first, last)} of the wanted metrics, by a reader that shares no code."""
    samples = collections.defaultdict(list)
    texts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line[0] == "#":
                continue
            head, value, stamp = line.rstrip("\n").rsplit(" ", 2)
            text = texts.get(head)
            if text is None:
                name, _, rest = head.partition("{")
                labels = dict(LABEL.findall(rest))
                wanted = name in METRICS and (
                    name != MATCHED or labels.get("resource", "").startswith("nvidia_com_"))
                text = texts[head] = "" if not wanted else name + "{" + ",".join(
                    f'{key}="{unescape(labels[key])}"' for key in sorted(labels) if labels[key]) + "}"
            if text:
                whole, _, part = stamp.partition(".")
                at = int(whole) * 1000 + int((part + "000")[:3])
                if first <= at <= last and (keep_nan or value != "NaN"):
                    samples[text].append((at, float(value)))
    return {text: summary(pairs) for text, pairs in samples.items()}


def unescape(text):
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


def summary(pairs):
    by_stamp = dict(reversed(pairs))
    values = [value for value in by_stamp.values() if not math.isnan(value)]
    return len(by_stamp), math.fsum(values), min(by_stamp), max(by_stamp)


def dump(binary, kind, where, first, last, *options, metrics=None):
    """(series as read_file gives them, standard error)."""
    command = [dump_path(binary), *options, kind, where, str(first), str(last), *(metrics or wants())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    out = {}
    for line in done.stdout.splitlines():
        text, count, total, start, end = line.rsplit("\t", 4)
        out[text] = (int(count), float(total), int(start), int(end))
    if done.returncode:
        return None, done.stderr
    return out, done.stderr


def same(got, expected):
    """"" or the first difference."""
    if got is None:
        return "no answer"
    for text in sorted(set(got) | set(expected)):
        a, b = got.get(text), expected.get(text)
        if a is None or b is None or a[0] != b[0] or a[2:] != b[2:] or \
                not math.isclose(a[1], b[1], rel_tol=1e-9, abs_tol=1e-6):
            return f"{text}: {a} instead of {b}"
    return ""


def compare(name, binary, kind, where, first, last, expected, *options):
    got, err = dump(binary, kind, where, first, last, *options)
    difference = same(got, expected)
    check(name, not difference, f"{difference}\n{err[-500:]}")


def main(binary):
    folder = fleets.fleet("mixed", 1, days=0.125, step_s=60, with_reference=False)
    om = os.path.join(folder, "metrics.om")
    settings = fleets.config(folder)
    first, last = stamp(settings["from"]), stamp(settings["to"])
    # an odd range inside: its ends lie on no sample, and one on a sample exactly
    whole = read_file(om, first, last)
    some = next(iter(whole.values()))
    inner = (some[2] + 60_000 * 7, last - 3_723_001)
    cut = read_file(om, *inner)
    check("the fleet has what the test needs", len(whole) > 500 and len(cut) > 100, f"{len(whole)} series")
    compare("a file is read whole", binary, "openmetrics", om, first, last, whole)
    compare("a file is cut to the range", binary, "openmetrics", om, *inner, cut)
    with tempfile.TemporaryDirectory() as work:
        tsdb = os.path.join(work, "tsdb")
        servers.load_tsdb(om, tsdb)
        with servers.prometheus(tsdb, work) as url:
            prometheus(binary, url, first, last, whole, inner, cut)
        with servers.victoria_metrics(om, work) as url:
            # VictoriaMetrics drops values that are no numbers when they are sent
            whole, cut = read_file(om, first, last, keep_nan=False), read_file(om, *inner, keep_nan=False)
            compare("VictoriaMetrics by range selectors, whole", binary, "prometheus", url, first, last, whole)
            compare("VictoriaMetrics by range selectors, cut", binary, "prometheus", url, *inner, cut)


def prometheus(binary, url, first, last, whole, inner, cut):
    compare("remote read, whole", binary, "prometheus", url, first, last, whole, "--api", "remote-read")
    compare("remote read, cut", binary, "prometheus", url, *inner, cut, "--api", "remote-read")
    compare("remote read of samples, whole", binary, "prometheus", url, first, last, whole, "--api", "samples")
    compare("remote read of samples, cut", binary, "prometheus", url, *inner, cut, "--api", "samples")
    compare("range selectors, whole", binary, "prometheus", url, first, last, whole, "--api", "query")
    compare("range selectors, cut", binary, "prometheus", url, *inner, cut, "--api", "query")
    compare("one request at a time", binary, "prometheus", url, first, last, whole, "--in-flight", "1")
    compare("sixteen requests at once", binary, "prometheus", url, first, last, whole, "--in-flight", "16",
            "--api", "query")
    with servers.without_remote_read(url) as proxy:
        compare("a server without remote read", binary, "prometheus", proxy, *inner, cut)
    node = next(text for text in whole if text.startswith("DCGM_FI_DEV_GPU_UTIL"))
    host = dict(LABEL.findall(node))["Hostname"]
    matched = {text: value for text, value in whole.items() if f'Hostname="{host}"' in text}
    for api in ("remote-read", "query"):
        compare(f"a matcher narrows every question ({api})", binary, "prometheus", url, first, last, matched,
                "--api", api, "--matcher", f'Hostname="{host}"')
    survey(binary, url, first, last, whole)


def survey(binary, url, first, last, whole):
    day = 24 * 3_600_000
    got, err = dump(binary, "prometheus", url, first - 10 * day, last, "--survey")
    start, end, rate = (float(word) for word in re.search(r"survey (\d+) (\d+) (\d+)", err).groups())
    data = min(value[2] for value in whole.values())
    check("a survey finds since when there is data", start <= data and data - start <= 2 * 3_600_000 + 1,
          f"{start} for {data}")
    true_rate = sum(value[0] for text, value in whole.items() if text.startswith("DCGM")) / \
        ((last - first) / 3_600_000)
    check("and how many samples an hour", 0.5 < rate / true_rate < 2, f"{rate} for {true_rate}")
    got, err = dump(binary, "prometheus", url, first - 30 * day, first - 20 * day, "--survey")
    check("data outside of the window is said to be so", got is None and "has GPU metrics, but none from" in err, err)
    got, err = dump(binary, "prometheus", url, first, last, "--survey", metrics=["DCGM_NOT_THERE"])
    check("a server without GPU metrics is said to be so", got is None and "none of them of GPUs" in err, err)


def stamp(text):
    from fleetsim.units import parse_time
    return parse_time(text)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.exit(verdict())
