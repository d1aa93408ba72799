/* What of the telemetry, the labels and the prices cannot be trusted, judged from what the ledger
 * has: flags and their GPU time, notes of the sources, hours of nodes and GPUs.
 *
 * One table of checks (doctor.c). A check finds something, finds nothing, or could not be made
 * because what it reads is not there: that is told apart from "fine". Pure functions of the facts;
 * one thread. */
#ifndef GPUTALLY_INSIGHT_DOCTOR_H
#define GPUTALLY_INSIGHT_DOCTOR_H

#include "query/query.h"

enum doctor_severity {
    DOCTOR_ERROR,   /* the figures lack something */
    DOCTOR_WARNING, /* the figures rest on an estimate, or part of them is not known */
    DOCTOR_INFO,
    DOCTOR_SEVERITIES,
};
extern const char *const doctor_severity_words[DOCTOR_SEVERITIES];

enum doctor_status { DOCTOR_FINE, DOCTOR_FOUND, DOCTOR_UNCHECKED };
extern const char *const doctor_status_words[];

/* What the GPUs of a node did, summed over the window; ms of GPUs. GPUs that send nothing at all
 * are not in it. */
struct doctor_node {
    name_t cluster, node;
    int64_t up_ms, covered_ms, observed_ms, util_seen_ms, mem_seen_ms, power_seen_ms, limit_ms;
    name_t instance_type; /* the last one */
    int lives;            /* times that the instance type changed */
};

/* What the sources said of themselves when they were asked: for the check of this id. */
struct doctor_said {
    const char *check;
    struct str text;
    int64_t count;
};

/* All borrowed. Only `total` must be there: what is NULL or empty leaves checks unmade. */
struct doctor_facts {
    const struct result *total;       /* of the window: sums and notes */
    const struct result *nodes;       /* by cluster and node */
    const struct result *teams;       /* with team among its keys, and namespace for examples */
    const struct result *types;       /* by instance type and GPU model */
    const struct doctor_node *states; /* NULL: no hours of GPUs */
    size_t states_n;
    struct span extent; /* all that the ledger has; empty: not known */
    bool list_prices;   /* the prices are the catalogue's */
    bool settings_changed;
    const char *const *price_problems; /* what was left out of price files */
    size_t price_problems_n;
    const char *const *asked; /* ids of checks whose question was answered */
    size_t asked_n;
    const struct doctor_said *said;
    size_t said_n;
};

/* An example of what was found: which node, type, namespace or value; -1: nothing to say. */
struct doctor_example {
    struct str name;
    wide_t gpu_ns;
    int64_t count;
};
#define DOCTOR_EXAMPLES_MAX 3

struct doctor_check;
struct doctor_finding {
    const struct doctor_check *check;
    enum doctor_status status;
    wide_t gpu_ns;      /* GPU time that it is about; -1: not about GPU time */
    money_t money;      /* -1: not about money */
    int64_t count;      /* of the check's unit; -1: nothing counted */
    const char *reason; /* DOCTOR_UNCHECKED: why */
    struct doctor_example examples[DOCTOR_EXAMPLES_MAX]; /* the largest first */
    size_t examples_n, more;                             /* more: how many there are beside */
};

struct doctor_check {
    const char *id; /* stable; the anchor in docs/doctor.md */
    enum doctor_severity severity;
    const char *title;  /* what is the matter, a sentence without full stop */
    const char *effect; /* what it does to the figures */
    const char *mend;   /* lines */
    const char *unit;   /* of count, for many; NULL: none */
    enum doctor_status (*test)(const struct doctor_check *check, const struct doctor_facts *facts,
                               struct doctor_finding *ret, struct arena *arena);
    uint32_t flags; /* what test_flags reads */
    int note;       /* enum note_kind, what test_notes reads */
};
extern const struct doctor_check doctor_checks[];
extern const size_t doctor_checks_n;

struct doctor {
    struct arena arena;
    struct doctor_finding *findings; /* [doctor_checks_n]: found ones first, the worst first */
    size_t found, unchecked;
    size_t counts[DOCTOR_SEVERITIES]; /* of found ones */
};
/* The facts must live as long. */
struct doctor *doctor_new(const struct doctor_facts *facts);
void doctor_free(struct doctor *doctor); /* NULL is fine */

/* doctor_facts.c: what the ledger has of the window. O(hours of GPUs). */
struct doctor_reading {
    struct result *total, *nodes, *teams, *types;
    struct doctor_node *states;
    size_t states_n, states_room, at;
    bool any_device;
    bool filtered;             /* states are of the nodes of `nodes` alone */
    struct doctor_facts facts; /* borrows the above */
};
/* The window, zone and filters of the query: what is told by rows is of the rows that pass, what
 * GPUs and nodes did of the nodes that have such rows, notes are of everything. ret is released
 * also after an error. */
enum err doctor_read(struct store *store, const struct query *query, struct doctor_reading *ret,
                     struct error *err);
void doctor_reading_release(struct doctor_reading *reading);

#endif
