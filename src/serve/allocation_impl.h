/* Private to serve/allocation*.c: a request of OpenCost's Allocation API, read. */
#ifndef GPUTALLY_SERVE_ALLOCATION_IMPL_H
#define GPUTALLY_SERVE_ALLOCATION_IMPL_H

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

struct allocation_request {
    struct span window;
    time_ms step; /* of a set */
    struct property properties[PROPERTIES_MAX];
    size_t properties_n;
    bool idle, idle_by_node;
    enum share_idle share;
    struct query query; /* its filters; no keys */
};
/* ERR_USAGE. Parameters that OpenCost has and that mean nothing here are ignored. */
enum err allocation_read(struct api_call *call, struct allocation_request *ret, struct error *err);

#endif
