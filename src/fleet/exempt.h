/* Who asked to be left alone: the annotation gputally.io/ignore of pods (through their workload's
 * pod template), of namespaces and of nodes. Here it is found and its bearer named; what it says is
 * understood where findings are (insight/exempt.h). */
#ifndef GPUTALLY_FLEET_EXEMPT_H
#define GPUTALLY_FLEET_EXEMPT_H

#include "fleet/facts.h"

#define EXEMPT_ANNOTATION "gputally.io/ignore"
#define EXEMPT_TEXT_MAX 512 /* bytes that are kept of what it says */
#define EXEMPT_MAX 4096     /* bearers of a slice; more are not kept, and counted as one */

struct exempt_wish {
    name_t subject; /* "workload CLUSTER/NS/Kind/NAME", "namespace CLUSTER/NS", "node CLUSTER/NAME";
                       without "CLUSTER/" where the cluster has no name */
    name_t text;    /* the annotation's value; NAME_NONE where it is empty */
};

/* The wishes that hold at the end of `hours`, each subject once, in no order; the newest of a
 * workload's pods and of an object's records counts. The caller frees *ret. *ret_left: how many
 * were over EXEMPT_MAX. One thread: texts are interned. O(pods + records). */
size_t exempt_gather(struct facts *facts, const struct intake *intake, struct span hours,
                     struct exempt_wish **ret, size_t *ret_left);

#endif
