/* A saved JSON report (docs/formats.md), read back for a comparison. */
#ifndef GPUTALLY_REPORT_SAVED_H
#define GPUTALLY_REPORT_SAVED_H

#include "insight/diff.h"

/* text: a whole file that `gputally report --output json` wrote; path names it in messages.
 * Checked: the schema, and that the rows add up to the totals (a report with --limit has not all of
 * them). ret is released also after an error. ERR_PARSE. */
enum err saved_report_read(struct str text, const char *path, struct diff_side *ret,
                           struct error *err);

#endif
