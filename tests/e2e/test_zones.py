#!/usr/bin/env python3
"""Where clocks change: test_zones.py BINARY [--only N]

A machine in a zone with summer time collects over the hour that comes twice, and over the one that does not come: no
hour is lost or doubled, and days, weeks and months are those of the zone that was asked for, whatever the machine's
own. The expected hours are worked out by hand from the zones' rules."""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import Failed, attempt, verdict  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402
from service import units  # noqa: E402
from test_serve import FAKETIME, Lab, until_closed  # noqa: E402

STEP_S = 120
DAYS = 1.25     # from two hours before the day's midnight on
SPEED = 7200

# zone, the day whose clocks change, its beginning and end in UTC, that of its week (Monday) and month, and the next morning
CHANGES = (
    ("America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-10-26T04:00:00Z",
     "2026-11-01T04:00:00Z", "2026-11-02T08:00:00"),
    ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-18T22:00:00Z",
     "2026-09-30T22:00:00Z", "2026-10-26T08:00:00"),
    ("America/New_York", "2027-03-14", "2027-03-14T05:00:00Z", "2027-03-15T04:00:00Z", "2027-03-08T05:00:00Z",
     "2027-03-01T05:00:00Z", "2027-03-15T08:00:00"),
)
HOUR = units.HOUR_MS


def parsed(text):
    return units.parse_time(text)


def ask(service, window, zone, **more):
    query = urllib.parse.urlencode({"window": window, **({"tz": zone} if zone else {}), **more})
    status, text = service.ask("/api/v1/report?" + query)
    if status != 200:
        raise Failed(f"window={window} tz={zone}: {status} {text[:300]}")
    return json.loads(text)


def nano(money):
    whole, part = money.split(".")
    return int(whole + part)


def expect_window(report, begin, end, what):
    got = report["window"]["from"], report["window"]["to"]
    if got != (begin, end):
        raise Failed(f"{what}: {got[0]} to {got[1]}, expected {begin} to {end}")


def of_the_day(service, lab, change):
    """The day has 25 or 23 hours, each of them once, and they add up to it."""
    zone, day, begin, end = change[:4]
    following = units.format_time(parsed(day + "T00:00:00Z") + 24 * HOUR)[:10]
    whole = ask(service, f"{day},{following}", zone, by="day")
    expect_window(whole, begin, end, "the day as dates")
    hours = [units.format_time(t) for t in range(parsed(begin), parsed(end), HOUR)]
    cost = whole["totals"]["cost"]
    if [row["day"] for row in whole["rows"]] != [day] or whole["rows"][0]["cost"] != cost:
        raise Failed(f"by day: {whole['rows']}")
    head, *rows = lab.whole.decode().splitlines()
    at = head.split(",").index("cost")
    booked = {}
    for row in rows:
        fields = row.split(",")
        booked[fields[0]] = booked.get(fields[0], 0) + int(fields[at])
    if sum(booked.get(hour, 0) for hour in hours) != nano(cost):
        raise Failed(f"{len(hours)} hours of the ledger against {cost} of the day")
    for hour in hours:
        one = ask(service, f"{hour},{units.format_time(parsed(hour) + HOUR)}", zone)
        if not booked.get(hour) or nano(one["totals"]["cost"]) != booked[hour] or not one["balance"]["balanced"]:
            raise Failed(f"{hour}: {one['totals']['cost']}, booked {booked.get(hour)}")
    return cost


def words(service, change, zone):
    """Words of the calendar, asked in the morning after."""
    begin, end, week, month = change[2:6]
    yesterday = ask(service, "yesterday", zone)
    expect_window(yesterday, begin, end, "yesterday")
    monday = change[3]      # all these changes are on a Sunday
    expect_window(ask(service, "lastweek", zone), week, monday, "lastweek")
    for word, start in (("today", end), ("week", monday), ("month", month)):
        report = ask(service, word, zone)
        if report["window"]["from"] != start:
            raise Failed(f"{word} begins at {report['window']['from']}, expected {start}")
    return yesterday["totals"]["cost"]


def command(lab, database, change, cost, machine):
    """The command line on a machine whose clock shows the next morning."""
    zone, begin, end, morning = change[0], change[2], change[3], change[6]
    if not os.path.exists(FAKETIME):
        raise Failed(f"{FAKETIME} is missing: scripts/deps test")
    env = {**os.environ, "TZ": zone, "LD_PRELOAD": FAKETIME, "FAKETIME": "@" + morning.replace("T", " "),
           "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    if machine != zone:     # the same instant on another machine's clock
        shown = subprocess.run(["date", "-d", f'TZ="{zone}" {morning}', "+%Y-%m-%d %H:%M:%S"], capture_output=True, text=True,
                               check=True, env={**os.environ, "TZ": machine}).stdout.strip()
        env.update(TZ=machine, FAKETIME="@" + shown)
    done = subprocess.run([lab.binary, "report", "--db", database, "--window", "yesterday", "--tz", zone, "--output", "json"],
                          capture_output=True, text=True, timeout=600, env=env)
    if done.returncode:
        raise Failed(done.stderr)
    report = json.loads(done.stdout)
    expect_window(report, begin, end, f"yesterday on a machine in {machine}")
    if report["totals"]["cost"] != cost:
        raise Failed(f"on a machine in {machine} it costs {report['totals']['cost']}, not {cost}")


def changes(lab, change):
    zone, _, _, _, _, _, morning = change
    database = lab.fresh()
    with lab.serve(database, clock=(1.5, SPEED), env={"TZ": zone}, more=("--tz", zone)) as service:
        until_closed(lab, service)
        service.end()
    lab.same(lab.export(["--db", database]), f"over the change in {zone}")
    local = parsed(morning + "Z")
    offset = parsed(change[3]) - parsed(change[6][:10] + "T00:00:00Z")
    for machine, asked in ((zone, zone), (zone, None), ("Asia/Kolkata", zone)):   # None: as the service's --tz says
        clock = ((local + offset - lab.low) / HOUR, 1)
        with lab.serve(database, clock=clock, env={"TZ": machine}, more=("--tz", zone)) as service:
            cost = of_the_day(service, lab, change)
            if words(service, change, asked) != cost:
                raise Failed(f"yesterday and the day's dates differ (machine in {machine}, asked for {asked})")
            service.end()
        command(lab, database, change, cost, machine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    whole = True
    work = tempfile.mkdtemp(prefix="gputally-e2e-zones-")
    for n, change in enumerate(CHANGES):
        if options.only not in (None, n):
            continue
        end = units.format_time(parsed(change[2]) - 2 * HOUR + int(DAYS * 24) * HOUR)
        folder = fleets.fleet("whole", 1, DAYS, STEP_S, end=end, with_reference=False)
        tsdb = os.path.join(folder, "tsdb")
        servers.load_tsdb(os.path.join(folder, "metrics.om"), tsdb)
        own = os.path.join(work, f"{n}")
        os.makedirs(own)
        shutil.copytree(tsdb, os.path.join(own, "tsdb"))
        with servers.prometheus(os.path.join(own, "tsdb"), own) as url:
            lab = Lab(os.path.abspath(options.binary), random.Random(1), url, folder, own)
            whole &= attempt(f"{change[0]} {change[1]}", changes, lab, change)
    if whole:
        shutil.rmtree(work, ignore_errors=True)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
