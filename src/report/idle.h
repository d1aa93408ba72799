/* The idle scan, rendered: what stands still first, then how it was judged. */
#ifndef GPUTALLY_REPORT_IDLE_H
#define GPUTALLY_REPORT_IDLE_H

#include "insight/idle.h"
#include "report/report.h"

struct narrow; /* insight/narrow.h */

/* All borrowed. */
struct idle_report {
    const struct idle_scan *scan;
    const struct narrow *narrow; /* of the picture alone: GPUs that are shown; NULL: all */
    const char *title;           /* which source; NULL: none */
    const char *tz;              /* NULL: UTC */
    const char *currency;        /* "USD" */
    bool power_auto;             /* the power threshold is learned, never below 15 % */
    size_t columns;              /* of the terminal; 0: not a terminal */
    bool colour;
};
/* table: idle nodes, idle GPUs of other nodes, what has stood still for 3 days, and nodes whose
 * work is on the CPU; wide: every GPU. csv: a row for each GPU and day. json: everything
 * (docs/formats.md). */
void idle_report_render(const struct idle_report *report, enum report_format format,
                        struct strbuf *out);
/* GPUs and days as a picture, for a page (docs/api.md, /api/v1/idle/days): a letter for each day,
 *
 *     I idle  P idle by what could be checked  U in use  N not enough data  . was not there
 *
 * and the day's means beside it. A node's own letters are of its CPU and network; - neither is
 * known. */
void idle_days_json(const struct idle_report *report, struct strbuf *out);
/* How many findings the table has: idle nodes and GPUs, long stretches, CPU work on GPU nodes. */
size_t idle_report_findings(const struct idle_scan *scan);

#endif
