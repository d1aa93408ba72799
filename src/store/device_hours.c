/* What GPUs did by the hour, on disk: a block of columns a node and UTC day, beside the block of
 * its rows. Rows are in order of device and hour, so that a device's hours are a run; times inside
 * an hour are kept as their distance from it.
 *
 * Unlike rows these have no roll-up: whoever reads them (the idle scan) wants all of them. They are
 * written as they come, since a day of a node is a few hundred bytes. */
#include <stdlib.h>

#include "store/block.h"
#include "store/group.h"
#include "store/internal.h"

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

struct hours {
    struct device_hour *items;
    size_t n, room;
};

static int64_t in_hour(time_ms t, time_ms hour)
{
    return t == TIME_MIN ? 0 : t - hour + 1;
}

/* Where each device's run begins, and the end. */
static uint32_t *runs_of(const int64_t *devices, size_t n, size_t *ret_n)
{
    uint32_t *starts = mem_alloc((n + 2) * sizeof *starts);
    *ret_n = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || devices[i] != devices[i - 1])
            starts[(*ret_n)++] = (uint32_t)i;
    starts[*ret_n] = (uint32_t)n;
    return starts;
}

static void put_numbers(struct group_writer *group, const struct hours *hours, int64_t day,
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

static enum err pack(struct store *store, const struct hours *hours, int64_t day,
                     struct strbuf *out, struct error *err)
{
    struct group_writer group = {0};
    int64_t *values = mem_alloc((hours->n + 1) * sizeof *values);
    uint32_t *starts = NULL, id = 0;
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
            starts = runs_of(values, hours->n, &runs_n);
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

static bool get_numbers(struct group_reader *group, struct device_hour *items, size_t n,
                        int64_t day, int64_t *values, struct runs runs)
{
    for (int column = HOURS_HOUR; column < HOURS_COLUMNS; column++) {
        if (!group_get(group, values, n, runs))
            return false;
        for (size_t i = 0; i < n; i++) {
            if (column <= HOURS_IDLE && (values[i] < 0 || values[i] > HOUR_MS + 1))
                return false;
            time_ms inside = values[i] ? items[i].hour + values[i] - 1 : TIME_MIN;
            if (column == HOURS_HOUR && values[i] > 23)
                return false;
            if (column == HOURS_HOUR)
                items[i].hour = day * DAY_MS + values[i] * HOUR_MS;
            else if (column == HOURS_WORKED)
                items[i].worked_until = inside;
            else if (column == HOURS_IDLE)
                items[i].idle_from = inside;
            else
                memcpy((char *)&items[i] + plain_fields[column - HOURS_IDLE - 1], &values[i],
                       sizeof *values);
        }
    }
    return true;
}

static bool get_all(const struct store *store, struct group_reader *group,
                    struct device_hour *items, size_t n, int64_t day)
{
    int64_t *values = mem_alloc((n + 1) * sizeof *values);
    uint32_t *starts = NULL;
    size_t runs_n = 0;
    bool fine = true;
    for (int column = HOURS_DEVICE; column <= HOURS_MODEL && fine; column++) {
        fine = group_get(group, values, n, (struct runs){NULL, 0});
        if (fine && column == HOURS_DEVICE)
            starts = runs_of(values, n, &runs_n);
        for (size_t i = 0; i < n && fine; i++)
            fine = dictionary_get(store, (uint64_t)values[i],
                                  column == HOURS_DEVICE ? &items[i].device : &items[i].model);
    }
    fine = fine && get_numbers(group, items, n, day, values, (struct runs){starts, runs_n});
    free(starts);
    free(values);
    return fine;
}

/* Appended to `ret`. Bytes are not trusted. */
static enum err unpack(struct store *store, int64_t key, struct str packed, struct hours *ret,
                       struct error *err)
{
    struct place place;
    uint64_t n = 0;
    struct group_reader group;
    char *bytes = mem_zalloc(packed.n + COLUMN_PADDING, 1);
    if (packed.n)
        memcpy(bytes, packed.p, packed.n);
    struct str in = {bytes, packed.n};
    bool fine = places_get(store, key & ((1 << PLACE_BITS) - 1), &place) && in.n && *in.p == FORMAT;
    if (fine) {
        in.p++, in.n--;
        fine = varint_get(&in, &n) && n <= HOURS_MAX && group_begin(&group, &in, HOURS_COLUMNS);
    }
    if (fine) {
        mem_reserve(ret->items, ret->n, ret->room, n);
        struct device_hour *items = ret->items + ret->n;
        if (n)
            memset(items, 0, n * sizeof *items);
        fine = get_all(store, &group, items, n, key >> PLACE_BITS);
        for (size_t i = 0; i < n; i++)
            items[i].cluster = place.cluster, items[i].node = place.node;
        ret->n += fine ? n : 0;
    }
    free(bytes);
    return fine ? ERR_OK : db_corrupt(store, "a node's GPU hours cannot be read", err);
}

enum err device_hours_check(struct store *store, int64_t key, struct str packed, struct error *err)
{
    struct hours hours = {0};
    enum err code = unpack(store, key, packed, &hours, err);
    free(hours.items);
    return code;
}

static enum err read_key(struct store *store, int64_t key, struct hours *ret, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_GPU_HOURS_GET, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, key);
    int rc = sqlite3_step(get);
    enum err code = ERR_OK;
    if (rc == SQLITE_ROW)
        code = unpack(store, key, db_text(get, 0), ret, err);
    else if (rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading GPU hours", err);
    sqlite3_reset(get);
    return code;
}

static enum err write_key(struct store *store, int64_t key, const struct hours *hours,
                          struct error *err)
{
    struct strbuf packed = {0};
    enum err code = hours->n ? pack(store, hours, key >> PLACE_BITS, &packed, err) : ERR_OK;
    sqlite3_stmt *put =
        code ? NULL
             : db_statement(store, hours->n ? STATEMENT_GPU_HOURS_PUT : STATEMENT_GPU_HOURS_DROP,
                            err);
    if (put) {
        sqlite3_bind_int64(put, 1, key);
        if (hours->n)
            sqlite3_bind_blob64(put, 2, packed.text, packed.n, SQLITE_STATIC);
        code = db_run(store, put, "writing GPU hours", err);
        sqlite3_clear_bindings(put);
    } else if (!code) {
        code = ERR_STORE;
    }
    strbuf_release(&packed);
    return code;
}

static void take_out(struct hours *hours, struct span span)
{
    size_t n = 0;
    for (size_t i = 0; i < hours->n; i++)
        if (hours->items[i].hour < span.from || hours->items[i].hour >= span.to)
            hours->items[n++] = hours->items[i];
    hours->n = n;
}

static int by_device_and_hour(const void *a, const void *b, void *names)
{
    const struct device_hour *left = a, *right = b;
    int order = left->device == right->device
                    ? 0
                    : str_cmp(names_text(names, left->device), names_text(names, right->device));
    return order ? order : (left->hour > right->hour) - (left->hour < right->hour);
}

/* The nodes of a batch, and which of its GPU hours are theirs. */
struct node_part {
    struct place place;
    const struct device_hour *hour; /* NULL: only that the node is in the batch */
};

static int by_place(const void *a, const void *b)
{
    const struct node_part *left = a, *right = b;
    if (left->place.cluster != right->place.cluster)
        return left->place.cluster < right->place.cluster ? -1 : 1;
    if (left->place.node != right->place.node)
        return left->place.node < right->place.node ? -1 : 1;
    return (left->hour > right->hour) - (left->hour < right->hour);
}

static struct node_part *parts_of(const struct row_batch *batch, size_t *ret_n)
{
    struct node_part *parts =
        mem_alloc((batch->device_hours_n + batch->node_hours_n + 1) * sizeof *parts);
    size_t n = 0;
    for (size_t i = 0; i < batch->node_hours_n; i++) {
        struct place place = {batch->node_hours[i].cluster, batch->node_hours[i].node};
        if (n == 0 || parts[n - 1].place.cluster != place.cluster ||
            parts[n - 1].place.node != place.node)
            parts[n++] = (struct node_part){place, NULL};
    }
    for (size_t i = 0; i < batch->device_hours_n; i++) {
        const struct device_hour *hour = &batch->device_hours[i];
        parts[n++] = (struct node_part){{hour->cluster, hour->node}, hour};
    }
    qsort(parts, n, sizeof *parts, by_place);
    *ret_n = n;
    return parts;
}

/* Replace the batch's hours of a node's day by those of parts [0, n) that lie in it. */
static enum err put_day(struct store *store, const struct node_part *parts, size_t n,
                        struct span hours, int64_t day, struct error *err)
{
    uint32_t id;
    struct hours merged = {0};
    enum err code = places_put(store, parts->place, &id, err);
    if (!code)
        code = read_key(store, block_key(day, id), &merged, err);
    size_t had = merged.n;
    if (!code)
        take_out(&merged, hours);
    for (size_t i = 0; i < n && !code; i++)
        if (parts[i].hour && day_of(parts[i].hour->hour) == day)
            mem_push(merged.items, merged.n, merged.room, *parts[i].hour);
    if (merged.n)
        qsort_r(merged.items, merged.n, sizeof *merged.items, by_device_and_hour, store->names);
    if (!code && (had || merged.n))
        code = write_key(store, block_key(day, id), &merged, err);
    free(merged.items);
    return code;
}

enum err device_hours_put(struct store *store, const struct row_batch *batch, struct error *err)
{
    size_t n, to;
    struct node_part *parts = parts_of(batch, &n);
    enum err code = ERR_OK;
    for (size_t from = 0; from < n && !code; from = to) {
        struct place place = parts[from].place;
        for (to = from; to < n && parts[to].place.cluster == place.cluster &&
                        parts[to].place.node == place.node;)
            to++;
        for (int64_t day = day_of(batch->hours.from); day <= day_of(batch->hours.to - 1) && !code;
             day++)
            code = put_day(store, parts + from, to - from, batch->hours, day, err);
    }
    free(parts);
    return code;
}

static enum err keys_of(struct store *store, struct span span, int64_t **ret, size_t *ret_n,
                        struct error *err)
{
    *ret = NULL;
    *ret_n = 0;
    size_t room = 0;
    sqlite3_stmt *find = db_statement(store, STATEMENT_GPU_HOURS_KEYS, err);
    if (!find)
        return ERR_STORE;
    sqlite3_bind_int64(find, 1, block_key(day_of(span.from), 0));
    sqlite3_bind_int64(find, 2, block_key(day_of(span.to - 1) + 1, 0));
    int rc;
    while ((rc = sqlite3_step(find)) == SQLITE_ROW) {
        int64_t key = sqlite3_column_int64(find, 0);
        if (places_is_written(store, key & ((1 << PLACE_BITS) - 1)))
            mem_push(*ret, *ret_n, room, key);
    }
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading GPU hours", err);
    sqlite3_reset(find);
    return code;
}

enum err device_hours_clear(struct store *store, struct span span, struct error *err)
{
    int64_t *keys = NULL;
    size_t n = 0;
    enum err code = span.from < span.to ? keys_of(store, span, &keys, &n, err) : ERR_OK;
    for (size_t i = 0; i < n && !code; i++) {
        struct hours rest = {0};
        bool whole = hours_in_day(span, keys[i] >> PLACE_BITS) == 0xffffff;
        code = whole ? ERR_OK : read_key(store, keys[i], &rest, err);
        take_out(&rest, span);
        if (!code)
            code = write_key(store, keys[i], &rest, err);
        free(rest.items);
    }
    free(keys);
    return code;
}

/* The days of [from, to) that may have keys: block_key() of days far off would wrap. */
static struct span bounded(struct span span)
{
    const time_ms far = DAY_MS << 24;
    span.from = span.from < -far ? -far : span.from;
    span.to = span.to > far ? far : span.to;
    return span;
}

static enum err read_all(struct store *store, struct span span, store_device_hours_fn each,
                         void *context, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_GPU_HOURS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, block_key(day_of(span.from), 0));
    sqlite3_bind_int64(get, 2, block_key(day_of(span.to - 1) + 1, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    bool more = true;
    struct hours hours = {0};
    while (!code && more && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        hours.n = 0;
        code = unpack(store, sqlite3_column_int64(get, 0), db_text(get, 1), &hours, err);
        if (code)
            break;
        if (hours_in_day(span, sqlite3_column_int64(get, 0) >> PLACE_BITS) != 0xffffff) {
            take_out(&hours, (struct span){TIME_MIN, span.from});
            take_out(&hours, (struct span){span.to, TIME_MAX});
        }
        more = hours.n == 0 || each(context, hours.items, hours.n);
    }
    if (!code && more && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading GPU hours", err);
    sqlite3_reset(get);
    free(hours.items);
    return code;
}

enum err store_read_device_hours(struct store *store, struct span span, store_device_hours_fn each,
                                 void *context, struct error *err)
{
    span = bounded(span);
    if (span.from >= span.to || store->lens)
        return ERR_OK;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = read_all(store, span, each, context, err);
    store_read_end(store);
    return code;
}

static enum err read_nodes(struct store *store, struct span span, store_node_hours_fn each,
                           void *context, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, cell_key(day_of(span.from), 0, 0));
    sqlite3_bind_int64(get, 2, cell_key(day_of(span.to - 1) + 1, 0, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    bool more = true;
    struct block *block = store->reading;
    while (!code && more && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        struct place place;
        int64_t key = sqlite3_column_int64(get, 0);
        if (!places_get(store, cell_place(key), &place)) {
            code = db_corrupt(store, "a block of an unknown node", err);
            break;
        }
        code = block_open_node_hours(store, block, cell_day(key), place.cluster, place.node,
                                     db_text(get, 2), err);
        size_t from = 0, to = code ? 0 : block->node_hours_n;
        while (from < to && block->node_hours[from].hour < span.from)
            from++;
        while (to > from && block->node_hours[to - 1].hour >= span.to)
            to--;
        more = from == to || each(context, block->node_hours + from, to - from);
    }
    if (!code && more && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading node-hours", err);
    sqlite3_reset(get);
    return code;
}

enum err store_read_node_hours(struct store *store, struct span span, store_node_hours_fn each,
                               void *context, struct error *err)
{
    span = bounded(span);
    if (span.from >= span.to || store->lens)
        return ERR_OK;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = read_nodes(store, span, each, context, err);
    store_read_end(store);
    return code;
}
