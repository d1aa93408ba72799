/* What hosts, workloads and namespaces did by the hour, on disk: packed columns (load_pack.c), one
 * value of the table load_hours for each kind, UTC day and place; workloads and namespaces are of
 * their cluster's place, the one without a node. Readers get them by the hour. Like gpu_hours they
 * have no roll-up, and are written as they come. */
#include <stdlib.h>

#include "store/lens.h"
#include "store/load_pack.h"
#include "store/unpack.h"

/* ------------------------------------------------------------------ a value of the table */

/* What a value is of. */
struct key {
    enum load_kind kind;
    int64_t day, place;
};

static void bind_key(sqlite3_stmt *statement, const struct key *key)
{
    sqlite3_bind_int(statement, 1, (int)key->kind);
    sqlite3_bind_int64(statement, 2, key->day);
    sqlite3_bind_int64(statement, 3, key->place);
}

static enum err read_key(struct store *store, const struct key *key, struct load_rows *ret,
                         struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_LOAD_HOURS_GET, err);
    if (!get)
        return ERR_STORE;
    bind_key(get, key);
    int rc = sqlite3_step(get);
    enum err code = ERR_OK;
    if (rc == SQLITE_ROW)
        code = load_unpack(store, key->kind, key->day, key->place, db_text(get, 0), ret, err);
    else if (rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading hours of hosts or workloads", err);
    sqlite3_reset(get);
    return code;
}

static enum err write_key(struct store *store, const struct key *key, const struct load_rows *items,
                          struct error *err)
{
    struct strbuf packed = {0};
    enum err code = items->n ? load_pack(store, items, key->day, &packed, err) : ERR_OK;
    sqlite3_stmt *put = NULL;
    if (!code)
        put = db_statement(store, items->n ? STATEMENT_LOAD_HOURS_PUT : STATEMENT_LOAD_HOURS_DROP,
                           err);
    if (put) {
        bind_key(put, key);
        if (items->n)
            sqlite3_bind_blob64(put, 4, packed.text, packed.n, SQLITE_STATIC);
        code = db_run(store, put, "writing hours of hosts or workloads", err);
        sqlite3_clear_bindings(put);
    } else if (!code) {
        code = ERR_STORE;
    }
    strbuf_release(&packed);
    return code;
}

static void take_out(struct load_rows *items, struct span span)
{
    size_t n = 0;
    for (size_t i = 0; i < items->n; i++) {
        time_ms hour = load_row_hour(items->layout, load_row(items, i));
        if (hour >= span.from && hour < span.to)
            continue;
        if (n != i)
            memcpy(load_row(items, n), load_row(items, i), items->layout->size);
        n++;
    }
    items->n = n;
}

/* ------------------------------------------------------------------ replacing */

struct ordering {
    const struct load_layout *layout;
    const struct names *names;
    bool hour_first;
};

static int by_identity_and_hour(const void *a, const void *b, void *context)
{
    const struct ordering *ordering = context;
    const struct load_layout *layout = ordering->layout;
    time_ms left = load_row_hour(layout, a), right = load_row_hour(layout, b);
    int by_hour = (left > right) - (left < right);
    if (by_hour && ordering->hour_first)
        return by_hour;
    for (unsigned f = 0; f < layout->identity_n; f++) {
        name_t x = load_row_name(a, layout->fields[f].offset),
               y = load_row_name(b, layout->fields[f].offset);
        int order =
            x == y ? 0 : str_cmp(names_text(ordering->names, x), names_text(ordering->names, y));
        if (order)
            return order;
    }
    return by_hour;
}

static void sort_items(const struct store *store, struct load_rows *items, bool hour_first)
{
    struct ordering ordering = {items->layout, store->names, hour_first};
    if (items->n)
        qsort_r(items->at, items->n, items->layout->size, by_identity_and_hour, &ordering);
}

/* Rows of a batch by the place that they are of; row NULL: only that the place is in the batch. */
struct part {
    struct place place;
    const char *row;
};

static int by_place(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    if (left->place.cluster != right->place.cluster)
        return left->place.cluster < right->place.cluster ? -1 : 1;
    if (left->place.node != right->place.node)
        return left->place.node < right->place.node ? -1 : 1;
    return (left->row > right->row) - (left->row < right->row);
}

/* Replace the batch's hours of a place's day by the rows of parts [0, n) that lie in it. */
static enum err put_day(struct store *store, const struct key *key, const struct part *parts,
                        size_t n, struct span hours, struct error *err)
{
    struct load_rows merged = {.layout = &load_layouts[key->kind]};
    enum err code = read_key(store, key, &merged, err);
    size_t had = merged.n;
    take_out(&merged, hours);
    for (size_t i = 0; i < n && !code; i++)
        if (parts[i].row && day_of(load_row_hour(merged.layout, parts[i].row)) == key->day)
            load_rows_add(&merged, parts[i].row);
    sort_items(store, &merged, false);
    if (!code && (had || merged.n))
        code = write_key(store, key, &merged, err);
    free(merged.at);
    return code;
}

static enum err put_places(struct store *store, enum load_kind kind, struct part *parts, size_t n,
                           struct span hours, struct error *err)
{
    enum err code = ERR_OK;
    if (n)
        qsort(parts, n, sizeof *parts, by_place);
    for (size_t from = 0, to; from < n && !code; from = to) {
        struct place place = parts[from].place;
        for (to = from; to < n && parts[to].place.cluster == place.cluster &&
                        parts[to].place.node == place.node;)
            to++;
        uint32_t id = 0;
        code = places_put(store, place, &id, err);
        struct key key = {.kind = kind, .place = id};
        for (key.day = day_of(hours.from); key.day <= day_of(hours.to - 1) && !code; key.day++)
            code = put_day(store, &key, parts + from, to - from, hours, err);
    }
    return code;
}

static size_t add_parts(struct part *parts, enum load_kind kind, const void *rows, size_t n)
{
    const struct load_layout *layout = &load_layouts[kind];
    for (size_t i = 0; i < n; i++) {
        const char *row = (const char *)rows + i * layout->size;
        name_t node = kind == LOAD_KIND_MACHINE
                          ? load_row_name(row, offsetof(struct machine_hour, node))
                          : NAME_NONE;
        parts[i] = (struct part){{load_row_name(row, layout->cluster), node}, row};
    }
    return n;
}

enum err load_hours_put(struct store *store, const struct row_batch *batch, struct error *err)
{
    size_t most = batch->node_hours_n + batch->machine_hours_n + batch->workload_hours_n +
                  batch->namespace_hours_n;
    struct part *parts = mem_alloc((most + 1) * sizeof *parts);
    size_t n = 0;
    for (size_t i = 0; i < batch->node_hours_n; i++) {
        struct place place = {batch->node_hours[i].cluster, batch->node_hours[i].node};
        if (n == 0 || parts[n - 1].place.cluster != place.cluster ||
            parts[n - 1].place.node != place.node)
            parts[n++] = (struct part){place, NULL};
    }
    n += add_parts(parts + n, LOAD_KIND_MACHINE, batch->machine_hours, batch->machine_hours_n);
    enum err code = put_places(store, LOAD_KIND_MACHINE, parts, n, batch->hours, err);
    n = add_parts(parts, LOAD_KIND_WORKLOAD, batch->workload_hours, batch->workload_hours_n);
    if (!code)
        code = put_places(store, LOAD_KIND_WORKLOAD, parts, n, batch->hours, err);
    n = add_parts(parts, LOAD_KIND_NAMESPACE, batch->namespace_hours, batch->namespace_hours_n);
    if (!code)
        code = put_places(store, LOAD_KIND_NAMESPACE, parts, n, batch->hours, err);
    free(parts);
    return code;
}

/* ------------------------------------------------------------------ clearing */

static enum err keys_of(struct store *store, struct span span, struct key **ret, size_t *ret_n,
                        struct error *err)
{
    size_t room = 0;
    *ret = NULL;
    *ret_n = 0;
    for (int kind = 0; kind < LOAD_KIND_COUNT; kind++) {
        sqlite3_stmt *find = db_statement(store, STATEMENT_LOAD_HOURS_KEYS, err);
        if (!find)
            return ERR_STORE;
        sqlite3_bind_int(find, 1, kind);
        sqlite3_bind_int64(find, 2, day_of(span.from));
        sqlite3_bind_int64(find, 3, day_of(span.to - 1));
        int rc;
        while ((rc = sqlite3_step(find)) == SQLITE_ROW) {
            struct key key = {(enum load_kind)kind, sqlite3_column_int64(find, 0),
                              sqlite3_column_int64(find, 1)};
            if (places_is_written(store, key.place))
                mem_push(*ret, *ret_n, room, key);
        }
        enum err code = rc == SQLITE_DONE
                            ? ERR_OK
                            : db_fail(store, rc, "reading hours of hosts or workloads", err);
        sqlite3_reset(find);
        if (code)
            return code;
    }
    return ERR_OK;
}

enum err load_hours_clear(struct store *store, struct span span, struct error *err)
{
    struct key *keys = NULL;
    size_t n = 0;
    enum err code = span.from < span.to ? keys_of(store, span, &keys, &n, err) : ERR_OK;
    for (size_t i = 0; i < n && !code; i++) {
        struct load_rows rest = {.layout = &load_layouts[keys[i].kind]};
        bool whole = hours_in_day(span, keys[i].day) == 0xffffff;
        code = whole ? ERR_OK : read_key(store, &keys[i], &rest, err);
        take_out(&rest, span);
        if (!code)
            code = write_key(store, &keys[i], &rest, err);
        free(rest.at);
    }
    free(keys);
    return code;
}

/* ------------------------------------------------------------------ reading */

typedef bool (*items_fn)(void *context, const void *rows, size_t n);

struct days_read {
    struct store *store;
    enum load_kind kind;
    struct span span;
    items_fn each;
    void *context;
};

static enum err unpack_day(void *context, void *scratch, const struct unpack_value *value,
                           void *room, struct error *err)
{
    const struct days_read *days = context;
    struct load_rows *rows = room;
    int64_t day = value->keys[0];
    (void)scratch;
    rows->layout = &load_layouts[days->kind];
    rows->n = 0;
    enum err code =
        load_unpack(days->store, days->kind, day, value->keys[1], value->packed, rows, err);
    if (code)
        return code;
    if (hours_in_day(days->span, day) != 0xffffff) {
        take_out(rows, (struct span){TIME_MIN, days->span.from});
        take_out(rows, (struct span){days->span.to, TIME_MAX});
    }
    sort_items(days->store, rows, true);
    return ERR_OK;
}

static bool take_day(void *context, const void *room)
{
    const struct days_read *days = context;
    const struct load_rows *rows = room;
    return rows->n == 0 || days->each(days->context, rows->at, rows->n);
}

static void release_day(void *room)
{
    free(((struct load_rows *)room)->at);
}

static void release_nothing(void *scratch)
{
    (void)scratch;
}

static enum err read_all(struct days_read *days, struct error *err)
{
    const struct unpacking unpacking = {.store = days->store,
                                        .rows =
                                            db_statement(days->store, STATEMENT_LOAD_HOURS, err),
                                        .keys_n = 2,
                                        .doing = "reading hours of hosts or workloads",
                                        .context = days,
                                        .room_size = sizeof(struct load_rows),
                                        .unpack = unpack_day,
                                        .take = take_day,
                                        .release_room = release_day,
                                        .release_scratch = release_nothing};
    if (!unpacking.rows)
        return ERR_STORE;
    sqlite3_bind_int(unpacking.rows, 1, (int)days->kind);
    sqlite3_bind_int64(unpacking.rows, 2, day_of(days->span.from));
    sqlite3_bind_int64(unpacking.rows, 3, day_of(days->span.to - 1));
    return unpack_all(&unpacking, err);
}

static enum err read_kind(struct store *store, enum load_kind kind, struct span span, items_fn each,
                          void *context, struct error *err)
{
    span = store_span_with_keys(span);
    if (span.from >= span.to)
        return ERR_OK;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    struct days_read days = {store, kind, span, each, context};
    code = read_all(&days, err);
    store_read_end(store);
    return code;
}

/* The reader of a kind, behind one that knows no kinds. */
struct reading {
    const struct store_lens *lens;
    store_machine_hours_fn machine;
    store_workload_hours_fn workload;
    store_namespace_hours_fn namespace;
    void *context;
};

static bool give_machines(void *context, const void *rows, size_t n)
{
    const struct reading *reading = context;
    return reading->lens || reading->machine(reading->context, rows, n);
}

static bool give_workloads(void *context, const void *rows, size_t n)
{
    const struct reading *reading = context;
    const struct workload_hour *hours = rows;
    bool more = true;
    if (!reading->lens)
        return reading->workload(reading->context, hours, n);
    for (size_t i = 0; i < n && more; i++)
        more = !lens_passes_workload(reading->lens, &hours[i]) ||
               reading->workload(reading->context, &hours[i], 1);
    return more;
}

static bool give_namespaces(void *context, const void *rows, size_t n)
{
    const struct reading *reading = context;
    const struct namespace_hour *hours = rows;
    bool more = true;
    if (!reading->lens)
        return reading->namespace(reading->context, hours, n);
    for (size_t i = 0; i < n && more; i++)
        more = !lens_passes_namespace(reading->lens, hours[i].namespace) ||
               reading->namespace(reading->context, &hours[i], 1);
    return more;
}

enum err store_read_machine_hours(struct store *store, struct span hours,
                                  store_machine_hours_fn each, void *context, struct error *err)
{
    struct reading reading = {.lens = store->lens, .machine = each, .context = context};
    return read_kind(store, LOAD_KIND_MACHINE, hours, give_machines, &reading, err);
}

enum err store_read_workload_hours(struct store *store, struct span hours,
                                   store_workload_hours_fn each, void *context, struct error *err)
{
    struct reading reading = {.lens = store->lens, .workload = each, .context = context};
    return read_kind(store, LOAD_KIND_WORKLOAD, hours, give_workloads, &reading, err);
}

enum err store_read_namespace_hours(struct store *store, struct span hours,
                                    store_namespace_hours_fn each, void *context, struct error *err)
{
    struct reading reading = {.lens = store->lens, .namespace = each, .context = context};
    return read_kind(store, LOAD_KIND_NAMESPACE, hours, give_namespaces, &reading, err);
}

static bool take_any(void *context, const void *rows, size_t n)
{
    (void)context, (void)rows, (void)n;
    return true;
}

enum err load_hours_verify(struct store *store, struct error *err)
{
    enum err code = ERR_OK;
    for (int kind = 0; kind < LOAD_KIND_COUNT && !code; kind++)
        code = read_kind(store, (enum load_kind)kind, (struct span){TIME_MIN, TIME_MAX}, take_any,
                         NULL, err);
    return code;
}

enum err load_hours_check(struct store *store, int kind, int64_t day, int64_t place,
                          struct str packed, struct error *err)
{
    if (kind < 0 || kind >= LOAD_KIND_COUNT)
        return error_set(err, ERR_STORE, "hours of an unknown kind");
    struct load_rows items = {.layout = &load_layouts[kind]};
    enum err code = load_unpack(store, (enum load_kind)kind, day, place, packed, &items, err);
    free(items.at);
    return code;
}
