#!/usr/bin/env python3
"""The Helm chart: what it renders, with its defaults and with every option, is whole and safe, and the service runs by
its configuration.

    tests/peers/test_deploy_chart.py BINARY

Where `helm` is not installed only what can be told without it is checked; where kube-apiserver and etcd are not, no API
server has said that it takes the objects."""

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from checks import check, verdict  # noqa: E402
import kube_server  # noqa: E402
import servers  # noqa: E402

CHART = os.path.join(ROOT, "deploy", "helm", "gputally")
HASH = "sha256:" + hashlib.sha256(b"gpt_test").hexdigest()
EVERYTHING = {
    "config": {"serve": {"hosts": ["gpu.example.com"],
                         "tls": {"cert": "/run/secrets/gputally-tls/tls.crt", "key": "/run/secrets/gputally-tls/tls.key"},
                         "limits": {"body_bytes_total": 268435456}},
               "access": {"tokens": [{"name": "grafana", "hash": HASH}]},
               "owners": "owners.yaml",
               "sources": [{"cluster": "prod", "url": "http://prometheus.monitoring:9090"}]},
    "files": {"owners.yaml": "rules:\n- {namespace: 'kube-*', team: platform}\n"},
    "secrets": ["gputally-tls", "prometheus.token"],
    "persistence": {"storageClass": "fast"},
    "service": {"annotations": {"of": "service"}},
    "rbac": {"extraRules": [{"apiGroups": ["lab.example"], "resources": ["experiments"], "verbs": ["get"]}]},
    "serviceAccount": {"annotations": {"of": "account"}},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prom"},
                       "endpoint": {"authorization": {"credentials": {"name": "gputally-metrics", "key": "token"}}}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prom"}},
    "podAnnotations": {"of": "pod"}, "nodeSelector": {"pool": "cpu"}, "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}}, "imagePullSecrets": [{"name": "registry"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}], "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
}
OFF = {"rbac": {"create": False}, "serviceAccount": {"create": False, "automount": False},
       "persistence": {"existingClaim": "kept"}, "config": {"access": None, "serve": None}}


def read(*path):
    with open(os.path.join(CHART, *path), encoding="utf-8") as file:
        return file.read()


def values_are_declared():
    """A misspelt value renders as nothing, without a word."""
    known = yaml.safe_load(read("values.yaml"))
    used = set()
    for name in os.listdir(os.path.join(CHART, "templates")):
        used |= set(re.findall(r"\.Values\.([A-Za-z.]+)", read("templates", name)))
    for path in sorted(used):
        at = known
        for part in path.split(".") if not path.startswith("config.") else ["config"]:
            at = at.get(part, KeyError) if isinstance(at, dict) else KeyError
        check(f"values.yaml has {path}", at is not KeyError)
    leaves = {key if not isinstance(value, dict) or not value else f"{key}.{leaf}" for key, value in known.items()
              if key != "config" for leaf in (value if isinstance(value, dict) and value else [""])}
    unused = [leaf for leaf in leaves if not any(leaf == path or leaf.startswith(path + ".") for path in used)]
    check("every value is used", not unused, unused)


def render(release, namespace, values, *more):
    """Objects by (kind, name)."""
    command = ["helm", "template", release, CHART, "--namespace", namespace, "--kube-version", "1.34.0", "-f", "-", *more]
    done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(done.stdout) if item}


def only(objects, kind):
    found = [item for (of, _), item in objects.items() if of == kind]
    return found[0] if len(found) == 1 else None


def pod_is_restricted(name, pod):
    """The rules of Pod Security's level "restricted", and a file system that cannot be written."""
    container = pod["containers"][0]
    own, whole = container["securityContext"], pod["securityContext"]
    check(f"{name}: the pod is restricted", whole["runAsNonRoot"] is True and whole["runAsUser"] > 0 and
          whole["seccompProfile"]["type"] == "RuntimeDefault" and own["capabilities"] == {"drop": ["ALL"]} and
          own["allowPrivilegeEscalation"] is False and own["readOnlyRootFilesystem"] is True and
          not any("hostPath" in volume for volume in pod["volumes"]), pod)
    check(f"{name}: probes ask what needs no token", all(
        container[probe]["httpGet"]["path"] == "/healthz" for probe in
        ("startupProbe", "livenessProbe", "readinessProbe")))


def objects_fit(name, namespace, objects):
    stateful, service, config = (only(objects, kind) for kind in ("StatefulSet", "Service", "ConfigMap"))
    pod = stateful["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    check(f"{name}: the service and the set select the pod", service["spec"]["selector"].items() <= labels and
          stateful["spec"]["selector"]["matchLabels"].items() <= labels)
    pod_is_restricted(name, pod["spec"])
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in stateful["spec"].get("volumeClaimTemplates", [])}
    check(f"{name}: every volume is mounted and the other way round", {mount["name"] for mount in mounts} == volumes,
          (mounts, volumes))
    check(f"{name}: the configuration is mounted", {"name": "config", "configMap": {"name": config["metadata"]["name"]}}
          in pod["spec"]["volumes"] and "config.yaml" in config["data"])
    outside = [key for key, item in objects.items() if not key[0].startswith("Cluster") and
               item["metadata"].get("namespace") != namespace]
    check(f"{name}: all of it is in the release's namespace", not outside, outside)
    check(f"{name}: nothing secret is rendered", not any(kind == "Secret" for kind, _ in objects))


def role_is_bound(objects, namespace):
    account, role, binding = (only(objects, kind) for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding"))
    check("the role is bound to the pod's account, and to nobody else", binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": namespace}] and
        binding["roleRef"]["name"] == role["metadata"]["name"] and
        only(objects, "StatefulSet")["spec"]["template"]["spec"]["serviceAccountName"] == account["metadata"]["name"])
    check("the role is the documented one and only reads", role["rules"][:len(yaml.safe_load(read("rules.yaml")))] ==
          yaml.safe_load(read("rules.yaml")) and
          {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}, role["rules"])


def options():
    """Each option by itself changes what is rendered and breaks nothing."""
    plain = render("gputally", "gpu", {})
    for key, value in itertools.chain(EVERYTHING.items(), OFF.items()):
        try:
            objects = render("gputally", "gpu", {key: value})
        except RuntimeError as error:
            check(f"option {key}", False, error)
            continue
        check(f"option {key} does something", objects != plain)
        if "secrets" not in key and not key.startswith("extraVolume"):
            objects_fit(f"option {key}", "gpu", objects)


def service_runs(binary, folder):
    """By the rendered configuration and arguments, on loopback."""
    values = {"config": {"access": {"tokens": [{"name": "t", "hash": HASH}]}}}
    objects = render("gputally", "gpu", values)
    config, db = os.path.join(folder, "config.yaml"), os.path.join(folder, "gpu.db")
    with open(config, "w", encoding="utf-8") as file:
        file.write(only(objects, "ConfigMap")["data"]["config.yaml"].replace("prometheus-server.monitoring.svc",
                                                                            "127.0.0.1:1"))
    arguments = only(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["args"]
    check("it listens to both families", "--listen" in arguments and arguments[arguments.index("--listen") + 1] == ":9475")
    port = servers.free_port()
    ours = {"/etc/gputally/config.yaml": config, "/var/lib/gputally/gpu.db": db, ":9475": f"127.0.0.1:{port}"}
    command = [binary, *(ours.get(argument, argument) for argument in arguments)]
    with servers.started(command, f"http://127.0.0.1:{port}/healthz", os.path.join(folder, "log")):
        for host, wanted in (("gputally", 200), ("gputally.gpu", 200), ("gputally.gpu.svc:9475", 200),
                             ("gputally.gpu.svc.cluster.local", 200), ("10.1.2.3:9475", 200), ("elsewhere", 421)):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics",
                                             headers={"Host": host, "Authorization": "Bearer gpt_test"})
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    status = answer.status
            except urllib.error.HTTPError as error:
                status = error.code
            check(f"asked as {host}: {wanted}", status == wanted, status)


def configuration_is_sound(binary, folder, name, data):
    for file_name, text in data.items():
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
            file.write(text.replace("/run/secrets/gputally-tls", folder))
    for file_name in ("tls.crt", "tls.key"):
        shutil.copyfile(os.path.join(folder, "made." + file_name[4:]), os.path.join(folder, file_name))
    done = subprocess.run([binary, "config", "check", os.path.join(folder, "config.yaml")], capture_output=True, text=True,
                          check=False)
    check(f"{name}: the configuration is sound", done.returncode == 0, done.stdout + done.stderr)


PATHS = {"ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts", "ConfigMap": "/api/v1/namespaces/{}/configmaps",
         "Service": "/api/v1/namespaces/{}/services", "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
         "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
         "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}


def api_takes_it(folder):
    """Every object, without a field that it does not know; and its pod where only restricted ones may be."""
    missing = kube_server.missing()
    if missing:
        print(f"skipped: no API server takes the chart: {', '.join(missing)} is not installed")
        return
    server = kube_server.KubeServer(folder)
    try:
        admin = server.client()
        for name, release, values in (("defaults", "gputally", {}), ("everything", "prod", EVERYTHING), ("all off", "x", OFF)):
            namespace = name.replace(" ", "-")
            admin.post("/api/v1/namespaces", {"metadata": {"name": namespace, "labels": {
                "pod-security.kubernetes.io/enforce": "restricted"}}})
            objects = render(release, namespace, values)
            refused = []
            for (kind, _), item in objects.items():
                if kind in PATHS:
                    try:
                        admin.post(PATHS[kind].format(namespace) + "?fieldValidation=Strict", item)
                    except kube_server.Refused as error:
                        refused.append((kind, str(error)))
            check(f"{name}: an API server takes it", not refused, refused)
            pod = only(objects, "StatefulSet")["spec"]["template"]
            pod["metadata"]["name"] = "gputally-0"
            volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
            if "data" not in volumes:   # of the claim that the set makes
                pod["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "data-gputally-0"}})
            try:
                made = admin.post(f"/api/v1/namespaces/{namespace}/pods?fieldValidation=Strict", pod)
                check(f"{name}: a namespace of restricted pods takes the pod", made["kind"] == "Pod")
            except kube_server.Refused as error:
                check(f"{name}: a namespace of restricted pods takes the pod", False, error)
        try:
            admin.post("/api/v1/namespaces/defaults/pods", {"metadata": {"name": "root"}, "spec": {
                "containers": [{"name": "a", "image": "b"}]}})
            check("… and not every pod", False)
        except kube_server.Refused as error:
            check("… and not every pod", error.status == 403 and "restricted" in str(error), error)
    finally:
        server.close()


def with_helm(binary, folder):
    done = subprocess.run(["helm", "lint", CHART], capture_output=True, text=True, check=False)
    check("helm lint", done.returncode == 0 and "[WARNING]" not in done.stdout, done.stdout + done.stderr)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/made.key", "-out",
                    f"{folder}/made.crt", "-subj", "/CN=gputally", "-days", "2"], check=True, capture_output=True)
    for name, release, values in (("defaults", "gputally", {}), ("everything", "prod", EVERYTHING),
                                  ("all off", "gputally", OFF)):
        objects = render(release, "gpu", values)
        objects_fit(name, "gpu", objects)
        configuration_is_sound(binary, folder, name, only(objects, "ConfigMap")["data"])
        if name != "all off":
            role_is_bound(objects, "gpu")
    check("all off: no account, no role", not any(only(objects, kind) for kind in
                                                  ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")))
    pod = only(objects, "StatefulSet")["spec"]["template"]["spec"]
    check("… and no token", pod["automountServiceAccountToken"] is False and pod["serviceAccountName"] == "default")
    checksum = [only(render("gputally", "gpu", {"config": {"settings": {"step": step}}}), "StatefulSet")["spec"]["template"]
                ["metadata"]["annotations"]["checksum/config"] for step in ("30s", "60s", "60s")]
    check("another configuration makes another pod", checksum[0] != checksum[1] == checksum[2])
    here, there = (set(render("gputally", namespace, {})) for namespace in ("one", "two"))
    check("two releases of one name share nothing of the cluster's",
          not [key for key in here & there if key[0].startswith("Cluster")])
    rules = only(render("gputally", "gpu", {"prometheusRule": {"enabled": True}}), "PrometheusRule")
    with open(os.path.join(ROOT, "deploy", "prometheus", "gputally.rules.yaml"), encoding="utf-8") as file:
        check("the chart's rules are the shipped ones", rules["spec"] == yaml.safe_load(file))
    options()
    service_runs(binary, folder)
    api_takes_it(folder)


def main(binary):
    values_are_declared()
    if shutil.which("helm"):
        with tempfile.TemporaryDirectory() as folder:
            with_helm(binary, folder)
    else:
        print("skipped: helm is not installed, so the chart is not rendered")
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
