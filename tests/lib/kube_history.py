"""What happens in a cluster, by chance, done to a real Kubernetes API: nodes, pods, controllers, claims. Beside each
change it is written down what a follower must know of it, as the least and the most time.

A follower that is `blind` learns of a change between that and when it `sees` again."""

import calendar
import time

NAMESPACE = "lab"
GPUS = 8
GRACE_MS = 4000      # between two holders of a GPU: a stamp is a whole second, a deletion is told a moment later
BOOKMARK_MS = 80_000  # the longest that a quiet resource tells nothing
CUSTOM = {"rayclusters": ("ray.io", "RayCluster"), "rayjobs": ("ray.io", "RayJob"),
          "experiments": ("lab.example", "Experiment")}
PATHS = {"ReplicaSet": "/apis/apps/v1/namespaces/lab/replicasets", "Deployment": "/apis/apps/v1/namespaces/lab/deployments",
         "StatefulSet": "/apis/apps/v1/namespaces/lab/statefulsets", "Job": "/apis/batch/v1/namespaces/lab/jobs",
         "CronJob": "/apis/batch/v1/namespaces/lab/cronjobs", "RayCluster": "/apis/ray.io/v1/namespaces/lab/rayclusters",
         "RayJob": "/apis/ray.io/v1/namespaces/lab/rayjobs",
         "Experiment": "/apis/lab.example/v1/namespaces/lab/experiments"}
CHAINS = (("ReplicaSet", "Deployment"), ("Job", "CronJob"), ("StatefulSet",), ("RayCluster", "RayJob"), ("Experiment",),
          ("ReplicaSet",), ("Job",), ())
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def now():
    return time.time_ns() // 1_000_000


def stamp(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms // 1000))


def parse(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) * 1000


class Life:
    """From a time to one between two times; or, where nobody may have seen it, none."""

    def __init__(self, begin, unseen):
        self.begin, self.low, self.high, self.unseen = begin, None, None, unseen
        self.made, self.ended, self.exact, self.there = now(), None, False, True

    def ends(self, low, high, exact=False):
        if self.low is None:
            self.low, self.high, self.exact, self.ended = low, high, exact, now()

    def bounds(self):
        return 0 if self.unseen else max(0, self.low - self.begin), max(0, self.high - self.begin)


class Node(Life):
    def __init__(self, name, uid, begin, unseen):
        super().__init__(begin, unseen)
        self.name, self.uid, self.gpus, self.cordoned = name, uid, GPUS, False
        self.dynamic = name.startswith("d")

    def __str__(self):
        return f"node {self.name} {self.uid[:8]} {stamp(self.begin)} {self.low} {self.high}"


class Pod(Life):
    def __init__(self, name, uid, node, gpus, begin, unseen):
        super().__init__(begin, unseen)
        self.name, self.uid, self.node, self.gpus = name, uid, node.name, gpus
        self.on, self.doomed, self.device = node, False, None
        self.workload, self.teams, self.chain = "", [], []
        self.story = []

    def __str__(self):
        return f"pod {self.name} {self.uid[:8]} on {self.node} from {stamp(self.begin)}: {', '.join(self.story)}"


class History:
    def __init__(self, rng, admin):
        self.rng, self.admin = rng, admin
        self.nodes, self.pods, self.owners, self.number = [], [], {}, 0
        self.blind_from, self.saw = None, 0
        self.blinded = []            # what changed meanwhile, to be bounded when it sees again
        self.began = now()
        self.custom_kinds()
        for name in ("n0", "n1", "n2", "d0"):
            self.add_node(name)
        self.blind()                 # nobody follows yet

    def custom_kinds(self):
        for plural, (group, kind) in CUSTOM.items():
            schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
            self.admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                         "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}})
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                for path in ("RayCluster", "RayJob", "Experiment"):
                    self.admin.get(PATHS[path])
                return
            except Exception:  # noqa: BLE001  not served yet
                time.sleep(0.2)

    # ------------------------------------------------------------ what a follower knows

    def blind(self, lost=0):
        """From now on, or from before: what was seen so lately is not on disk yet."""
        self.blind_from = now() - lost
        for life in self.pods + self.nodes:
            life.unseen = life.unseen or life.made >= self.blind_from
            if life.ended and life.ended >= self.blind_from and not (life.exact and life.there):
                life.low = life.low if life.there else min(life.low, self.blind_from)
                self.blinded.append(life)

    def sees(self):
        """What changed meanwhile was told between then and now."""
        t = now()
        for life in self.blinded:
            life.high, life.ended = max(life.high, t), t
        for life in self.pods + self.nodes:
            life.unseen = life.unseen and life.low is not None
            if life.made >= self.blind_from:
                life.made = t
            if life.ended and life.ended >= self.blind_from:
                life.ended = t
        self.blinded, self.blind_from, self.saw = [], None, t

    def told(self, life, before=0):
        """It ends now, as far as a follower can know; a node that is missed ends when it was last seen."""
        t = now()
        if life.low is not None:
            return
        life.ends(min(t, self.blind_from - before) if self.blind_from else t, t)
        if self.blind_from:
            self.blinded.append(life)

    # ------------------------------------------------------------ nodes

    def add_node(self, name):
        spec = {"providerID": f"lab:///{name}/{self.number}"}
        resources = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        if not name.startswith("d"):
            resources["nvidia.com/gpu"] = str(GPUS)
        made = self.admin.post("/api/v1/nodes", {
            "metadata": {"name": name, "labels": {"pool": name[0]}}, "spec": spec,
            "status": {"capacity": resources, "allocatable": resources,
                       "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}})
        node = Node(name, made["metadata"]["uid"], parse(made["metadata"]["creationTimestamp"]), bool(self.blind_from))
        self.nodes.append(node)
        if node.dynamic:
            self.admin.post(SLICES, {
                "metadata": {"name": f"{name}-gpus"},
                "spec": {"driver": "gpu.nvidia.com", "nodeName": name,
                         "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                         "devices": [{"name": f"gpu-{i}", "attributes": {
                             "type": {"string": "gpu"}, "productName": {"string": "NVIDIA H100 80GB HBM3"},
                             "uuid": {"string": f"GPU-{name}-{i}"}}} for i in range(GPUS)]}})
        return node

    def living_nodes(self):
        return [node for node in self.nodes if node.there]

    def heartbeat(self):
        node = self.rng.choice(self.living_nodes())
        self.admin.patch(f"/api/v1/nodes/{node.name}/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": stamp(now()),
             "lastTransitionTime": stamp(node.begin)}]}})

    def cordon(self):
        node = self.rng.choice(self.living_nodes())
        node.cordoned = not node.cordoned
        self.admin.patch(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": node.cordoned or None}})

    def remove_node(self, node):
        for pod in [pod for pod in self.pods if pod.there and pod.on is node]:
            self.remove(pod)
        self.admin.delete(f"/api/v1/nodes/{node.name}")
        node.there = False
        self.told(node, BOOKMARK_MS)
        for pod in self.pods:    # where the node is missed, its pods have held until it was last seen
            if self.blind_from and pod.on is node:
                pod.low = min(pod.low, max(pod.begin, node.low))
        if node.dynamic:
            self.admin.delete(f"{SLICES}/{node.name}-gpus")

    def change_node(self):
        nodes = [node for node in self.living_nodes() if not node.dynamic]
        if len(nodes) > 1 and self.rng.random() < 0.5:
            self.remove_node(self.rng.choice(nodes))
        else:
            gone = sorted({f"n{i}" for i in range(4)} - {node.name for node in nodes})
            if gone:
                self.add_node(self.rng.choice(gone))

    # ------------------------------------------------------------ controllers

    def owner(self, chain):
        """A controller of the first kind, below one of the next; (reference, topmost)."""
        above, top = None, None
        for kind in reversed(chain):
            self.number += 1
            name = f"{kind.lower()}-{self.number}"
            meta = {"name": name}
            if above:
                meta["ownerReferences"] = [above]
            made = self.admin.post(PATHS[kind], {**self.body(kind), "metadata": meta})
            api = PATHS[kind].split("/namespaces")[0].removeprefix("/apis/")
            above = {"apiVersion": api, "kind": kind, "name": name, "uid": made["metadata"]["uid"], "controller": True}
            top = top or f"{kind}/{name}"
        return above, top

    @staticmethod
    def body(kind):
        template = {"metadata": {"labels": {"app": "x"}},
                    "spec": {"restartPolicy": "Always", "containers": [{"name": "main", "image": "work"}]}}
        select = {"matchLabels": {"app": "x"}}
        if kind in ("ReplicaSet", "Deployment"):
            return {"spec": {"selector": select, "template": template}}
        if kind == "StatefulSet":
            return {"spec": {"selector": select, "template": template, "serviceName": "x"}}
        template["spec"]["restartPolicy"] = "Never"
        if kind == "Job":
            return {"spec": {"template": template}}
        if kind == "CronJob":
            return {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}}}
        api = PATHS[kind].split("/namespaces")[0].removeprefix("/apis/")
        return {"apiVersion": api, "kind": kind, "spec": {}}

    # ------------------------------------------------------------ pods

    def holds_still(self, pod):
        """Also one that has ended, while somebody may not know it yet."""
        if pod.high is None or pod.high + GRACE_MS > now() or pod in self.blinded:
            return True
        return self.blind_from is not None and pod.high >= self.blind_from

    def room(self, node):
        return GPUS - sum(pod.gpus for pod in self.pods if pod.on is node and self.holds_still(pod))

    def add_pod(self):
        self.number += 1
        node = self.rng.choice(self.living_nodes())
        room = self.room(node)
        if room <= 0:
            return
        gpus = 1 if node.dynamic else self.rng.randrange(1, min(room, 4) + 1)
        chain = self.rng.choice(CHAINS)
        owner, top = self.owner(chain)
        name = f"pod-{self.number}"
        team = self.rng.choice(("red", "blue", ""))
        meta = {"name": name, "labels": {"app": "x", **({"team": team} if team else {})}}
        if owner:
            meta["ownerReferences"] = [owner]
        main = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
        spec = {"nodeName": node.name, "restartPolicy": "Never", "containers": [main],
                "terminationGracePeriodSeconds": 30, "tolerations": [{"operator": "Exists"}]}
        device = self.claim(name, node, spec) if node.dynamic else None
        if not node.dynamic:
            main["resources"] = {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)},
                                 "limits": {"nvidia.com/gpu": str(gpus)}}
            spec["initContainers"] = [{"name": "load", "image": "work", "resources": {
                "requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}]
        made = self.admin.post(PODS, {"metadata": meta, "spec": spec})
        pod = Pod(name, made["metadata"]["uid"], node, gpus, now() // 1000 * 1000, bool(self.blind_from))
        pod.workload, pod.teams, pod.chain = top or f"Pod/{name}", [team or "of-namespace"], list(chain)
        if device:
            pod.device = f"GPU-{node.name}-{device[4:]}"
            self.allocate(name, pod, node, device)
        self.status(pod, {"phase": "Running", "startTime": stamp(pod.begin + 1000), "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(pod.begin)}],
            "containerStatuses": [self.container({"running": {"startedAt": stamp(pod.begin + 1000)}})]})
        pod.story.append(f"{gpus} GPUs" + (" (blind)" if pod.unseen else ""))
        self.pods.append(pod)

    def claim(self, name, node, spec):
        """A claim for one device, made beside the pod."""
        taken = {pod.device for pod in self.pods if pod.on is node and self.holds_still(pod)}
        free = [i for i in range(GPUS) if f"GPU-{node.name}-{i}" not in taken]
        device = f"gpu-{self.rng.choice(free)}"
        self.admin.post(CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}})
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        return device

    def allocate(self, name, pod, node, device):
        self.admin.patch(f"{CLAIMS}/{name}/status", {"status": {
            "allocation": {"devices": {"results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": node.name,
                                                    "device": device}]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": pod.uid}]}})

    @staticmethod
    def container(state):
        return {"name": "main", "image": "work", "imageID": "", "ready": "running" in state, "restartCount": 0,
                "state": state}

    def status(self, pod, value):
        self.admin.patch(f"{PODS}/{pod.name}/status", {"status": value})

    def running(self):
        return [pod for pod in self.pods if pod.there and pod.low is None]

    def finish(self, pod):
        """With a time, to the second; or without: it ends when that is seen."""
        if pod.doomed or self.rng.random() < 0.7:
            t = now() // 1000 * 1000
            end = max(t, pod.begin + 1000)
            phase = self.rng.choice(("Succeeded", "Failed", "Running"))
            self.status(pod, {"phase": phase, "containerStatuses": [self.container({"terminated": {
                "exitCode": int(phase == "Failed"), "reason": "Completed", "startedAt": stamp(pod.begin + 1000),
                "finishedAt": stamp(end)}})]})
            pod.ends(end, end, exact=True)
            pod.story.append(f"{phase} at {stamp(end)}")
        else:
            self.status(pod, {"phase": "Failed", "reason": "Evicted", "containerStatuses": None})
            self.told(pod)
            pod.story.append(f"evicted at {now()}")

    def remove(self, pod):
        self.admin.delete(f"{PODS}/{pod.name}", 0)
        pod.there = False
        pod.story.append(f"deleted at {now()}" + (" (blind)" if self.blind_from else ""))
        if pod.device:
            self.admin.delete(f"{CLAIMS}/{pod.name}")
        if pod.low is None:
            self.told(pod)
        elif self.blind_from and pod.ended >= self.blind_from and pod not in self.blinded:
            self.blinded.append(pod)     # its end was never read
            pod.low = min(pod.low, self.blind_from)

    def doom(self, pod):
        """A graceful deletion: it holds until it is gone."""
        self.admin.delete(f"{PODS}/{pod.name}", 30)
        pod.doomed = True
        pod.story.append("doomed")

    def relabel(self, pod):
        team = self.rng.choice(("green", "yellow"))
        self.admin.patch(f"{PODS}/{pod.name}", {"metadata": {"labels": {"team": team}}})
        pod.teams.append(team)
        pod.story.append(team)

    # ------------------------------------------------------------ the rest

    def grants(self):
        self.number += 1
        name = f"grant-{self.number}"
        if self.rng.random() < 0.5:
            self.admin.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": self.number})
            return
        self.admin.post("/api/v1/namespaces/default/resourcequotas",     # nobody counts there, and no pod is refused
                        {"metadata": {"name": name}, "spec": {"hard": {"requests.nvidia.com/gpu": "1000"}}})

    def forget_owner(self):
        """A controller goes before its pods, whose workload is known by then."""
        for pod in self.rng.sample(self.running(), min(3, len(self.running()))):
            if pod.chain and now() - max(pod.begin, self.saw) > 8000 and not self.blind_from:
                kind, name = pod.workload.split("/")
                self.admin.ask("DELETE", f"{PATHS[kind]}/{name}", {"propagationPolicy": "Background"})
                pod.chain = []
                pod.story.append("orphaned")
                return

    def step(self):
        turn = self.rng.random()
        running = self.running()
        lingering = [pod for pod in self.pods if pod.there and pod.low is not None]
        if turn < 0.38 or not running:
            self.add_pod()
        elif turn < 0.50:
            self.finish(self.rng.choice(running))
        elif turn < 0.60:
            self.remove(self.rng.choice(running))
        elif turn < 0.65 and lingering:
            self.remove(self.rng.choice(lingering))
        elif turn < 0.70:
            pod = self.rng.choice(running)
            self.remove(pod) if pod.doomed else self.doom(pod)
        elif turn < 0.76:
            self.relabel(self.rng.choice(running))
        elif turn < 0.80:
            self.change_node()
        elif turn < 0.84:
            self.cordon()
        elif turn < 0.88:
            self.grants()
        elif turn < 0.92:
            self.forget_owner()
        else:
            self.heartbeat()

    def end(self):
        for node in self.living_nodes():
            self.remove_node(node)
