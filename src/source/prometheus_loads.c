/* Loads of hosts and containers from a server: sums that it makes, not raw samples.
 *
 * A host has hundreds of CPU series (processors x modes), so that reading them raw would be more
 * than all its GPUs have. query_range with a step of five minutes gives the counters' sums on the
 * clock instead:
 *
 *     sum without (cpu, mode) (node_cpu_seconds_total{mode=~"idle|iowait"})
 *
 * The value at T is of the last samples up to T. From T - 5 min to T it therefore grows by exactly
 * the increases whose later stamp is in (T - 5 min, T], which is what raw samples give too
 * (fleet/loads.h), and it does not depend on where a window is cut; increase(…[5m]) would lose the
 * increase across the edge and extrapolate it. It differs from raw samples where a counter of the
 * sum begins anew or comes and goes: the five minutes of a reboot or of a processor that is added
 * are left out (of a pod's containers: counted from 0 once), and those after a stale marker get the
 * last increase before it.
 *
 * Remote read gives the server's external labels with every series, queries do not: where all other
 * series are of one cluster, so are these.
 *
 * A server that refuses range queries costs these figures and nothing else: a note, once. */
#include <stdlib.h>

#include "fleet/loads.h"
#include "source/prometheus_impl.h"

/* As fleet/loads.c has it: what is virtual need not be sent. */
#define DEVICES                                                                                    \
    "device!~\"lo|veth.*|cali.*|flannel.*|cni.*|docker.*|br-.*|virbr.*|tun.*|tap.*|vxlan.*|"       \
    "cilium.*|lxc.*|kube.*|dummy.*|ovs.*|azv.*|gke.*|eni.*\""
#define CONTAINERS "container!=\"\",container!=\"POD\""

/* X: metric that must be there, aggregation, matchers, delivered as, its label mode */
static const struct question_def {
    const char *metric, *head, *match, *tail, *as, *mode;
    bool of_containers;
} questions[] = {
    {"node_cpu_seconds_total", "sum without (cpu, mode) (", "mode=~\"idle|iowait\"", ")",
     LOAD_SUM_CPU, "idle", false},
    {"node_cpu_seconds_total", "sum without (cpu, mode) (", "mode!~\"idle|iowait\"", ")",
     LOAD_SUM_CPU, "busy", false},
    {"node_cpu_seconds_total", "count without (cpu, mode) (", "mode=\"idle\"", ")", LOAD_SUM_CPUS,
     NULL, false},
    {"node_network_receive_bytes_total", "", DEVICES, "", "node_network_receive_bytes_total", NULL,
     false},
    {"node_network_transmit_bytes_total", "", DEVICES, "", "node_network_transmit_bytes_total",
     NULL, false},
    {"container_cpu_usage_seconds_total",
     "sum without (cpu, container, image, name, id, exported_container) (", CONTAINERS, ")",
     LOAD_SUM_CONTAINER_CPU, NULL, true},
};
#define QUESTIONS (sizeof questions / sizeof *questions)

struct prometheus_load {
    struct wanted_metric metric; /* first: what a plan's piece points to */
    const struct question_def *def;
    struct strbuf query;
    struct str cluster; /* of series that do not name one */
};

bool prometheus_load_series(const struct prometheus_load *load, struct delivery *delivery,
                            const struct label *labels, size_t n)
{
    struct label with[INTAKE_LABELS_MAX + 3];
    size_t kept = 0;
    if (n > INTAKE_LABELS_MAX)
        return false;
    if (load->cluster.n && !labels_get(labels, n, STR("cluster")).n)
        with[kept++] = (struct label){STR("cluster"), load->cluster};
    for (size_t i = 0; i < n; i++)
        if (!str_eq(labels[i].name, STR("__name__")))
            with[kept++] = labels[i];
    with[kept++] = (struct label){STR("__name__"), str_of(load->def->as)};
    if (load->def->mode)
        with[kept++] = (struct label){STR("mode"), str_of(load->def->mode)};
    return delivery_series(delivery, with, kept);
}

const struct prometheus_load *prometheus_load_of(const struct piece *piece)
{
    return (const struct prometheus_load *)(const void *)piece->metric;
}

struct str prometheus_load_query(const struct prometheus_load *load)
{
    return strbuf_str(&load->query);
}

static bool is_present(const struct prometheus *prometheus, const char *metric)
{
    size_t n;
    const struct wanted_metric *wanted = wanted_metrics(&n);
    for (size_t i = 0; prometheus->present && i < n; i++)
        if (strcmp(wanted[i].name, metric) == 0)
            return prometheus->present[i];
    return true;
}

static void build(struct prometheus_load *load, const struct question_def *def,
                  const struct prometheus *prometheus, const char *match)
{
    const char *more = prometheus->matcher;
    load->def = def;
    load->metric = (struct wanted_metric){def->metric, "", METRIC_GROUP_LOADS};
    strbuf_addf(&load->query, "%s%s{%s%s%s%s%s}%s", def->head, def->metric, def->match,
                *match ? "," : "", match, *more ? "," : "", more, def->tail);
}

/* Read what the questions give for [first, last] on the grid. */
enum err prometheus_read_loads(struct prometheus_run *run, struct span range,
                               const char *match_of_pods)
{
    struct prometheus *prometheus = run->prometheus;
    struct prometheus_load loads[QUESTIONS] = {0};
    struct plan_lane lanes[QUESTIONS];
    struct strbuf cluster = {0};
    size_t n = 0;
    if (prometheus->loads_refused || range.from > range.to)
        return ERR_OK;
    seen_only(prometheus->clusters, &cluster);
    for (size_t i = 0; i < QUESTIONS; i++) {
        if (!is_present(prometheus, questions[i].metric))
            continue;
        build(&loads[n], &questions[i], prometheus,
              questions[i].of_containers ? match_of_pods : "");
        loads[n].cluster = strbuf_str(&cluster);
        lanes[n] = (struct plan_lane){&loads[n].metric, range.from, range.to};
        n++;
    }
    run->loads = true;
    if (n)
        prometheus_run_lanes(run, lanes, n);
    run->loads = false;
    for (size_t i = 0; i < n; i++)
        strbuf_release(&loads[i].query);
    strbuf_release(&cluster);
    enum err code = run->code;
    if (code == ERR_OK || code == ERR_STOPPED)
        return code;
    struct strbuf text = {0};
    strbuf_addf(&text,
                "processors and networks of hosts and CPU of containers are unchecked: the server "
                "answers no range queries (%.300s)",
                run->err.text);
    intake_note(run->intake, NOTE_INFO, str_of(http_site_url(prometheus->site)), 1,
                strbuf_str(&text));
    strbuf_release(&text);
    prometheus->loads_refused = true;
    run->code = ERR_OK;
    return ERR_OK;
}
