#!/usr/bin/env python3
"""The ledger booked from what a watch of a Kubernetes API saw equals the one that the reference calculator
makes of kube-state-metrics.

    tests/peers/test_kube_ledger.py BINARY [--scenarios NAMES] [--seed N] [--thorough]

(kube_ledger lies beside BINARY)

A simulated cluster's life is told twice. As a watch tells it: lists, events at the moments at which nodes and
pods come, change and go, and, where it was cut off, a time of silence with a new list after it. The program
books that beside metrics.om without its kube_ series. And as records of kube-state-metrics, for the reference:
scraped at those same moments and at no others, so that both know exactly the same. At an event's moment the
nodes are recorded as they were until then, for such a record speaks of the time that ended (semantics, 6), and
the pods as they are from then on, for a pod ends at the first record that lacks it (5). The moments of lists are
recorded as they are. Silences are shorter than the time after which an hour is closed: the list after a longer one comes
too late for it.

Keys and money agree exactly, other numbers to 1e-9: nothing is left out. What is booked in slices of any
length, and in two runs of which the second knows from disk, or from a snapshot, what the first one saw, is the
same ledger."""

import argparse
import bisect
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
from fleetsim import compare, exposition, generate, kubeapi, omwriter, ranges, reference  # noqa: E402
from fleetsim.__main__ import DEFAULT_END  # noqa: E402
from fleetsim.units import format_time  # noqa: E402

THOROUGH = ("nolabels",)             # every way
CHANGING = ("unhealthy", "churn")    # with silences; of the others one way by chance
# Not timeslice: it hides a node's capacity from kube-state-metrics, which the API always tells.
SCENARIOS = ("nolabels", "whole", "mig", "relabel", "twoclusters", "unhealthy", "churn", "fragment", "gaps", "longrun",
             "noprice")
MINUTE = 60_000
HOUR = 60 * MINUTE
NEVER = 1 << 60
SEEN_MS = 600_000        # a watch says that it has told all
SETTLE_MS = HOUR         # an hour is booked for good so long after its end, with what is known then
DAYS = 0.25
STEP_S = 120


# ---------------------------------------------------------------- the moments

class Watched:
    """When the watches were told something: stretches [list, last word], and the moments in them."""

    def __init__(self, stores, stretches):
        self.lists = [begin for begin, _ in stretches]
        self.stretches = stretches
        moments = set()
        for begin, end in stretches:
            moments |= {begin, end} | set(range(begin + SEEN_MS, end, SEEN_MS))
            moments |= {t for store in stores for t in store.times if begin < t <= end}
        self.moments = sorted(moments)


def off_second(t):
    """Nearly nothing happens there."""
    return t // 1000 * 1000 + 137


def silences(fleet, stores, rng):
    """Up to four, each around the moment of a change, two of them of nodes where these change; shorter than
    SETTLE_MS, so that what an hour was like is known when it is booked for good."""
    inside = [(t, kind) for store in stores for t, kind, _ in store.events
              if fleet.start + 3 * MINUTE < t < fleet.end - 3 * MINUTE]
    nodes, pods = ([t for t, of in inside if of == kind] for kind in ("nodes", "pods"))
    out = []
    for t in rng.sample(nodes, min(2, len(nodes))) + rng.sample(pods, min(2, len(pods))):
        begin = off_second(max(fleet.start + 2 * MINUTE, t - rng.randrange(MINUTE, 25 * MINUTE)))
        end = off_second(min(fleet.end - 2 * MINUTE, t + rng.randrange(MINUTE, 25 * MINUTE)))
        if all(end + MINUTE < a or b + MINUTE < begin for a, b in out):
            out.append((begin, end))
    return sorted(out)


def ways(fleet, stores, rng):
    """(name, stretches): all the time, from later on, with silences."""
    start, end = fleet.start, fleet.end
    quiet = silences(fleet, stores, rng)
    edges = [start] + [t for silence in quiet for t in silence] + [end]
    later = off_second(start + (end - start) * 22 // 100)
    return [("all the time", [(start, end)]), ("from later on", [(later, end)]),
            (f"with {len(quiet)} silences", list(zip(edges[::2], edges[1::2])))]


# ---------------------------------------------------------------- told by a watch

def owner_objects(pod):
    """(kind, object) of the controllers below the top."""
    for number, (kind, name) in enumerate(pod.owners):
        if kind not in ("ReplicaSet", "Job"):
            continue
        metadata = {"name": name, "namespace": pod.namespace, "uid": f"{pod.namespace}-{kind}-{name}"}
        if number + 1 < len(pod.owners):
            above, above_name = pod.owners[number + 1]
            metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": above, "name": above_name,
                                            "uid": f"{pod.namespace}-{above}-{above_name}", "controller": True}]
        yield kind, {"metadata": metadata}


def observations(store, cluster, watched):
    """[(ms, line)] of one cluster."""
    out = []

    def tell(at, act, kind, item=None):
        text = " " + json.dumps(item, separators=(",", ":")) if item is not None else ""
        out.append((at, f"{act} {kind} {at} {cluster or '-'}{text}\n"))

    for begin, end in watched.stretches:
        for kind, plural in (("Node", "nodes"), ("Pod", "pods")):
            tell(begin, "LIST", kind)
            for item in store.listing(plural, begin):
                tell(begin, "OBJECT", kind, item)
            tell(begin, "LISTED", kind)
        alive = [pod for pod in store.pods if pod.created <= begin < pod.gone]
        for kind in ("ReplicaSet", "Job"):
            tell(begin, "LIST", kind)
            for text in sorted({json.dumps(item) for pod in alive for of, item in owner_objects(pod) if of == kind}):
                tell(begin, "OBJECT", kind, json.loads(text))
            tell(begin, "LISTED", kind)
        told = []
        for at, plural, item in store.events:
            if not begin < at <= end:
                continue
            born = item.up if plural == "nodes" else item.created
            act = "OBJECT" if store._alive(plural, item, at) else "DELETED"
            if plural == "pods" and at == born:
                told += [(at, "OBJECT", kind, above) for kind, above in owner_objects(item)]
            told.append((at, act, "Node" if plural == "nodes" else "Pod", store.object(plural, item, at)))
        told += [(at, "SEEN", kind, None) for kind in ("Node", "Pod")
                 for at in list(range(begin + SEEN_MS, end, SEEN_MS)) + [end]]
        for at, act, kind, item in sorted(told, key=lambda line: line[0]):
            tell(at, act, kind, item)
    return out


# ---------------------------------------------------------------- told by kube-state-metrics

class Moments:
    """The scrapes at which records were made (as traces.Grid): each shows the state `early` ms before it, those of
    lists their own."""

    def __init__(self, watched, early):
        self.stamps = watched.moments
        self.count = len(self.stamps)
        self.states = [t if t in watched.lists else t - early for t in self.stamps]

    def stamp(self, index):
        return self.stamps[index]

    def indices(self, spans):
        return ranges.normal((bisect.bisect_left(self.states, a), bisect.bisect_left(self.states, b))
                             for a, b in spans)


def records(world, watched):
    """Families of kube-state-metrics, as exposition.kube_state() makes them, at the moments."""
    fleet, families, owners = world.fleet, {}, {}
    until, since = Moments(watched, 1), Moments(watched, 0)

    def family(name):
        return families.setdefault(name, exposition.Family(name, "gauge", name + "."))

    def target(grid, cluster):
        return exposition.Target(grid, {"instance": "10.0.0.5:8080", "job": "kube-state-metrics", "cluster": cluster})

    clusters = sorted({node.cluster for node in fleet.nodes})
    of_nodes = {cluster: target(until, cluster) for cluster in clusters}
    of_pods = {cluster: target(since, cluster) for cluster in clusters}
    for node in fleet.nodes:
        down = node.down if node.down is not None else fleet.end + 1
        exposition._node_series(fleet, node, of_nodes[node.cluster], until.indices([(node.up, down)]), family)
    for pod in fleet.pods:
        if pod.params.get("outside"):
            continue
        home = of_pods[pod.node.cluster if pod.node else clusters[0]]
        there = since.indices([(pod.created, pod.gone)])
        exposition._pod_series(pod, home, there, family)
        for (kind, name), above in zip(pod.owners, pod.owners[1:] + [("", "")]):
            if kind in ("ReplicaSet", "Job"):
                owners.setdefault((home, kind, pod.namespace, name, above), []).extend(there)
    for (home, kind, namespace, name, (above, above_name)), spans in owners.items():
        metric, label = {"ReplicaSet": ("kube_replicaset_owner", "replicaset"),
                         "Job": ("kube_job_owner", "job_name")}[kind]
        family(metric).add({"namespace": namespace, label: name, "owner_kind": above, "owner_name": above_name,
                            "owner_is_controller": "true" if above else ""}, home, ranges.normal(spans), "1")
    return [families[name] for name in sorted(families)]


def without_records(path, out):
    """Telemetry alone."""
    with open(path, encoding="utf-8") as source, open(out, "w", encoding="utf-8") as file:
        for line in source:
            name = line.split(" ", 3)[2] if line.startswith(("# HELP ", "# TYPE ")) else line
            if not name.startswith("kube_") and line != "# EOF\n":
                file.write(line)


# ---------------------------------------------------------------- booked

class Bench:
    """A fleet under test: its telemetry, facts, and the two tellings."""

    def __init__(self, options, work, scenario):
        self.binary, self.work, self.scenario = options.binary, work, scenario
        self.program = os.path.join(os.path.dirname(os.path.realpath(options.binary)), "kube_ledger")
        self.world = generate.build_world(scenario, options.seed, DAYS, 0, STEP_S, DEFAULT_END)
        self.fleet = self.world.fleet
        self.folder = os.path.join(work, scenario)
        generate.write_folder(self.world, self.folder)
        self.metrics = os.path.join(self.folder, "telemetry.om")
        without_records(os.path.join(self.folder, "metrics.om"), self.metrics)
        clusters = sorted({node.cluster for node in self.fleet.nodes})
        self.stores = {cluster: kubeapi.Store(self.world, cluster, cluster == clusters[0]) for cluster in clusters}
        self.runs = 0

    def reference(self, watched):
        """The reference's ledger of the telemetry and the records."""
        with open(os.path.join(self.folder, "metrics.om"), "w", encoding="utf-8") as file:
            with open(self.metrics, encoding="utf-8") as telemetry:
                shutil.copyfileobj(telemetry, file)
            omwriter.write(records(self.world, watched), file)
        fleets.write_reference(self.folder)
        return os.path.join(self.folder, "ledger.csv")

    def lines(self, watched):
        """[(ms, line)] of all clusters in order of time."""
        out = [line for cluster, store in self.stores.items() for line in observations(store, cluster, watched)]
        return sorted(out, key=lambda line: line[0])

    def book(self, run, number, watch, lines, until, slice_h):
        """Collect up to a time; the error, or None."""
        told = os.path.join(run, f"told-{number}")
        with open(told, "w", encoding="utf-8") as file:
            file.writelines(lines)
        command = [self.program, os.path.join(run, watch), told, "collect", "--db", os.path.join(run, "books.db"),
                   "--openmetrics", self.metrics, "--slice", f"{slice_h}h", *fleets.ledger_arguments(self.folder),
                   "--quiet", "--window", f"{format_time(self.fleet.start)},{format_time(until)}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr if done.returncode else None

    def ledger(self, parts, slice_h):
        """(path, error) of the ledger booked from parts [(folder, lines, until)], one run of the program each."""
        self.runs += 1
        run = os.path.join(self.work, f"{self.scenario}-{self.runs}")
        os.mkdir(run)
        for number, (watch, lines, until) in enumerate(parts):
            problem = self.book(run, number, watch, lines, until, slice_h)
            if problem:
                return None, problem
        out = os.path.join(run, "ledger.csv")
        with open(out, "wb") as file:
            done = subprocess.run([self.binary, "export", "ledger", "--db", os.path.join(run, "books.db"), "--output",
                                   "csv", "--quiet", "--window", fleets.window(self.folder)],
                                  stdout=file, stderr=subprocess.PIPE, timeout=120, check=False)
        return out, done.stderr.decode() if done.returncode else None


def differences(expected, actual):
    return [words for words in compare.differences(expected, actual)
            if not (words.startswith("column ") and words.endswith(f"is only in {actual}"))]


def agrees(name, expected, booked):
    path, problem = booked
    found = [problem] if problem else differences(expected, path)
    check(name, not found, "\n".join(f"      {words[:600]}" for words in found[:8]) + f"\n      {len(found)} in all")


def told_between(lines, since, until):
    return [text for at, text in lines if since <= at < until]


def scenario_agrees(options, work, scenario):
    bench = Bench(options, work, scenario)
    rng = random.Random(f"{options.seed} {scenario}")
    hours = (bench.fleet.end - bench.fleet.start) // HOUR
    thorough = options.thorough or scenario in THOROUGH
    told = ways(bench.fleet, bench.stores.values(), rng)
    if not thorough:
        told = told[2:] if scenario in CHANGING else [rng.choice(told)]
    for name, stretches in told:
        watched = Watched(bench.stores.values(), stretches)
        expected = bench.reference(watched)
        lines = bench.lines(watched)
        everything = [text for _, text in lines]
        slice_h = rng.randrange(1, hours)
        agrees(f"{scenario}, {name}: slices of {slice_h} h", expected,
               bench.ledger([("watch", everything, bench.fleet.end)], slice_h))
        cut = bench.fleet.start + rng.randrange(2, hours) * HOUR
        first = ("watch", told_between(lines, 0, cut + SETTLE_MS), cut)
        from_disk = ("watch", told_between(lines, cut + SETTLE_MS, NEVER), bench.fleet.end)
        from_snapshot = ("other", told_between(lines, 0, cut) + ["SNAPSHOT\n"] + told_between(lines, cut, NEVER),
                         bench.fleet.end)
        seconds = [("the disk", from_disk), ("a snapshot", from_snapshot)]
        for how, second in seconds if thorough else [rng.choice(seconds)]:
            agrees(f"{scenario}, {name}: two runs, cut at {format_time(cut)}, the second from {how}", expected,
                   bench.ledger([first, second], 1))
    if scenario == "nolabels":      # what is compared depends on what was told
        blind = [text for text in everything if " Pod " not in text]
        path, problem = bench.ledger([("watch", blind, bench.fleet.end)], 100)
        check("without pods it is another ledger", problem is None and differences(expected, path) != [], problem)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--thorough", action="store_true", help="every way of every scenario")
    parser.add_argument("--keep", default="", help="a folder for what is made, to look at")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as work:
        for scenario in options.scenarios.split(","):
            scenario_agrees(options, options.keep or work, scenario)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
