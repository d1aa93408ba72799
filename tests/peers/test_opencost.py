#!/usr/bin/env python3
"""kubectl-cost's and OpenCost's own page's requests, each as these programs make it, and what they do with the answers.

    tests/peers/test_opencost.py BINARY

What they ask, and which fields they read as what type, is laid down here after their published source (kubectl-cost's
decoder is OpenCost's `Allocation`). They panic or show nothing where an answer is not so.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import check, verdict  # noqa: E402
from service import Service, units  # noqa: E402

NOW = "2026-11-30T12:30:00Z"    # of the service: what is asked of the last days is of these, whenever it is asked


def ask(url, path, **parameters):
    """(status, answer) as JSON."""
    try:
        with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


# ---- OpenCost's Allocation, as its decoder takes it

NUMBERS = """cpuCoreRequestAverage cpuCoreUsageAverage cpuCoreHours cpuCost cpuCostAdjustment cpuCostIdle gpuHours gpuCost
gpuCostAdjustment gpuCostIdle networkTransferBytes networkReceiveBytes networkCost networkCrossZoneCost
networkCrossRegionCost networkInternetCost networkCostAdjustment loadBalancerCost loadBalancerCostAdjustment
pvCostAdjustment ramByteRequestAverage ramByteUsageAverage ramByteHours ramCost ramCostAdjustment ramCostIdle sharedCost
externalCost""".split()
PAGE_NUMBERS = """minutes cpuCost gpuCost ramCost pvCost networkCost sharedCost externalCost totalCost cpuCoreUsageAverage
cpuCoreRequestAverage ramByteUsageAverage ramByteRequestAverage cpuEfficiency ramEfficiency totalEfficiency""".split()
TEXTS = ("cluster", "node", "container", "controller", "controllerKind", "namespace", "pod", "providerID")
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def decode_faults(name, cell):
    """What the decoder, and the page, would stumble over."""
    faults = [key for key in {*NUMBERS, *PAGE_NUMBERS} if not is_number(cell.get(key))]
    faults += [key for key in ("start", "end") if not RFC3339.fullmatch(str(cell.get(key)))]
    window = cell.get("window")
    if not isinstance(window, dict) or window != {"start": cell["start"], "end": cell["end"]}:
        faults.append("window")
    for key in ("pvs", "lbAllocations", "rawAllocationOnly"):
        if not isinstance(cell.get(key), (dict, type(None))):
            faults.append(key)
    properties = cell.get("properties")
    if not isinstance(properties, dict) or any(key not in TEXTS or not isinstance(value, str)
                                               for key, value in properties.items()):
        faults.append("properties")
    gpu = cell.get("gpuAllocation")
    if not isinstance(gpu, dict) or not isinstance(gpu.get("isGPUShared"), bool) or \
            not all(is_number(gpu.get(key)) for key in ("gpuUsageAverage", "gpuRequestAverage")):
        faults.append("gpuAllocation")
    return faults + (["name"] if cell.get("name") != name else [])


def total(cell):
    """TotalCost() of kubectl-cost: it does not read totalCost, it adds up."""
    return sum(cell[key] for key in NUMBERS if key.endswith(("Cost", "CostAdjustment")) and "Cross" not in key
               and "Internet" not in key) + cell["pvCost"]


def to_nano(money):
    """Of decimal text."""
    whole, part = money.split(".")
    return int(whole + part)


def nano(cells):
    return sum(round(total(cell) * 1e9) for cell in cells)


# ---- kubectl-cost

COMMANDS = {"namespace": ["cluster", "namespace"], "deployment": ["cluster", "namespace", "deployment"],
            "controller": ["cluster", "namespace", "controller"], "pod": ["cluster", "namespace", "pod"],
            "label -l app": ["cluster", "label:app"], "container": ["cluster", "namespace", "container"]}


def kubectl_cost(url, spent, currency):
    """kubectl cost COMMAND, with its standard path and with --opencost."""
    status, got = ask(url, "/model/getConfigs")
    check("it asks for the currency first", status == 200 and got["data"]["currencyCode"] == currency, got)
    for path in ("/model/allocation", "/allocation/compute"):
        for command, aggregate in COMMANDS.items():
            for idle in ("false", "true"):
                status, got = ask(url, path, window="2d", aggregate=",".join(aggregate), accumulate="true", includeIdle=idle,
                                  idle=idle, filterNamespaces="")
                what = f"kubectl cost {command} {'--idle ' if idle == 'true' else ''}at {path}"
                if status != 200 or got["code"] != 200 or len(got["data"]) != 1:
                    check(f"{what}: one set", False, got)
                    continue
                cells = got["data"][0]
                faults = {name: decode_faults(name, cell) for name, cell in cells.items() if decode_faults(name, cell)}
                check(f"{what}: every field decodes", cells and not faults, faults)
                parts = [name for name in cells if name != "__idle__" and name.count("/") != len(aggregate) - 1]
                check(f"{what}: names have the command's parts (it panics otherwise)", not parts, parts)
                check(f"{what}: its sum is the ledger's", nano(cells.values()) == spent[idle == "true"],
                      (nano(cells.values()), spent))
                check(f"{what}: a month's rate is known", all(cell["minutes"] == 2880 for cell in cells.values()))
    status, got = ask(url, "/model/allocation", window="2d", aggregate="cluster,namespace,pod", accumulate="true",
                      includeIdle="false", idle="false", filterNamespaces="search")
    check("kubectl cost pod -n search", status == 200 and got["data"][0] and
          all(name.split("/")[1] == "search" for name in got["data"][0]), list(got["data"][0])[:3])
    status, got = ask(url, "/model/allocation", window="2d", aggregate="cluster,namespace", accumulate="true",
                      filterNamespaces="no-such-namespace")
    check("nothing is one empty set (it reads the first)", status == 200 and got["data"] == [{}], got)


# ---- OpenCost's page

PAGE_WINDOWS = ["yesterday", "24h", "48h", "lastweek", "7d", "14d", "2026-11-20T00:00:00Z,2026-11-21T23:59:59Z"]
PAGE_AGGREGATES = ["cluster", "node", "namespace", "controllerKind", "controller", "daemonset", "deployment", "job", "service",
                   "statefulset", "pod", "container"]
DRILL = [("namespace", "namespace"), ("controllerKind", "controllerKind"), ("controller", "controllerName"), ("pod", "pod"),
         ("container", "container")]


def page(url, **parameters):
    status, got = ask(url, "/model/allocation/compute", **{"window": "2d", "includeIdle": "true", "step": "1d", **parameters})
    return got["data"] if status == 200 else got


def opencost_page(url, spent):
    for window in PAGE_WINDOWS:
        sets = page(url, window=window, aggregate="namespace", accumulate="false")
        check(f"the page's window {window}", isinstance(sets, list) and len(sets) > 0, sets)
    sets = page(url, window=PAGE_WINDOWS[-1], aggregate="namespace", accumulate="false")
    check("a custom window up to 23:59:59 is whole days", len(sets) == 2, len(sets))
    day, stamps = (page(url, window=window, aggregate="namespace", step="1d")
                   for window in ("2026-11-28T00:00:00Z,2026-11-29T00:00:00Z", "1795824000,1795910400"))
    check("a window of Unix seconds is that of its times", isinstance(day, list) and day[0] and day == stamps, stamps)
    hour, minutes = (page(url, window=window, aggregate="namespace", accumulate="true") for window in ("1h", "60m"))
    check("a window of 60m is the last whole hour", isinstance(hour, list) and hour == minutes, minutes)
    for aggregate in PAGE_AGGREGATES:
        for accumulate in ("true", "false"):
            sets = page(url, aggregate=aggregate, accumulate=accumulate)
            what = f"the page by {aggregate}, {'one set' if accumulate == 'true' else 'daily'}"
            faults = [decode_faults(name, cell) for each in sets for name, cell in each.items() if decode_faults(name, cell)]
            check(f"{what}: its fields", len(sets) == (1 if accumulate == "true" else 2) and not faults, faults)
            check(f"{what}: its total", nano(cell for each in sets for cell in each.values()) == spent[True],
                  nano(cell for each in sets for cell in each.values()))
    drill(url)


def drill(url):
    """A click on a row is a filter more and the next aggregate: what was clicked on is what is shown."""
    filters, shown = [], None
    for aggregate, field in DRILL:
        sets = page(url, aggregate=aggregate, accumulate="true", filter="+".join(filters))
        if shown is not None:
            check(f"down to {aggregate}: the row's costs, and no more", nano(sets[0].values()) == shown,
                  (nano(sets[0].values()), shown))
        rows = {name: cell for name, cell in sets[0].items() if not name.startswith("__")}
        name, cell = max(rows.items(), key=lambda row: row[1]["totalCost"])
        shown = nano([cell])
        filters.append(f'{field}:"{name.split(":", 1)[-1]}"')


def used(url, report):
    """usage / request of the decoder is what the report calls utilisation."""
    rows = {row["namespace"]: row for row in report["rows"]}
    cells = ask(url, "/allocation", window="2d", aggregate="namespace", accumulate="true")[1]["data"][0]
    for name, cell in cells.items():
        gpu = cell["gpuAllocation"]
        wanted = rows[name]["utilisation"]
        check(f"{name}: GPU usage over request is its utilisation",
              abs(gpu["gpuUsageAverage"] / gpu["gpuRequestAverage"] - wanted) < 1e-6,
              (gpu, wanted))


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        db = os.path.join(folder, "gpu.db")
        subprocess.run([binary, "demo", "--gpus", "24", "--days", "3", "--step", "5m", "--gap", "15m", "--quiet", "--end",
                        "2026-11-30T12:00:00Z", "--db", db], check=True, stdout=subprocess.DEVNULL)
        for currency in ("USD", "EUR"):
            config = os.path.join(folder, "config.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"currency: {currency}\nserve: {{db: {db}}}\n")
            with Service(binary, ["--config", config], folder, (units.parse_time(NOW), 1)).wait() as service:
                url = service.url
                report = ask(url, "/api/v1/report", window="2d", by="namespace")[1]
                costs = {row["namespace"]: to_nano(row["cost"]) for row in report["rows"]}
                spent = {True: to_nano(report["totals"]["cost"]), False: sum(costs.values()) - costs[None]}
                kubectl_cost(url, spent, currency)
                if currency == "USD":
                    opencost_page(url, spent)
                    used(url, report)
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
