#!/usr/bin/env python3
"""What deploy/ ships: rules and the dashboard over the metrics of a service that a real Prometheus scrapes; the chart's
role; the unit.

    tests/peers/test_deploy.py BINARY
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import servers  # noqa: E402

DEPLOY = os.path.join(ROOT, "deploy")
RULES = os.path.join(DEPLOY, "prometheus", "gputally.rules.yaml")
failures = []
passed = 0


def check(name, ok, detail=""):
    global passed
    if ok:
        passed += 1
        print(f"ok    {name}")
    else:
        failures.append(name)
        print(f"FAIL  {name}\n{detail}")


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


def scraping(binary, folder):
    port = servers.free_port()
    gputally, db = f"127.0.0.1:{port}", os.path.join(folder, "gpu.db")
    subprocess.run([binary, "demo", "--gpus", "16", "--days", "1", "--step", "5m", "--gap", "15m", "--quiet", "--db", db],
                   check=True, stdout=subprocess.DEVNULL)
    command = [binary, "serve", "--db", db, "--listen", gputally, "--prometheus", "http://127.0.0.1:1"]
    with servers.started(command, f"http://{gputally}/healthz", os.path.join(folder, "gputally.log")):
        with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "2s"}, "rule_files": [RULES],
                       "scrape_configs": [{"job_name": "gputally", "static_configs": [{"targets": [gputally]}]}]}, file)
        at = servers.free_port()
        url = f"http://127.0.0.1:{at}"
        command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                   f"--web.listen-address=127.0.0.1:{at}"]
        with servers.started(command, f"{url}/-/ready", os.path.join(folder, "prometheus.log")):
            until = time.monotonic() + 30
            while time.monotonic() < until and not query(url, "gputally_cost_usd_total")["data"]["result"]:
                time.sleep(0.5)
            time.sleep(3)
            with urllib.request.urlopen(f"http://{gputally}/metrics", timeout=30) as answer:
                known = set(re.findall(r"^# TYPE (\w+)", answer.read().decode(), re.MULTILINE))
            for title, text in expressions():
                answer = query(url, text)
                unknown = set(re.findall(r"gputally_\w+", text)) - known
                check(f"dashboard: {title}", answer["status"] == "success" and not unknown, (answer, unknown))
            with open(RULES, encoding="utf-8") as file:
                unknown = set(re.findall(r"gputally_\w+", file.read())) - known
            check("rules ask for metrics that there are", not unknown, unknown)
            check("money is there", query(url, "sum(gputally_cost_usd_total)")["data"]["result"])
            with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=30) as answer:
                groups = json.load(answer)["data"]["groups"]
            sick = [rule["name"] for group in groups for rule in group["rules"] if rule.get("lastError")]
            check("rules are evaluated", sum(len(group["rules"]) for group in groups) == 10 and not sick, sick)


def main(binary):
    check("promtool check rules", run("promtool", "check", "rules", RULES).returncode == 0)
    tested = run("promtool", "test", "rules", os.path.join(DEPLOY, "prometheus", "gputally.rules.test.yaml"))
    check("promtool test rules", tested.returncode == 0, tested.stdout + tested.stderr)
    with tempfile.TemporaryDirectory() as folder:
        scraping(binary, folder)
    with open(os.path.join(DEPLOY, "helm", "gputally", "rules.yaml"), encoding="utf-8") as file:
        role = file.read()
    with open(os.path.join(ROOT, "docs", "kubernetes.md"), encoding="utf-8") as file:
        documented = [line.strip() for line in file if line.startswith("    - {apiGroups")]
    check("the chart's role is the documented one", role.splitlines() == documented and documented, role)
    verbs = {verb.strip() for line in documented for verb in re.search(r"verbs: \[(.*)\]", line)[1].split(",")}
    check("and only reads", verbs == {"get", "list", "watch"}, verbs)
    print(f"deploy: {passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
