/* Private to serve/allocation*.c: a request of OpenCost's Allocation API, read. */
#ifndef GPUTALLY_SERVE_ALLOCATION_IMPL_H
#define GPUTALLY_SERVE_ALLOCATION_IMPL_H

#include "query/zone.h"
#include "serve/api_impl.h"

/* A property that allocations are aggregated by. */
enum property_kind {
    PROPERTY_KEY,        /* the key's text */
    PROPERTY_CONTROLLER, /* "deployment:rank" of Deployment/rank */
    PROPERTY_OF_KIND,    /* the name where the kind fits: deployment, statefulset, daemonset, job */
    PROPERTY_UNKNOWN,    /* labels, services and the like: the ledger has none of them */
};
struct property {
    enum property_kind kind;
    enum key key;
    const char *of_kind;
    const char *name; /* as in `properties` of an answer; NULL: it is not there */
};
#define PROPERTIES_MAX 5

enum share_idle { SHARE_IDLE_NO, SHARE_IDLE_WEIGHTED, SHARE_IDLE_EVEN };

/* What the window is cut into: steps from its begin, or by the calendar of the zone. */
enum allocation_sets { SETS_OF_STEP, SETS_OF_WEEKS, SETS_OF_MONTHS, SETS_OF_QUARTERS };

struct allocation_request {
    struct span window;
    enum allocation_sets sets;
    time_ms step; /* SETS_OF_STEP */
    const struct zone *zone;
    struct property properties[PROPERTIES_MAX];
    size_t properties_n;
    bool idle, idle_by_node;
    enum share_idle share;
    struct query query; /* its condition; no keys */
};
/* ERR_USAGE. Parameters that OpenCost has and that mean nothing here are ignored. */
enum err allocation_read(struct api_call *call, struct allocation_request *ret, struct error *err);

/* Where the set that begins at `from` ends; at most the window's end. */
time_ms allocation_set_end(const struct allocation_request *request, time_ms from);

#endif
