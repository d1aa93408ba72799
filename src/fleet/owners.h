/* Owners and workload types by ordered rules (semantics, section 3: owner; fleetsim's owners.json
 * is one spelling of the file). Built once, immutable, shared by all threads. */
#ifndef GPUTALLY_FLEET_OWNERS_H
#define GPUTALLY_FLEET_OWNERS_H

#include <stdint.h>

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

/* The pod whose owner is asked. Label names may be spelled by Kubernetes (app.kubernetes.io/name)
 * or by kube-state-metrics (app_kubernetes_io_name): rules compare them with every byte that is not
 * alphanumeric read as '_'. workload is Kind/name of the topmost controller. */
struct owner_query {
    struct str cluster, namespace, workload;
    const struct label *labels, *annotations, *namespace_labels;
    size_t labels_n, annotations_n, namespace_labels_n;
};

struct config_node;

/* Building: made whole by one of these.
 *
 * owners_new_default: the labels that people use (docs/owners.md), then the namespace, flagged.
 * owners_read: a file with `rules` (teams) and `types`, YAML or JSON. It says all: a half that is
 * not there is empty (every team unowned, every type other), unless `defaults: true` puts the
 * default rules behind the file's. Errors have file, line and column. owners_from_config: the two
 * lists out of a larger file; one that is nothing is the default one. */
struct owners;
struct owners *owners_new_default(void);
enum err owners_read(const char *path, struct owners **ret, struct error *err);
enum err owners_from_config(struct config_node rules, struct config_node types, struct owners **ret,
                            struct error *err);
void owners_free(struct owners *owners); /* NULL is fine */
/* Changes with the text of the rules that were read; 0 for default ones. */
uint64_t owners_digest(const struct owners *owners);
bool owners_configured(const struct owners *owners); /* are there rules for teams of the user's */

/* The team; "unowned" where no rule matches. *ret_default: the team is only the namespace, since no
 * owner rules are configured (flag owner-default). The text may lie in `scratch`. */
struct str owners_team(const struct owners *owners, const struct owner_query *query,
                       struct arena *scratch, bool *ret_default);
enum workload_type owners_type(const struct owners *owners, const struct owner_query *query);
/* The person who works in the pod, by its annotations and labels; empty: they name nobody.
 * Borrowed from the query. */
struct str owners_user(const struct owner_query *query);

#endif
