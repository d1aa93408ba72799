#!/usr/bin/env python3
"""Changes of `recommend --patch` on a real Kubernetes API: test_patch_kube.py BINARY

Needs etcd and kube-apiserver in PATH, and says so where they are not. Four days of workloads on nodes of one GPU; what is
proposed for them is applied, server-side and with strict validation (a field that the API does not have is refused), to
objects that stand there as their owners wrote them. By hand: `rank` and the notebook do nothing (0 replicas); `api` has
four pods at 12 % (48 % of one: 1 replica at 60 %); `tagger` needs 6 GiB and 9 % of an H100 (1g.10gb); four `ocr` need
3,000 MiB and a tenth each of a T4's 15,360 (four beside each other)."""

import json
import os
import subprocess
import sys
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import check, verdict  # noqa: E402
import kube_server  # noqa: E402

START, STEP_S, STEPS = 1795737600, 300, 4 * 288   # 2026-11-27T00:00Z, four days
WINDOW = "2026-11-27T00:00:00Z,2026-12-01T00:00:00Z"
H100, T4 = ("NVIDIA H100 80GB HBM3", "h100x1", 81559), ("Tesla T4", "t4x1", 15360)
# kind, name: pods, GPU, GPU_UTIL, SM_ACTIVE, memory in MiB
WORKLOADS = {
    ("Deployment", "rank-serving"): (1, H100, 0, 0, 9000),
    ("StatefulSet", "jupyter-ada"): (1, H100, 0, 0, 500),
    ("Deployment", "api-serving"): (4, H100, 40, 0.12, 71000),
    ("Deployment", "tagger-serving"): (2, H100, 30, 0.09, 6144),
    ("Deployment", "ocr-serving"): (4, T4, 30, 0.05, 3000),
}
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ConfigMap": "configmaps",
           "ResourceQuota": "resourcequotas", "PriorityClass": "priorityclasses"}


def pods():
    """(node, GPU, pod, kind, name, values), one a pod."""
    number = 0
    for (kind, name), (copies, gpu, util, sm, used) in WORKLOADS.items():
        for copy in range(copies):
            yield f"n{number}", gpu, f"{name}-{copy}", kind, name, (util, sm, used, gpu[2] - used)
            number += 1


def metrics(path):
    names = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE")
    with open(path, "w", encoding="utf-8") as file:
        for i, metric in enumerate(names):
            file.write(f"# TYPE {metric} gauge\n")
            for node, gpu, pod, _, _, values in pods():
                labels = f'gpu="0",UUID="GPU-{node}",modelName="{gpu[0]}",Hostname="{node}",container="server",' \
                         f'namespace="llm",pod="{pod}"'
                file.writelines(f"{metric}{{{labels}}} {values[i]} {START + step * STEP_S}\n" for step in range(STEPS + 1))
        file.write("# EOF\n")


def objects(path):
    """As a list of the API has them; another namespace has a quota."""
    items = [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": "other", "name": "gpus"},
              "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}, "status": {"hard": {"requests.nvidia.com/gpu": "4"}}}]
    for node, gpu, pod, kind, name, _ in pods():
        amount = {"nvidia.com/gpu": "1"}
        items.append({"apiVersion": "v1", "kind": "Node",
                      "metadata": {"name": node, "labels": {"node.kubernetes.io/instance-type": gpu[1]}},
                      "spec": {"providerID": f"fake:///{node}"}, "status": {"capacity": amount, "allocatable": amount}})
        items.append({"apiVersion": "v1", "kind": "Pod",
                      "metadata": {"namespace": "llm", "name": pod, "uid": f"uid-{pod}", "ownerReferences": [
                          {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"of-{name}", "controller": True}]},
                      "spec": {"nodeName": node, "containers": [
                          {"name": "server", "resources": {"limits": amount, "requests": amount}}]},
                      "status": {"phase": "Running", "startTime": "2026-11-26T00:00:00Z"}})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": items}, file)


def proposed(binary, work):
    """The documents of all files, by kind and name."""
    metrics(os.path.join(work, "metrics.om"))
    objects(os.path.join(work, "objects.json"))
    with open(os.path.join(work, "prices.csv"), "w", encoding="utf-8") as file:
        file.write("instance_type,lifecycle,usd_per_hour,gpus,gpu_model\n"
                   "h100x1,on-demand,4.00,1,H100-80\nt4x1,on-demand,0.50,1,T4\n")
    folder = os.path.join(work, "changes")
    command = [binary, "recommend", "--window", WINDOW, "--step", "5m", "--gap", "5m", "--openmetrics",
               os.path.join(work, "metrics.om"), "--kube-json", os.path.join(work, "objects.json"), "--prices",
               os.path.join(work, "prices.csv"), "--patch", folder, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-600:]}")
    documents = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            documents += [each for each in yaml.safe_load_all(file) if each]
    return documents


def path_of(document):
    version, kind = document["apiVersion"], document["kind"]
    namespace = document["metadata"].get("namespace")
    return ("/api/" if "/" not in version else "/apis/") + version + (f"/namespaces/{namespace}" if namespace else "") + \
        "/" + PLURALS[kind]


def apply(client, document):
    """As `kubectl apply --server-side --force-conflicts --validate=strict`; the object after it."""
    path = f"{path_of(document)}/{document['metadata']['name']}?fieldManager=gputally&force=true&fieldValidation=Strict"
    return client.ask("PATCH", path, document, "application/apply-patch+yaml")


def stand_there(client):
    """What the owners have."""
    for namespace in ("llm", "gpu-operator"):
        client.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    amount = {"nvidia.com/gpu": "1"}
    for (kind, name), (copies, *_) in WORKLOADS.items():
        labels = {"app": name}
        document = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "llm"},
                    "spec": {"replicas": copies, "selector": {"matchLabels": labels}, "template": {
                        "metadata": {"labels": labels}, "spec": {"containers": [
                            {"name": "server", "image": "example.invalid/app:1",
                             "resources": {"limits": amount, "requests": amount}}]}}}}
        if kind == "StatefulSet":
            document["spec"]["serviceName"] = name
        client.post(path_of(document), document)


def main():
    binary = os.path.abspath(sys.argv[1])
    if kube_server.missing():
        print(f"skipped: not installed: {', '.join(kube_server.missing())}")
        return verdict()

    def same(name, got, expected):
        check(name, got == expected, f"{got}, expected {expected}")

    with tempfile.TemporaryDirectory() as work:
        documents = proposed(binary, work)
        server = kube_server.KubeServer(work)
        try:
            client, after, refused = server.client(), {}, []
            stand_there(client)
            for document in documents:
                key = (document["kind"], document["metadata"]["name"])
                try:
                    after[key] = apply(client, document)
                except kube_server.Refused as error:
                    refused.append(f"{key}: {error}")
        finally:
            server.close()
        same("the API takes every document", refused, [])

        def spec(kind, name):
            return after.get((kind, name), {}).get("spec", {})

        def pod(kind, name):
            return spec(kind, name).get("template", {}).get("spec", {})

        same("an idle server is scaled to zero", spec("Deployment", "rank-serving").get("replicas"), 0)
        same("a notebook is stopped", spec("StatefulSet", "jupyter-ada").get("replicas"), 0)
        same("fewer pods carry a low load", spec("Deployment", "api-serving").get("replicas"), 1)
        containers = pod("Deployment", "tagger-serving").get("containers", [{}])
        same("a slice in place of a GPU", (len(containers), containers[0].get("image"), containers[0].get("resources")),
              (1, "example.invalid/app:1", {part: {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "1"}
                                            for part in ("limits", "requests")}))
        same("pods that share go to nodes that do", pod("Deployment", "ocr-serving").get("nodeSelector"),
              {"nvidia.com/device-plugin.config": "shared-4"})
        shared = after.get(("ConfigMap", "gputally-time-slicing"), {}).get("data", {})
        same("the device plugin's configuration", yaml.safe_load(shared.get("shared-4", "")),
              {"version": "v1", "sharing": {"timeSlicing": {"failRequestsGreaterThanOne": True, "resources": [
                  {"name": "nvidia.com/gpu", "replicas": 4}]}}})
        # 12 GPUs and a quarter more
        same("a quota", spec("ResourceQuota", "gpus").get("hard"), {"requests.nvidia.com/gpu": "15"})
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
