/* What GPUs did by the hour, on disk: a block of columns a node and UTC day (device_pack.c), beside
 * the block of its rows. Unlike rows these have no roll-up: whoever reads them (the idle scan)
 * wants all of them. They are written as they come, since a day of a node is a few hundred bytes.
 */
#include <stdlib.h>

#include "store/block.h"
#include "store/device_pack.h"
#include "store/lens_hours.h"

/* Bytes without room behind them. */
static enum err unpack_copy(struct store *store, int64_t key, struct str packed,
                            struct device_rows *ret, struct error *err)
{
    static const char slack[COLUMN_PADDING];
    struct device_scratch scratch = {0};
    strbuf_add(&scratch.bytes, packed);
    strbuf_add(&scratch.bytes, (struct str){slack, sizeof slack});
    struct unpack_value value = {{key}, {scratch.bytes.text, packed.n}};
    enum err code = device_unpack(store, &value, DEVICE_HOURS_ALL, &scratch, ret, err);
    device_scratch_release(&scratch);
    return code;
}

enum err device_hours_check(struct store *store, int64_t key, struct str packed, struct error *err)
{
    struct device_rows hours = {0};
    enum err code = unpack_copy(store, key, packed, &hours, err);
    free(hours.items);
    return code;
}

static enum err read_key(struct store *store, int64_t key, struct device_rows *ret,
                         struct error *err)
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

static enum err write_key(struct store *store, int64_t key, const struct device_rows *hours,
                          struct error *err)
{
    struct strbuf packed = {0};
    enum err code = hours->n ? device_pack(store, hours, key >> PLACE_BITS, &packed, err) : ERR_OK;
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

static void take_out(struct device_rows *hours, struct span span)
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
    struct device_rows merged = {0};
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
        struct device_rows rest = {0};
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
    struct device_rows *hours = room;
    enum err code = device_unpack(reading->store, value, reading->fields, scratch, hours, err);
    if (!code && hours_in_day(reading->span, value->keys[0] >> PLACE_BITS) != 0xffffff) {
        take_out(hours, (struct span){TIME_MIN, reading->span.from});
        take_out(hours, (struct span){reading->span.to, TIME_MAX});
    }
    return code;
}

static bool take_hours(void *context, const void *room)
{
    const struct reading *reading = context;
    const struct device_rows *hours = room;
    return hours->n == 0 || reading->each(reading->context, hours->items, hours->n);
}

static void release_hours(void *room)
{
    free(((struct device_rows *)room)->items);
}

static enum err read_all(struct reading *reading, struct error *err)
{
    struct store *store = reading->store;
    struct unpacking unpacking = {.store = store,
                                  .rows = db_statement(store, STATEMENT_GPU_HOURS, err),
                                  .keys_n = 1,
                                  .doing = "reading GPU hours",
                                  .context = reading,
                                  .room_size = sizeof(struct device_rows),
                                  .scratch_size = sizeof(struct device_scratch),
                                  .unpack = unpack_hours,
                                  .take = take_hours,
                                  .release_room = release_hours,
                                  .release_scratch = device_scratch_release};
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
