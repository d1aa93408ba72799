/* The queries that a report rests on, of one scan. For whoever prints a report or answers
 * with one. One thread. */
#ifndef GPUTALLY_REPORT_GATHER_H
#define GPUTALLY_REPORT_GATHER_H

#include "report/report.h"

struct gathered {
    struct result *rows, *overview, *unpriced; /* as in struct report; unpriced may be NULL */
};
/* sort: a figure's name or "name"; empty: days and hours in their order, everything else by cost.
 * ret is zeroed by the caller and released also after an error. ERR_USAGE: no such figure. */
enum err gather_report(struct store *store, const struct query *query, struct str sort,
                       struct gathered *ret, struct error *err);
void gathered_release(struct gathered *gathered);

/* Only the check of `sort`, before anything is read. */
enum err gather_check_sort(const struct query *query, struct str sort, struct error *err);

#endif
