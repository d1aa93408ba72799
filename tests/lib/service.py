"""A running `gputally serve` for tests: started with a fleet's clock, asked over HTTP, ended by its pid."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

from checks import Failed, PATIENCE_S  # noqa: E402
from fleetsim import units  # noqa: E402

END_S = 30   # what it may take on a machine that does ten other things; what it must not wait for takes longer


class Service:
    """One process. `clock` is (time in ms, speed) of the fleet; `limit` the largest file in bytes; `listen` None: as
    the configuration says."""

    def __init__(self, binary, arguments, work, clock=None, limit=None, name="serve", env=None,
                 listen="127.0.0.1:0"):
        self.log_path = os.path.join(work, name + ".log")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GPUTALLY_")}
        environment.update(env or {})
        if clock:
            environment["GPUTALLY_TEST_CLOCK"] = f"{units.format_time(clock[0])},{clock[1]}"
        self.log = open(self.log_path, "ab")
        self.mark = self.log.tell()

        def limited():
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        self.process = subprocess.Popen([binary, "serve", *arguments, *(("--listen", listen) if listen else ())],
                                        env=environment,
                                        stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
                                        preexec_fn=limited if limit else None)
        self.url = None

    def wait(self):
        """Until it answers."""
        timer = threading.Timer(PATIENCE_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline().decode()
        timer.cancel()
        if "serves at" not in line:
            self.process.wait()
            raise Failed(f"it did not start: {self.logged()[-1500:]}")
        self.url = line.split()[-1].rstrip("/")
        return self

    def logged(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            file.seek(self.mark)
            return file.read()

    def ask(self, path, headers=None, method="GET", body=None, timeout=PATIENCE_S):
        """(status, body) of a request."""
        request = urllib.request.Request(self.url + path, headers=headers or {}, method=method, data=body)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def until(self, what, holds, timeout=PATIENCE_S):
        """Wait for something; the log's end is told where it does not come."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Failed(f"{what}: it ended with {self.process.returncode}: {self.logged()[-1500:]}")
            with contextlib.suppress(OSError, urllib.error.URLError, KeyError, ValueError):
                if holds():
                    return
            time.sleep(0.05)
        raise Failed(f"{what} did not come in {timeout} s: {self.logged()[-1500:]}")

    def ready(self):
        """(status, text) of /readyz."""
        return self.ask("/readyz")

    def says(self, status, *words):
        """Until /readyz has this status and these words."""
        self.until(f"/readyz {status} with {words}", lambda: (told := self.ready())[0] == status and
                   all(word in told[1] for word in words))

    def metric(self, name):
        """A metric's value; of several the least."""
        status, text = self.ask("/metrics")
        values = [float(value) for value in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)]
        if status != 200 or not values:
            raise Failed(f"no {name} in /metrics: {status}")
        return min(values)

    def two_rounds(self):
        """Until what is there now has been looked at: a round may have begun before."""
        before = self.metric("gputally_collect_rounds_total")
        self.until("two more rounds", lambda: self.metric("gputally_collect_rounds_total") >= before + 2)

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """A clean end, which waits for nothing that is out there."""
        self.process.send_signal(number)
        try:
            status = self.process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"it did not end in {END_S} s: {self.logged()[-1500:]}") from None
        finally:
            self.close()
        if status:
            raise Failed(f"it ended with {status}: {self.logged()[-1500:]}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self):
        self.process.stdout.close()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):
            self.close()


def resources(pid):
    """(resident kB, open files, threads) of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"])


def write_config(path, value):
    """A configuration; JSON is YAML."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    return path


def write_kubeconfig(path, server):
    """A login without secrets to a plain API at the URL."""
    return write_config(path, {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                               "clusters": [{"name": "c", "cluster": {"server": server}}],
                               "users": [{"name": "u", "user": {}}],
                               "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})
