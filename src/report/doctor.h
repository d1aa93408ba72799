/* What doctor found, rendered: the worst first, each with what it does to the figures and how to
 * mend it. */
#ifndef GPUTALLY_REPORT_DOCTOR_H
#define GPUTALLY_REPORT_DOCTOR_H

#include "insight/doctor.h"
#include "report/report.h"

/* All borrowed. */
struct doctor_report {
    const struct doctor *doctor;
    const struct result *total; /* of the window */
    const char *title;          /* which source; NULL: none */
    const char *currency;       /* "USD" */
    bool colour;
};
/* table: what was found; wide: every check. csv and json: every check (docs/formats.md). */
void doctor_report_render(const struct doctor_report *report, enum report_format format,
                          struct strbuf *out);

/* How many errors and warnings. */
size_t doctor_report_findings(const struct doctor *doctor);

/* "1 error, 2 warnings: GPUs of nodes send no metrics at all; SM_ACTIVE is not exported": a line
 * for other reports; nothing where there is no error and no warning. */
void doctor_report_line(const struct doctor *doctor, struct strbuf *out);

#endif
