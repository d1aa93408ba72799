/* Results made by hand: what the renderers are tested on. All money and hours below are written out
 * as they are meant, so that expected texts can be worked out with pencil and paper. */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>

#include "report/report.h"

#define HOUR_NS ((wide_t)3600 * NANO)
#define FROM_MS ((time_ms)1795392000000) /* 2026-11-23T00:00:00Z */

static inline money_t dollars(int64_t whole)
{
    return whole * NANO;
}

/* A held row: hours of GPUs, its cost, and what part of the cost (in percent) was what; u is the
 * mean work ratio in percent of the observed hours, of which there are `observed`. */
struct held {
    int hours, observed, u;
    money_t used, slack, held_idle, unobserved;
};

static inline struct figures held_figures(struct held held)
{
    struct figures f = {.gpu_ns = held.hours * HOUR_NS,
                        .gpu_held_ns = held.hours * HOUR_NS,
                        .gpu_observed_ns = held.observed * HOUR_NS,
                        .gpu_observed_held_ns = held.observed * HOUR_NS,
                        .u_seen_held_ns = held.observed * HOUR_NS,
                        .gpu_u_held = held.observed * HOUR_NS * (NANO / 100) * held.u,
                        .rows = (uint64_t)held.hours};
    f.category[CATEGORY_USED] = held.used;
    f.category[CATEGORY_SLACK] = held.slack;
    f.category[CATEGORY_HELD_IDLE] = held.held_idle;
    f.category[CATEGORY_UNOBSERVED] = held.unobserved;
    f.cost = f.cost_held = held.used + held.slack + held.held_idle + held.unobserved;
    return f;
}

static inline struct figures unheld_figures(int hours, money_t empty, money_t stranded)
{
    struct figures f = {
        .gpu_ns = hours * HOUR_NS, .gpu_observed_ns = hours * HOUR_NS, .rows = (uint64_t)hours};
    f.category[CATEGORY_EMPTY] = empty;
    f.category[CATEGORY_STRANDED] = stranded;
    f.cost = empty + stranded;
    return f;
}

static inline struct result *result_start(enum key key)
{
    struct result *result = mem_zalloc(1, sizeof *result);
    result->query.window = (struct span){FROM_MS, FROM_MS + 7 * DAY_MS};
    result->query.keys[0] = key;
    result->query.keys_n = 1;
    result->recorded = result->query.window;
    result->names = names_new();
    result->groups = mem_zalloc(16, sizeof *result->groups);
    return result;
}

static inline struct group *result_group(struct result *result, const char *name,
                                         struct figures figures)
{
    struct group *group = &result->groups[result->groups_n++];
    group->keys[0] = str_keep(&result->arena, str_of(name));
    group->figures = figures;
    figures_add(&result->total, &figures);
    result->price = result->booked = result->total.cost;
    return group;
}

static inline void result_note(struct result *result, int kind, const char *subject,
                               const char *text, int64_t count)
{
    size_t n = result->notes_n++;
    result->notes = mem_realloc(result->notes, result->notes_n, sizeof *result->notes);
    result->notes[n] = (struct note){.kind = kind,
                                     .subject = names_put(result->names, str_of(subject)),
                                     .text = names_put(result->names, str_of(text)),
                                     .count = count};
}

static inline void result_end(struct result *result)
{
    names_free(result->names);
    result_free(result);
}

/* Two teams and what nobody held: $1,000 + $200 + $800 on 40 node-hours. */
static inline struct result *small_result(void)
{
    struct result *result = result_start(KEY_TEAM);
    result->gpus = 8;
    result->nodes = 2;
    result->node_hours = 40;
    result_group(result, "search",
                 held_figures((struct held){.hours = 100,
                                            .observed = 98,
                                            .u = 50,
                                            .used = dollars(490),
                                            .slack = dollars(290),
                                            .held_idle = dollars(200),
                                            .unobserved = dollars(20)}));
    result_group(
        result, "unowned",
        held_figures((struct held){
            .hours = 20, .observed = 20, .u = 1, .used = dollars(2), .held_idle = dollars(198)}));
    result_group(result, "-", unheld_figures(80, dollars(600), dollars(200)));
    return result;
}

static inline struct report report_of(const struct result *result)
{
    return (struct report){.result = result, .title = "prod", .currency = "USD"};
}

#endif
