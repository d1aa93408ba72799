#!/usr/bin/env python3
"""A build without the page (GPUTALLY_WEB=OFF): without.py BINARY. What wants the page says what is missing
and what to do; the API answers as ever."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from checks import check, verdict  # noqa: E402


def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def main():
    binary = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gputally-without-") as folder:
        subprocess.run([binary, "demo", "--gpus", "8", "--days", "1", "--db", "d.db", "--quiet"], cwd=folder,
                       check=True, capture_output=True)
        done = subprocess.run([binary, "report", "--db", "d.db", "--output", "html"], cwd=folder, capture_output=True,
                              text=True)
        check("an HTML report is refused", done.returncode == 1 and not done.stdout, (done.returncode, done.stdout[:99]))
        check("with what is missing and what to do", "without its page" in done.stderr and "json" in done.stderr and
              "GPUTALLY_WEB=ON" in done.stderr, done.stderr)
        serve = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--db", "d.db"], cwd=folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            url = re.search(r"serves at (\S+)", serve.stdout.readline()).group(1)
            said = serve.stdout.readline()
            check("serve says that there is no dashboard, and where the API is", "no dashboard" in said and
                  f"{url}api/v1/openapi.json" in said, said)
            status, body = ask(url)
            check("its address says so too", status == 404 and "without its page" in json.loads(body)["error"]["message"] and
                  "/api/v1" in json.loads(body)["error"]["hint"], (status, body))
            check("the API answers", ask(url + "api/v1/report")[0] == 200)
        finally:
            serve.send_signal(signal.SIGTERM)
            serve.wait(20)
    return verdict()


if __name__ == "__main__":
    sys.exit(main())
