/* What must be said about a report before its figures: what is missing, estimated, or not known,
 * each with numbers. The same list is the header of the tables and the `notes` of the JSON. */
#ifndef GPUTALLY_REPORT_STATEMENT_H
#define GPUTALLY_REPORT_STATEMENT_H

#include "report/report.h"

enum statement_level {
    STATEMENT_MISSING, /* the figures lack something: what --strict is about */
    STATEMENT_CAUTION, /* the figures rest on an estimate, or part of them is not known */
    STATEMENT_INFO,
};
extern const char *const statement_level_words[]; /* "missing", "caution", "info" */

struct statement {
    enum statement_level level;
    const char *code;   /* stable: "unpriced" */
    struct str topic;   /* for people, in front: "unpriced" */
    struct str text;    /* a sentence, no full stop */
    struct str subject; /* of a source's note; empty otherwise */
    wide_t gpu_ns;      /* -1: not about GPU time */
    money_t money;      /* -1: not about money */
    int64_t count;      /* -1: nothing counted */
};

struct statements {
    struct arena arena;
    struct statement *items;
    size_t n, room;
};

/* The worst first. `list` is zeroed by the caller and released with statements_release(). */
void statements_of(const struct report *report, struct statements *list);
void statements_release(struct statements *list);

/* For people: notes of the sources of one kind rolled up into one statement. */
void statements_for_people(const struct report *report, struct statements *list);

/* "prod · 2026-11-23 00:00Z to … · 64 GPUs on 8 nodes · 99.4 % observed" */
void report_headline(const struct report *report, struct strbuf *out);
/* "balanced: every one of 1,344 node-hours is booked once ($43,008.00 of $43,008.00)" */
void report_balance(const struct report *report, struct strbuf *out);

#endif
