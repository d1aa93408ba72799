/* All rules over the books, joined and ranked. */
#ifndef GPUTALLY_INSIGHT_RECOMMEND_H
#define GPUTALLY_INSIGHT_RECOMMEND_H

#include "insight/finding.h"

/* Run every rule; then, in the order of the rule table, let each finding keep what of its claims no
 * earlier one has claimed on the same cell; then sort by saving. books must live as long. */
struct findings *recommend(const struct books *books, const char *currency);
/* The same, with exemptions (NULL: none), which get their status and must live as long. */
struct findings *recommend_except(const struct books *books, const char *currency,
                                  struct exemptions *exemptions);
void findings_free(struct findings *findings); /* NULL is fine */
/* What all findings together really save a month. */
money_t findings_saving(const struct findings *findings);

#endif
