/* Rows are in order of device and hour, so that a device's hours are a run; times inside an hour
 * are kept as their distance from it. */
#include "store/device_pack.h"

#include <stdlib.h>

#include "store/column.h"
#include "store/group.h"

#define FORMAT 1
#define HOURS_MAX (24 * 4096) /* of a node's day */

/* X(field): whole numbers that are kept as they are */
#define PLAIN_TABLE(X)                                                                             \
    X(up_ms)                                                                                       \
    X(covered_ms)                                                                                  \
    X(observed_ms)                                                                                 \
    X(held_ms)                                                                                     \
    X(util)                                                                                        \
    X(util_seen_ms)                                                                                \
    X(mem)                                                                                         \
    X(mem_seen_ms)                                                                                 \
    X(power_mw_ms)                                                                                 \
    X(power_seen_ms)                                                                               \
    X(power_max_mw)                                                                                \
    X(power_limit_mw)                                                                              \
    X(idle_after_ms)                                                                               \
    X(floor_samples)                                                                               \
    X(floor_mw)

enum {
    HOURS_DEVICE,
    HOURS_MODEL,
    HOURS_HOUR,
    HOURS_WORKED, /* 1 + ms into the hour; 0: not in this hour */
    HOURS_IDLE,   /* likewise */
#define X(field) HOURS_##field,
    PLAIN_TABLE(X)
#undef X
        HOURS_COLUMNS
};

static const size_t plain_fields[] = {
#define X(field) offsetof(struct device_hour, field),
    PLAIN_TABLE(X)
#undef X
};

static int64_t in_hour(time_ms t, time_ms hour)
{
    return t == TIME_MIN ? 0 : t - hour + 1;
}

/* Where each device's run begins, and the end: starts[n + 1]. How many runs. */
static size_t find_runs(const int64_t *devices, size_t n, uint32_t *starts)
{
    size_t runs = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || devices[i] != devices[i - 1])
            starts[runs++] = (uint32_t)i;
    starts[runs] = (uint32_t)n;
    return runs;
}

static void put_numbers(struct group_writer *group, const struct device_rows *hours, int64_t day,
                        int64_t *values, struct runs runs)
{
    for (int column = HOURS_HOUR; column < HOURS_COLUMNS; column++) {
        for (size_t i = 0; i < hours->n; i++) {
            const struct device_hour *hour = &hours->items[i];
            if (column == HOURS_HOUR)
                values[i] = (hour->hour - day * DAY_MS) / HOUR_MS;
            else if (column == HOURS_WORKED)
                values[i] = in_hour(hour->worked_until, hour->hour);
            else if (column == HOURS_IDLE)
                values[i] = in_hour(hour->idle_from, hour->hour);
            else
                memcpy(&values[i], (const char *)hour + plain_fields[column - HOURS_IDLE - 1],
                       sizeof *values);
        }
        group_put(group, values, hours->n, runs);
    }
}

enum err device_pack(struct store *store, const struct device_rows *hours, int64_t day,
                     struct strbuf *out, struct error *err)
{
    struct group_writer group = {0};
    int64_t *values = mem_alloc((hours->n + 1) * sizeof *values);
    uint32_t *starts = mem_alloc((hours->n + 2) * sizeof *starts), id = 0;
    size_t runs_n = 0;
    enum err code = ERR_OK;
    for (int column = HOURS_DEVICE; column <= HOURS_MODEL && !code; column++) {
        for (size_t i = 0; i < hours->n && !code; i++) {
            const struct device_hour *hour = &hours->items[i];
            code = dictionary_put(store, column == HOURS_DEVICE ? hour->device : hour->model, &id,
                                  err);
            values[i] = id;
        }
        if (column == HOURS_DEVICE)
            runs_n = find_runs(values, hours->n, starts);
        group_put(&group, values, hours->n, (struct runs){NULL, 0});
    }
    if (!code)
        put_numbers(&group, hours, day, values, (struct runs){starts, runs_n});
    strbuf_clear(out);
    strbuf_addc(out, FORMAT);
    varint_put(out, hours->n);
    group_end(&group, out);
    free(starts);
    free(values);
    return code;
}

void device_scratch_release(void *context)
{
    struct device_scratch *scratch = context;
    strbuf_release(&scratch->bytes);
    free(scratch->values);
    free(scratch->starts);
}

static bool set_hours(struct device_hour *items, size_t n, int64_t day, const int64_t *values)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] < 0 || values[i] > 23)
            return false;
        items[i].hour = day * DAY_MS + values[i] * HOUR_MS;
    }
    return true;
}

/* A time inside the hour. */
static bool set_times(struct device_hour *items, size_t n, size_t offset, const int64_t *values)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] < 0 || values[i] > HOUR_MS + 1)
            return false;
        time_ms t = values[i] ? items[i].hour + values[i] - 1 : TIME_MIN;
        memcpy((char *)&items[i] + offset, &t, sizeof t);
    }
    return true;
}

static void set_plain(struct device_hour *items, size_t n, size_t offset, const int64_t *values)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)&items[i] + offset, &values[i], sizeof *values);
}

static bool set_names(const struct store *store, struct device_hour *items, size_t n, size_t offset,
                      const int64_t *values)
{
    name_t name = NAME_NONE;
    for (size_t i = 0; i < n; i++) {
        if ((i == 0 || values[i] != values[i - 1]) &&
            !dictionary_get(store, (uint64_t)values[i], &name))
            return false;
        memcpy((char *)&items[i] + offset, &name, sizeof name);
    }
    return true;
}

static bool is_wanted(enum device_hour_fields fields, int column)
{
    if (fields == DEVICE_HOURS_ALL)
        return true;
    switch (column) {
    case HOURS_covered_ms:
    case HOURS_held_ms:
    case HOURS_util:
    case HOURS_util_seen_ms:
    case HOURS_mem:
    case HOURS_mem_seen_ms:
    case HOURS_power_mw_ms:
    case HOURS_power_seen_ms:
    case HOURS_power_max_mw:
        return false;
    default:
        return true;
    }
}

static bool get_numbers(struct group_reader *group, const struct device_rows *hours, int64_t day,
                        enum device_hour_fields fields, struct device_scratch *scratch)
{
    struct device_hour *items = hours->items;
    size_t n = hours->n, runs_n = find_runs(scratch->values, n, scratch->starts);
    struct runs runs = {scratch->starts, runs_n};
    for (int column = HOURS_MODEL + 1; column < HOURS_COLUMNS; column++) {
        if (!is_wanted(fields, column)) {
            if (!group_skip(group, n, runs))
                return false;
            continue;
        }
        bool plain = column > HOURS_IDLE;
        if (plain && group_skip_zero(group))
            continue; /* as it is */
        bool fine = group_get(group, scratch->values, n, runs);
        if (fine && column == HOURS_HOUR)
            fine = set_hours(items, n, day, scratch->values);
        else if (fine && !plain)
            fine = set_times(items, n,
                             column == HOURS_WORKED ? offsetof(struct device_hour, worked_until)
                                                    : offsetof(struct device_hour, idle_from),
                             scratch->values);
        else if (fine)
            set_plain(items, n, plain_fields[column - HOURS_IDLE - 1], scratch->values);
        if (!fine)
            return false;
    }
    return true;
}

/* Models come after devices, and runs are those of devices. */
static bool get_all(const struct store *store, struct group_reader *group,
                    const struct device_rows *hours, int64_t day, enum device_hour_fields fields,
                    struct device_scratch *scratch)
{
    struct runs none = {NULL, 0};
    int64_t *devices = scratch->values, *models = devices + hours->n;
    return group_get(group, devices, hours->n, none) &&
           set_names(store, hours->items, hours->n, offsetof(struct device_hour, device),
                     devices) &&
           group_get(group, models, hours->n, none) &&
           set_names(store, hours->items, hours->n, offsetof(struct device_hour, model), models) &&
           get_numbers(group, hours, day, fields, scratch);
}

static void reserve_scratch(struct device_scratch *scratch, size_t n)
{
    if (n + 1 <= scratch->room)
        return;
    scratch->room = n + 1;
    scratch->values = mem_realloc(scratch->values, 2 * scratch->room, sizeof *scratch->values);
    scratch->starts = mem_realloc(scratch->starts, scratch->room + 1, sizeof *scratch->starts);
}

enum err device_unpack(struct store *store, const struct unpack_value *value,
                       enum device_hour_fields fields, struct device_scratch *scratch,
                       struct device_rows *ret, struct error *err)
{
    struct place place;
    uint64_t n = 0;
    struct group_reader group;
    struct str in = value->packed;
    int64_t key = value->keys[0];
    bool fine = places_get(store, key & ((1 << PLACE_BITS) - 1), &place) && in.n && *in.p == FORMAT;
    ret->n = 0;
    if (fine) {
        in.p++, in.n--;
        fine = varint_get(&in, &n) && n <= HOURS_MAX && group_begin(&group, &in, HOURS_COLUMNS);
    }
    if (fine) {
        mem_reserve(ret->items, ret->n, ret->room, n);
        reserve_scratch(scratch, n);
        if (n)
            memset(ret->items, 0, n * sizeof *ret->items);
        ret->n = n;
        fine = get_all(store, &group, ret, key >> PLACE_BITS, fields, scratch);
        for (size_t i = 0; i < n; i++)
            ret->items[i].cluster = place.cluster, ret->items[i].node = place.node;
    }
    ret->n = fine ? n : 0;
    return fine ? ERR_OK : db_corrupt(store, "a node's GPU hours cannot be read", err);
}
