// A small fleet whose names try everything: markup, formulas, right-to-left text, 200 characters, signs
// of globs, addresses and shells. As OpenMetrics text; two hours of one node.

export const NAMES = {
    markup: `</script><script>window.broken=1</script><img src=x onerror="window.broken=1">`,
    formula: `=HYPERLINK("http://example.invalid","x")`,
    plus: "+1+cmd|' /C calc'!A0",
    at: "@SUM(1)",
    rtl: "\u202eevil\u202c-\u05e9\u05dc\u05d5\u05dd",
    long: "n".repeat(200),
    glob: "a*b?[c]",
    path: "../%2e%2e/#/x?y=1&z=2",
    entity: "&lt;b&gt;&amp;",
    template: "${window.broken=1}{{window.broken=1}}",
};

const BEGIN = 1793613600, STEP = 300, HOURS = 2;
const text = (value) => value.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
const labels = (pairs) => "{" + Object.entries(pairs).map(([k, v]) => `${k}="${text(v)}"`).join(",") + "}";

export function openMetrics() {
    const names = Object.values(NAMES);
    const node = `node-${NAMES.markup}`;
    const lines = [];
    for (let i = 1; i <= (HOURS * 3600) / STEP; i++) {
        const at = BEGIN + i * STEP;
        const add = (metric, pairs, value) => lines.push(`${metric}${labels(pairs)} ${value} ${at}`);
        add("kube_node_created", { node }, BEGIN);
        add("kube_node_info", { node, provider_id: "test:///" + node }, 1);
        add("kube_node_labels", { node, label_node_kubernetes_io_instance_type: "test.2x", label_topology_kubernetes_io_region: "here-1" }, 1);
        add("kube_node_status_capacity", { node, resource: "nvidia_com_gpu", unit: "integer" }, names.length);
        names.forEach((name, gpu) => {
            const pod = `pod-${name}`;
            const at = { gpu: String(gpu), UUID: `GPU-${name}`, modelName: `Model ${name}`, Hostname: node, container: "main", namespace: name, pod };
            add("DCGM_FI_DEV_GPU_UTIL", at, 40);
            add("DCGM_FI_PROF_SM_ACTIVE", at, gpu / 10);
            add("kube_pod_info", { namespace: name, pod, uid: `u${gpu}`, node }, 1);
            add("kube_pod_owner", { namespace: name, pod, uid: `u${gpu}`, owner_kind: "Job", owner_name: `job-${name}`, owner_is_controller: "true" }, 1);
            add("kube_pod_start_time", { namespace: name, pod, uid: `u${gpu}` }, BEGIN);
            add("kube_pod_container_resource_requests", { namespace: name, pod, uid: `u${gpu}`, container: "main", node, resource: "nvidia_com_gpu", unit: "integer" }, 1);
            add("kube_pod_status_phase", { namespace: name, pod, uid: `u${gpu}`, phase: "Running" }, 1);
        });
    }
    const sorted = new Map();
    for (const line of lines) {
        const metric = line.slice(0, line.indexOf("{"));
        sorted.set(metric, [...(sorted.get(metric) ?? []), line]);
    }
    return [...sorted].map(([metric, all]) => `# TYPE ${metric} gauge\n${all.join("\n")}\n`).join("") + "# EOF\n";
}

export const PRICES = "cloud,region,instance_type,capacity_type,usd_per_hour,gpus,vcpus,memory_gib\ntest,here-1,test.2x,on-demand,40.00,10,16,64\n";
