/* A comparison of two windows, rendered. */
#ifndef GPUTALLY_REPORT_DIFF_H
#define GPUTALLY_REPORT_DIFF_H

#include "insight/diff.h"
#include "report/report.h"

/* All borrowed. */
struct diff_report {
    const struct diff *diff;
    const char *title;    /* which source; NULL: none */
    const char *currency; /* "USD" */
    size_t limit;         /* rows shown; 0: all */
    bool window_widened;
    size_t columns; /* of the terminal; 0: not a terminal */
    bool colour;
};
/* wide: also GPU-hours and rates. */
void diff_report_render(const struct diff_report *report, enum report_format format,
                        struct strbuf *out);

/* Does one of the windows have hours that the ledger has not, or GPU time without a price? */
bool diff_report_incomplete(const struct diff *diff);

/* Sentences that must stand before the figures: i from 0 on; false: there is none any more. */
bool diff_report_note(const struct diff_report *report, size_t i, struct strbuf *out);

void diff_report_csv(const struct diff_report *report, struct strbuf *out);
void diff_report_json(const struct diff_report *report, struct strbuf *out);

#endif
