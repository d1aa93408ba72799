#!/usr/bin/env python3
"""Writes data/*.om: the tiny fleets of the golden tests.

One node with two GPUs, $4.00 an hour, so that a GPU-hour is $2.00; two hours, 10:00 to 12:00 on
2026-11-02, a sample every five minutes (the tests run with --step 5m --gap 5m, so that each covers
the five minutes before it). Every figure of the expected reports can be worked out in the head; the
tests say how.

  GPU-0  trainer of team search, the whole time, SM activity 0.5
  GPU-1  notebook, without a team, from 10:00 to 11:00, at 0; then free, at 0

Run it again after a change: the same inputs come out.
"""

import os

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
START = 1793613600          # 2026-11-02T10:00:00Z
STEP = 300
STAMPS = [START + STEP * i for i in range(1, 25)]
NODE = 'node="gpu-1"'
TRAINER = 'namespace="ml",pod="trainer",uid="u-trainer"'
NOTEBOOK = 'namespace="lab",pod="notebook",uid="u-notebook"'


class Text:
    """OpenMetrics text: families in the order of first use."""

    def __init__(self):
        self.families = {}

    def add(self, name, labels, value, stamp):
        self.families.setdefault(name, []).append(f"{name}{{{labels}}} {value} {stamp}")

    def write(self, name):
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            for family, lines in self.families.items():
                file.write(f"# TYPE {family} gauge\n" + "\n".join(lines) + "\n")
            file.write("# EOF\n")


def gpu_labels(index, held):
    labels = f'gpu="{index}",UUID="GPU-{index}",modelName="NVIDIA A30",Hostname="gpu-1"'
    return labels + ("," + held if held else "")


def gpus(text, util=lambda t: (80, 0), work=lambda t: (0.5, 0)):
    """Samples of both GPUs; util in percent, work a ratio; None: no sample."""
    for t in STAMPS:
        holders = ('container="main",namespace="ml",pod="trainer"',
                   'container="main",namespace="lab",pod="notebook"' if t <= START + 3600 else "")
        for index in (0, 1):
            for name, value in (("DCGM_FI_DEV_GPU_UTIL", util(t)[index]),
                                ("DCGM_FI_PROF_SM_ACTIVE", work(t)[index])):
                if value is not None:
                    text.add(name, gpu_labels(index, holders[index]), value, t)


def kube(text, instance_type="test.2x"):
    """What kube-state-metrics says of the node and its two pods."""
    for t in STAMPS:
        text.add("kube_node_created", NODE, START, t)
        text.add("kube_node_info", NODE + ',provider_id="test:///gpu-1"', 1, t)
        text.add("kube_node_labels", NODE + f',label_node_kubernetes_io_instance_type="{instance_type}"'
                 ',label_topology_kubernetes_io_region="here-1"', 1, t)
        text.add("kube_node_status_capacity", NODE + ',resource="nvidia_com_gpu",unit="integer"', 2, t)
        text.add("kube_node_status_allocatable", NODE + ',resource="nvidia_com_gpu",unit="integer"', 2, t)
        for pod, owner, labels, end in ((TRAINER, 'owner_kind="Job",owner_name="train"', 'label_team="search"', None),
                                        (NOTEBOOK, 'owner_kind="StatefulSet",owner_name="nb"', 'label_app="nb"',
                                         START + 3600)):
            text.add("kube_pod_info", pod + ',node="gpu-1"', 1, t)
            text.add("kube_pod_owner", pod + "," + owner + ',owner_is_controller="true"', 1, t)
            text.add("kube_pod_labels", pod + "," + labels, 1, t)
            text.add("kube_pod_start_time", pod, START, t)
            text.add("kube_pod_container_resource_requests", pod + ',container="main",node="gpu-1",'
                     'resource="nvidia_com_gpu",unit="integer"', 1, t)
            running = end is None or t < end
            text.add("kube_pod_status_phase", pod + ',phase="Running"', int(running), t)
            text.add("kube_pod_status_phase", pod + ',phase="Succeeded"', int(not running), t)
            if not running:
                text.add("kube_pod_completion_time", pod, end, t)


def main():
    os.makedirs(HERE, exist_ok=True)
    two = Text()
    kube(two)
    gpus(two)
    two.write("metrics.om")

    # From 11:00 on GPU-0 sends only blanks: 24 values that are not believed, an hour not observed.
    blank = Text()
    kube(blank)
    gpus(blank, util=lambda t: (80 if t <= START + 3600 else 2147483632, 0),
         work=lambda t: (0.5 if t <= START + 3600 else 2147483632, 0))
    blank.write("blank.om")

    # An instance type that the price list does not have.
    strange = Text()
    kube(strange, "strange.2x")
    gpus(strange)
    strange.write("strange.om")


if __name__ == "__main__":
    main()
