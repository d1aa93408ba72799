/* Owners and workload types by ordered rules (semantics, section 3: owner; fleetsim's owners.json is
 * one spelling of the file). Built once, immutable, shared by all threads. */
#ifndef GPUTALLY_FLEET_OWNERS_H
#define GPUTALLY_FLEET_OWNERS_H

#include "util/error.h"
#include "util/memory.h"
#include "util/str.h"

enum workload_type {
    WORKLOAD_NONE, /* unheld: "-" */
    WORKLOAD_TRAINING,
    WORKLOAD_INFERENCE,
    WORKLOAD_INTERACTIVE,
    WORKLOAD_OTHER,
};
#define WORKLOAD_TYPE_COUNT 5
extern const char *const workload_type_words[WORKLOAD_TYPE_COUNT]; /* "-", "training", … */

/* The pod whose owner is asked. Label names may be spelled by Kubernetes (app.kubernetes.io/name) or
 * by kube-state-metrics (app_kubernetes_io_name): rules compare them with every byte that is not
 * alphanumeric read as '_'. workload is Kind/name of the topmost controller. */
struct owner_query {
    struct str cluster, namespace, workload;
    const struct label *labels, *annotations, *namespace_labels;
    size_t labels_n, annotations_n, namespace_labels_n;
};

struct owners;
/* The team; "unowned" where no rule matches. *ret_default: the team is only the namespace, since no
 * owner rules are configured (flag owner-default). The text may lie in `scratch`. */
struct str owners_team(const struct owners *owners, const struct owner_query *query,
                       struct arena *scratch, bool *ret_default);
enum workload_type owners_type(const struct owners *owners, const struct owner_query *query);

#endif
