/* The idle scan, rendered: what stands still first, then how it was judged. */
#ifndef GPUTALLY_REPORT_IDLE_H
#define GPUTALLY_REPORT_IDLE_H

#include "insight/idle.h"
#include "report/report.h"

/* All borrowed. */
struct idle_report {
    const struct idle_scan *scan;
    const char *title;    /* which source; NULL: none */
    const char *tz;       /* NULL: UTC */
    const char *currency; /* "USD" */
    bool power_auto;      /* the power threshold is learned, never below 15 % */
    size_t columns;       /* of the terminal; 0: not a terminal */
    bool colour;
};
/* table: idle nodes, idle GPUs of other nodes, what has stood still for 3 days, and nodes whose
 * work is on the CPU; wide: every GPU. csv: a row for each GPU and day. json: everything
 * (docs/formats.md). */
void idle_report_render(const struct idle_report *report, enum report_format format,
                        struct strbuf *out);
/* How many findings the table has: idle nodes and GPUs, long stretches, CPU work on GPU nodes. */
size_t idle_report_findings(const struct idle_scan *scan);

#endif
