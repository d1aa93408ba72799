#!/usr/bin/env python3
"""A service whose Kubernetes API goes away after it had been followed says so: in /readyz and in its metrics.

    tests/peers/test_kube_health.py BINARY"""

import os
import re
import sys
import tempfile
import time

import mock_kube

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
from service import Service, write_config, write_kubeconfig  # noqa: E402

SPEED = 300     # a quarter of an hour is three seconds


def figure(service, name):
    """Of the watch; None: there is none."""
    found = re.search(rf'^{name}{{[^}}]*source="watch"[^}}]*kind="kubernetes"[^}}]*}} (\S+)$', service.ask("/metrics")[1],
                      re.MULTILINE)
    return found and float(found[1])


def main(binary):
    mock = mock_kube.MockKube()
    mock.bookmark_s = 0.2
    mock.store.put("nodes", {"metadata": {"name": "n0", "uid": "u"}, "spec": {}, "status": {"capacity": {}}})
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = write_kubeconfig(os.path.join(folder, "kubeconfig"), mock.url)
        config = write_config(os.path.join(folder, "config.json"), {
            "serve": {"db": os.path.join(folder, "gpu.db")},
            "sources": [{"kind": "kubernetes", "cluster": "k", "kubeconfig": kubeconfig}]})
        with Service(binary, ["--config", config], folder, (int(time.time() * 1000), SPEED)).wait() as service:
            service.until("a list", lambda: figure(service, "gputally_source_up") == 1)
            time.sleep(4)
            check("an API that has nothing to tell is well", wait(lambda: '"kubernetes k": "' not in service.ready()[1] and
                                                                  "nothing heard" not in service.ready()[1]), service.ready())
            mock.close()
            mock.cut_watches()
            service.until("a failure", lambda: figure(service, "gputally_source_up") == 0)
            check("the watch is down", figure(service, "gputally_source_failures_total") > 0)
            service.until("silence", lambda: "nothing heard for" in service.ready()[1])
            status, text = service.ready()
            check("it is not ready, and says since when and why", status == 503 and re.search(
                r"127\.0\.0\.1:\d+: nothing heard for \d+ min: \w+", text), (status, text))
            service.end()
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
