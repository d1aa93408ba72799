/* What the renderers of doctor share: private to report/doctor*.c. */
#ifndef GPUTALLY_REPORT_DOCTOR_ROWS_H
#define GPUTALLY_REPORT_DOCTOR_ROWS_H

#include "report/doctor.h"

/* "gpu-7, gpu-8, gpu-9 and 2 more", clean. */
void doctor_examples(const struct doctor_finding *finding, struct strbuf *out);

void doctor_report_csv(const struct doctor_report *report, struct strbuf *out);
void doctor_report_json(const struct doctor_report *report, struct strbuf *out);

#endif
