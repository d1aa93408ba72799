#!/usr/bin/env python3
"""Following a Kubernetes API: what is known of it equals what it has, whatever happens on the way.

    tests/peers/test_kube.py BINARY [--seeds N]     (kube_state lies beside what BINARY points to)
"""

import argparse
import base64
import os
import random
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import mock_kube

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import PATIENCE_S, check, verdict, wait  # noqa: E402

PROGRAM = ""
FOLDER = ""


def kubeconfig(url, user="", cluster=""):
    path = tempfile.mktemp(dir=FOLDER, suffix=".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""apiVersion: v1
kind: Config
current-context: here
clusters:
- name: c
  cluster: {{server: "{url}"{cluster}}}
users:
- name: u
  user: {{{user}}}
contexts:
- name: here
  context: {{cluster: c, user: u}}
""")
    return path


class Follower:
    """A kube_state that follows a mock."""

    def __init__(self, config, watch_ms=2000, backoff_ms=20, page=50, seen_ms=100, allow_exec=False, relist_ms=0):
        self.records = tempfile.mktemp(dir=FOLDER, suffix=".records")
        args = [PROGRAM, config, self.records] + [str(x) for x in (watch_ms, backoff_ms, page, seen_ms, relist_ms)]
        if allow_exec:
            args.append("allow-exec")
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.notes, self.targets, self.answers = [], [], []
        self.answered = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        answer = []
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith(("note ", "warning ", "error ")):
                self.notes.append(line)
            elif line.startswith("targets"):
                self.targets.append(line.split()[1:])
            elif line:
                answer.append(line)
            else:
                with self.answered:
                    self.answers.append(answer)
                    self.answered.notify_all()
                answer = []

    def ask(self, command):
        with self.answered:
            self.answers.clear()
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            while not self.answers:
                if not self.answered.wait(PATIENCE_S):
                    raise RuntimeError("kube_state does not answer")
            return self.answers.pop(0)

    def state(self):
        return [line for line in self.ask("state") if not line.startswith("above ")]

    def owners(self):
        return [line for line in self.ask("state") if line.startswith("above ")]

    def status(self, kind):
        for line in self.ask("status"):
            if line.startswith(kind + " "):
                return line
        return ""

    def synced(self):
        return wait(lambda: "synced=1" in " ".join(self.ask("status")))

    def follows(self, mock):
        return wait(lambda: self.state() == expected(mock))

    def replayed(self):
        out = subprocess.run([PROGRAM, "-", self.records], stdout=subprocess.PIPE, text=True, check=False)
        return [line for line in out.stdout.splitlines() if line], out.returncode

    def replays(self, mock):
        """Its records come to give the same state without any API: the last of them may be on their way."""
        return wait(lambda: self.replayed() == (expected(mock), 0))

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.flush()
        return self.process.wait(30)


# ---------------------------------------------------------------- what the mock has, as kube_state prints it

def milli(text):
    number = re.match(r"[0-9]+", text).group()
    return int(number) * {"": 1000, "m": 1, "Gi": 1000 << 30}[text[len(number):]]


def quantities(word, items):
    return "".join(f" {word}:{name}={milli(value)}" for name, value in items.items())


def labels(meta):
    return "".join(f" label:{k}={v}" for k, v in meta.get("labels", {}).items() if len(v) <= 4096)


def owner(meta):
    for ref in meta.get("ownerReferences", []):
        if ref.get("controller"):
            return f"{ref['kind']}/{ref['name']}"
    return "/"


def line_of(resource, item):
    meta = item["metadata"]
    name = (meta["namespace"] + "/" if "namespace" in meta else "") + meta["name"]
    if resource == "nodes":
        taints = "".join(f" taint:{t['key']}={t.get('value', '')}:{t['effect']}" for t in item["spec"].get("taints", []))
        return (f"Node {name} uid={meta['uid']}" + (" unschedulable" if item["spec"].get("unschedulable") else "") +
                f" created={meta['creationTimestamp']}" + labels(meta) + taints +
                quantities("capacity", item["status"]["capacity"]) +
                quantities("allocatable", item["status"]["allocatable"]))
    if resource == "pods":
        containers = ""
        for c in item["spec"].get("initContainers", []):
            word = "sidecar" if c.get("restartPolicy") == "Always" else "init"
            containers += f" {word}:{c['name']}" + quantities("request", c["resources"].get("requests", {}))
        for c in item["spec"]["containers"]:
            containers += f" container:{c['name']}" + quantities("request", c["resources"].get("requests", {}))
        scheduled = "".join(f" scheduled={c['lastTransitionTime']}" for c in item["status"].get("conditions", [])
                            if c["type"] == "PodScheduled" and c["status"] == "True")
        started = f" started={item['status']['startTime']}" if "startTime" in item["status"] else ""
        return (f"Pod {name} uid={meta['uid']} node={item['spec'].get('nodeName', '')} phase={item['status']['phase']} "
                f"owner={owner(meta)}" + scheduled + started + labels(meta) + containers)
    if resource == "namespaces":
        return f"Namespace {name}" + labels(meta)
    if resource in ("replicasets", "jobs"):
        kind = mock_kube.RESOURCES[resource][1]
        return f"{kind} {name} uid={meta['uid']} owner={owner(meta)}"
    if resource == "resourceclaims":
        results = item["status"].get("allocation", {}).get("devices", {}).get("results", [])
        return f"ResourceClaim {name}" + "".join(f" device:{r['device']}" for r in results)
    if resource == "resourceslices":
        return f"ResourceSlice {name} node={item['spec']['nodeName']}" + "".join(
            f" device:{d['name']}={d['attributes']['uuid']['string']}" for d in item["spec"]["devices"])
    if resource == "resourcequotas":
        return f"ResourceQuota {name}" + quantities("hard", item["status"]["hard"])
    return f"PriorityClass {name} value={item['value']}"


FOLLOWED = ("nodes", "pods", "namespaces", "replicasets", "jobs", "resourceclaims", "resourceslices", "resourcequotas",
            "priorityclasses")


def expected(mock):
    with mock.store.lock:
        return sorted((line_of(resource, item) for resource in FOLLOWED
                       for item in mock.store.objects[resource].values()), key=lambda text: text.encode())


# ---------------------------------------------------------------- objects

def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_790_000_000 + seconds))


def node(name, uid=1, cordoned=False, gpus=8, missing=0):
    spec = {"providerID": f"aws:///x/{name}"}
    if cordoned:
        spec.update(unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    return {"metadata": {"name": name, "uid": f"{name}-{uid}", "creationTimestamp": stamp(uid),
                         "labels": {"node.kubernetes.io/instance-type": "p5.48xlarge", "pool": f"p{uid % 3}"}},
            "spec": spec, "status": {"capacity": {"cpu": "96", "nvidia.com/gpu": str(gpus)},
                                     "allocatable": {"cpu": "95500m", "nvidia.com/gpu": str(gpus - missing)},
                                     "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}


def pod(name, uid=1, phase="Running", on="n0", controller=None, namespace="a", more=None, ip="10.1.0.1"):
    meta = {"name": name, "namespace": namespace, "uid": f"{name}-{uid}", "creationTimestamp": stamp(0),
            "labels": {"app": name.split("-")[0], "team": "blue"}}
    if more:
        meta["labels"].update(more)
    if controller:
        api, kind, controller_name, controller_uid = controller
        meta["ownerReferences"] = [{"apiVersion": api, "kind": kind, "name": controller_name, "uid": controller_uid,
                                    "controller": True}]
    spec = {"initContainers": [{"name": "load", "resources": {"requests": {"cpu": "2"}}},
                               {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
            "containers": [{"name": "main", "env": [{"name": "X", "value": "y" * 50}],
                            "ports": [{"name": "metrics", "containerPort": 9400}],
                            "resources": {"requests": {"cpu": "4", "nvidia.com/gpu": "2"}}}]}
    state = {"phase": phase, "podIP": ip}
    if on:
        spec["nodeName"] = on
        state["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(5)}]
        state["startTime"] = stamp(6)
    return {"metadata": meta, "spec": spec, "status": state}


def owned(name, namespace="a", controller=None, uid=None):
    meta = {"name": name, "namespace": namespace, "uid": uid or f"{name}-u"}
    if controller:
        api, kind, controller_name, controller_uid = controller
        meta["ownerReferences"] = [{"apiVersion": api, "kind": kind, "name": controller_name, "uid": controller_uid,
                                    "controller": True}]
    return {"metadata": meta, "spec": {"much": "more"}}


def namespace_object(name, team="blue"):
    return {"metadata": {"name": name, "labels": {"team": team}}}


def small_cluster(mock, pods=3):
    mock.store.put("namespaces", namespace_object("a"))
    mock.store.put("nodes", node("n0"))
    for i in range(pods):
        mock.store.put("pods", pod(f"p-{i:05d}"))


# ---------------------------------------------------------------- one behaviour each

def with_mock(test):
    mock = mock_kube.MockKube()
    try:
        test(mock)
    except Exception as error:  # a follower that died tells by its absence
        check(test.__name__, False, repr(error))
    finally:
        mock.close()


def a_list_in_pages_is_whole(mock):
    small_cluster(mock, 1234)
    follower = Follower(kubeconfig(mock.url), page=100)
    check("a list in pages is whole", follower.follows(mock), "\n".join(follower.state()[:3]))
    check("… and asked for page by page", mock.count("list", "pods") == 13, str(mock.count("list", "pods")))
    check("records give the same state without any API", follower.replays(mock))
    follower.quit()


def a_list_whose_pages_expire_begins_anew(mock):
    small_cluster(mock, 300)
    get = mock_kube._Handler.list
    done = []

    def compacting(handler, resource, query, fault):
        if resource == "pods" and query.get("continue") and not done:
            done.append(True)
            mock.store.delete("pods", "a", "p-00007")
            mock.store.put("pods", pod("q-1"))
            mock.store.compact()
        return get(handler, resource, query, fault)

    mock.server.RequestHandlerClass.list = compacting
    follower = Follower(kubeconfig(mock.url), page=100)
    check("a list whose pages expire begins anew", follower.follows(mock) and bool(done), follower.status("POD"))
    follower.quit()


def a_watch_that_is_cut_is_resumed(mock):
    small_cluster(mock)
    follower = Follower(kubeconfig(mock.url), watch_ms=60000)
    follower.synced()
    lists = mock.count("list", "pods")
    for i in range(5):
        mock.store.put("pods", pod(f"new-{i}"))
        mock.cut_watches()
        mock.store.delete("pods", "a", f"p-{i:05d}")
        time.sleep(0.1)
    check("a watch that is cut is resumed without a loss", follower.follows(mock))
    check("… and without another list", mock.count("list", "pods") == lists, str(mock.count("list", "pods")))
    follower.quit()


def gone_means_a_new_list(mock):
    for as_event in (False, True):
        mock.gone_as_event = as_event
        small_cluster(mock)
        follower = Follower(kubeconfig(mock.url), watch_ms=60000)
        follower.synced()
        lists = mock.count("list", "pods")
        mock.queue = [("pods", "watch", "500")] * 1000     # until it is gone
        mock.cut_watches()
        mock.store.delete("pods", "a", "p-00001")
        mock.store.put("pods", pod("late-0", uid=2 + as_event))
        mock.store.compact()
        mock.queue = []
        how = "as an event" if as_event else "as a status"
        check(f"410 {how} means a new list, which shows what is gone",
              follower.follows(mock) and mock.count("list", "pods") > lists, follower.status("POD"))
        follower.quit()


def bookmarks_keep_a_quiet_watch_fresh(mock):
    small_cluster(mock)
    mock.bookmark_s = 0.1
    follower = Follower(kubeconfig(mock.url), watch_ms=60000)
    follower.synced()
    for i in range(20):   # others are busy, namespaces are quiet
        mock.store.put("pods", pod("busy", more={"turn": str(i)}))
    wait(lambda: mock.bookmarked.get("namespaces") == mock.store.version)
    lists = mock.count("list", "namespaces")
    mock.store.compacted = mock.store.version - 1
    mock.cut_watches()
    mock.store.put("namespaces", namespace_object("b"))
    check("bookmarks keep a quiet watch from 410", follower.follows(mock) and
          mock.count("list", "namespaces") == lists, follower.status("NAMESPACE"))
    follower.quit()


def what_is_forbidden_or_absent_is_told_once(mock):
    mock.forbidden = {"resourcequotas"}
    mock.absent = {"resource.k8s.io"}
    small_cluster(mock)
    follower = Follower(kubeconfig(mock.url))
    follower.synced()
    mock.store.put("pods", pod("later"))
    check("what is forbidden or absent stops nothing else", follower.follows(mock))
    wait(lambda: any("resourcequotas" in note for note in follower.notes))
    time.sleep(1)
    said = [note for note in follower.notes if "resourcequotas" in note]
    check("… is told once", len(said) == 1 and "403" in said[0], str(follower.notes))
    check("… believed at the sixth time, and then asked for once in a while", mock.count("list", "resourcequotas") == 6,
          str(mock.count("list", "resourcequotas")))
    check("… and shown", " refused " in follower.status("QUOTA") and " absent " in follower.status("CLAIM"),
          follower.status("QUOTA"))
    follower.quit()


def a_refusal_of_a_moment_is_none(mock):
    """A server that has just started knows nobody's rights yet."""
    small_cluster(mock)
    mock.store.put("rayclusters", owned("r"))
    follower = Follower(kubeconfig(mock.url), backoff_ms=100)
    follower.follows(mock)
    mock.queue = [(resource, None, "403") for resource in ("pods", "nodes", "rayclusters") for _ in range(4)]
    mock.cut_watches()
    mock.store.put("pods", pod("late", controller=("ray.io/v1", "RayCluster", "r", "r-u")))
    check("a refusal of a moment is waited out", wait(lambda: not mock.queue) and follower.follows(mock),
          f"{mock.queue} {follower.status('POD')}")
    check("… and told to nobody", not any("403" in note for note in follower.notes), str(follower.notes))
    follower.quit()


def retry_after_is_honoured(mock):
    small_cluster(mock)
    mock.queue = [("pods", "list", "429")]
    follower = Follower(kubeconfig(mock.url))
    follower.follows(mock)
    times = [entry[3] for entry in mock.requests if entry[:2] == ("list", "pods")]
    check("Retry-After is honoured", len(times) == 2 and 1.0 <= times[1] - times[0], str(times))
    follower.quit()


def tokens_rotate(mock):
    small_cluster(mock)
    mock.tokens = {"first"}
    path = os.path.join(FOLDER, "token")
    with open(path, "w", encoding="utf-8") as file:
        file.write("first\n")
    follower = Follower(kubeconfig(mock.url, "tokenFile: token"))
    follower.synced()
    mock.tokens = {"second"}
    mock.cut_watches()
    time.sleep(0.5)
    mock.store.put("pods", pod("after"))
    with open(path, "w", encoding="utf-8") as file:
        file.write("second\n")
    check("a token that rotated is read again", follower.follows(mock), follower.status("POD"))
    check("… and appears nowhere", not any("second" in note or "first" in note for note in follower.notes))
    follower.quit()


def an_unreadable_event_is_made_good_by_a_list(mock):
    for fault in ("badjson", "badutf8"):
        small_cluster(mock)
        follower = Follower(kubeconfig(mock.url), watch_ms=500)
        follower.synced()
        mock.queue = [("pods", "watch", fault)]
        mock.cut_watches()
        time.sleep(0.3)
        mock.store.put("pods", pod(f"broken-{fault}"))
        check(f"an event that is not readable ({fault}) is made good by a list",
              wait(lambda: not mock.queue) and follower.follows(mock), follower.status("POD"))
        follower.quit()


def a_label_of_100_kb_is_left_out(mock):
    small_cluster(mock)
    follower = Follower(kubeconfig(mock.url))
    follower.synced()
    mock.store.put("pods", pod("huge", more={"big": "x" * 100_000}))
    check("a label of 100 kB is left out, its pod is not", follower.follows(mock))
    follower.quit()


def controllers_are_known_up_to_the_top(mock):
    small_cluster(mock, 0)
    mock.store.put("rayjobs", owned("tune"))
    mock.store.put("rayclusters", owned("tune-x1", controller=("ray.io/v1", "RayJob", "tune", "tune-u")))
    mock.store.put("deployments", owned("web"))
    mock.store.put("replicasets", owned("web-5f", controller=("apps/v1", "Deployment", "web", "web-u")))
    mock.store.put("pods", pod("tune-head", controller=("ray.io/v1", "RayCluster", "tune-x1", "tune-x1-u")))
    mock.store.put("pods", pod("web-1", controller=("apps/v1", "ReplicaSet", "web-5f", "web-5f-u")))
    mock.store.put("pods", pod("odd", controller=("none.example/v1", "Mystery", "m", "m-u")))
    follower = Follower(kubeconfig(mock.url))
    wanted = ["above Deployment a/web uid=web-u owner=/", "above RayCluster a/tune-x1 uid=tune-x1-u owner=RayJob/tune",
              "above RayJob a/tune uid=tune-u owner=/"]
    check("controllers are known up to the top, custom ones too", wait(lambda: follower.owners() == wanted),
          str(follower.owners()))
    check("… each asked for once", mock.count("get", "rayclusters") == 1 and mock.count("get", "deployments") == 1)
    check("… and the rest goes on", follower.follows(mock))
    follower.quit()


def a_forbidden_controller_ends_the_chain(mock):
    small_cluster(mock, 0)
    mock.forbidden = {"rayclusters"}
    for i in range(3):
        mock.store.put("pods", pod(f"head-{i}", controller=("ray.io/v1", "RayCluster", f"r{i}", f"r{i}-u")))
    follower = Follower(kubeconfig(mock.url))
    check("a controller that may not be read ends the chain", follower.follows(mock))
    wait(lambda: any("RayCluster" in note for note in follower.notes))
    time.sleep(0.3)
    said = [note for note in follower.notes if "rayclusters" in note]
    check("… told once for its kind, and not asked again", len(said) == 1 and mock.count("get", "rayclusters") == 5,
          f"{said} {mock.count('get', 'rayclusters')}")
    follower.quit()


def controllers_are_asked_for_until_there_is_an_answer(mock):
    small_cluster(mock, 0)
    mock.store.put("rayclusters", owned("r"))
    mock.queue = [("rayclusters", "get", "500")] * 12      # more than a question has tries
    mock.store.put("pods", pod("head", controller=("ray.io/v1", "RayCluster", "r", "r-u")))
    follower = Follower(kubeconfig(mock.url), backoff_ms=5)
    check("a controller is asked for until there is an answer",
          wait(lambda: follower.owners() == ["above RayCluster a/r uid=r-u owner=/"]), str(follower.owners()))
    follower.quit()


def exporter_pods_are_targets(mock):
    small_cluster(mock)
    more = {"app": "nvidia-dcgm-exporter"}
    mock.store.put("pods", pod("dcgm-a", namespace="gpu", on="n0", more=more, ip="10.1.0.9"))
    mock.store.put("pods", pod("dcgm-b", namespace="gpu", on="n1", more=more, ip="fd00::7"))
    mock.store.put("pods", pod("dcgm-c", namespace="gpu", on="n2", more=more, phase="Pending", ip=""))
    follower = Follower(kubeconfig(mock.url))
    first = ["10.1.0.9:9400=gpu/dcgm-a@n0", "[fd00::7]:9400=gpu/dcgm-b@n1"]
    check("exporter pods are targets", wait(lambda: follower.targets[-1:] == [first]), str(follower.targets))
    mock.store.put("pods", pod("dcgm-c", namespace="gpu", on="n2", more=more, ip="10.1.0.3"))
    mock.store.delete("pods", "gpu", "dcgm-a")
    then = ["10.1.0.3:9400=gpu/dcgm-c@n2", "[fd00::7]:9400=gpu/dcgm-b@n1"]
    check("… the whole set whenever it changes", wait(lambda: follower.targets[-1:] == [then]),
          str(follower.targets))
    follower.quit()


def it_ends_at_once(mock):
    small_cluster(mock)
    follower = Follower(kubeconfig(mock.url), watch_ms=600000)
    follower.synced()
    check("it ends while its watches are open", follower.quit() == 0)


def refused_connections_are_waited_out(mock):
    small_cluster(mock)
    mock.faults, mock.fault_rate = ("drop", "500", "html"), 1.0
    follower = Follower(kubeconfig(mock.url))
    wait(lambda: mock.count("list", "pods") >= 7)
    times = [entry[3] for entry in mock.requests if entry[:2] == ("list", "pods")]
    mock.fault_rate = 0
    # of 20 ms and their doubles, each halved at the most: 630 ms; six equal ones are 120
    check("a server that answers nothing is waited out with growing pauses",
          times[6] - times[0] > 0.4 and follower.follows(mock), f"asked at {times}; {follower.status('POD')}")
    follower.quit()


def a_future_version_means_a_new_list(mock):
    small_cluster(mock)
    follower = Follower(kubeconfig(mock.url))
    follower.synced()
    mock.queue = [("pods", "watch", "too-large"), ("pods", "watch", "too-large")]
    mock.cut_watches()
    mock.store.put("pods", pod("afterwards"))
    check("a version that the server does not know yet means a list",
          wait(lambda: mock.count("list", "pods") > 1) and follower.follows(mock), follower.status("POD"))
    follower.quit()


# ---------------------------------------------------------------- logging in

def certificates():
    """A CA, a certificate of 127.0.0.1 and one of a client; paths."""
    def run(*args):
        subprocess.run(["openssl", *args], cwd=FOLDER, check=True, capture_output=True)

    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test ca",
        "-days", "2")
    for name, san in (("server", "IP:127.0.0.1,DNS:kube.example"), ("client", "DNS:client")):
        run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
            f"/CN={name}", "-addext", f"subjectAltName={san}")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            f"{name}.crt", "-days", "2", "-copy_extensions", "copy")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.crt"), os.path.join(FOLDER, "server.key"))
    context.load_verify_locations(os.path.join(FOLDER, "ca.crt"))
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def data(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return base64.b64encode(file.read()).decode()


def client_certificates():
    mock = mock_kube.MockKube(tls=certificates())
    small_cluster(mock)
    for name, user, cluster in (
            ("by file", "client-certificate: client.crt, client-key: client.key", ", certificate-authority: ca.crt"),
            ("as data", f"client-certificate-data: {data('client.crt')}, client-key-data: {data('client.key')}",
             f", certificate-authority-data: {data('ca.crt')}"),
            ("of another name", "client-certificate: client.crt, client-key: client.key",
             ", certificate-authority: ca.crt, tls-server-name: kube.example")):
        follower = Follower(kubeconfig(mock.url, user, cluster))
        check(f"TLS with certificates {name}", follower.follows(mock), f"{follower.notes} {follower.status('POD')}")
        follower.quit()
    user = "client-certificate: client.crt, client-key: client.key"
    follower = Follower(kubeconfig(mock.url, user, ""))
    check("a certificate of nobody is not trusted", wait(lambda: "not trusted" in follower.status("POD")) and
          " watching " not in follower.status("POD"), follower.status("POD"))
    follower.quit()
    follower = Follower(kubeconfig(mock.url, user, ", insecure-skip-tls-verify: true"))
    check("insecure-skip-tls-verify works, and warns", follower.follows(mock) and
          any("is not checked" in note for note in follower.notes), str(follower.notes))
    follower.quit()
    mock.close()


def plugin(body):
    path = tempfile.mktemp(dir=FOLDER, suffix=".plugin")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + body)
    os.chmod(path, 0o700)
    return path


def credential(token, more=""):
    return ('{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"' + token + '"' +
            more + "}}")


def exec_user(command, more=""):
    return (f"exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, args: ['a b', '$HOME;c'], "
            f"env: [{{name: WORD, value: 'of mine'}}]{more}}}")


def a_server_that_went_back_is_listed_anew(mock):
    """etcd from a backup: versions begin again below those that were seen, and a watch from there says nothing."""
    for how in ("with a restart", "behind a watch that stays open", "behind a proxy that hands on its bookmarks"):
        small_cluster(mock)
        mock.bookmark_s = 0.1 if "bookmark" in how else 3600
        follower = Follower(kubeconfig(mock.url), watch_ms=1000 if "open" in how else 60000)
        follower.synced()
        backup = mock.store.backup()
        for i in range(50):
            mock.store.put("pods", pod(f"after-the-backup-{i}"))
            mock.store.put("nodes", node("n0", missing=i % 2))
        mock.store.put("namespaces", namespace_object("never"))
        follower.follows(mock)
        if "bookmark" in how:
            mock.hands_on = True
        mock.store.restore(backup)
        if "restart" in how:
            mock.cut_watches()
        mock.store.put("pods", pod("since"))
        mock.store.delete("pods", "a", "p-00001")
        check(f"a server that went back {how} is listed anew", follower.follows(mock),
              "\n".join(sorted(set(follower.state()) ^ set(expected(mock)))[:6]) + follower.status("POD"))
        replayed, rc = follower.replayed()
        check("… and so its records say", replayed == expected(mock) and rc == 0)
        mock.hands_on = False
        follower.quit()


def a_server_that_overtook_us_is_listed_anew(mock):
    """Gone back and grown beyond our version before anybody asked: the list that is due ends what was lost."""
    small_cluster(mock)
    mock.bookmark_s = 3600
    follower = Follower(kubeconfig(mock.url), watch_ms=1000, relist_ms=4000)
    follower.synced()
    backup = mock.store.backup()
    mock.store.put("pods", pod("lost"))
    follower.follows(mock)
    with mock.store.lock:
        seen = mock.store.version
        mock.store.restore(backup)
        while mock.store.version <= seen:
            mock.store.put("nodes", node("n0", missing=mock.store.version % 2))
    lists = mock.count("list", "pods")
    check("a server that went back and overtook us is listed anew when a list is due", follower.follows(mock)
          and mock.count("list", "pods") > lists,
          "\n".join(sorted(set(follower.state()) ^ set(expected(mock)))[:6]) + follower.status("POD"))
    replayed, rc = follower.replayed()
    check("… and so its records say", replayed == expected(mock) and rc == 0)
    follower.quit()


def a_quiet_watch_is_not_listed_anew(mock):
    """Nothing happened: that costs a question for the version, and no list."""
    small_cluster(mock)
    mock.bookmark_s = 3600
    follower = Follower(kubeconfig(mock.url), watch_ms=1000)
    follower.synced()
    wait(lambda: mock.count("watch", "namespaces") > 0)   # synced says that pods and nodes are
    lists = mock.count("list", "namespaces")
    watches = mock.count("watch", "namespaces")
    check("a quiet watch is not listed anew", wait(lambda: mock.count("watch", "namespaces") >= watches + 3)
          and mock.count("list", "namespaces") == lists and mock.count("peek", "namespaces") >= 2,
          (lists, mock.count("list", "namespaces"), mock.count("peek", "namespaces")))
    follower.quit()


def exec_plugins(mock):
    small_cluster(mock)
    mock.tokens = {"t1"}
    log = os.path.join(FOLDER, "calls")
    path = plugin(f'echo "$#|$1|$2|$WORD|$KUBERNETES_EXEC_INFO" >> {log}\n'
                  f"cat {FOLDER}/answer\n")
    with open(os.path.join(FOLDER, "answer"), "w", encoding="utf-8") as file:
        file.write(credential("t1"))
    config = kubeconfig(mock.url, exec_user(path))
    refused = subprocess.run([PROGRAM, config, os.path.join(FOLDER, "none")], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True, check=False)
    check("an exec plugin is not run unless allowed", refused.returncode == 1 and "not allowed" in refused.stdout and
          not os.path.exists(log), refused.stdout)
    follower = Follower(config, allow_exec=True)
    check("an exec plugin logs in", follower.follows(mock), str(follower.notes) + follower.status("POD"))
    with open(log, encoding="utf-8") as file:
        calls = file.read().splitlines()
    wanted = '2|a b|$HOME;c|of mine|{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
    check("… by argv, without a shell, once for all threads", len(calls) == 1 and calls[0].startswith(wanted), str(calls))
    mock.tokens = {"t2"}
    with open(os.path.join(FOLDER, "answer"), "w", encoding="utf-8") as file:
        file.write(credential("t2"))
    mock.cut_watches()
    mock.store.put("pods", pod("after"))
    check("… and runs again when what it gave is refused", follower.follows(mock), follower.status("POD"))
    follower.quit()
    for name, body, said in (("fails", "echo 'no login: run x login' >&2\nexit 3\n", "no login: run x login"),
                             ("prints no JSON", "echo hello\n", "no JSON"),
                             ("prints without end", "yes\n", "too much"),
                             ("gives nothing", "echo '" + credential("").replace('"token":""', "") + "'\n", "no token")):
        follower = Follower(kubeconfig(mock.url, exec_user(plugin(body))), allow_exec=True)
        check(f"an exec plugin that {name} is told", wait(lambda: " waiting " in follower.status("POD")),
              follower.status("POD"))
        check("… with the reason", wait(lambda: said in follower.status("POD") or "a moment ago" in follower.status("POD")),
              follower.status("POD"))
        follower.quit()


def bad_kubeconfigs():
    mock = "http://127.0.0.1:1"
    for name, user, cluster, said in (
            ("data that is no base64", "token: x", ", certificate-authority-data: '%%%'", "is not base64"),
            ("data that is no PEM", "token: x", ", certificate-authority-data: aGVsbG8=", "holds no PEM"),
            ("a certificate without a key", "client-certificate: /dev/null", "", "belong together"),
            ("an auth-provider", "auth-provider: {name: gcp}", "", "auth-provider is not supported"),
            ("both a CA and no check", "token: x", ", certificate-authority: c, insecure-skip-tls-verify: true",
             "exclude each other"),
            ("a token file that is not there", "tokenFile: nowhere", "", "cannot read the token file")):
        out = subprocess.run([PROGRAM, kubeconfig(mock, user, cluster), os.path.join(FOLDER, "none")],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        check(f"a kubeconfig with {name} is refused with the reason", out.returncode == 1 and said in out.stdout,
              out.stdout)


# ---------------------------------------------------------------- anything at any time

def random_step(rng, mock, uids):
    store = mock.store
    turn = rng.random()
    name = f"p-{rng.randrange(40)}"
    if turn < 0.5:
        key = ("a", name)
        known = store.objects["pods"].get(key)
        if known is None:
            uids[name] = uids.get(name, 0) + 1
        store.put("pods", pod(name, uid=uids[name], phase=rng.choice(["Pending", "Running", "Running", "Succeeded"]),
                              on=rng.choice(["", "n0", "n1"]), more={"turn": str(rng.randrange(100))}))
    elif turn < 0.7:
        store.delete("pods", "a", name)
    elif turn < 0.8:
        number = rng.randrange(6)
        store.put("nodes", node(f"n{number}", uid=uids.get(f"n{number}", 1), cordoned=rng.random() < 0.3,
                                missing=rng.randrange(3)))
    elif turn < 0.85:
        number = rng.randrange(6)
        uids[f"n{number}"] = uids.get(f"n{number}", 1) + 1
        store.delete("nodes", "", f"n{number}")
    elif turn < 0.9:
        store.put("namespaces", namespace_object(f"ns{rng.randrange(5)}", rng.choice(["red", "green"])))
    elif turn < 0.93:
        store.put("resourceclaims", {"metadata": {"name": f"c{rng.randrange(5)}", "namespace": "a", "uid": "c"},
                                     "spec": {}, "status": {"allocation": {"devices": {"results": [
                                         {"request": "r", "driver": "gpu.nvidia.com", "pool": "n0",
                                          "device": f"gpu-{rng.randrange(8)}"}]}}}})
    elif turn < 0.95:
        store.put("replicasets", owned(f"rs{rng.randrange(5)}"))
    elif turn < 0.97:
        mock.cut_watches()
    else:
        store.compact()


def random_history(seed):
    rng = random.Random(seed)
    mock = mock_kube.MockKube(seed=seed)
    mock.store.put("namespaces", namespace_object("a"))
    mock.gone_as_event = bool(seed % 2)
    mock.fault_rate = 0.15
    uids = {}
    follower = Follower(kubeconfig(mock.url), watch_ms=rng.choice([300, 1000, 5000]), page=rng.choice([3, 10, 500]),
                        backoff_ms=10, relist_ms=rng.choice([0, 700]))
    for _ in range(400):
        random_step(rng, mock, uids)
        time.sleep(rng.random() * 0.02)
    mock.fault_rate = 0
    follows = follower.follows(mock)
    check(f"seed {seed}: after any history the state is the server's", follows,
          "\n".join(sorted(set(follower.state()) ^ set(expected(mock)))[:6]))
    for words in ("and so it is from the records", "and with a snapshot after them"):
        check(f"seed {seed}: … {words}", follower.replays(mock),
              "\n".join(sorted(set(follower.replayed()[0]) ^ set(expected(mock)))[:6]))
        follower.ask("snapshot")
    follower.quit()
    mock.close()


def main():
    global PROGRAM, FOLDER
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    PROGRAM = os.path.join(os.path.dirname(os.path.realpath(args.binary)), "kube_state")
    with tempfile.TemporaryDirectory() as FOLDER:
        for test in (a_list_in_pages_is_whole, a_list_whose_pages_expire_begins_anew, a_watch_that_is_cut_is_resumed,
                     gone_means_a_new_list, bookmarks_keep_a_quiet_watch_fresh,
                     what_is_forbidden_or_absent_is_told_once, a_refusal_of_a_moment_is_none, retry_after_is_honoured, tokens_rotate,
                     an_unreadable_event_is_made_good_by_a_list, a_label_of_100_kb_is_left_out,
                     controllers_are_known_up_to_the_top, a_forbidden_controller_ends_the_chain,
                     controllers_are_asked_for_until_there_is_an_answer, exporter_pods_are_targets, it_ends_at_once, refused_connections_are_waited_out,
                     a_future_version_means_a_new_list, a_server_that_went_back_is_listed_anew,
                     a_server_that_overtook_us_is_listed_anew, a_quiet_watch_is_not_listed_anew, exec_plugins):
            if args.only in test.__name__:
                with_mock(test)
        if args.only in "client_certificates":
            client_certificates()
        if args.only in "bad_kubeconfigs":
            bad_kubeconfigs()
        for seed in range(args.seeds):
            if args.only in "random_history":
                random_history(seed)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
