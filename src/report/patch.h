/* Findings as changes that somebody can review: a text of YAML documents for each owner (and
 * cluster, where there are several), with the evidence as comments in front of each document.
 *
 * A document has the fields that change and no others, so that it can be applied by
 * `kubectl apply --server-side`, or listed as a patch of a kustomization; objects that are new
 * (quota, priority class) are whole. What cannot be said as an object (nodes, pools, Helm values)
 * stands as comments: commands to run by hand. Nothing is left out: a finding without a change is a
 * comment. What ends pods or takes nodes away says so in a line that begins with WARNING.
 *
 * An object has one document, of the finding that saves the most: a second one would take the first
 * one's fields away again, since both are applied by one field manager.
 *
 * Names come from telemetry and may be anything: no document is written for one that Kubernetes
 * could not have, and the YAML is valid whatever they are. */
#ifndef GPUTALLY_REPORT_PATCH_H
#define GPUTALLY_REPORT_PATCH_H

#include "report/findings.h"

/* How every file begins: one that does not is somebody else's. */
#define PATCH_MARK "# gputally patch/1"

struct patch_set;
struct patch_file {
    struct patch_set *set;
    struct str owner, cluster; /* cluster empty: it has no name, or there is only one */
    struct str name;           /* of the file: [a-z0-9_-]+.yaml, or with .CLUSTER; unique */
    struct strbuf text;
    size_t findings, documents;
    uint64_t shares;     /* bit n: some GPUs are to be shared by n pods */
    bool has_priorities; /* the class is there */
    money_t saving;      /* a month */
};
struct patch_set {
    struct patch_file *files; /* by saving, then name */
    size_t n, room;
    const struct book_workload **changed; /* those that have a document, in whatever file */
    size_t changed_n, changed_room;
    struct arena arena;
};
/* Of the findings that are not exempt. Pure; O(findings x nodes). */
struct patch_set *patch_new(const struct findings_report *report);
void patch_free(struct patch_set *set); /* NULL is fine */

/* patch_rules.c: what a finding is about, and the changes of a rule */
struct patch_place {
    struct str kind; /* of the subject: "workload", "node", "namespace", "pool", … */
    struct str cluster, namespace, object, name; /* object: "Deployment"; empty where it has none */
    const struct book_workload *workload;        /* the books'; NULL where it is none */
    const struct book_node *node; /* the node, or the first of a pool, whose name is `name` then */
};
struct patch_place patch_place_of(const struct findings *findings, const struct finding *finding);
/* Appends the change of a finding, beneath its evidence. */
void patch_change(const struct findings *findings, const struct finding *finding,
                  const struct patch_place *place, struct patch_file *file);
/* patch_platform.c: the device plugin's time-slicing for what `shares` has. */
#define PATCH_SHARES_MAX 64
#define PATCH_SHARED_LABEL "nvidia.com/device-plugin.config"
#define PATCH_SHARED "shared-" /* and the number of pods: a key of its configuration */
void patch_time_slicing(struct patch_file *file);

#endif
