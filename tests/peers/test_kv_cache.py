#!/usr/bin/env python3
"""Servers that take nearly all memory when they start, and what their KV-cache metrics make of it: test_kv_cache.py BINARY

A day of seven servers, each alone on an H100 (81,559 MiB, $4.00 an hour), as exposition text and out of a real
Prometheus, with the metrics that vLLM, SGLang, TGI and Triton (TensorRT-LLM) export. By hand:

 - Each has taken 69,400 MiB (85.1 %, from 85 % on it is memory taken in advance). Half of that is thought to be cache:
   34,700 MiB. With the cache 5 % full at its peak 69,400 - 34,700 x 0.95 = 36,435 MiB (35.6 GiB) are needed, with a tenth
   beside it 40,078.5: that fits 3g.40gb (40,448 MiB), of which a GPU has two.
 - Four servers are so: four GPUs become two, and 2 x $4.00 x 730 h = $5,840 a month are saved.
 - One has its cache 95 % full in one sample of the day: 69,400 - 34,700 x 0.05 = 67,665 MiB fit no part of a GPU.
 - One exports its cache in the first half of the day only, one (TGI) not at all: what they need is not known."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import check, verdict  # noqa: E402
import servers  # noqa: E402

START, STEP_S, STEPS = 1795996800, 300, 288   # 2026-11-30T00:00Z, a day
MODEL = 'model_name="meta-llama/Llama-3.1-8B-Instruct"'
VLLM = f'vllm:kv_cache_usage_perc{{engine="0",{MODEL}%s}}'
VLLM_OLD = f'vllm:gpu_cache_usage_perc{{{MODEL}%s}}'
SGLANG = f'sglang:token_usage{{{MODEL}%s}}'
TRITON = 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"%s}'
TRITON_OTHER = 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"%s}'


def steady(step):
    """5 % once an hour, else less."""
    return "0.05" if step % 12 == 0 else "0.0208"


# pod: [(series, value at a step or None)]
SERVERS = {
    "vllm-new-0": [(VLLM, steady)],
    "vllm-old-0": [(VLLM_OLD, steady)],
    "sglang-0": [(SGLANG, steady)],
    # blocks are no fractions: only "fraction" says how full the cache is
    "triton-llm-0": [(TRITON, steady), (TRITON_OTHER, lambda step: "4096")],
    "vllm-burst-0": [(VLLM, lambda step: "0.95" if step == 150 else steady(step))],
    "vllm-half-0": [(VLLM, lambda step: steady(step) if step < STEPS // 2 else None)],
    "tgi-chat-0": [(f'tgi_queue_size{{{MODEL}%s}}', lambda step: "0")],
}
FITS = {"vllm-new-0", "vllm-old-0", "sglang-0", "triton-llm-0"}
REFUSED = {"vllm-burst-0": "most of a GPU", "vllm-half-0": "missing for a part of the time",
           "tgi-chat-0": "not known without KV-cache metrics"}
GPU = {"DCGM_FI_DEV_GPU_UTIL": "38", "DCGM_FI_PROF_SM_ACTIVE": "0.12", "DCGM_FI_DEV_FB_USED": "69400",
       "DCGM_FI_DEV_FB_FREE": "12159"}


def series(number, pod):
    """(series, value at a step) of a server and its GPU."""
    of = f'gpu="0",UUID="GPU-{number}",modelName="NVIDIA H100 80GB HBM3",Hostname="n{number}",' \
         f'container="server",namespace="llm",pod="{pod}"'
    for name, value in GPU.items():
        yield f"{name}{{{of}}}", lambda step, value=value: value
    where = f',namespace="llm",pod="{pod}",container="server",job="serving",instance="10.0.0.{number}:8000"'
    for form, value in SERVERS[pod]:
        yield form % where, value


def metrics(path):
    """OpenMetrics: the samples of a series after each other, families together."""
    families = {}
    for number, pod in enumerate(SERVERS):
        for name, value in series(number, pod):
            families.setdefault(name.partition("{")[0], []).append((name, value))
    with open(path, "w", encoding="utf-8") as file:
        for family, members in families.items():
            file.write(f"# TYPE {family} gauge\n")
            for name, value in members:
                for step in range(STEPS + 1):
                    if value(step) is not None:
                        file.write(f"{name} {value(step)} {START + step * STEP_S}\n")
        file.write("# EOF\n")


def objects(path):
    """Nodes of one GPU, and the servers, each a Deployment's."""
    items = []
    for number, pod in enumerate(SERVERS):
        workload = pod.rpartition("-")[0]
        items.append({"apiVersion": "v1", "kind": "Node",
                      "metadata": {"name": f"n{number}", "labels": {"node.kubernetes.io/instance-type": "h100x1"}},
                      "spec": {"providerID": f"fake:///n{number}"},
                      "status": {"capacity": {"nvidia.com/gpu": "1"}, "allocatable": {"nvidia.com/gpu": "1"}}})
        items.append({"apiVersion": "v1", "kind": "Pod",
                      "metadata": {"namespace": "llm", "name": pod, "uid": f"uid-{number}",
                                   "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": workload,
                                                        "uid": f"of-{number}", "controller": True}]},
                      "spec": {"nodeName": f"n{number}", "containers": [
                          {"name": "server", "resources": {"limits": {"nvidia.com/gpu": "1"},
                                                           "requests": {"nvidia.com/gpu": "1"}}}]},
                      "status": {"phase": "Running", "startTime": "2026-11-29T00:00:00Z"}})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": items}, file)


def recommend(binary, work, *source):
    command = [binary, "recommend", "--window", "2026-11-30T00:00:00Z,2026-12-01T00:00:00Z", "--step", "5m", "--gap", "5m",
               "--kube-json", os.path.join(work, "objects.json"), "--prices", os.path.join(work, "prices.csv"),
               "--output", "json", "--quiet", *source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-600:]}")
    return json.loads(done.stdout)


def evidence(finding, name):
    return next((each["value"] for each in finding["evidence"] if each["name"] == name), None)


def differences(found):
    """What is not as it was worked out."""
    fits = {each["subject"].rpartition("/")[2] + "-0": each for each in found["findings"] if each["rule"] == "mig-fit"}
    if set(fits) != FITS:
        yield f"mig-fit for {sorted(fits)}, expected {sorted(FITS)}"
    for pod, finding in fits.items():
        for name, expected in (("memory taken", "67.8 GiB"), ("KV cache in use at its peak", "5.0 %"),
                               ("memory thought to be needed", "35.6 GiB")):
            if evidence(finding, name) != expected:
                yield f"{pod}: {name} is {evidence(finding, name)}, expected {expected}"
        if "3g.40gb" not in finding["what"] or finding["confidence"] != "low":
            yield f"{pod}: {finding['what']} ({finding['confidence']}), expected 3g.40gb (low)"
    saving = sum(float(each["month_saving"]) for each in fits.values())
    if abs(saving - 5840) > 0.01:
        yield f"saves {saving}, expected 5840"
    reasons = {each["subject"].rpartition("/")[2] + "-0": each["reason"] for each in found["refused"]
               if each["rule"] == "mig-fit"}
    for pod, words in REFUSED.items():
        if words not in reasons.get(pod, ""):
            yield f"{pod} is refused because {reasons.get(pod)!r}, expected '{words}'"


def main():
    binary = os.path.abspath(sys.argv[1])

    def compare(name, found):
        wrong = list(differences(found))
        check(name, not wrong, "\n".join(wrong))

    with tempfile.TemporaryDirectory() as work:
        text = os.path.join(work, "metrics.om")
        metrics(text)
        objects(os.path.join(work, "objects.json"))
        with open(os.path.join(work, "prices.csv"), "w", encoding="utf-8") as file:
            file.write("instance_type,lifecycle,usd_per_hour,gpus,gpu_model\nh100x1,on-demand,4.00,1,H100-80\n")
        compare("KV cache from exposition text", recommend(binary, work, "--openmetrics", text))
        tsdb = os.path.join(work, "tsdb")
        servers.load_tsdb(text, tsdb)
        with servers.prometheus(tsdb, work) as url:
            compare("KV cache from a Prometheus", recommend(binary, work, "--prometheus", url))
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
