"""A Kubernetes API as the documents describe it: list in pages, watch with bookmarks, 410 Gone.

One store with one counter of versions and a log of events. A list is a picture of one version
however many pages it takes; a page token lives until its version is compacted, and then answers 410
Expired. A watch begins after a version; where that is compacted it answers 410, as a status or as
an ERROR event. Discovery, metadata only (PartialObjectMetadata), bearer tokens, 403 by resource and
TLS are there too. Faults are struck at random or from a queue.

Source: kubernetes.io/docs/reference/using-api/api-concepts
"""

import base64
import copy
import http.server
import json
import random
import socket
import ssl
import threading
import time
import urllib.parse

# resource -> (group/version, kind, namespaced)
RESOURCES = {
    "nodes": ("v1", "Node", False),
    "pods": ("v1", "Pod", True),
    "namespaces": ("v1", "Namespace", False),
    "resourcequotas": ("v1", "ResourceQuota", True),
    "replicasets": ("apps/v1", "ReplicaSet", True),
    "deployments": ("apps/v1", "Deployment", True),
    "jobs": ("batch/v1", "Job", True),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass", False),
    "resourceclaims": ("resource.k8s.io/v1", "ResourceClaim", True),
    "resourceslices": ("resource.k8s.io/v1", "ResourceSlice", False),
    "rayclusters": ("ray.io/v1", "RayCluster", True),
    "rayjobs": ("ray.io/v1", "RayJob", True),
}
FAULTS = ("cut", "half", "500", "429", "badjson", "badutf8", "drop", "html", "duplicate", "slow", "error500")


def status(code, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code}


class Store:
    def __init__(self):
        self.lock = threading.Condition()
        self.version = 100
        self.compacted = 0      # versions up to this one are forgotten
        self.objects = {name: {} for name in RESOURCES}
        self.events = []        # (version, resource, type, object)

    def put(self, resource, item):
        """Create or change an object; its key is namespace/name."""
        with self.lock:
            item = copy.deepcopy(item)
            self.version += 1
            meta = item["metadata"]
            key = (meta.get("namespace", ""), meta["name"])
            meta["resourceVersion"] = str(self.version)
            word = "MODIFIED" if key in self.objects[resource] else "ADDED"
            self.objects[resource] = {**self.objects[resource], key: item}
            self.events.append((self.version, resource, word, item))
            self.lock.notify_all()

    def delete(self, resource, namespace, name):
        with self.lock:
            key = (namespace, name)
            if key not in self.objects[resource]:
                return
            self.version += 1
            objects = dict(self.objects[resource])
            item = copy.deepcopy(objects.pop(key))
            item["metadata"]["resourceVersion"] = str(self.version)
            self.objects[resource] = objects
            self.events.append((self.version, resource, "DELETED", item))
            self.lock.notify_all()

    def compact(self):
        with self.lock:
            self.compacted = self.version
            self.events = []

    def backup(self):
        """What a backup of etcd keeps."""
        with self.lock:
            return self.version, dict(self.objects)

    def restore(self, backup):
        """As after a restore: versions go on from the backup's, and what came after it has never been."""
        with self.lock:
            self.version, objects = backup
            self.objects = dict(objects)
            self.compacted = min(self.compacted, self.version)
            self.events = [event for event in self.events if event[0] <= self.version]
            self.lock.notify_all()


class MockKube:
    def __init__(self, tls=None, seed=0):
        self.store = Store()
        self.random = random.Random(seed)
        self.tokens = None              # None: anybody; else a set
        self.forbidden = set()          # resources that nobody may read
        self.absent = set()             # groups that are not served
        self.fault_rate = 0.0
        self.faults = FAULTS
        self.queue = []                 # [(resource or None, verb or None, fault)]: each strikes once
        self.requests = []              # (verb, resource, query, time)
        self.pages = {}                 # version -> objects of a list that goes on
        self.gone_as_event = False
        self.bookmark_s = 0.5
        self.bookmarked = {}            # resource -> version that watchers were told last
        self.hands_on = False           # bookmarks of versions that are lower than those before
        self.open_watches = set()
        self.stopping = False
        mock = self

        class Handler(_Handler):
            api = mock

        self.server = _Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.stopping = True
        with self.store.lock:
            self.store.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def strike(self, resource, verb):
        with self.store.lock:
            for i, (want, want_verb, fault) in enumerate(self.queue):
                if want in (None, resource) and want_verb in (None, verb):
                    del self.queue[i]
                    return fault
        if self.random.random() < self.fault_rate:
            return self.random.choice(self.faults)
        return None

    def cut_watches(self):
        """All watches end in the middle, as a load balancer ends them."""
        for sock in list(self.open_watches):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, verb, resource):
        return sum(1 for entry in self.requests if entry[0] == verb and entry[1] == resource)


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients that hang up are part of the play."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api = None

    def log_message(self, *args):
        pass

    def do_GET(self):  # noqa: N802
        try:
            self.answer()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError, OSError):
            self.close_connection = True

    def answer(self):
        api = self.api
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if api.tokens is not None and token not in api.tokens:
            return self.send(401, status(401, "Unauthorized", "Unauthorized"))
        path = [part for part in parts.path.split("/") if part]
        if path[:1] == ["api"] and len(path) >= 2:
            group, rest = path[1], path[2:]
        elif path[:1] == ["apis"] and len(path) >= 2:
            group, rest = "/".join(path[1:3]), path[3:]
            if len(path) == 2:
                return self.group(path[1])
        else:
            return self.send(404, status(404, "NotFound", "the server could not find the requested resource"))
        if group.split("/")[0] in api.absent:
            return self.no_page()
        if not rest:
            return self.discovery(group)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = rest[0]
        if resource not in RESOURCES or RESOURCES[resource][0] != group:
            return self.send(404, status(404, "NotFound", "the server could not find the requested resource"))
        verb = "get" if len(rest) > 1 else "watch" if query.get("watch") in ("1", "true") else "list"
        if verb == "list" and query.get("limit") == "1":
            verb = "peek"       # for its version
        api.requests.append((verb, resource, query, time.monotonic()))
        fault = "403" if resource in api.forbidden else api.strike(resource, verb)
        if fault == "403":
            return self.send(403, status(403, "Forbidden", f'{resource} is forbidden: User "gputally" cannot {verb} '
                                         f'resource "{resource}" in API group ""'))
        if self.plain_fault(fault):
            return None
        if verb == "get":
            return self.get(resource, namespace, rest[1])
        return self.watch(resource, query, fault) if verb == "watch" else self.list(resource, query, fault)

    def plain_fault(self, fault):
        if fault == "500":
            self.send(500, status(500, "InternalError", "etcdserver: leader changed"))
        elif fault == "429":
            self.send(429, status(429, "TooManyRequests", "Too many requests, please try again later."),
                      {"Retry-After": "1"})
        elif fault == "drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault == "html":
            data = b"<html><body>502 Bad Gateway</body></html>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        elif fault == "too-large":
            self.send(504, status(504, "Timeout", "Too large resource version: 9999, current: 100"))
        else:
            return False
        return True

    def send(self, code, value, headers=None):
        data = json.dumps(value, separators=(",", ":")).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def no_page(self):
        """What is of no group gets no Status."""
        data = b"404 page not found\n"
        self.send_response(404)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def group(self, name):
        versions = sorted({gv for gv, _, _ in RESOURCES.values() if gv.startswith(name + "/")})
        if not versions or name in self.api.absent:
            return self.no_page()
        listed = [{"groupVersion": gv, "version": gv.split("/")[1]} for gv in versions]
        return self.send(200, {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed,
                               "preferredVersion": listed[0]})

    def discovery(self, group):
        found = [{"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
                 for name, (gv, kind, namespaced) in RESOURCES.items() if gv == group]
        found += [{"name": item["name"] + "/status", "namespaced": item["namespaced"], "kind": item["kind"],
                   "verbs": ["get"]} for item in found]
        if not found:
            return self.send(404, status(404, "NotFound", "the server could not find the requested resource"))
        return self.send(200, {"kind": "APIResourceList", "groupVersion": group, "resources": found})

    def metadata_only(self):
        return "as=PartialObjectMetadata" in self.headers.get("Accept", "")

    def shape(self, resource, item):
        """An object as it stands alone: with its kind, or only its metadata."""
        gv, kind, _ = RESOURCES[resource]
        if self.metadata_only():
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
        return {"kind": kind, "apiVersion": gv, **item}

    def get(self, resource, namespace, name):
        item = self.api.store.objects[resource].get((namespace, name))
        if item is None:
            return self.send(404, status(404, "NotFound", f'{resource} "{name}" not found'))
        return self.send(200, self.shape(resource, item))

    def list(self, resource, query, fault):
        api, store = self.api, self.api.store
        with store.lock:
            version, start = store.version, None
            if query.get("continue"):
                try:
                    token = json.loads(base64.urlsafe_b64decode(query["continue"]))
                    version, start = token["rv"], tuple(token["start"])
                except (ValueError, KeyError, TypeError):
                    return self.send(400, status(400, "BadRequest", "continue key is not valid"))
                if version < store.compacted or (resource, version) not in api.pages:
                    told = status(410, "Expired", "The provided continue parameter is too old to display a consistent "
                                  "list result.")
                    told["metadata"]["continue"] = query["continue"]    # of a list that is not of one moment
                    return self.send(410, told)
                objects = api.pages[resource, version]
            else:
                objects = store.objects[resource]
        keys = sorted(key for key in objects if start is None or key >= start)
        limit = int(query.get("limit") or 0) or len(keys)
        metadata = {"resourceVersion": str(version)}
        if len(keys) > limit:
            api.pages[resource, version] = objects
            token = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": list(keys[limit])})
            metadata["continue"] = base64.urlsafe_b64encode(token.encode()).decode()
            metadata["remainingItemCount"] = len(keys) - limit
        gv, kind, _ = RESOURCES[resource]
        items = [objects[key] for key in keys[:limit]]
        if self.metadata_only():
            gv, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
            items = [self.shape(resource, item) for item in items] or None
        answer = {"kind": kind + "List", "apiVersion": gv, "metadata": metadata, "items": items}
        data = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        half = len(data) // 2
        self.chunk(data[:half])
        if fault in ("cut", "half"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        self.chunk(data[half:])
        return self.wfile.write(b"0\r\n\r\n")

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, word, item):
        return json.dumps({"type": word, "object": item}, separators=(",", ":")).encode() + b"\n"

    def begin_watch(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def watch(self, resource, query, fault):
        api, store = self.api, self.api.store
        version = int(query.get("resourceVersion") or store.version)
        if version < store.compacted:
            gone = status(410, "Expired", f"too old resource version: {version} ({store.compacted})")
            if not api.gone_as_event:
                return self.send(410, gone)
            self.begin_watch()
            self.chunk(self.event("ERROR", gone))
            return self.wfile.write(b"0\r\n\r\n")
        self.begin_watch()
        api.open_watches.add(self.connection)
        try:
            self.events(resource, query, fault, version)
        finally:
            api.open_watches.discard(self.connection)

    def events(self, resource, query, fault, version):
        api, store = self.api, self.api.store
        until = time.monotonic() + float(query.get("timeoutSeconds") or 60)
        bookmark = time.monotonic()
        while time.monotonic() < until and not api.stopping:
            with store.lock:
                if store.version == version:
                    store.lock.wait(0.05)
                news = [event for event in store.events if event[0] > version and event[1] == resource]
                latest, gone = store.version, version < store.compacted
            if latest < version and not api.hands_on:    # of the future: a real server says nothing until it comes, no bookmark either
                time.sleep(0.05)
                continue
            if gone:
                self.chunk(self.event("ERROR", status(410, "Expired", "The resourceVersion for the provided watch is "
                                                      "too old.")))
                break
            for _, _, word, item in news:
                data = self.event(word, self.shape(resource, item))
                if fault == "half":
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data[:len(data) // 2])
                if fault in ("half", "cut"):
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if fault == "badjson":
                    data, fault = data.replace(b'"metadata"', b'metadata', 1), None
                elif fault == "badutf8":
                    data, fault = data.replace(b'"name":"', b'"name":"\xff\xfe', 1), None
                elif fault == "duplicate":
                    data = data + data
                elif fault == "error500":
                    self.chunk(self.event("ERROR", status(500, "InternalError", "etcd event received with PrevKv=nil")))
                    self.wfile.write(b"0\r\n\r\n")
                    return
                if fault == "slow":
                    for at in range(0, len(data), 97):
                        self.chunk(data[at:at + 97])
                        time.sleep(0.002)
                else:
                    self.chunk(data)
            version = latest
            if query.get("allowWatchBookmarks") in ("1", "true") and time.monotonic() - bookmark > api.bookmark_s:
                bookmark = time.monotonic()
                gv, kind, _ = RESOURCES[resource]
                self.chunk(self.event("BOOKMARK", {"kind": kind, "apiVersion": gv,
                                                   "metadata": {"resourceVersion": str(version),
                                                                "creationTimestamp": None}}))
                api.bookmarked[resource] = version
        self.wfile.write(b"0\r\n\r\n")
