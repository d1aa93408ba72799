#!/usr/bin/env python3
"""A real API server's history, made by chance, and the ledger of who followed it.

    tests/peers/test_kube_real.py BINARY [--seed N] [--steps N] [--keep FOLDER]

Needs etcd, etcdctl and kube-apiserver in PATH, and says so where they are not. A script changes nodes, pods, their
controllers (built in and custom), claims, quotas and labels; `gputally serve` follows by the chart's role and its
account's token. On the way its connection is cut, the API server is killed, etcd is compacted so that the watch's version
is gone, the token is revoked, and the service is killed. In the end it books the hours without any API, from what it
kept on disk, and who held which node's GPUs for how long is what the script did.

A pod's time is known to the second where an object says it, else to when the change was told: to SLACK_MS while the
service was connected, and within the time of its blindness otherwise."""

import argparse
import csv
import http.server
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from checks import check, verdict  # noqa: E402
import kube_server  # noqa: E402
from kube_history import GPUS, History, NAMESPACE, now  # noqa: E402
from service import Service, write_config  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
HOUR = 3_600_000
SLACK_MS = 2500
LOST_MS = 3500      # what a service that is killed has not on disk
ACCOUNT = "gputally"
DISTURBANCES = ("cut", "gone", "api killed", "compacted", "token revoked", "service killed")


class Exporter(http.server.BaseHTTPRequestHandler):
    """The GPUs of the node whose pods have claims, at half load: claims name them by UUID."""

    def do_GET(self):  # noqa: N802
        lines = [f'{name}{{gpu="{i}",UUID="GPU-d0-{i}",modelName="NVIDIA H100 80GB HBM3",Hostname="d0"}} {value}\n'
                 for name, value in (("DCGM_FI_DEV_GPU_UTIL", 50), ("DCGM_FI_DEV_POWER_USAGE", 300))
                 for i in range(GPUS)]
        data = "".join(lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Lab:
    """The servers, the service, and what can happen to them."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.rng = random.Random(options.seed)
        self.server = kube_server.KubeServer(folder)
        self.wire = kube_server.Wire(self.server.port)
        self.admin = self.server.client()
        self.token_file = os.path.join(folder, "token")
        self.service, self.usual = None, {}
        self.exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
        threading.Thread(target=self.exporter.serve_forever, daemon=True).start()
        self.config = self.prepare()
        self.history = History(self.rng, self.admin)

    def prepare(self):
        """The account with the chart's role, a kubeconfig for it, the configuration."""
        with open(os.path.join(ROOT, "deploy", "helm", "gputally", "rules.yaml"), encoding="utf-8") as file:
            rules = yaml.safe_load(file)
        rules.append({"apiGroups": ["lab.example"], "resources": ["experiments"], "verbs": ["get"]})
        self.admin.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": {"team": "of-namespace"}}})
        rbac = "/apis/rbac.authorization.k8s.io/v1/"
        self.admin.post(rbac + "clusterroles", {"metadata": {"name": "gputally"}, "rules": rules})
        self.admin.post(rbac + "clusterrolebindings", {
            "metadata": {"name": "gputally"}, "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gputally"}})
        self.make_account()
        kubeconfig = write_config(os.path.join(self.folder, "kubeconfig"), {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.wire.port}",
                                                   "certificate-authority": self.server.ca_file()}}],
            "users": [{"name": "u", "user": {"tokenFile": self.token_file}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})
        return write_config(os.path.join(self.folder, "config.json"), {
            "prices": {"overrides": [{"node": "*", "usd_per_hour": 8}]},
            "serve": {"db": os.path.join(self.folder, "gpu.db"), "every": "2s", "history": "2h"},
            "sources": [{"kind": "kubernetes", "cluster": "real", "kubeconfig": kubeconfig},
                        {"kind": "scrape", "cluster": "real", "interval": "1s", "timeout": "1s", "labels": {"node": "d0"},
                         "targets": [f"127.0.0.1:{self.exporter.server_address[1]}"]}]})

    def make_account(self):
        self.admin.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": ACCOUNT}})
        with open(self.token_file + ".new", "w", encoding="ascii") as file:
            file.write(self.server.token_of("default", ACCOUNT))
        os.rename(self.token_file + ".new", self.token_file)

    def begin(self, clock=None):
        self.service = Service(self.options.binary, ["--config", self.config], self.folder, clock).wait()

    def watches(self):
        """How many follow nodes, and pods."""
        found = {"nodes": 0, "pods": 0}
        for line in self.admin.ask("GET", "/metrics").splitlines():
            if line.startswith("apiserver_longrunning_requests{") and 'verb="WATCH"' in line and 'subresource=""' in line:
                for resource in found:
                    if f'resource="{resource}"' in line and 'group=""' in line:
                        found[resource] += int(float(line.rsplit(" ", 1)[1]))
        return found

    def connected(self, seconds=60):
        """Until both are followed again, beside those who always do."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            seen = self.watches()
            if all(seen[name] > self.usual[name] for name in seen):
                return True
            time.sleep(0.3)
        return False

    def dropped(self, seconds=20):
        """Until the API server has noticed that nobody follows; it counts a cut watch for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            seen = self.watches()
            if all(seen[name] <= self.usual[name] for name in seen):
                return
            time.sleep(0.3)

    def blind(self, change, mend, steps=12, lost=0):
        """Something happens, life goes on without the service's knowledge, and it comes back."""
        self.history.blind(lost)
        change()
        if steps:       # a server that was started again counts from nothing
            self.dropped()
        self.live(steps)
        mend()
        back = self.connected()
        time.sleep(0.5)
        self.history.sees()
        return back

    def live(self, steps):
        for _ in range(steps):
            self.history.step()
            time.sleep(self.rng.random() * 0.25)

    def gone(self):
        """The version at which the watch was is no more: 410."""
        self.server.compact()
        self.server.kill()
        self.server.start()

    def revoked(self):
        self.admin.delete(f"/api/v1/namespaces/default/serviceaccounts/{ACCOUNT}")
        self.wire.cut()
        self.wire.mend()

    def restart_api(self):
        self.server.kill()
        self.server.start()

    def disturb(self, word):
        nothing = lambda: None  # noqa: E731
        if word == "compacted":     # nobody notices
            self.server.compact()
            return self.live(5) or True
        change, mend = {"cut": (self.wire.cut, self.wire.mend),
                        "gone": (self.wire.cut, lambda: (self.gone(), self.wire.mend())),
                        "api killed": (self.restart_api, nothing),
                        "token revoked": (self.revoked, self.make_account),
                        "service killed": (self.service.kill, self.begin)}[word]
        return self.blind(change, mend, 0 if word == "api killed" else 12, LOST_MS if word == "service killed" else 0)

    def run(self):
        self.usual = self.watches()
        self.begin()
        check("the service follows by the chart's role", self.connected())
        time.sleep(1)
        self.history.sees()
        words = list(DISTURBANCES) + self.rng.sample(DISTURBANCES, 2)
        self.rng.shuffle(words)
        for word in words:
            self.live(self.options.steps)
            check(f"it follows again: {word}", self.disturb(word))
        self.live(self.options.steps)
        time.sleep(5)       # controllers are asked for one by one
        self.history.end()
        time.sleep(2)
        check("nothing was refused", "(403" not in self.whole_log(), self.whole_log()[-2000:])
        self.service.end()

    def whole_log(self):
        with open(self.service.log_path, encoding="utf-8") as file:
            return file.read()

    def book(self):
        """Later, and without the API: the hours have ended and are closed."""
        self.wire.cut()
        last = now() // HOUR * HOUR
        self.begin((last + 2 * HOUR + 5 * 60_000, 1))
        wanted = time.strftime("to=%Y-%m-%dT%H:00:00Z", time.gmtime((last + HOUR) // 1000))
        self.service.until("the hours are booked", lambda: re.search(f"msg=booked .* {wanted}", self.service.logged()) or
                           "to=" + time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime((last + 2 * HOUR) // 1000)) in
                           self.service.logged(), 60)
        self.service.end()

    def ledger(self):
        done = subprocess.run([self.options.binary, "export", "ledger", "--db", os.path.join(self.folder, "gpu.db"),
                               "--output", "csv", "--quiet", "--window",
                               time.strftime("%Y-%m-%dT%H:00:00Z,", time.gmtime(self.history.began // 1000)) +
                               time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(now() // 1000 + 3600))],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return list(csv.DictReader(done.stdout.splitlines()))

    def close(self):
        if self.service and self.service.process.poll() is None:
            self.service.kill()
        self.wire.close()
        self.exporter.shutdown()
        self.exporter.server_close()
        self.server.close()


def pods_agree(history, rows):
    held, workloads, places, owners = {}, {}, {}, {}
    for row in rows:
        if row["pod_uid"] != "-":
            held[row["pod_uid"]] = held.get(row["pod_uid"], 0) + int(row["held_ms"])
            workloads.setdefault(row["pod_uid"], set()).add(row["workload"])
            places.setdefault(row["pod_uid"], set()).add(row["node"])
            owners.setdefault(row["pod_uid"], set()).add(row["owner"])
    wrong = {"time": [], "workload": [], "node": [], "team": []}
    for pod in history.pods:
        low, high = pod.bounds()
        seconds = held.pop(pod.uid, 0) / pod.gpus
        if not low - SLACK_MS <= seconds <= high + SLACK_MS:
            wrong["time"].append((str(pod), "held", seconds, "expected", low, high))
        if pod.uid in workloads:
            if workloads[pod.uid] != {pod.workload}:
                wrong["workload"].append((str(pod), workloads[pod.uid], pod.workload))
            if places[pod.uid] != {pod.node}:
                wrong["node"].append((str(pod), places[pod.uid]))
            if not owners[pod.uid] <= set(pod.teams):
                wrong["team"].append((str(pod), owners[pod.uid], pod.teams))
    for word, found in wrong.items():
        check(f"{len(history.pods)} pods: {word}", not found, "\n".join(str(line) for line in found[:12]))
    check("nobody else holds anything", not held, held)
    sure = sum(1 for pod in history.pods if pod.bounds()[0] == pod.bounds()[1])
    check("many of them are known to the second", sure > len(history.pods) * 0.3, sure)


def nodes_agree(history, rows):
    up = {}
    for row in rows:
        up[row["node"]] = up.get(row["node"], 0) + int(row["gpu_ms"])
    wrong = []
    for name in sorted({node.name for node in history.nodes}):
        lives = [node for node in history.nodes if node.name == name]
        low, high = (sum(node.bounds()[i] for node in lives) for i in (0, 1))
        seconds = up.pop(name, 0) / lives[0].gpus
        if not low - SLACK_MS * len(lives) <= seconds <= high + SLACK_MS * len(lives):
            wrong.append((name, "up", seconds, "expected", low, high, [str(node) for node in lives]))
    check(f"{len(history.nodes)} lives of nodes", not wrong, "\n".join(str(line) for line in wrong))
    check("no other node is booked", not up, up)


def devices_agree(history, rows):
    """Who has a claim has the claim's GPU."""
    wrong = []
    for pod in history.pods:
        if pod.device:
            found = {row["device"] for row in rows if row["pod_uid"] == pod.uid}
            if found - {pod.device}:
                wrong.append((str(pod), found, pod.device))
    claimed = sum(1 for pod in history.pods if pod.device)
    check(f"{claimed} pods have the GPUs of their claims", claimed > 0 and not wrong, wrong[:5])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=random.randrange(10000))
    parser.add_argument("--steps", type=int, default=20, help="between two disturbances")
    parser.add_argument("--keep", default="", help="a folder for what is made, to look at")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    missing = kube_server.missing()
    if missing:
        print(f"skipped: not installed: {', '.join(missing)}")
        return verdict()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            shutil.rmtree(options.keep, ignore_errors=True)
            os.makedirs(options.keep)
        lab = Lab(options, options.keep or folder)
        try:
            lab.run()
            lab.book()
            rows = lab.ledger()
            pods_agree(lab.history, rows)
            nodes_agree(lab.history, rows)
            devices_agree(lab.history, rows)
        finally:
            lab.close()
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
