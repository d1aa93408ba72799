#!/usr/bin/env python3
"""What deploy/ ships: rules and the dashboard over the metrics of a service that a real Prometheus scrapes; the chart's
role; the unit.

    tests/peers/test_deploy.py BINARY
"""

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from checks import check, verdict, wait  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402
from service import Service, units  # noqa: E402

DEPLOY = os.path.join(ROOT, "deploy")
RULES = os.path.join(DEPLOY, "prometheus", "gputally.rules.yaml")
SPEED = 1200    # of the fleet's time: three hours in nine seconds


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def expressions():
    with open(os.path.join(DEPLOY, "grafana", "gputally.json"), encoding="utf-8") as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$team", ".*")


def query(url, text):
    with urllib.request.urlopen(f"{url}/api/v1/query?" + urllib.parse.urlencode({"query": text}), timeout=30) as answer:
        return json.load(answer)


def counted(address):
    """Hours that the counters are of."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    begin, end = (float((re.search(rf"^gputally_counters_{edge}_timestamp_seconds (\S+)$", text, re.MULTILINE) or [0, 0])[1])
                  for edge in ("begin", "end"))
    return (end - begin) / 3600, set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


@contextlib.contextmanager
def a_service(binary, folder):
    """A fleet in a Prometheus, its hours in seconds, and a service that keeps its books; gives its address."""
    fleet = fleets.fleet("gaps", 3, 0.5, 60, with_reference=False)
    tsdb = os.path.join(folder, "fleet-tsdb")
    servers.load_tsdb(os.path.join(fleet, "metrics.om"), tsdb)
    facts = fleets.ledger_arguments(fleet)
    begin, _ = (units.parse_time(text) for text in fleets.window(fleet).split(","))
    with servers.prometheus(tsdb, folder) as source:
        command = ["--prometheus", source, "--db", os.path.join(folder, "gpu.db"), "--every", "5m",
                   *facts[:facts.index("--window")]]
        with Service(binary, command, folder, (begin + 4 * units.HOUR_MS, SPEED)).wait() as service:
            yield service.url.removeprefix("http://")


def board_has_data(url, known):
    for title, text in expressions():
        def shown(text=text):
            return [float(series["value"][1]) for series in query(url, text)["data"]["result"]]
        unknown = set(re.findall(r"gputally_\w+", text)) - known
        check(f"dashboard: {title}", not unknown and wait(lambda: (numbers := shown()) and
                                                          all(map(math.isfinite, numbers)) and max(numbers) > 0),
              (unknown, shown()))
    money = {series["metric"]["category"]: float(series["value"][1]) for series in
             query(url, "sum by (category) (gputally_cost_usd_total)")["data"]["result"]}
    shown = float(query(url, next(text for title, text in expressions() if title == "Used"))["data"]["result"][0]["value"][1])
    check("the share that is used is one", 0 < shown < 1 and money["used"] > 0, (shown, money))
    named = {word for _, text in expressions() for word in re.findall(r'category="(\w+)"', text)}
    check("categories are spelt as they are counted", named <= set(money), (named, money))


def rules_run(url, known):
    with open(RULES, encoding="utf-8") as file:
        unknown = set(re.findall(r"gputally_\w+", file.read())) - known
    check("rules ask for metrics that there are", not unknown, unknown)
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=30) as answer:
        groups = json.load(answer)["data"]["groups"]
    sick = [rule["name"] for group in groups for rule in group["rules"] if rule.get("lastError")]
    check("rules are evaluated", sum(len(group["rules"]) for group in groups) == 10 and not sick, sick)
    for group in groups:
        for rule in group["rules"]:
            if rule["type"] == "recording":
                check(f"recorded: {rule['name']}", wait(lambda name=rule["name"]: query(url, name)["data"]["result"]))


def scraping(binary, folder):
    with a_service(binary, folder) as gputally:
        with open(RULES, encoding="utf-8") as file:     # an interval of minutes would be awaited
            text = file.read().replace("interval: 5m", "interval: 2s")
        with open(os.path.join(folder, "rules.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        with open(os.path.join(folder, "scrape.yml"), "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "2s"},
                       "rule_files": [os.path.join(folder, "rules.yaml")],
                       "scrape_configs": [{"job_name": "gputally", "static_configs": [{"targets": [gputally]}]}]}, file)
        at = servers.free_port()
        url = f"http://127.0.0.1:{at}"
        command = ["prometheus", f"--config.file={folder}/scrape.yml", f"--storage.tsdb.path={folder}/tsdb",
                   f"--web.listen-address=127.0.0.1:{at}"]
        with servers.started(command, f"{url}/-/ready", os.path.join(folder, "scraper.log")):
            check("hours are closed and counted", wait(lambda: counted(gputally)[0] >= 6), counted(gputally)[0])
            known = counted(gputally)[1]
            board_has_data(url, known)
            rules_run(url, known)


def unit_is_sound(binary, folder):
    """As systemd reads it; how exposed the service is, in its own measure (0 is not at all)."""
    if not shutil.which("systemd-analyze"):
        print("skipped: systemd is not installed")
        return
    unit = os.path.join(folder, "gputally.service")
    with open(os.path.join(DEPLOY, "systemd", "gputally.service"), encoding="utf-8") as file:
        text = file.read().replace("/usr/bin/gputally", binary)
    with open(unit, "w", encoding="utf-8") as file:
        file.write("".join(line for line in text.splitlines(True) if not line.startswith("Documentation=")))
    told = run("systemd-analyze", "verify", unit)
    check("systemd-analyze verify", told.returncode == 0 and not told.stdout + told.stderr, told.stdout + told.stderr)
    told = run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    check("systemd-analyze security: 2.0 at most", told.returncode == 0, told.stdout[-300:] + told.stderr)


def main(binary):
    check("promtool check rules", run("promtool", "check", "rules", RULES).returncode == 0)
    tested = run("promtool", "test", "rules", os.path.join(DEPLOY, "prometheus", "gputally.rules.test.yaml"))
    check("promtool test rules", tested.returncode == 0, tested.stdout + tested.stderr)
    with tempfile.TemporaryDirectory() as folder:
        unit_is_sound(binary, folder)
        scraping(binary, folder)
    with open(os.path.join(DEPLOY, "helm", "gputally", "rules.yaml"), encoding="utf-8") as file:
        role = file.read()
    with open(os.path.join(ROOT, "docs", "kubernetes.md"), encoding="utf-8") as file:
        documented = [line.strip() for line in file if line.startswith("    - {apiGroups")]
    check("the chart's role is the documented one", role.splitlines() == documented and documented, role)
    verbs = {verb.strip() for line in documented for verb in re.search(r"verbs: \[(.*)\]", line)[1].split(",")}
    check("and only reads", verbs == {"get", "list", "watch"}, verbs)
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
