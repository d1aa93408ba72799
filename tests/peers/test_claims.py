#!/usr/bin/env python3
"""GPUs that pods hold by claims (dynamic resource allocation), seen by an exporter that names no pods.

    tests/peers/test_claims.py BINARY

The GPUs now say who holds them from the claims as the Kubernetes API has them, at once: before an hour is booked, and
after a claim was given to another pod."""

import http.server
import json
import os
import sys
import tempfile
import threading

import mock_kube

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
from service import Service, write_config, write_kubeconfig  # noqa: E402

TEXT = "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{n}",UUID="GPU-{n}",Hostname="n0",modelName="NVIDIA H100 80GB HBM3"}} 70\n'
               for n in range(3)).encode()


class Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        self.wfile.write(TEXT)

    def log_message(self, *_):
        pass


def pod(name):
    return {"metadata": {"name": name, "namespace": "a", "uid": f"{name}-u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "n0", "containers": [{"name": "main", "resources": {}}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:10Z"}}


def claim(name, device, *pods):
    """A claim that was given a device, and is reserved for pods."""
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n0", "device": device}
    return {"metadata": {"name": name, "namespace": "a", "uid": f"{name}-u"}, "spec": {},
            "status": {"allocation": {"devices": {"results": [result]}},
                       "reservedFor": [{"resource": "pods", "name": each, "uid": f"{each}-u"} for each in pods]}}


def fill(store):
    store.put("namespaces", {"metadata": {"name": "a"}})
    store.put("nodes", {"metadata": {"name": "n0", "uid": "n0-u"}, "spec": {}, "status": {"capacity": {}}})
    store.put("resourceslices", {"metadata": {"name": "n0-gpus", "uid": "s"}, "spec": {
        "nodeName": "n0", "driver": "gpu.nvidia.com", "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{n}", "attributes": {"uuid": {"string": f"GPU-{n}"}, "type": {"string": "gpu"}}}
                    for n in range(3)]}})
    store.put("pods", pod("train-0"))
    store.put("resourceclaims", claim("c0", "gpu-0", "train-0"))
    store.put("resourceclaims", claim("waiting", "gpu-2"))


def main(binary):
    mock = mock_kube.MockKube()
    mock.bookmark_s = 0.2
    fill(mock.store)
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = write_kubeconfig(os.path.join(folder, "kubeconfig"), mock.url)
        config = write_config(os.path.join(folder, "config.json"), {
            "serve": {"db": os.path.join(folder, "gpu.db")},
            "sources": [{"kind": "kubernetes", "cluster": "k", "kubeconfig": kubeconfig},
                        {"kind": "scrape", "cluster": "k", "interval": "1s",
                         "targets": [f"127.0.0.1:{exporter.server_address[1]}"]}]})
        with Service(binary, ["--config", config], folder).wait() as service:
            def holders():
                status, text = service.ask("/api/v1/gpus")
                if status != 200:     # nothing is booked yet, and the ledger is not there
                    return {}
                return {gpu["device"]: gpu["holder"] and f'{gpu["holder"]["namespace"]}/{gpu["holder"]["pod"]}'
                        for gpu in json.loads(text)}

            def shows(**wanted):
                wanted = {f"GPU-{n}": wanted.get(f"gpu{n}") for n in range(3)}
                return wait(lambda: holders() == wanted) or holders()
            check("who a claim is reserved for holds its GPU; a claim for nobody is held by nobody",
                  shows(gpu0="a/train-0") is True, holders())
            mock.store.put("pods", pod("train-1"))
            mock.store.put("resourceclaims", claim("c1", "gpu-1", "train-1"))
            check("another one, at once", shows(gpu0="a/train-0", gpu1="a/train-1") is True, holders())
            mock.store.delete("pods", "a", "train-0")
            mock.store.put("pods", pod("next"))
            mock.store.put("resourceclaims", claim("c0", "gpu-0", "next"))
            check("a claim that is given to another pod", shows(gpu0="a/next", gpu1="a/train-1") is True, holders())
            mock.store.delete("resourceclaims", "a", "c0")
            mock.store.put("resourceclaims", claim("c1", "gpu-1"))
            check("claims that are deleted or given back", shows() is True, holders())
            service.end()
    mock.close()
    exporter.shutdown()
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
