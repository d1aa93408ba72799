#!/usr/bin/env python3
"""The service over many scraped targets for a while: soak.py BINARY [--seconds N] [--targets N] [--speed N]

Fleet time runs faster than ours, so that hours are booked, dropped (retention) and released from the journal
within minutes. Resident memory, open files and threads must be flat from a third of the time on, every hour
must be booked, and the database must be sound in the end."""

import argparse
import contextlib
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from service import Failed, Service, resources, units, write_config  # noqa: E402

import subprocess  # noqa: E402

GPUS = 8
SIGNALS = (("DCGM_FI_DEV_GPU_UTIL", lambda k: k % 100), ("DCGM_FI_DEV_FB_USED", lambda k: 1000 + k % 7000),
           ("DCGM_FI_DEV_FB_FREE", lambda k: 80000 - k % 7000), ("DCGM_FI_DEV_POWER_USAGE", lambda k: 90 + k % 300),
           ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", lambda k: k % 100 / 100), ("DCGM_FI_PROF_SM_ACTIVE", lambda k: k % 90 / 100))
BEGIN = "2026-03-07T00:20:00Z"


class Exporters(http.server.BaseHTTPRequestHandler):
    """/node/N/metrics: dcgm-exporter on node N; pods come and go every hour."""
    protocol_version = "HTTP/1.1"
    now = staticmethod(lambda: 0)

    def do_GET(self):
        node = int(self.path.split("/")[2])
        now = self.now()
        lines = []
        for name, value in SIGNALS:
            lines.append(f"# TYPE {name} gauge")
            for gpu in range(GPUS):
                pod = f"train-{now // 3600:x}-{node}-{gpu}"
                lines.append(f'{name}{{gpu="{gpu}",UUID="GPU-{node:08x}-{gpu}",modelName="NVIDIA H100 80GB HBM3",'
                             f'Hostname="n{node}",exported_namespace="ns{node % 7}",exported_pod="{pod}",'
                             f'exported_container="main"}} {value(now // 15 + 31 * gpu + node)}')
        text = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(text)

    def log_message(self, *_):
        pass


def run(options, work):
    begin = units.parse_time(BEGIN)
    started = time.monotonic()
    handler = type("Fleet", (Exporters,), {"now": staticmethod(
        lambda: int(begin / 1000 + (time.monotonic() - started) * options.speed))})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None   # connections that the service cuts
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"
    files = os.path.join(work, "targets.json")
    with open(files, "w", encoding="utf-8") as file:
        json.dump([{"targets": [address], "labels": {"__metrics_path__": f"/node/{n}/metrics", "node": f"n{n}",
                                                     "instance": f"n{n}:9400"}} for n in range(options.targets)], file)
    database = os.path.join(work, "soak.db")
    config = write_config(os.path.join(work, "config.json"),
                          {"serve": {"db": database, "every": "2m", "retain": "1d"},
                           "sources": [{"cluster": "soak", "kind": "scrape", "files": [files], "interval": "15s"}]})
    seen = []
    with Service(options.binary, ["--config", config], work, (begin, options.speed)).wait() as service:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            time.sleep(min(1.0, options.seconds / 40))
            if service.process.poll() is not None:
                raise Failed(f"it ended: {service.logged()[-1000:]}")
            for path in ("/api/v1/gpus", "/metrics", "/readyz"):
                service.ask(path)
            seen.append(resources(service.process.pid))
            if len(seen) % 60 == 0:
                print(f"     {len(seen)}: {seen[-1][0] // 1024} MiB, {seen[-1][1]} files, {seen[-1][2]} threads",
                      flush=True)
        booked = service.logged().count("msg=booked")
        ready = service.ready()
        status, seconds = service.end()
    server.shutdown()
    server.server_close()
    hours = int(options.seconds * options.speed // 3600)
    if status or seconds > 5:
        raise Failed(f"SIGTERM: exit status {status} after {seconds:.1f} s")
    if hours > 2 and (booked < hours // 2 or ready[0] != 200):
        raise Failed(f"{booked} bookings in {hours} hours; /readyz {ready}: {service.logged()[-1500:]}")
    done = subprocess.run([options.binary, "db", "check", "--db", database], capture_output=True, text=True)
    if hours > 2 and done.returncode:
        raise Failed(f"db check: {done.stderr}")
    third = len(seen) // 3
    room = 8192 if options.seconds >= 120 else 40960   # a short run is still filling its buffers
    first, last = seen[third:2 * third], seen[2 * third:]
    for what, at, allowed in (("kB of memory", 0, 1.15), ("open files", 1, 1.1), ("threads", 2, 1.1)):
        a, b = max(one[at] for one in first), max(one[at] for one in last)
        if b > a * allowed + (room if at == 0 else 4):
            raise Failed(f"{what} grow: {a}, then {b}")
    return (f"{options.targets * GPUS} GPUs, {hours} h of the fleet: {max(one[0] for one in last) // 1024} MiB, "
            f"{max(one[1] for one in last)} files, {booked} bookings")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--targets", type=int, default=24)
    parser.add_argument("--speed", type=float, default=1200)
    options = parser.parse_args(argv)
    options.binary = os.path.abspath(options.binary)
    work = tempfile.mkdtemp(prefix="gputally-soak-")
    try:
        print(f"ok   soak: {run(options, work)}")
    except (Failed, OSError) as error:
        print(f"FAIL soak: {error} (kept in {work})")
        print("0 passed, 1 failed")
        return 1
    shutil.rmtree(work, ignore_errors=True)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
