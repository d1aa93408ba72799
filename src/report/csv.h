/* A field of CSV. */
#ifndef GPUTALLY_REPORT_CSV_H
#define GPUTALLY_REPORT_CSV_H

#include "util/str.h"

/* RFC 4180 quoting where it is needed. A text that a spreadsheet would take for a formula (it
 * begins with = + - @, tab or carriage return) gets a ' in front; a lone "-", which stands for
 * none, does not. */
void csv_text(struct strbuf *out, struct str text);

#endif
