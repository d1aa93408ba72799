#!/usr/bin/env python3
"""Sums of loads from servers: test_sums.py BINARY

A server's external label `cluster` comes with remote read and not with sums: they meet all the same.

A server that answers no range queries. What hosts and containers do is then unchecked, which is said once and costs nothing else: the ledger is the
same, byte for byte, and so are the hours of workloads and namespaces."""

import http.server
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import check, verdict  # noqa: E402
import fleets  # noqa: E402
import servers  # noqa: E402


class Front(http.server.BaseHTTPRequestHandler):
    """Hands everything on but range queries, which it counts and refuses."""
    protocol_version = "HTTP/1.1"
    behind, refused = "", 0

    def log_message(self, *args):
        pass

    def answer(self, status, body, kind, encoding=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        if "/query_range" in self.path:
            Front.refused += 1
            self.answer(404, b"no such page", "text/plain")
            return
        wanted = {name: value for name, value in self.headers.items()
                  if name.lower() not in ("host", "content-length", "connection")}
        request = urllib.request.Request(Front.behind + self.path, data=body, headers=wanted, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as got:
                self.answer(got.status, got.read(), got.headers.get("Content-Type", ""),
                            got.headers.get("Content-Encoding"))
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.read(), error.headers.get("Content-Type", ""))

    do_GET = do_POST = pass_on


def run(binary, *command):
    done = subprocess.run([binary, *command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-600:]}")
    return done.stdout


def main():
    binary = os.path.abspath(sys.argv[1])
    folder = fleets.fleet("cpubound", 1, 0.25, 60, with_reference=False)
    facts = fleets.ledger_arguments(folder)
    with tempfile.TemporaryDirectory() as work:
        tsdb = os.path.join(work, "tsdb")
        servers.load_tsdb(os.path.join(folder, "metrics.om"), tsdb)
        compare(binary, tsdb, work, facts)
    return verdict()


def compare(binary, tsdb, work, facts):
    with servers.prometheus(tsdb, work, "global: {external_labels: {cluster: prod}}") as url:
        lines = run(binary, "export", "hours", "machine", "--prometheus", url, *facts).splitlines()[1:]
        check("external labels are of sums too", lines and all(
            line.split(",")[1] == "prod" and line.split(",")[4] != "0" for line in lines), str(lines[:3]))

    with servers.prometheus(tsdb, work) as url, servers.answering(Front) as front:
        Front.behind, refusing = url, "http://" + front

        def export(server, *what):
            return sorted(run(binary, "export", *what, "--prometheus", server, *facts, "--slice", "2h").splitlines())

        check("the ledger is the same", export(url, "ledger") == export(refusing, "ledger"))
        for kind in ("workload", "namespace"):
            check(f"{kind} hours are the same", export(url, "hours", kind) == export(refusing, "hours", kind))
        seen = [line.split(",")[4] for line in export(url, "hours", "machine") if not line.startswith("hour")]
        none = [line.split(",")[4] for line in export(refusing, "hours", "machine") if not line.startswith("hour")]
        check("processors are seen where sums are answered", "3600000" in seen, str(seen))
        check("and unchecked where they are not", set(none) == {"0"}, str(none))
        Front.refused = 0
        text = run(binary, "report", "--prometheus", refusing, *facts, "--slice", "1h", "--output", "json")
        check("it is said once", text.count("unchecked: the server answers no range queries") == 1,
              str(text.count("unchecked")))
        check("and asked once", 0 < Front.refused <= 6, str(Front.refused))


if __name__ == "__main__":
    sys.exit(main())
