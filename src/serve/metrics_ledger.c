/* Money and GPU time as counters.
 *
 * A counter must not go down but to begin anew: to Prometheus a fall by a cent is a reset, and all
 * that is left an increase. The ledger's sums do fall: an hour that is booked again with later
 * samples moves money between categories, hours that are dropped take theirs along, and a new start
 * may find other teams to be the dearest. So the counters are of hours that are closed (they ended
 * METRICS_LAG_MS before the ledger does), of one UTC month: they begin anew with the first closed
 * hour of the next. Within a month they never fall, and a team that was given a series of its own
 * keeps it; a file beside the database remembers both over a restart. */
#include <stdlib.h>

#include "report/figure.h"
#include "serve/metrics_impl.h"

#define METRICS_LAG_MS (2 * HOUR_MS)
#define METRICS_TEAMS 50
#define OTHER "other"

const char *const gpu_state_words[GPU_STATES] = {"busy", "low", "idle", "unobserved", "free"};

struct metrics_ledger {
    pthread_mutex_t lock;
    char *path; /* NULL: nothing is kept */
    bool loaded, saved;
    struct span span; /* what the counters are of */
    uint64_t generation;
    struct metrics_state state;
};

struct metrics_ledger *metrics_ledger_new(const char *path)
{
    struct metrics_ledger *ledger = mem_zalloc(1, sizeof *ledger);
    ledger->path = path ? str_dup(str_of(path)) : NULL;
    pthread_mutex_init(&ledger->lock, NULL);
    return ledger;
}

static void forget(struct metrics_ledger *ledger)
{
    for (size_t i = 0; i < ledger->state.teams_n; i++)
        free(ledger->state.teams[i].name);
    ledger->state.teams_n = 0;
    ledger->state.others = false;
}

void metrics_ledger_free(struct metrics_ledger *ledger)
{
    if (!ledger)
        return;
    forget(ledger);
    free(ledger->state.teams);
    free(ledger->path);
    pthread_mutex_destroy(&ledger->lock);
    free(ledger);
}

/* The month of the last closed hour, up to it; the month's own begin in *ret_month. */
static struct span closed_span(struct span extent, time_ms *ret_month)
{
    time_ms to = extent.to - METRICS_LAG_MS;
    char day[TIME_TEXT_MAX];
    time_ms from = 0;
    if (extent.from >= to)
        return (struct span){0, 0};
    time_format(to - 1, day);
    memcpy(day + 8, "01T00:00:00Z", sizeof "01T00:00:00Z");
    if (!time_parse(str_of(day), &from))
        return (struct span){0, 0};
    *ret_month = from;
    return (struct span){from > extent.from ? from : extent.from, to};
}

static struct metrics_team *team_of(struct metrics_ledger *ledger, struct str name, size_t most)
{
    size_t own = ledger->state.teams_n - ledger->state.others;
    for (size_t i = 0; i < own; i++)
        if (str_eq(str_of(ledger->state.teams[i].name), name))
            return &ledger->state.teams[i];
    if (own < most && !ledger->state.others) {
        mem_push(ledger->state.teams, ledger->state.teams_n, ledger->state.teams_room,
                 ((struct metrics_team){.name = str_dup(name)}));
    } else if (!ledger->state.others) {
        mem_push(ledger->state.teams, ledger->state.teams_n, ledger->state.teams_room,
                 ((struct metrics_team){.name = str_dup(STR(OTHER))}));
        ledger->state.others = true;
    }
    return &ledger->state.teams[ledger->state.teams_n - 1];
}

static void add(struct metrics_team *team, const struct group *group)
{
    const struct figures *figures = &group->figures;
    wide_t held = figures->gpu_held_ns;
    for (int c = 0; c < CATEGORY_COUNT; c++)
        team->category[c] += figures->category[c];
    team->gpu_ns[GPU_BUSY] += figures->gpu_state_held_ns[STATE_BUSY];
    team->gpu_ns[GPU_LOW] += figures->gpu_state_held_ns[STATE_LOW];
    team->gpu_ns[GPU_IDLE] += figures->gpu_state_held_ns[STATE_IDLE];
    team->gpu_ns[GPU_UNOBSERVED] += held - figures->gpu_observed_held_ns;
    team->gpu_ns[GPU_FREE] += figures->gpu_ns - held;
}

/* Sums into fresh teams, then the counters are raised to them. */
static void raise(struct metrics_ledger *ledger, const struct result *result, size_t most)
{
    size_t room = most > ledger->state.teams_n ? most : ledger->state.teams_n;
    struct metrics_team *fresh = mem_zalloc(room + 2, sizeof *fresh);
    for (size_t i = 0; i < result->groups_n; i++) {
        struct metrics_team *team = team_of(ledger, result->groups[i].keys[0], most);
        add(&fresh[team - ledger->state.teams], &result->groups[i]);
    }
    for (size_t i = 0; i < ledger->state.teams_n; i++) {
        struct metrics_team *team = &ledger->state.teams[i];
        for (int c = 0; c < CATEGORY_COUNT; c++)
            if (fresh[i].category[c] > team->category[c])
                team->category[c] = fresh[i].category[c];
        for (int s = 0; s < GPU_STATES; s++)
            if (fresh[i].gpu_ns[s] > team->gpu_ns[s])
                team->gpu_ns[s] = fresh[i].gpu_ns[s];
    }
    free(fresh);
}

/* What was shown goes on, in this process or over a restart; a new month begins anew. */
static void take_up(struct metrics_ledger *ledger, time_ms month, const char *currency)
{
    if (!ledger->loaded && ledger->path)
        metrics_state_load(&ledger->state, ledger->path, currency);
    ledger->loaded = true;
    if (month <= ledger->state.month)
        return;
    forget(ledger);
    ledger->state.month = month;
}

static enum err refresh(struct metrics_ledger *ledger, struct api_call *call, struct error *err)
{
    time_ms month = 0;
    struct span span = closed_span(call->extent, &month);
    struct query query = {.window = span, .keys = {KEY_TEAM}, .keys_n = 1};
    struct result *result = NULL;
    const char *currency = call->settings->currency;
    size_t most = call->settings->metric_teams ? call->settings->metric_teams : METRICS_TEAMS;
    if (ledger->generation == call->generation && ledger->span.to == span.to)
        return ERR_OK;
    if (span.from >= span.to)
        return ERR_OK;
    enum err code = query_run(call->store, &query, &result, err);
    if (code == ERR_OK)
        code = result_sort(result, STR("cost"), err);
    if (code == ERR_OK) {
        take_up(ledger, month, currency);
        ledger->span = span;
        ledger->generation = call->generation;
        if (month == ledger->state.month) /* else the clock, or the ledger, went back */
            raise(ledger, result, most);
        ledger->saved = ledger->path && metrics_state_save(&ledger->state, ledger->path, currency);
    }
    result_free(result);
    return code;
}

/* Zeros are written where something may come: a counter that first shows at its first increase has
 * lost it. */
static bool may_come(const struct metrics_team *team, int category)
{
    bool nobody = strcmp(team->name, "-") == 0;
    bool held_only =
        category == CATEGORY_USED || category == CATEGORY_SLACK || category == CATEGORY_HELD_IDLE;
    bool nobody_only =
        (category >= CATEGORY_NODE_IDLE_FIRST && category <= CATEGORY_NODE_IDLE_LAST) ||
        category == CATEGORY_UNATTRIBUTED;
    return team->category[category] != 0 || !(nobody ? held_only : nobody_only);
}

static void write_teams(const struct metrics_ledger *ledger, const char *currency,
                        struct metrics_text *text)
{
    struct strbuf name = {0};
    strbuf_add(&name, STR("gputally_cost_"));
    for (const char *p = currency; *p; p++)
        strbuf_addc(&name, *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p);
    strbuf_add(&name, STR("_total"));
    metrics_begin(text, name.text, METRIC_COUNTER,
                  "Money of closed hours since the UTC month began, by team and category; the team "
                  "- is nobody's.");
    for (size_t i = 0; i < ledger->state.teams_n; i++)
        for (int c = 0; c < CATEGORY_COUNT; c++) {
            if (!may_come(&ledger->state.teams[i], c))
                continue;
            metrics_sample(text, "");
            metrics_label(text, "team", str_of(ledger->state.teams[i].name));
            metrics_label(text, "category", str_of(category_columns[c]));
            metrics_nano(text, ledger->state.teams[i].category[c]);
        }
    metrics_begin(text, "gputally_gpu_seconds_total", METRIC_COUNTER,
                  "GPU time of closed hours since the UTC month began, by team and what the GPU "
                  "did.");
    for (size_t i = 0; i < ledger->state.teams_n; i++)
        for (int s = 0; s < GPU_STATES; s++) {
            if (!ledger->state.teams[i].gpu_ns[s])
                continue;
            metrics_sample(text, "");
            metrics_label(text, "team", str_of(ledger->state.teams[i].name));
            metrics_label(text, "state", str_of(gpu_state_words[s]));
            metrics_nano(text, ledger->state.teams[i].gpu_ns[s]);
        }
    strbuf_release(&name);
}

static void write_extent(const struct metrics_ledger *ledger, struct span extent,
                         struct metrics_text *text)
{
    if (extent.from >= extent.to)
        return;
    metrics_begin(text, "gputally_ledger_begin_timestamp_seconds", METRIC_GAUGE,
                  "When the first hour of the ledger begins.");
    metrics_sample(text, "");
    metrics_whole(text, extent.from / 1000);
    metrics_begin(text, "gputally_ledger_end_timestamp_seconds", METRIC_GAUGE,
                  "When its last hour ends.");
    metrics_sample(text, "");
    metrics_whole(text, extent.to / 1000);
    if (ledger->span.from >= ledger->span.to)
        return;
    if (ledger->path) {
        metrics_begin(text, "gputally_counters_saved", METRIC_GAUGE,
                      "1 where what the counters show is on disk, for the next start.");
        metrics_sample(text, "");
        metrics_whole(text, ledger->saved);
    }
    metrics_begin(text, "gputally_counters_begin_timestamp_seconds", METRIC_GAUGE,
                  "From when on money and GPU time are counted.");
    metrics_sample(text, "");
    metrics_whole(text, ledger->span.from / 1000);
    metrics_begin(text, "gputally_counters_end_timestamp_seconds", METRIC_GAUGE,
                  "Up to when they are: the end of the last closed hour.");
    metrics_sample(text, "");
    metrics_whole(text, ledger->span.to / 1000);
}

enum err metrics_write_ledger(struct metrics_ledger *ledger, struct api_call *call,
                              struct metrics_text *text, struct error *err)
{
    struct metrics_ledger *of_view = NULL;
    if (api_is_view(call)) /* what others were given must not show: counted afresh */
        ledger = of_view = metrics_ledger_new(NULL);
    pthread_mutex_lock(&ledger->lock);
    enum err code = refresh(ledger, call, err);
    if (code == ERR_OK) {
        write_teams(ledger, call->settings->currency, text);
        write_extent(ledger, call->extent, text);
    }
    pthread_mutex_unlock(&ledger->lock);
    metrics_ledger_free(of_view);
    return code;
}
