#!/usr/bin/env python3
"""gputally serve on a disk that is full or read-only: test_disk.py BINARY [--only NAMES] [--seed N]

Real file systems in a mount namespace of the test's own: a small tmpfs that is filled and mounted read-only, and an
ext4 in a file that the kernel gives up, as it does after an error of the disk. The service says what is wrong in
/readyz, /metrics and the log; senders hear 5xx and keep what they have; it answers from what is there; and once it may
write again it goes on by itself, with nothing lost. Where namespaces or loop devices are not allowed, that is said."""

import argparse
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, Skipped, attempt, verdict  # noqa: E402
from service import Service, units  # noqa: E402
from test_live import Clock, Lab, Sender, same, samples_of  # noqa: E402

INSIDE = "GPUTALLY_TEST_NAMESPACE"
ROOM = "48m"
HOURS = 3
SPEED = 600


def sh(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")


class Disk:
    """A file system of its own, mounted for a while."""

    def __init__(self, work, kind="tmpfs"):
        self.path = os.path.join(work, "disk")
        os.makedirs(self.path, exist_ok=True)
        if kind == "tmpfs":
            sh("mount", "-t", "tmpfs", "-o", "size=" + ROOM, "none", self.path)
            return
        image = os.path.join(work, "image")
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        try:
            sh("mkfs.ext4", "-q", image)
            sh("mount", "-o", "loop", image, self.path)
        except (Failed, OSError) as error:
            raise Skipped(str(error)) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=False)

    def file(self, name):
        return os.path.join(self.path, name)

    def fill(self):
        """Not a byte is left."""
        with open(self.file("filler"), "ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def empty(self):
        os.unlink(self.file("filler"))

    def remount(self, how):
        sh("mount", "-o", "remount," + how, self.path)


class Fleet:
    """Samples that a sender has, and a service that receives them."""

    def __init__(self, lab, disk, hours=HOURS):
        self.lab, self.disk = lab, disk
        self.folder, self.facts, self.low, self.high = lab.fleet("whole", hours)
        self.database = disk.file("ledger.db")
        self.config = lab.config("disk.json", self.folder, self.database, [{"kind": "remote-write", "book": ""}])
        self.clock = Clock(self.low, SPEED)
        self.services = []
        self.sender = Sender(samples_of(os.path.join(self.folder, "metrics.om")), self.clock,
                             lambda: self.services[-1].url if self.services and
                             self.services[-1].process.poll() is None else None)

    def serve(self):
        service = Service(self.lab.binary, ["--config", self.config, *self.facts[2:]], self.lab.work,
                          (self.clock.now(), SPEED), name=f"disk-{len(self.services)}").wait()
        self.services.append(service)
        return service

    def finish(self, service):
        """To the end of the fleet's time; the ledger is that of the file, byte for byte."""
        log = "".join(one.logged() for one in self.services[:-1])
        self.sender.through(service, log, self.high)
        window = f"{units.format_time(self.low)},{units.format_time(self.high)}"
        same(self.lab.export(["--db", self.database], window),
             self.lab.export(["--openmetrics", os.path.join(self.folder, "metrics.om")], window, self.facts), "afterwards")


def says(service, fleet, words):
    """It answers, and says what is wrong wherever somebody looks; senders keep what they have."""
    service.until("/readyz", lambda: service.ready()[0] == 503 and re.search(words, service.ready()[1]))
    service.until("the log", lambda: re.search(words, service.logged()))
    service.until("the metrics", lambda: service.metric("gputally_store_writable") == 0)
    service.until("a failed push", lambda: fleet.sender.retries > 1)
    if fleet.sender.refused:
        raise Failed(f"a sender would drop them: {fleet.sender.refused}")
    if service.ask("/healthz")[0] != 200:
        raise Failed("it does not answer")


def reads(service, fleet):
    window = f"{units.format_time(fleet.low)},{units.format_time(fleet.high)}"
    status, text = service.ask("/api/v1/report?window=" + window)
    if status != 200 or not text.startswith("{"):
        raise Failed(f"/api/v1/report says {status}: {text[:300]}")


def recovers(service):
    service.until("being ready", lambda: service.ready()[0] == 200 or "catching up" in service.ready()[1])
    service.until("the metrics", lambda: service.metric("gputally_store_writable") == 1)


def full_while_running(lab):
    """The disk fills up twice while samples come, at any moment."""
    with Disk(lab.work) as disk:
        fleet = Fleet(lab, disk)
        with fleet.serve() as service:
            fleet.sender.start()
            service.until("a booking", lambda: "msg=booked" in service.logged())
            for _ in range(2):
                time.sleep(lab.rng.uniform(0, 2))
                fleet.sender.retries = 0
                disk.fill()
                says(service, fleet, "[Nn]o (space|room) left")
                reads(service, fleet)
                disk.empty()
                recovers(service)
            fleet.finish(service)


def full_at_start(lab):
    """It starts where nothing can be written, and begins once there is room."""
    with Disk(lab.work) as disk:
        fleet = Fleet(lab, disk)
        disk.fill()
        with fleet.serve() as service:
            fleet.sender.start()
            says(service, fleet, "[Nn]o (space|room) left")
            disk.empty()
            recovers(service)
            fleet.finish(service)


def read_only_at_start(lab):
    """A read-only disk with books on it: they are read; once it is writable, they are gone on with."""
    with Disk(lab.work) as disk:
        fleet = Fleet(lab, disk)
        with fleet.serve() as service:
            fleet.sender.start()
            service.until("a booking", lambda: "msg=booked" in service.logged())
            service.kill()
        disk.remount("ro")
        with fleet.serve() as service:
            says(service, fleet, "[Rr]ead-only")
            reads(service, fleet)
            disk.remount("rw")
            recovers(service)
            fleet.finish(service)


def read_only_while_running(lab):
    """The kernel gives the file system up under the service; what was acknowledged is there after a repair."""
    with Disk(lab.work, "ext4") as disk:
        fleet = Fleet(lab, disk)
        with fleet.serve() as service:
            fleet.sender.start()
            service.until("a booking", lambda: "msg=booked" in service.logged())
            time.sleep(lab.rng.uniform(0, 1))
            subprocess.run(["mount", "-o", "remount,abort", disk.path], check=False, capture_output=True)
            fleet.sender.retries = 0
            says(service, fleet, "[Rr]ead-only|I/O error|Input/output")
            reads(service, fleet)
            service.kill()
        sh("umount", disk.path)
        subprocess.run(["fsck.ext4", "-y", os.path.join(lab.work, "image")], check=False, capture_output=True)
        sh("mount", "-o", "loop", os.path.join(lab.work, "image"), disk.path)
        with fleet.serve() as service:
            recovers(service)
            fleet.finish(service)


CHECKS = (full_while_running, full_at_start, read_only_at_start, read_only_while_running)


def run(check, options):
    work = tempfile.mkdtemp(prefix="gputally-disk-")
    rng = random.Random(f"{options.seed} {check.__name__}")
    if attempt(check.__name__, check, Lab(os.path.abspath(options.binary), rng, work)):
        shutil.rmtree(work, ignore_errors=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args(argv)
    if INSIDE not in os.environ:
        unshare = ["unshare", "--mount" if os.geteuid() == 0 else "--map-root-user", "--mount"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
            print("skip: no mount namespace here")
            return verdict()
        os.environ[INSIDE] = "1"
        os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    print(f"disk: --seed {options.seed}", flush=True)
    checks = [check for check in CHECKS if not options.only or check.__name__ in options.only.split(",")]
    with concurrent.futures.ThreadPoolExecutor(len(CHECKS)) as pool:   # they wait most of the time
        list(pool.map(lambda check: run(check, options), checks))
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
