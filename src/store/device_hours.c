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
#include "store/lens_hours.h"
#include "store/unpack.h"

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

/* What a thread needs to unpack. */
struct scratch {
    struct strbuf bytes;
    int64_t *values;
    uint32_t *starts;
    size_t room;
};

static void release_scratch(void *context)
{
    struct scratch *scratch = context;
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

static bool get_numbers(struct group_reader *group, const struct hours *hours, int64_t day,
                        enum device_hour_fields fields, struct scratch *scratch)
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
                    const struct hours *hours, int64_t day, enum device_hour_fields fields,
                    struct scratch *scratch)
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

static void reserve_scratch(struct scratch *scratch, size_t n)
{
    if (n + 1 <= scratch->room)
        return;
    scratch->room = n + 1;
    scratch->values = mem_realloc(scratch->values, 2 * scratch->room, sizeof *scratch->values);
    scratch->starts = mem_realloc(scratch->starts, scratch->room + 1, sizeof *scratch->starts);
}

/* In place of what `ret` holds. Bytes are not trusted; COLUMN_PADDING more of them can be read. */
static enum err unpack(struct store *store, const struct unpack_value *value,
                       enum device_hour_fields fields, struct scratch *scratch, struct hours *ret,
                       struct error *err)
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

/* Bytes without room behind them. */
static enum err unpack_copy(struct store *store, int64_t key, struct str packed, struct hours *ret,
                            struct error *err)
{
    static const char slack[COLUMN_PADDING];
    struct scratch scratch = {0};
    strbuf_add(&scratch.bytes, packed);
    strbuf_add(&scratch.bytes, (struct str){slack, sizeof slack});
    struct unpack_value value = {{key}, {scratch.bytes.text, packed.n}};
    enum err code = unpack(store, &value, DEVICE_HOURS_ALL, &scratch, ret, err);
    release_scratch(&scratch);
    return code;
}

enum err device_hours_check(struct store *store, int64_t key, struct str packed, struct error *err)
{
    struct hours hours = {0};
    enum err code = unpack_copy(store, key, packed, &hours, err);
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
        code = unpack_copy(store, key, db_text(get, 0), ret, err);
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

struct reading {
    struct store *store;
    struct span span;
    enum device_hour_fields fields;
    store_device_hours_fn each;
    void *context;
};

static enum err unpack_hours(void *context, void *scratch, const struct unpack_value *value,
                             void *room, struct error *err)
{
    const struct reading *reading = context;
    struct hours *hours = room;
    enum err code = unpack(reading->store, value, reading->fields, scratch, hours, err);
    if (!code && hours_in_day(reading->span, value->keys[0] >> PLACE_BITS) != 0xffffff) {
        take_out(hours, (struct span){TIME_MIN, reading->span.from});
        take_out(hours, (struct span){reading->span.to, TIME_MAX});
    }
    return code;
}

static bool take_hours(void *context, const void *room)
{
    const struct reading *reading = context;
    const struct hours *hours = room;
    return hours->n == 0 || reading->each(reading->context, hours->items, hours->n);
}

static void release_hours(void *room)
{
    free(((struct hours *)room)->items);
}

static enum err read_all(struct reading *reading, struct error *err)
{
    struct store *store = reading->store;
    struct unpacking unpacking = {.store = store,
                                  .rows = db_statement(store, STATEMENT_GPU_HOURS, err),
                                  .keys_n = 1,
                                  .doing = "reading GPU hours",
                                  .context = reading,
                                  .room_size = sizeof(struct hours),
                                  .scratch_size = sizeof(struct scratch),
                                  .unpack = unpack_hours,
                                  .take = take_hours,
                                  .release_room = release_hours,
                                  .release_scratch = release_scratch};
    if (!unpacking.rows)
        return ERR_STORE;
    sqlite3_bind_int64(unpacking.rows, 1, block_key(day_of(reading->span.from), 0));
    sqlite3_bind_int64(unpacking.rows, 2, block_key(day_of(reading->span.to - 1) + 1, 0));
    return unpack_all(&unpacking, err);
}

/* Through a lens: a copy of each hour, cut to what is seen of it. */
struct through_lens {
    struct lens_hours own;
    store_device_hours_fn each;
    void *context;
    struct device_hour *seen;
    size_t room;
};

static bool give_seen(void *context, const struct device_hour *hours, size_t n)
{
    struct through_lens *through = context;
    size_t seen = 0;
    mem_reserve(through->seen, seen, through->room, n);
    for (size_t i = 0; i < n; i++) {
        through->seen[seen] = hours[i];
        seen += lens_hours_cut(&through->own, &through->seen[seen]);
    }
    return seen == 0 || through->each(through->context, through->seen, seen);
}

static enum err read_through_lens(struct reading *reading, struct error *err)
{
    struct through_lens through = {.each = reading->each, .context = reading->context};
    enum err code = lens_hours_read(reading->store, reading->span, &through.own, err);
    reading->each = give_seen;
    reading->context = &through;
    if (code == ERR_OK)
        code = read_all(reading, err);
    free(through.seen);
    lens_hours_release(&through.own);
    return code;
}

enum err store_read_device_hours(struct store *store, struct span span,
                                 enum device_hour_fields fields, store_device_hours_fn each,
                                 void *context, struct error *err)
{
    struct reading reading = {store, store_span_with_keys(span), fields, each, context};
    if (reading.span.from >= reading.span.to)
        return ERR_OK;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = store->lens ? read_through_lens(&reading, err) : read_all(&reading, err);
    store_read_end(store);
    return code;
}
