#!/usr/bin/env python3
"""What a server that misbehaves gets: data in full where trying again helps, else one clear line.

    tests/peers/test_hostile_server.py BINARY     (source_dump lies beside what BINARY points to)
"""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import PATIENCE_S, check, verdict, wait  # noqa: E402
import hostile  # noqa: E402
import servers  # noqa: E402

LAST = hostile.FIRST + (hostile.COUNT - 1) * hostile.STEP
EXPECTED = {f"GPU-{n}": (hostile.COUNT, hostile.COUNT * 10.0 * (n + 1), hostile.FIRST, LAST)
            for n in range(len(hostile.SERIES))}
SECRETS = ("secret-word", "good-token", "bad-token")


class Client:
    def __init__(self, binary, url, state, work):
        self.program = os.path.join(os.path.dirname(os.path.realpath(binary)), "source_dump")
        self.url, self.state, self.work = url, state, work

    def start(self, scenario, *options, url=None):
        command = [self.program, "--retries", "3", "--backoff", "20", *options, "prometheus",
                   url or f"{self.url}/{scenario}", str(hostile.FIRST), str(LAST), hostile.METRIC]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def dump(self, scenario, *options, url=None):
        """(series by UUID, standard error, exit status)."""
        process = self.start(scenario, *options, url=url)
        out, err = process.communicate(timeout=PATIENCE_S)
        series = {}
        for line in out.splitlines():
            text, count, total, first, last = line.rsplit("\t", 4)
            series[re.search(r'UUID="(.*?)"', text)[1]] = (int(count), float(total), int(first), int(last))
        return series, err, process.returncode

    def in_full(self, name, scenario, *options, requests=None):
        series, err, status = self.dump(scenario, *options)
        seen = self.state["seen"].get(scenario, 0)
        check(name, status == 0 and series == EXPECTED and (requests is None or seen == requests),
              f"status {status}, {seen} requests for data, {series}\n{err}")
        return err

    def refused(self, name, scenario, *words, options=(), url=None):
        series, err, status = self.dump(scenario, *options, url=url)
        lines = err.splitlines()
        check(name, status == 1 and not series and len(lines) == 1 and all(word in err for word in words)
              and not any(secret in err for secret in SECRETS), f"status {status}, wanted {words} in one line:\n{err}")

    def file(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def remote_read(client, state):
    client.in_full("a good server", "fine", "--survey", requests=5 + 1)
    client.in_full("a cut answer is asked for again", "cut_twice", requests=3)
    client.refused("an answer that is always cut", "cut_always", "was cut", "tries")
    client.refused("a frame that ends early", "short_frame", hostile.METRIC)
    client.in_full("429: it comes back", "busy", requests=2)
    waited = state["came_back"] - state["told_to_wait"]
    check("429: not before Retry-After is over", 1.0 <= waited, f"{waited:.2f} s")
    client.in_full("500 twice, then fine", "ill_twice", requests=3)
    client.refused("500 for ever", "ill", "status 500", "disk is gone", "4 tries")
    client.in_full("a wrong checksum is asked for again", "wrong_crc_once", requests=2)
    client.refused("a wrong checksum for ever", "wrong_crc", "tries")
    client.refused("an error written behind the stream", "appended_error", hostile.METRIC)
    client.refused("a frame of a terabyte", "huge_frame", hostile.METRIC)
    client.refused("3 GiB declared in 100 bytes", "bomb", hostile.METRIC)
    client.refused("an answer that stands still", "stuck", "in time", options=("--idle", "1000"))
    client.refused("an answer that drips", "drip", "in time", options=("--idle", "1000"))


def no_prometheus(client):
    survey = ("--survey",)
    client.refused("a web page", "web_page", "web page", "address", options=survey)
    client.refused("an empty answer", "nothing", "does not answer as a Prometheus server", options=survey)
    client.refused("JSON of something else", "other_json", "does not answer as a Prometheus server", options=survey)
    client.refused("no JSON", "no_json", "does not answer as a Prometheus server", options=survey)
    client.refused("a redirect", "elsewhere", "sends elsewhere", "other.example", options=survey)
    client.refused("404 everywhere", "not_found", "is it a Prometheus server", options=survey)
    client.refused("a server without GPU metrics", "no_gpus", "none of them of GPUs", "dcgm-exporter", options=survey)
    client.refused("a server without metrics", "empty_server", "no metrics at all", options=survey)
    nowhere = f"http://127.0.0.1:{servers.free_port()}"
    client.refused("nobody listens", "", "cannot reach", nowhere, options=survey, url=nowhere)
    client.refused("no such host", "", "cannot reach", options=survey, url="http://no-such-host.invalid:9090")
    client.refused("no URL", "", "URL", options=survey, url="ftp://x/y")
    with socket.socket() as banner:
        banner.bind(("127.0.0.1", 0))
        banner.listen(8)
        threading.Thread(target=speak_ssh, args=(banner,), daemon=True).start()
        client.refused("a server of another protocol", "", options=survey,
                       url=f"http://127.0.0.1:{banner.getsockname()[1]}")


def speak_ssh(listener):
    try:
        while True:
            connection, _ = listener.accept()
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            connection.close()
    except OSError:
        pass


def logins(client):
    good, bad = client.file("good", "good-token\n"), client.file("bad", "bad-token\n")
    empty, word = client.file("empty", "\n"), client.file("word", "secret-word\n")
    survey = ("--survey",)
    client.refused("no login", "login", "401", "--bearer-token-file", options=survey)
    client.refused("a wrong token", "login", "401", "still good", options=(*survey, "--token", bad))
    client.in_full("the right token", "login", "--survey", "--token", good)
    client.refused("an empty token file", "login", "is empty", options=(*survey, "--token", empty))
    client.refused("no token file", "login", "No such file", options=(*survey, "--token", "/nonexistent/token"))
    client.in_full("a password", "password", "--survey", "--user", "ann", "--password-file", word)
    client.refused("a wrong password in the URL", "password", "401", options=survey,
                   url=client.url.replace("://", "://ann:bad-token@") + "/password")
    series, err, status = client.dump("password", "--survey",
                                      url=client.url.replace("://", "://ann:secret-word@") + "/password")
    check("a password in the URL", status == 0 and series == EXPECTED and "secret-word" not in err, err)
    client.refused("a tenant is missing", "tenant", "X-Scope-OrgID", options=survey)
    client.in_full("a tenant by header", "tenant", "--survey", "--header", "X-Scope-OrgID: team-a")
    client.refused("403", "forbidden", "403", "tenant may not read", options=survey)
    client.refused("a header that is none", "login", "header", options=("--header", "just words"))


def range_selectors(client):
    client.in_full("too many samples: asked for in halves", "limited", "--survey")
    client.refused("too many samples whatever the length", "tiny_limit", "too many samples")
    client.in_full("VictoriaMetrics's NaN is a stale marker", "victoria")
    series, err, _ = client.dump("nan")
    check("another server's NaN is a value", all(value[0] == hostile.COUNT + 1 for value in series.values()) and series,
          f"{series}\n{err}")
    err = client.in_full("warnings: the data is used", "warns")
    check("warnings: and noted as partial", "note 0 " in err and "store 10.0.0.7 did not answer" in err, err)
    client.in_full("JSON that is cut is asked for again", "json_cut")
    client.refused("an error in an answer with status 200", "error_in_200", "no such thing")


def openssl(work, *arguments):
    subprocess.run(["openssl", *arguments], cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificate(work, name, subject, *more):
    """NAME.pem and NAME.key, signed by the authority ca."""
    openssl(work, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", subject)
    openssl(work, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "2", *more)


def certificates(binary, work):
    """A server whose authority nobody knows, and that wants to see the client's certificate."""
    openssl(work, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=test authority")
    with open(os.path.join(work, "names"), "w", encoding="utf-8") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    make_certificate(work, "server", "/CN=server", "-extfile", "names")
    make_certificate(work, "client", "/CN=client")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.path.join(work, "server.pem"), os.path.join(work, "server.key"))
    tls.load_verify_locations(os.path.join(work, "ca.pem"))
    tls.verify_mode = ssl.CERT_REQUIRED
    ca, cert, key = (os.path.join(work, name) for name in ("ca.pem", "client.pem", "client.key"))
    with hostile.running(tls) as (url, state):
        client = Client(binary, url, state, work)
        client.refused("an unknown authority", "fine", "not trusted", "--ca-file", options=("--survey",))
        client.refused("no client certificate", "fine", url, options=("--survey", "--ca-file", ca))
        client.in_full("both certificates", "fine", "--survey", "--ca-file", ca, "--client-cert", cert,
                       "--client-key", key)
        client.refused("a key that is none", "fine", "certificate or key", options=(
            "--survey", "--ca-file", ca, "--client-cert", cert, "--client-key", ca))
        client.refused("http asked of https", "fine", options=("--survey",),
                       url=url.replace("https", "http") + "/fine")


def proxies(client):
    dead = f"http://127.0.0.1:{servers.free_port()}"
    client.refused("a proxy that is not there", "fine", "cannot reach", options=("--survey", "--proxy", dead))
    # hostile.py sees the whole URL as the path where it is asked as a proxy
    client.in_full("a proxy is asked", "proxied", "--survey", "--proxy", client.url)
    check("and nobody else", client.state.get("as_proxy", 0) > 5, str(client.state.get("as_proxy")))


def stopping(client):
    before = client.state["seen"]["stuck"]
    process = client.start("stuck", "--idle", "3600000")
    wait(lambda: client.state["seen"]["stuck"] > before)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    check("a signal ends it", process.returncode == 1 and "stopped" in err, err)


def main(binary):
    with tempfile.TemporaryDirectory() as work, hostile.running() as (url, state):
        client = Client(binary, url, state, work)
        remote_read(client, state)
        no_prometheus(client)
        logins(client)
        range_selectors(client)
        certificates(binary, work)
        proxies(client)
        stopping(client)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.exit(verdict())
