#include "report/report.h"

#include <stdlib.h>

#include "report/statement.h"

const char *const report_format_words[REPORT_FORMAT_COUNT] = {
#define X(id, word) word,
    REPORT_FORMAT_TABLE(X)
#undef X
};

void report_render(const struct report *report, enum report_format format, struct strbuf *out)
{
    switch (format) {
    case REPORT_TABLE:
    case REPORT_WIDE:
        report_table(report, format == REPORT_WIDE, out);
        break;
    case REPORT_CSV:
        report_csv(report, out);
        break;
    case REPORT_JSON:
        report_json(report, out);
        break;
    case REPORT_MARKDOWN:
        report_markdown(report, out);
        break;
    case REPORT_FORMAT_COUNT:
        break;
    }
}

bool report_incomplete(const struct report *report)
{
    struct statements list = {0};
    statements_of(report, &list);
    bool incomplete = false;
    for (size_t i = 0; i < list.n; i++)
        incomplete |= list.items[i].level == STATEMENT_MISSING;
    statements_release(&list);
    return incomplete;
}

size_t report_rows(const struct report *report)
{
    size_t n = report->result->groups_n;
    return report->limit && report->limit < n ? report->limit : n;
}
