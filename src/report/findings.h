/* Findings, rendered: the ranked list of recommend, and the chain behind one, of explain. */
#ifndef GPUTALLY_REPORT_FINDINGS_H
#define GPUTALLY_REPORT_FINDINGS_H

#include "insight/recommend.h"
#include "report/report.h"

/* By whom a list is grouped; words are those of --by. */
enum findings_group { FINDINGS_UNGROUPED, FINDINGS_BY_OWNER, FINDINGS_BY_USER };
/* False where it is no such word; "team" is the owner. */
bool findings_group_read(struct str word, enum findings_group *ret);

/* All borrowed. */
struct findings_report {
    const struct findings *findings;
    const char *title;         /* which source; NULL: none */
    const char *currency;      /* "USD" */
    enum findings_group group; /* groups by saving */
    size_t limit;              /* findings shown; 0: all */
    size_t columns;            /* of the terminal; 0: not a terminal */
    bool colour;
};
void findings_render(const struct findings_report *report, enum report_format format,
                     struct strbuf *out);
/* Why a rule left a subject alone: a line. */
void refusal_explain(const struct refusal *refusal, struct strbuf *out);

#endif
