/* A report: a query's result and what must be said about it, rendered in one of several formats.
 *
 * What is missing, estimated or unknown is said first, in words with numbers (report/statement.h);
 * then the figures; then the balance. Every renderer takes its figures from report/figure.h. */
#ifndef GPUTALLY_REPORT_REPORT_H
#define GPUTALLY_REPORT_REPORT_H

#include "query/query.h"

/* X(ID, "word") */
#define REPORT_FORMAT_TABLE(X)                                                                     \
    X(TABLE, "table")                                                                              \
    X(WIDE, "wide")                                                                                \
    X(CSV, "csv")                                                                                  \
    X(JSON, "json")                                                                                \
    X(MARKDOWN, "markdown")
enum report_format {
#define X(id, word) REPORT_##id,
    REPORT_FORMAT_TABLE(X)
#undef X
        REPORT_FORMAT_COUNT
};
extern const char *const report_format_words[REPORT_FORMAT_COUNT];

/* All borrowed; a renderer changes nothing. */
struct report {
    const struct result *result;   /* by the keys, sorted */
    const struct result *overview; /* same window and filters, by cluster and team */
    const struct result *unpriced; /* by instance type and GPU model; NULL: nothing is unpriced */
    const char *title;             /* where no cluster has a name: which source; NULL: none */
    const char *tz;                /* NULL: UTC */
    const char *currency;          /* "USD" */
    size_t limit;                  /* rows shown; 0: all */
    bool window_widened;           /* an hour was cut, the window is wider than asked for */
    bool settings_changed;         /* some hours were booked with other prices, owners, settings */
    bool residual;                 /* node_split: residual */
    size_t columns;                /* of the terminal; 0: not a terminal */
    bool colour;
    struct str list_prices;      /* "2026-07-20": list prices of the catalogue; empty: own prices */
    const char *const *problems; /* of price files: what was left out; problems_n of them */
    size_t problems_n;
    const char *const *next; /* "gputally …" lines under the table; next_n of them */
    size_t next_n;
};

void report_render(const struct report *report, enum report_format format, struct strbuf *out);

/* Is data missing: a partial answer, hours of the window without any record, or no price? */
bool report_incomplete(const struct report *report);

/* How many of the result's groups are rows of the report. */
size_t report_rows(const struct report *report);

/* The renderers, a file each. */
void report_table(const struct report *report, bool wide, struct strbuf *out);
void report_csv(const struct report *report, struct strbuf *out);
void report_json(const struct report *report, struct strbuf *out);
void report_markdown(const struct report *report, struct strbuf *out);

#endif
