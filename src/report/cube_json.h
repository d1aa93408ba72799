/* A result without the names of its fields in every row: what an HTML report holds so that it can
 * be grouped and filtered without a server. {"by": […], "figures": […], "rows": [[…]],
 * "rows_total"}: a row has its keys (null: none), then its figures; figures that no row has are
 * left out, those that add nothing are 0. Money is a decimal number. */
#ifndef GPUTALLY_REPORT_CUBE_JSON_H
#define GPUTALLY_REPORT_CUBE_JSON_H

#include "query/query.h"

/* The first `limit` groups (0: all). O(groups). */
void cube_json(const struct result *result, size_t limit, struct strbuf *out);

#endif
