#!/usr/bin/env python3
"""When a pod leaves a GPU its series ends: servers mark that by a value of their own, which is no sample. Real
servers scrape a target whose pod changes; whatever way they are read, the old series ends with its last value.

    tests/peers/test_stale.py BINARY     (source_dump lies beside what BINARY points to)
"""

import contextlib
import http.server
import json
import os
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
import servers  # noqa: E402
from test_sources import dump  # noqa: E402

METRIC = "DCGM_FI_DEV_GPU_UTIL"


@contextlib.contextmanager
def exporter():
    """(address, state) of a target; state["pod"] is on its GPU."""
    state = {"pod": "old"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = f'{METRIC}{{UUID="GPU-0",pod="{state["pod"]}"}} 5\n'.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with servers.answering(Handler) as address:
        yield address, state


def scrape_config(work, target):
    path = os.path.join(work, "scrape.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("scrape_configs:\n- job_name: gpu\n  honor_labels: true\n  scrape_interval: 1s\n"
                   f"  static_configs:\n  - targets: ['{target}']\n")
    return path


def wait_scraped(url, pod):
    """Until the server has three samples of a pod."""
    query = urllib.parse.urlencode({"query": f'count_over_time({METRIC}{{pod="{pod}"}}[1m]) >= 3'})

    def scraped():
        with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=60) as answer:
            return json.load(answer)["data"]["result"]
    wait(scraped)


def judge(binary, name, url, options, began):
    now = int(time.time() * 1000)
    got, err = dump(binary, "prometheus", url, began, now, *options, metrics=[METRIC])
    series = {text.partition('pod="')[2].partition('"')[0]: value for text, value in (got or {}).items()}
    old, new = series.get("old", (0, 0, 0, 0)), series.get("new", (0, 0, 0, 0))
    check(f"{name}: both pods were scraped", old[0] > 1 and new[0] > 1, f"{series} {err}")
    check(f"{name}: each sample is a value", old[1] == 5.0 * old[0] and new[1] == 5.0 * new[0], str(series))
    check(f"{name}: the old series ends before the new one begins", 500 < new[2] - old[3] < 20_000, str(series))


def main(binary):
    with tempfile.TemporaryDirectory() as work, exporter() as (target, state), contextlib.ExitStack() as stack:
        config = scrape_config(work, target)
        prom, vm = (f"http://127.0.0.1:{servers.free_port()}" for _ in range(2))
        began = int(time.time() * 1000)
        stack.enter_context(servers.started(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={work}/tsdb", "--log.level=warn",
             f"--web.listen-address={prom.removeprefix('http://')}"], prom + "/-/ready", f"{work}/prometheus.log"))
        stack.enter_context(servers.started(
            ["victoria-metrics", f"-promscrape.config={config}", f"-storageDataPath={work}/vm", "-loggerLevel=WARN",
             "-search.latencyOffset=0s",
             f"-httpListenAddr={vm.removeprefix('http://')}"], vm + "/health", f"{work}/victoria.log"))
        for state["pod"] in ("old", "new"):
            for url in (prom, vm):
                wait_scraped(url, state["pod"])
        urllib.request.urlopen(vm + "/internal/force_flush", timeout=60).close()
        judge(binary, "Prometheus, remote read", prom, ("--api", "remote-read"), began)
        judge(binary, "Prometheus, range selectors", prom, ("--api", "query"), began)
        judge(binary, "VictoriaMetrics", vm, (), began)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.exit(verdict())
