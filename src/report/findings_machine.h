/* Private to report/findings*.c. */
#ifndef GPUTALLY_REPORT_FINDINGS_MACHINE_H
#define GPUTALLY_REPORT_FINDINGS_MACHINE_H

#include "report/findings.h"

void findings_json(const struct findings_report *report, struct strbuf *out);
void findings_csv(const struct findings_report *report, struct strbuf *out);

#endif
