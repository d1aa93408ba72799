/* A small fleet for tests of the ledger: series are named in one line, samples come every 30 s, and
 * what is booked is kept with all checks of ledger_checks.h. The price is $3.60 a GPU and hour,
 * which is 1000 nano a ms. */
#ifndef GPUTALLY_TESTS_FLEET_FIXTURE_H
#define GPUTALLY_TESTS_FLEET_FIXTURE_H

#include "../../lib/ledger_checks.h"
#include "../../lib/unit.h"
#include "fleet/objects.h"
#include "ledger/engine.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00Z */
#define MINUTE_MS INT64_C(60000)
#define GPU_PRICE INT64_C(3600000000)
#define SCRAPE_MS INT64_C(30000)
#define NANO_PER_MS 1000

struct fleet {
    struct settings settings;
    struct names *names;
    struct prices *prices;
    struct owners *owners;
    struct intake *intake;
    int threads;
    struct strbuf carry;
    struct row *rows;
    size_t rows_n, rows_room;
    struct node_hour *hours;
    size_t hours_n, hours_room;
    struct note *notes;
    size_t notes_n, notes_room;
    struct machine_hour *machines;
    size_t machines_n, machines_room;
    struct workload_hour *workloads;
    size_t workloads_n, workloads_room;
    struct namespace_hour *spaces;
    size_t spaces_n, spaces_room;
};

static inline void fleet_open(struct fleet *fleet, int64_t gpu_price)
{
    *fleet = (struct fleet){
        .names = names_new(), .prices = prices_new(), .owners = owners_new_default(), .threads = 1};
    settings_defaults(&fleet->settings);
    struct price_rule rule = {.kind = PRICE_RULE_GPU,
                              .selector = {.any_capacity = true, .valid = {TIME_MIN, TIME_MAX}},
                              .amount = gpu_price,
                              .source = STR("test")};
    if (gpu_price)
        prices_add_rule(fleet->prices, &rule);
    struct price_policy policy = {.vcpu = -1, .gib = -1, .no_catalogue = true};
    prices_set_policy(fleet->prices, &policy);
    prices_ready(fleet->prices);
    fleet->intake = intake_new(&fleet->settings, fleet->names);
}

static inline void fleet_forget_rows(struct fleet *fleet)
{
    fleet->rows_n = fleet->hours_n = fleet->notes_n = 0;
    fleet->machines_n = fleet->workloads_n = fleet->spaces_n = 0;
}

static inline void fleet_close(struct fleet *fleet)
{
    intake_free(fleet->intake);
    prices_free(fleet->prices);
    owners_free(fleet->owners);
    names_free(fleet->names);
    strbuf_release(&fleet->carry);
    free(fleet->rows);
    free(fleet->hours);
    free(fleet->notes);
    free(fleet->machines);
    free(fleet->workloads);
    free(fleet->spaces);
}

#define FLEET_LABELS_MAX 24

/* "METRIC k=v,k=v" */
static inline series_id fleet_series(struct fleet *fleet, const char *metric, const char *pairs)
{
    struct label labels[FLEET_LABELS_MAX] = {{STR("__name__"), str_of(metric)}};
    size_t n = 1;
    char *text = str_dup(str_of(pairs)), *rest = text, *pair;
    while ((pair = strsep(&rest, ","))) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = 0;
        invariant(n < FLEET_LABELS_MAX);
        labels[n++] = (struct label){str_of(pair), str_of(value)};
    }
    series_id id = intake_series(fleet->intake, labels, n);
    free(text);
    return id;
}

/* One sample, at ms after T0. */
static inline void fleet_sample(struct fleet *fleet, const char *metric, const char *labels,
                                time_ms at, double v)
{
    time_ms t = T0 + at;
    intake_append(fleet->intake, fleet_series(fleet, metric, labels), &t, &v, 1);
}

/* A sample every 30 s with stamps in (from, to], minutes after T0: they cover [from, to). */
static inline void fleet_samples(struct fleet *fleet, const char *metric, const char *labels,
                                 int from, int to, double v)
{
    series_id id = fleet_series(fleet, metric, labels);
    for (time_ms at = from * MINUTE_MS + SCRAPE_MS; at <= to * MINUTE_MS; at += SCRAPE_MS) {
        time_ms t = T0 + at;
        intake_append(fleet->intake, id, &t, &v, 1);
    }
}

/* GPU_UTIL in percent and SM_ACTIVE as a ratio. */
static inline void fleet_gpu(struct fleet *fleet, const char *labels, int from, int to,
                             double percent, double sm)
{
    fleet_samples(fleet, "DCGM_FI_DEV_GPU_UTIL", labels, from, to, percent);
    fleet_samples(fleet, "DCGM_FI_PROF_SM_ACTIVE", labels, from, to, sm);
}

/* A record from minute `from` to `to`, both included, one sample every 30 s. */
static inline void fleet_record(struct fleet *fleet, const char *metric, const char *labels,
                                int from, int to, double v)
{
    fleet_sample(fleet, metric, labels, from * MINUTE_MS, v);
    fleet_samples(fleet, metric, labels, from, to, v);
}

static inline void fleet_keep(void *context, const struct row_batch *batch)
{
    struct fleet *fleet = context;
    check_batch(batch);
    for (size_t i = 0; i < batch->rows_n; i++)
        mem_push(fleet->rows, fleet->rows_n, fleet->rows_room, batch->rows[i]);
    for (size_t i = 0; i < batch->node_hours_n; i++)
        mem_push(fleet->hours, fleet->hours_n, fleet->hours_room, batch->node_hours[i]);
    for (size_t i = 0; i < batch->notes_n; i++)
        mem_push(fleet->notes, fleet->notes_n, fleet->notes_room, batch->notes[i]);
    for (size_t i = 0; i < batch->machine_hours_n; i++)
        mem_push(fleet->machines, fleet->machines_n, fleet->machines_room, batch->machine_hours[i]);
    for (size_t i = 0; i < batch->workload_hours_n; i++)
        mem_push(fleet->workloads, fleet->workloads_n, fleet->workloads_room,
                 batch->workload_hours[i]);
    for (size_t i = 0; i < batch->namespace_hours_n; i++)
        mem_push(fleet->spaces, fleet->spaces_n, fleet->spaces_room, batch->namespace_hours[i]);
}

/* Book hours [from, to) after T0. The intake is a fresh one afterwards. */
static inline void fleet_book(struct fleet *fleet, int from, int to)
{
    struct engine_options options = {&fleet->settings, fleet->prices, fleet->owners, fleet->threads,
                                     NULL};
    struct span hours = {T0 + from * HOUR_MS, T0 + to * HOUR_MS};
    strbuf_clear(&fleet->carry);
    assert_int_equal(
        engine_book(fleet->intake, hours, &options, fleet_keep, fleet, &fleet->carry, NULL),
        ERR_OK);
    intake_free(fleet->intake);
    fleet->intake = intake_new(&fleet->settings, fleet->names);
}

static inline const char *fleet_text(const struct fleet *fleet, name_t id)
{
    return names_text(fleet->names, id).p;
}

/* The row of an hour after T0, a device (or DEVICE/INSTANCE) and pod ("": unheld); NULL: none. */
static inline const struct row *fleet_find(const struct fleet *fleet, int hour, const char *device,
                                           const char *pod)
{
    for (size_t i = 0; i < fleet->rows_n; i++) {
        const struct row *row = &fleet->rows[i];
        char slot[256];
        snprintf(slot, sizeof slot, "%s%s%s", fleet_text(fleet, row->key.device),
                 row->key.instance == NAME_NONE ? "" : "/", fleet_text(fleet, row->key.instance));
        if (row->key.hour == T0 + hour * HOUR_MS && strcmp(slot, device) == 0 &&
            strcmp(fleet_text(fleet, row->key.pod), pod) == 0)
            return row;
    }
    return NULL;
}

static inline const struct row *fleet_row(const struct fleet *fleet, int hour, const char *device,
                                          const char *pod)
{
    const struct row *row = fleet_find(fleet, hour, device, pod);
    if (!row) {
        for (size_t i = 0; i < fleet->rows_n; i++)
            print_message("row of hour %+lld: node %s device %s/%s pod %s\n",
                          (long long)((fleet->rows[i].key.hour - T0) / HOUR_MS),
                          fleet_text(fleet, fleet->rows[i].key.node),
                          fleet_text(fleet, fleet->rows[i].key.device),
                          fleet_text(fleet, fleet->rows[i].key.instance),
                          fleet_text(fleet, fleet->rows[i].key.pod));
        fail_msg("no row of hour %d, %s, '%s'", hour, device, pod);
    }
    return row;
}

static inline int64_t fleet_money(const struct row *row, enum category category)
{
    return row->category[category];
}

#define assert_money(row, name, nano) assert_int_equal((row)->category[CATEGORY_##name], (nano))

#endif
