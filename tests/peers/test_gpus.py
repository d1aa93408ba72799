#!/usr/bin/env python3
"""GPUs now, where a Prometheus has the samples: /api/v1/gpus and `gputally top`.

    tests/peers/test_gpus.py BINARY

Three GPUs of a node at $8 an hour a GPU, over the last hours, written by hand: one works for team research, one is held
by team vision and stood still 2 h 20 min before the newest sample, one is free. The exporter's own pod stands in `pod`."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
import servers  # noqa: E402
from service import Service  # noqa: E402

STEP_S = 30
HISTORY_S = 5 * 3600
GIB = 1 << 30
CONFIG = """
prices: {overrides: [{node: "gpu-*", usd_per_hour: 24}]}
owners:
- {namespace: research, team: research}
- {namespace: notebooks, team: vision}
sources:
- {kind: prometheus, url: "%s"}
- {kind: prometheus, cluster: far, url: "http://127.0.0.1:1"}
"""
GPUS = [("GPU-a", 0, ("research", "train-1")), ("GPU-b", 1, ("notebooks", "ada-0")), ("GPU-c", 2, None)]


def work(uuid, t, stopped):
    """GPU_UTIL in percent."""
    return {"GPU-a": 80, "GPU-b": 60 if t <= stopped else 0, "GPU-c": 0}[uuid]


def write_history(path, end):
    stopped = end - 140 * 60
    values = {"DCGM_FI_DEV_GPU_UTIL": lambda uuid, t: work(uuid, t, stopped),
              "DCGM_FI_PROF_SM_ACTIVE": lambda uuid, t: work(uuid, t, stopped) / 200,
              "DCGM_FI_DEV_FB_USED": lambda uuid, t: 40960 if uuid != "GPU-c" else 0,
              "DCGM_FI_DEV_FB_FREE": lambda uuid, t: 40960 if uuid != "GPU-c" else 81920,
              "DCGM_FI_DEV_POWER_USAGE": lambda uuid, t: 300 if work(uuid, t, stopped) else 70}
    with open(path, "w", encoding="utf-8") as out:
        for name, value in values.items():
            out.write(f"# TYPE {name} gauge\n")
            for uuid, index, holder in GPUS:
                labels = (f'UUID="{uuid}",gpu="{index}",Hostname="gpu-1",modelName="NVIDIA H100 80GB HBM3",job="dcgm",'
                          f'instance="10.0.0.1:9400",pod="dcgm-exporter-x",namespace="gpu-operator",container="exporter"')
                if holder:
                    labels += f',exported_namespace="{holder[0]}",exported_pod="{holder[1]}",exported_container="main"'
                for t in range(end - HISTORY_S, end + 1, STEP_S):
                    out.write(f"{name}{{{labels}}} {value(uuid, t)} {t}\n")
        out.write("# EOF\n")
    return stopped


def ask(url, path):
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return json.load(answer)


def booked(url):
    """Until an hour is booked, and so a price is known."""
    wait(lambda: (gpus := ask(url, "/api/v1/gpus")) and gpus[0]["price_hour"])
    return ask(url, "/api/v1/gpus")


def without_prices(gpus):
    """Samples are there at once, before an hour is booked."""
    check("the first look has samples of all three", [gpu["device"] for gpu in gpus] == ["GPU-a", "GPU-b", "GPU-c"], gpus)
    check("they are samples, not means", all(gpu["basis"] == "sample" for gpu in gpus), gpus)


def figures(gpus, end, stopped):
    a, b, c = gpus
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    check("each says how old it is", all(gpu["at"] == stamp for gpu in gpus), (stamp, gpus))
    check("who holds it, and whose that is", a["holder"]["pod"] == "train-1" and a["holder"]["team"] == "research"
          and b["holder"]["team"] == "vision" and a["holder"]["workload"] == "Pod/train-1", gpus)
    check("the exporter holds nothing", c["holder"] is None, c)
    check("what they do", (a["util"], a["sm"], b["util"], a["power_w"]) == (0.8, 0.4, 0, 300), gpus)
    check("memory, its total from what is used and free", a["memory_used"] == 40 * GIB
          and all(gpu["memory_total"] == 80 * GIB for gpu in gpus), gpus)
    check("dollars an hour: a third of the node's", all(gpu["price_hour"] == "8.000000000" for gpu in gpus), gpus)
    check("what works is not idle", a["idle_since"] is None, a)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stopped))
    check("idle since before anybody looked", b["idle_since"] == since, (since, b))
    check("the free one since its history began", c["idle_since"] is not None, c)


def top(binary, url):
    environment = {**os.environ, "COLUMNS": "80"}
    shown = subprocess.run([binary, "top", "--server", url, "--sort", "idle"], capture_output=True, text=True, check=False,
                           env=environment).stdout
    vision = next((line for line in shown.splitlines() if "vision" in line), "")
    check("top has team, dollars and time idle", "$8.00" in vision and "2 h 2" in vision and "40/80" in vision, shown)
    check("top says how old that is", " old" in shown.splitlines()[0], shown)
    check("top adds up: three GPUs, $24 an hour", "3 GPUs on 1 node" in shown and "$24.00 an hour" in shown, shown)


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        end = int(time.time()) // STEP_S * STEP_S
        stopped = write_history(os.path.join(folder, "fleet.om"), end)
        servers.load_tsdb(os.path.join(folder, "fleet.om"), os.path.join(folder, "tsdb"))
        with servers.prometheus(os.path.join(folder, "tsdb"), folder) as prometheus:
            with open(os.path.join(folder, "config.yaml"), "w", encoding="utf-8") as file:
                file.write(CONFIG % prometheus)
            command = ["--config", os.path.join(folder, "config.yaml"), "--db", os.path.join(folder, "gpu.db")]
            with Service(binary, command, folder).wait() as service:
                without_prices(ask(service.url, "/api/v1/gpus"))
                figures(booked(service.url), end, stopped)
                top(binary, service.url)
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
