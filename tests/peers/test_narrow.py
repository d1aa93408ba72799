#!/usr/bin/env python3
"""In a large cluster only pods of namespaces with GPUs are read, whichever label names the namespace.

    tests/peers/test_narrow.py BINARY     (source_dump lies beside what BINARY points to)
"""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402
from fleetsim.units import parse_time  # noqa: E402
from test_sources import dump, same  # noqa: E402

METRICS = ["DCGM_FI_DEV_GPU_UTIL", 'kube_pod_container_resource_requests{resource=~"nvidia_com_.*"}', "kube_pod_info",
           'kube_pod_status_phase{phase=~"Succeeded|Failed"}', "kube_node_info"]
WEB_PODS = 30


def with_web(path, out, renamed):
    """A copy of a fleet with pods in a namespace without GPUs; renamed: as scraped without honorLabels."""
    first = None
    block = []
    with open(path, encoding="utf-8") as source, open(out, "w", encoding="utf-8") as file:
        for line in source:
            if line.startswith("kube_") and renamed:
                line = re.sub(r'([{,])namespace="', r'\1namespace="monitoring",exported_namespace="', line)
            head = line.rsplit(" ", 2)[0]
            if line.startswith("kube_pod_info{") and first in (None, head):
                first = head
                block.append(line)
            elif block:
                label = "exported_namespace" if renamed else "namespace"
                for n in range(WEB_PODS):
                    for old in block:
                        text = re.sub(rf'([{{,]){label}="[^"]*"', rf'\1{label}="web"', old)
                        file.write(re.sub(r'([{,])pod="[^"]*"', rf'\1pod="web-{n}"', text))
                block = []
            file.write(line)


def main(binary):
    folder = fleets.fleet("whole", 1, days=0.125, step_s=60, with_reference=False)
    settings = fleets.config(folder)
    span = parse_time(settings["from"]), parse_time(settings["to"])
    for renamed in (False, True):
        with tempfile.TemporaryDirectory() as work:
            om = os.path.join(work, "metrics.om")
            with_web(os.path.join(folder, "metrics.om"), om, renamed)
            servers.load_tsdb(om, os.path.join(work, "tsdb"))
            with servers.prometheus(os.path.join(work, "tsdb"), work) as url:
                compare(binary, url, span, "exported_namespace" if renamed else "namespace")


def compare(binary, url, span, label):
    whole, err = dump(binary, "prometheus", url, *span, "--survey", metrics=METRICS)
    web = [text for text in whole or () if f'{label}="web"' in text]
    check(f"{label}: a small cluster is read whole", len(web) == WEB_PODS, err)
    few = {text: value for text, value in (whole or {}).items() if text not in web}
    for api in ("remote-read", "query"):
        got, err = dump(binary, "prometheus", url, *span, "--survey", "--narrow-from", "5", "--api", api,
                        metrics=METRICS)
        check(f"{label}: of a large one the namespaces with GPUs ({api})", not same(got, few),
              f"{same(got, few)}\n{err}")
    check(f"{label}: pods with GPUs are among them", sum("kube_pod_info" in text for text in few) > 3, str(len(few)))


if __name__ == "__main__":
    main(sys.argv[1])
    sys.exit(verdict())
