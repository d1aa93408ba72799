/* A node n1 with one GPU, and hours of hosts, workloads and namespaces that are found again. Five
 * minutes are 300 s of a processor. */
#ifndef LOAD_FIXTURE_H
#define LOAD_FIXTURE_H

#include "fleet_fixture.h"

#include "fleet/loads.h"

#define HALF INT64_C(500000000)
#define ONE INT64_C(1000000000)
#define SLOT INT64_C(300000)
#define NODE "node=n1,job=node,instance=10.0.0.1:9100"
#define POD "namespace=ns,pod=p"

/* A GPU on n1 that pod ns/p holds for the first `minutes`. */
static inline void feed_gpu(struct fleet *f, int minutes)
{
    fleet_record(f, "kube_node_info", "node=n1,internal_ip=10.0.0.1", 0, minutes, 1);
    fleet_record(f, "kube_node_created", "node=n1", 0, minutes, (double)(T0 / 1000 - 86400));
    fleet_record(f, "kube_pod_info", POD ",uid=u,node=n1", 0, minutes, 1);
    fleet_record(f, "kube_pod_container_resource_requests",
                 POD ",uid=u,node=n1,container=c,resource=nvidia_com_gpu", 0, minutes, 1);
    fleet_gpu(f, "UUID=GPU-a,gpu=0,Hostname=n1,namespace=ns,pod=p,container=c", 0, minutes, 50,
              0.5);
}

/* A counter's value at a minute. */
static inline void count(struct fleet *f, const char *metric, const char *labels, int minute,
                         double v)
{
    fleet_sample(f, metric, labels, minute * MINUTE_MS, v);
}

static inline const struct machine_hour *machine(const struct fleet *f, int hour)
{
    for (size_t i = 0; i < f->machines_n; i++)
        if (f->machines[i].hour == T0 + hour * HOUR_MS)
            return &f->machines[i];
    fail_msg("no machine-hour %d", hour);
    return NULL;
}

static inline const struct workload_hour *workload(const struct fleet *f, int hour)
{
    for (size_t i = 0; i < f->workloads_n; i++)
        if (f->workloads[i].hour == T0 + hour * HOUR_MS)
            return &f->workloads[i];
    fail_msg("no workload-hour %d", hour);
    return NULL;
}

static inline const struct namespace_hour *space(const struct fleet *f, int hour, const char *name)
{
    for (size_t i = 0; i < f->spaces_n; i++)
        if (f->spaces[i].hour == T0 + hour * HOUR_MS &&
            strcmp(fleet_text(f, f->spaces[i].namespace), name) == 0)
            return &f->spaces[i];
    fail_msg("no namespace-hour %d of %s", hour, name);
    return NULL;
}

#endif
