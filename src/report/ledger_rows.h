/* The rows of the ledger themselves, as CSV and as JSON lines (docs/formats.md: the ledger). Names
 * and order of the columns are stable. Nothing is collected: rows are written as they are read. */
#ifndef GPUTALLY_REPORT_LEDGER_ROWS_H
#define GPUTALLY_REPORT_LEDGER_ROWS_H

#include "ledger/row.h"

void ledger_csv_header(struct strbuf *out);
void ledger_csv_row(struct strbuf *out, const struct names *names, const struct row *row);
void ledger_json_row(struct strbuf *out, const struct names *names, const struct row *row);

#endif
