"""A real Kubernetes API for tests: etcd and kube-apiserver on 127.0.0.1, by their own certificates; a client that
changes things as an administrator; and a wire between it and others that can be cut.

No kubelet, scheduler or controller runs: what a test wants to be so, it says itself."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import servers

ADMIN = "admin-of-the-test"
READY_S = 120


def missing():
    """What is not installed, in words; empty: nothing."""
    return [name for name in ("etcd", "kube-apiserver") if not shutil.which(name)]


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text[:400]}")
        self.status = status


class Client:
    """Requests with a token, each on a connection of its own."""

    def __init__(self, port, ca_file, token):
        self.port, self.token = port, token
        self.context = ssl.create_default_context(cafile=ca_file)

    def ask(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=30)
        try:
            text = body if isinstance(body, str) or body is None else json.dumps(body)
            connection.request(method, path, text, {"Authorization": "Bearer " + self.token, "Content-Type": kind})
            answer = connection.getresponse()
            told = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, told)
        return json.loads(told) if told.startswith("{") else told

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body):
        return self.ask("POST", path, body)

    def patch(self, path, body):
        return self.ask("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path, grace=None):
        return self.ask("DELETE", path, None if grace is None else {"gracePeriodSeconds": grace})

    def apply(self, manifest, path):
        """A manifest as it is written (YAML), or changed where it is there."""
        return self.ask("POST", path, manifest, "application/yaml")


class KubeServer:
    """Both processes, in a folder. `kill` and `start` are of the API server alone: etcd keeps what it had."""

    def __init__(self, folder):
        self.folder = folder
        self.port, self.etcd_port, peer = (servers.free_port() for _ in range(3))
        self.etcd_url = f"http://127.0.0.1:{self.etcd_port}"
        self.api = None
        subprocess.run(["openssl", "genrsa", "-out", self.path("sa.key"), "2048"], check=True, capture_output=True)
        with open(self.path("tokens.csv"), "w", encoding="ascii") as file:
            file.write(f'{ADMIN},admin,admin,"system:masters"\n')
        self.etcd = self.run("etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", self.etcd_url,
                             "--advertise-client-urls", self.etcd_url, "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                             "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster",
                             f"default=http://127.0.0.1:{peer}", "--unsafe-no-fsync")
        self.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, name, *arguments):
        with open(self.path(name + ".log"), "ab") as log:
            return subprocess.Popen([name, *arguments], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    cwd=self.folder)

    def start(self):
        self.api = self.run(
            "kube-apiserver", f"--etcd-servers={self.etcd_url}", f"--secure-port={self.port}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.path('certs')}", f"--token-auth-file={self.path('tokens.csv')}",
            "--authorization-mode=RBAC", f"--service-account-key-file={self.path('sa.key')}",
            f"--service-account-signing-key-file={self.path('sa.key')}",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--profiling=false")
        until = time.monotonic() + READY_S
        while time.monotonic() < until and self.api.poll() is None:
            with contextlib.suppress(OSError, Refused, ssl.SSLError, http.client.HTTPException):
                if self.client().get("/readyz") == "ok":
                    return
            time.sleep(0.2)
        with open(self.path("kube-apiserver.log"), encoding="utf-8", errors="replace") as log:
            raise RuntimeError("kube-apiserver does not come up:\n" + log.read()[-3000:])

    def kill(self):
        self.api.kill()
        self.api.wait()

    def ca_file(self):
        """It signs for itself where it has no certificate."""
        return self.path("certs/apiserver.crt")

    def client(self, token=ADMIN, port=None):
        return Client(port or self.port, self.ca_file(), token)

    def compact(self):
        """etcd forgets all that was."""
        environment = {**os.environ, "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": self.etcd_url}
        told = subprocess.run(["etcdctl", "endpoint", "status", "--write-out=json"], env=environment, check=True,
                              capture_output=True)
        revision = json.loads(told.stdout)[0]["Status"]["header"]["revision"]
        subprocess.run(["etcdctl", "compact", str(revision)], env=environment, check=True, capture_output=True)

    def token_of(self, namespace, account):
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return self.client().post(path, asked)["status"]["token"]

    def close(self):
        for process in (self.api, self.etcd):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Wire:
    """A port that leads to another, until it is cut."""

    def __init__(self, port):
        self.to, self.whole, self.ends = port, True, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                end, _ = self.listener.accept()
            except OSError:
                return
            try:
                other = socket.create_connection(("127.0.0.1", self.to)) if self.whole else None
            except OSError:
                other = None
            if not other:
                end.close()
                continue
            self.ends |= {end, other}
            for pair in ((end, other), (other, end)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while block := source.recv(1 << 16):
                sink.sendall(block)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.ends -= {source, sink}

    def cut(self):
        self.whole = False
        for end in list(self.ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.whole = True

    def close(self):
        self.cut()
        self.listener.close()
