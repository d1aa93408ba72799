/* What a client needs to know before it asks: figures, categories, keys, rules, and what the ledger
 * has (docs/api.md: meta). */
#ifndef GPUTALLY_REPORT_META_JSON_H
#define GPUTALLY_REPORT_META_JSON_H

#include "insight/threshold.h"
#include "query/query.h"

/* All borrowed. */
struct meta {
    const char *version, *currency;
    const char *tz; /* NULL: UTC */
    const struct str *clusters;
    size_t clusters_n;
    struct span extent; /* empty: nothing is booked yet */
    time_ms now;
    const struct thresholds *thresholds;
};
void meta_json(const struct meta *meta, struct strbuf *out);

#endif
