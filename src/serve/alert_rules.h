/* What is the matter now. Pure functions that append to a list; texts go to its arena. */
#ifndef GPUTALLY_SERVE_ALERT_RULES_H
#define GPUTALLY_SERVE_ALERT_RULES_H

#include "insight/finding.h"
#include "serve/alert.h"
#include "serve/api.h"

/* Findings that would save finding_month or more a month; those that are exempt do not ring. */
void alerts_of_findings(const struct alert_config *config, const struct findings *findings,
                        struct alert_list *list);
/* Workloads whose GPUs, one or more of them, have been held without work for idle_ms up to now, of
 * which nine tenths are observed. */
void alerts_of_idle(const struct alert_config *config, const struct books *books,
                    const char *currency, struct alert_list *list);
/* Books that are lag_ms or more behind. */
void alerts_of_lag(const struct alert_config *config, const struct service_stats *stats,
                   time_ms now, struct alert_list *list);
/* spent: of [begin, now); pace: money of a recent stretch, and how long it was. month: "2026-12".
 */
struct budget_state {
    const char *month;
    struct span days; /* of the month */
    time_ms now;
    money_t spent, pace;
    time_ms pace_ms;
};
void alerts_of_budget(const struct alert_budget *budget, const struct budget_state *state,
                      const char *currency, struct alert_list *list);

/* Keep the dearest ALERTS_MAX. */
void alerts_cap(struct alert_list *list);

#endif
