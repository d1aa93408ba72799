#!/usr/bin/env python3
"""The scraper against a simulated fleet that plays live, with and without faults. What it scraped is written out as
text; the independent calculator makes a ledger of that text, gputally books one from the journal: they are equal.

    tests/peers/test_scrape.py BINARY     (ingest_peer lies beside what BINARY points to)
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
from fleetsim import compare  # noqa: E402
from fleetsim.generate import build_world  # noqa: E402
from fleetsim.server import make_server  # noqa: E402
from fleetsim.units import format_time  # noqa: E402

SPEED = 200
STEP_S = 30
SKIP_S = 3000        # so that the whole hours begin soon
DAYS = 0.25
# What strikes together: answers that are no good, and good ones with lines that are not.
FAULTS = (("whole", (), 2), ("mixed", ("slow", "truncate"), 1), ("gaps", ("http500",), 1),
          ("mig", ("badutf8", "hugelabel", "duplicate"), 1))


def write_targets(path, world, address):
    """file_sd: each node's exporter, and kube-state-metrics."""
    groups = [{"targets": [address], "labels": {"__metrics_path__": f"/node/{name}/metrics",
                                                "instance": f"{name}:9400"}}
              for name in sorted({node.name for node in world.fleet.nodes})]
    groups.append({"targets": [address], "labels": {"__metrics_path__": "/ksm/metrics", "instance": "ksm:8080"}})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(groups, file)


def play(peer, work, scenario, faults, hours):
    """Scrape a fleet for some hours and more of its time; (what the peer said, from, to of whole hours)."""
    world = build_world(scenario, 1, DAYS, 0, STEP_S, fleets.DEFAULT_END)
    server = make_server(world, 0, SPEED, SKIP_S, faults, 5)
    server.handle_error = lambda *_: None       # the scraper hangs up where it waits no longer
    clock = server.RequestHandlerClass.fleet.clock
    threading.Thread(target=server.serve_forever, daemon=True).start()
    targets = os.path.join(work, "targets.json")
    write_targets(targets, world, f"127.0.0.1:{server.server_address[1]}")
    begin = clock.now()
    first = -(-begin // 3600_000) * 3600_000
    process = subprocess.Popen(
        [peer, "serve", os.path.join(work, "journal"), "--job", "dcgm", "--file", targets, "--interval-ms",
         str(STEP_S * 1000), "--now", str(begin), "--speed", str(SPEED)], stdout=subprocess.PIPE, text=True)
    until = first + hours * 3600_000 + 600_000
    while clock.now() < until and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    said = process.stdout.read()
    check(f"{scenario} {'+'.join(faults) or 'without faults'}: the scraper ends cleanly", process.wait(60) == 0)
    server.shutdown()
    server.server_close()
    return said, first, first + hours * 3600_000


def dump(peer, work, folder):
    """The journal as metrics.om."""
    text = subprocess.run([peer, "dump", os.path.join(work, "journal")], check=True, capture_output=True, text=True)
    lines = [line for line in text.stdout.splitlines() if " stale " not in line]
    with open(os.path.join(folder, "metrics.om"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return len(lines) - 1, text.stdout.count(" stale ")


def facts(folder, scenario, first, last):
    """Prices, owners and settings of the fleet, for this window."""
    origin = fleets.fleet(scenario, 1, DAYS, STEP_S, with_reference=False)
    for name in ("prices.csv", "owners.json"):
        shutil.copy(os.path.join(origin, name), folder)
    settings = fleets.config(origin)
    settings["from"], settings["to"] = format_time(first), format_time(last)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file)


def book(binary, peer, work, folder):
    """Ledger of the journal, as CSV."""
    settings = fleets.config(folder)
    paths = [os.path.join(folder, name) for name in ("config.json", "prices.csv", "owners.json")]
    db = os.path.join(work, "ledger.db")
    subprocess.run([peer, "book", os.path.join(work, "journal"), db, settings["from"], settings["to"], *paths,
                    str(settings.get("step_s", 30) * 1000), str(settings.get("gap_s", 300) * 1000)], check=True)
    with open(os.path.join(folder, "actual.csv"), "wb") as file:
        subprocess.run([binary, "export", "ledger", "--db", db, *fleets.ledger_arguments(folder), "--output", "csv"],
                       check=True, stdout=file)


def test(binary, peer, scenario, faults, hours):
    name = f"{scenario} {'+'.join(faults) or 'without faults'}"
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "fleet")
        os.mkdir(folder)
        said, first, last = play(peer, work, scenario, faults, hours)
        samples, stale = dump(peer, work, folder)
        facts(folder, scenario, first, last)
        fleets.write_reference(folder)
        book(binary, peer, work, folder)
        expected = os.path.join(folder, "ledger.csv")
        found = [words for words in compare.differences(expected, os.path.join(folder, "actual.csv"), False, "")
                 if not words.startswith("column ")]
        with open(expected, encoding="utf-8") as file:
            rows = len(file.readlines()) - 1
        check(f"{name}: {rows} rows of {samples} samples equal the calculator's", rows > 0 and not found,
              "\n".join(found[:5]) + f"\n{len(found)} differences")
        times, failed, bad = (int(number) for number in re.search(
            r"scraped (\d+) times, (\d+) failures, \d+ samples, (\d+) bad lines", said).groups())
        print(f"      {times} scrapes, {failed} failed, {bad} bad lines, {stale} stale markers")
        check(f"{name}: scrapes went on", times > 100)
        if "badutf8" in faults:
            check(f"{name}: bad lines are counted and cost nothing else", bad > 0)
        elif faults:
            check(f"{name}: bad answers are failed scrapes", failed > times / 10, f"{failed} of {times}")


def main():
    binary = os.path.abspath(sys.argv[1])
    peer = os.path.join(os.path.dirname(os.path.realpath(binary)), "ingest_peer")
    for scenario, faults, hours in FAULTS:
        test(binary, peer, scenario, faults, hours)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
