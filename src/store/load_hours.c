/* What hosts, workloads and namespaces did by the hour, on disk: packed columns, one value of the
 * table load_hours for each kind, UTC day and place; workloads and namespaces are of their
 * cluster's place, the one without a node.
 *
 * The three kinds differ in their fields only, so that they are described by tables of fields, and
 * packed, replaced and cleared by one code. Rows of a value lie in order of what they are of and
 * then of the hour, so that a workload's hours are a run; readers get them by the hour. Like
 * gpu_hours they have no roll-up, and are written as they come. */
#include <stdlib.h>

#include "store/group.h"
#include "store/internal.h"
#include "store/lens.h"

#define FORMAT 1
#define ITEMS_MAX (24 * (1 << 20)) /* of a place's day */
#define FIELDS_MAX 20

enum kind { KIND_MACHINE, KIND_WORKLOAD, KIND_NAMESPACE, KIND_COUNT };

struct field {
    size_t offset;
    enum { FIELD_HOUR, FIELD_NAME, FIELD_I64, FIELD_I32, FIELD_BOOL } type;
};

/* Fields in order of packing; rows are told apart by the first identity_n of them, and the hour. */
struct layout {
    size_t size, hour, cluster;
    unsigned identity_n, fields_n;
    struct field fields[FIELDS_MAX];
};

#define OF(type, field, kind)                                                                      \
    {                                                                                              \
        offsetof(struct type, field), FIELD_##kind                                                 \
    }
#define MACHINE(field, kind) OF(machine_hour, field, kind)
#define WORKLOAD(field, kind) OF(workload_hour, field, kind)
#define NAMESPACE(field, kind) OF(namespace_hour, field, kind)
#define LAYOUT(type, identity, fields)                                                             \
    .size = sizeof(struct type), .hour = offsetof(struct type, hour),                              \
    .cluster = offsetof(struct type, cluster), .identity_n = identity, .fields_n = fields

static const struct layout layouts[KIND_COUNT] = {
    [KIND_MACHINE] = {LAYOUT(machine_hour, 0, 13),
                      {MACHINE(hour, HOUR), MACHINE(cpu_workloads, NAME), MACHINE(cpu, I64),
                       MACHINE(cpu_seen_ms, I64), MACHINE(cpu_max, I64), MACHINE(cpus, I64),
                       MACHINE(net_bytes, I64), MACHINE(net_seen_ms, I64),
                       MACHINE(requested_mcpu, I64), MACHINE(requested_memory_bytes, I64),
                       MACHINE(cpu_pods, I32), MACHINE(daemon_pods, I32), MACHINE(gpu_taint, I32)}},
    [KIND_WORKLOAD] = {LAYOUT(workload_hour, 2, 17),
                       {WORKLOAD(namespace, NAME), WORKLOAD(workload, NAME), WORKLOAD(hour, HOUR),
                        WORKLOAD(cpu_mcpu_ms, I64), WORKLOAD(cpu_seen_ms, I64),
                        WORKLOAD(cpu_max_mcpu, I64), WORKLOAD(cpu_limit_mcpu, I64),
                        WORKLOAD(serving_seen_ms, I64), WORKLOAD(running_ms, I64),
                        WORKLOAD(running_max, I64), WORKLOAD(waiting_ms, I64),
                        WORKLOAD(waiting_max, I64), WORKLOAD(kv, I64), WORKLOAD(kv_seen_ms, I64),
                        WORKLOAD(kv_max, I64), WORKLOAD(requests, I64), WORKLOAD(tokens, I64)}},
    [KIND_NAMESPACE] = {LAYOUT(namespace_hour, 1, 11),
                        {NAMESPACE(namespace, NAME), NAMESPACE(hour, HOUR),
                         NAMESPACE(quotas_known, BOOL), NAMESPACE(gpu_quota, I64),
                         NAMESPACE(priorities_known, BOOL), NAMESPACE(gpu_pods, I32),
                         NAMESPACE(gpu_pods_without_priority, I32), NAMESPACE(pending_pods, I32),
                         NAMESPACE(pending_gpus, I64), NAMESPACE(pending_largest, I64),
                         NAMESPACE(pending_gpu_ms, I64)}},
};

/* Rows of one kind: n items of layout->size bytes. */
struct items {
    const struct layout *layout;
    char *at;
    size_t n, room;
};

static void *item(const struct items *items, size_t i)
{
    return items->at + i * items->layout->size;
}

static void reserve(struct items *items, size_t more)
{
    if (items->n + more <= items->room)
        return;
    items->room = items->n + more + items->n / 2;
    items->at = mem_realloc(items->at, items->room, items->layout->size);
}

static void add_item(struct items *items, const void *from)
{
    reserve(items, 1);
    memcpy(item(items, items->n++), from, items->layout->size);
}

static time_ms hour_of(const struct layout *layout, const void *row)
{
    time_ms hour;
    memcpy(&hour, (const char *)row + layout->hour, sizeof hour);
    return hour;
}

static name_t name_at(const void *row, size_t offset)
{
    name_t name;
    memcpy(&name, (const char *)row + offset, sizeof name);
    return name;
}

static void set_name(void *row, size_t offset, name_t name)
{
    memcpy((char *)row + offset, &name, sizeof name);
}

/* ------------------------------------------------------------------ packing */

/* The number that stands for a field on disk; of names that is put by the dictionary. */
static enum err number_at(struct store *store, const void *row, const struct field *field,
                          int64_t day, int64_t *ret, struct error *err)
{
    const char *at = (const char *)row + field->offset;
    int32_t narrow;
    bool flag;
    uint32_t id = 0;
    enum err code = ERR_OK;
    switch (field->type) {
    case FIELD_NAME:
        code = dictionary_put(store, name_at(row, field->offset), &id, err);
        *ret = id;
        break;
    case FIELD_HOUR:
        memcpy(ret, at, sizeof *ret);
        *ret = (*ret - day * DAY_MS) / HOUR_MS;
        break;
    case FIELD_I64:
        memcpy(ret, at, sizeof *ret);
        break;
    case FIELD_I32:
        memcpy(&narrow, at, sizeof narrow);
        *ret = narrow;
        break;
    case FIELD_BOOL:
        memcpy(&flag, at, sizeof flag);
        *ret = flag;
        break;
    }
    return code;
}

/* False where the number is none of the field. */
static bool set_number(const struct store *store, void *row, const struct field *field, int64_t day,
                       int64_t value)
{
    char *at = (char *)row + field->offset;
    int32_t narrow = (int32_t)value;
    time_ms hour = day * DAY_MS + (value & 31) * HOUR_MS;
    bool flag = value != 0;
    name_t name;
    switch (field->type) {
    case FIELD_NAME:
        if (!dictionary_get(store, (uint64_t)value, &name))
            return false;
        set_name(row, field->offset, name);
        return true;
    case FIELD_HOUR:
        memcpy(at, &hour, sizeof hour);
        return value >= 0 && value < 24;
    case FIELD_I64:
        memcpy(at, &value, sizeof value);
        return true;
    case FIELD_I32:
        memcpy(at, &narrow, sizeof narrow);
        return narrow == value;
    case FIELD_BOOL:
        memcpy(at, &flag, sizeof flag);
        return value == 0 || value == 1;
    }
    return false;
}

/* Where each run of rows of one identity begins, and the end. */
static void find_runs(const struct items *items, uint32_t *starts, size_t *ret_n)
{
    const struct layout *layout = items->layout;
    *ret_n = 0;
    for (size_t i = 0; i < items->n; i++) {
        bool same = i > 0;
        for (unsigned f = 0; f < layout->identity_n && same; f++)
            same = name_at(item(items, i), layout->fields[f].offset) ==
                   name_at(item(items, i - 1), layout->fields[f].offset);
        if (!same)
            starts[(*ret_n)++] = (uint32_t)i;
    }
    starts[*ret_n] = (uint32_t)items->n;
}

static enum err pack(struct store *store, const struct items *items, int64_t day,
                     struct strbuf *out, struct error *err)
{
    const struct layout *layout = items->layout;
    struct group_writer group = {0};
    int64_t *values = mem_alloc((items->n + 1) * sizeof *values);
    uint32_t *starts = mem_alloc((items->n + 2) * sizeof *starts);
    struct runs runs = {starts, 0};
    enum err code = ERR_OK;
    find_runs(items, starts, &runs.n);
    for (unsigned f = 0; f < layout->fields_n && !code; f++) {
        for (size_t i = 0; i < items->n && !code; i++)
            code = number_at(store, item(items, i), &layout->fields[f], day, &values[i], err);
        /* Readers find the runs by the identity. */
        group_put(&group, values, items->n, f < layout->identity_n ? (struct runs){NULL, 0} : runs);
    }
    strbuf_clear(out);
    strbuf_addc(out, FORMAT);
    varint_put(out, items->n);
    group_end(&group, out);
    free(starts);
    free(values);
    return code;
}

static bool get_all(const struct store *store, struct group_reader *group, struct items *items,
                    int64_t day)
{
    const struct layout *layout = items->layout;
    int64_t *values = mem_alloc((items->n + 1) * sizeof *values);
    uint32_t *starts = mem_alloc((items->n + 2) * sizeof *starts);
    struct runs runs = {starts, 0};
    bool fine = true;
    for (unsigned f = 0; f < layout->fields_n && fine; f++) {
        if (f == layout->identity_n)
            find_runs(items, starts, &runs.n);
        fine = group_get(group, values, items->n,
                         f < layout->identity_n ? (struct runs){NULL, 0} : runs);
        for (size_t i = 0; i < items->n && fine; i++)
            fine = set_number(store, item(items, i), &layout->fields[f], day, values[i]);
    }
    free(starts);
    free(values);
    return fine;
}

/* Fills `ret`, which is empty. Bytes are not trusted. */
static enum err unpack(struct store *store, enum kind kind, int64_t day, int64_t place_id,
                       struct str packed, struct items *ret, struct error *err)
{
    struct place place;
    uint64_t n = 0;
    struct group_reader group;
    char *bytes = mem_zalloc(packed.n + COLUMN_PADDING, 1);
    if (packed.n)
        memcpy(bytes, packed.p, packed.n);
    struct str in = {bytes, packed.n};
    bool fine = places_get(store, place_id, &place) && in.n && *in.p == FORMAT;
    if (fine) {
        in.p++, in.n--;
        fine = varint_get(&in, &n) && n <= ITEMS_MAX &&
               group_begin(&group, &in, ret->layout->fields_n);
    }
    if (fine) {
        reserve(ret, n);
        ret->n = n;
        if (n)
            memset(ret->at, 0, n * ret->layout->size);
        fine = get_all(store, &group, ret, day);
        for (size_t i = 0; i < n && fine; i++) {
            set_name(item(ret, i), ret->layout->cluster, place.cluster);
            if (kind == KIND_MACHINE)
                set_name(item(ret, i), offsetof(struct machine_hour, node), place.node);
        }
    }
    ret->n = fine ? ret->n : 0;
    free(bytes);
    return fine ? ERR_OK : db_corrupt(store, "hours of hosts or workloads cannot be read", err);
}

/* ------------------------------------------------------------------ a value of the table */

/* What a value is of. */
struct key {
    enum kind kind;
    int64_t day, place;
};

static void bind_key(sqlite3_stmt *statement, const struct key *key)
{
    sqlite3_bind_int(statement, 1, (int)key->kind);
    sqlite3_bind_int64(statement, 2, key->day);
    sqlite3_bind_int64(statement, 3, key->place);
}

static enum err read_key(struct store *store, const struct key *key, struct items *ret,
                         struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_LOAD_HOURS_GET, err);
    if (!get)
        return ERR_STORE;
    bind_key(get, key);
    int rc = sqlite3_step(get);
    enum err code = ERR_OK;
    if (rc == SQLITE_ROW)
        code = unpack(store, key->kind, key->day, key->place, db_text(get, 0), ret, err);
    else if (rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading hours of hosts or workloads", err);
    sqlite3_reset(get);
    return code;
}

static enum err write_key(struct store *store, const struct key *key, const struct items *items,
                          struct error *err)
{
    struct strbuf packed = {0};
    enum err code = items->n ? pack(store, items, key->day, &packed, err) : ERR_OK;
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

static void take_out(struct items *items, struct span span)
{
    size_t n = 0;
    for (size_t i = 0; i < items->n; i++) {
        time_ms hour = hour_of(items->layout, item(items, i));
        if (hour >= span.from && hour < span.to)
            continue;
        if (n != i)
            memcpy(item(items, n), item(items, i), items->layout->size);
        n++;
    }
    items->n = n;
}

/* ------------------------------------------------------------------ replacing */

struct ordering {
    const struct layout *layout;
    const struct names *names;
    bool hour_first;
};

static int by_identity_and_hour(const void *a, const void *b, void *context)
{
    const struct ordering *ordering = context;
    const struct layout *layout = ordering->layout;
    time_ms left = hour_of(layout, a), right = hour_of(layout, b);
    int by_hour = (left > right) - (left < right);
    if (by_hour && ordering->hour_first)
        return by_hour;
    for (unsigned f = 0; f < layout->identity_n; f++) {
        name_t x = name_at(a, layout->fields[f].offset), y = name_at(b, layout->fields[f].offset);
        int order =
            x == y ? 0 : str_cmp(names_text(ordering->names, x), names_text(ordering->names, y));
        if (order)
            return order;
    }
    return by_hour;
}

static void sort_items(const struct store *store, struct items *items, bool hour_first)
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
    struct items merged = {.layout = &layouts[key->kind]};
    enum err code = read_key(store, key, &merged, err);
    size_t had = merged.n;
    take_out(&merged, hours);
    for (size_t i = 0; i < n && !code; i++)
        if (parts[i].row && day_of(hour_of(merged.layout, parts[i].row)) == key->day)
            add_item(&merged, parts[i].row);
    sort_items(store, &merged, false);
    if (!code && (had || merged.n))
        code = write_key(store, key, &merged, err);
    free(merged.at);
    return code;
}

static enum err put_places(struct store *store, enum kind kind, struct part *parts, size_t n,
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

static size_t add_parts(struct part *parts, enum kind kind, const void *rows, size_t n)
{
    const struct layout *layout = &layouts[kind];
    for (size_t i = 0; i < n; i++) {
        const char *row = (const char *)rows + i * layout->size;
        name_t node =
            kind == KIND_MACHINE ? name_at(row, offsetof(struct machine_hour, node)) : NAME_NONE;
        parts[i] = (struct part){{name_at(row, layout->cluster), node}, row};
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
    n += add_parts(parts + n, KIND_MACHINE, batch->machine_hours, batch->machine_hours_n);
    enum err code = put_places(store, KIND_MACHINE, parts, n, batch->hours, err);
    n = add_parts(parts, KIND_WORKLOAD, batch->workload_hours, batch->workload_hours_n);
    if (!code)
        code = put_places(store, KIND_WORKLOAD, parts, n, batch->hours, err);
    n = add_parts(parts, KIND_NAMESPACE, batch->namespace_hours, batch->namespace_hours_n);
    if (!code)
        code = put_places(store, KIND_NAMESPACE, parts, n, batch->hours, err);
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
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        sqlite3_stmt *find = db_statement(store, STATEMENT_LOAD_HOURS_KEYS, err);
        if (!find)
            return ERR_STORE;
        sqlite3_bind_int(find, 1, kind);
        sqlite3_bind_int64(find, 2, day_of(span.from));
        sqlite3_bind_int64(find, 3, day_of(span.to - 1));
        int rc;
        while ((rc = sqlite3_step(find)) == SQLITE_ROW) {
            struct key key = {(enum kind)kind, sqlite3_column_int64(find, 0),
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
        struct items rest = {.layout = &layouts[keys[i].kind]};
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

static enum err read_all(struct store *store, enum kind kind, struct span span, items_fn each,
                         void *context, struct error *err)
{
    sqlite3_stmt *get = db_statement(store, STATEMENT_LOAD_HOURS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int(get, 1, (int)kind);
    sqlite3_bind_int64(get, 2, day_of(span.from));
    sqlite3_bind_int64(get, 3, day_of(span.to - 1));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    bool more = true;
    struct items items = {.layout = &layouts[kind]};
    while (!code && more && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        int64_t day = sqlite3_column_int64(get, 0);
        items.n = 0;
        code = unpack(store, kind, day, sqlite3_column_int64(get, 1), db_text(get, 2), &items, err);
        if (code)
            break;
        if (hours_in_day(span, day) != 0xffffff) {
            take_out(&items, (struct span){TIME_MIN, span.from});
            take_out(&items, (struct span){span.to, TIME_MAX});
        }
        sort_items(store, &items, true);
        more = items.n == 0 || each(context, items.at, items.n);
    }
    if (!code && more && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading hours of hosts or workloads", err);
    sqlite3_reset(get);
    free(items.at);
    return code;
}

static enum err read_kind(struct store *store, enum kind kind, struct span span, items_fn each,
                          void *context, struct error *err)
{
    const time_ms far = DAY_MS << 24;
    span.from = span.from < -far ? -far : span.from;
    span.to = span.to > far ? far : span.to;
    if (span.from >= span.to)
        return ERR_OK;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = read_all(store, kind, span, each, context, err);
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
    return read_kind(store, KIND_MACHINE, hours, give_machines, &reading, err);
}

enum err store_read_workload_hours(struct store *store, struct span hours,
                                   store_workload_hours_fn each, void *context, struct error *err)
{
    struct reading reading = {.lens = store->lens, .workload = each, .context = context};
    return read_kind(store, KIND_WORKLOAD, hours, give_workloads, &reading, err);
}

enum err store_read_namespace_hours(struct store *store, struct span hours,
                                    store_namespace_hours_fn each, void *context, struct error *err)
{
    struct reading reading = {.lens = store->lens, .namespace = each, .context = context};
    return read_kind(store, KIND_NAMESPACE, hours, give_namespaces, &reading, err);
}

static bool take_any(void *context, const void *rows, size_t n)
{
    (void)context, (void)rows, (void)n;
    return true;
}

enum err load_hours_verify(struct store *store, struct error *err)
{
    enum err code = ERR_OK;
    for (int kind = 0; kind < KIND_COUNT && !code; kind++)
        code = read_kind(store, (enum kind)kind, (struct span){TIME_MIN, TIME_MAX}, take_any, NULL,
                         err);
    return code;
}

enum err load_hours_check(struct store *store, int kind, int64_t day, int64_t place,
                          struct str packed, struct error *err)
{
    if (kind < 0 || kind >= KIND_COUNT)
        return error_set(err, ERR_STORE, "hours of an unknown kind");
    struct items items = {.layout = &layouts[kind]};
    enum err code = unpack(store, (enum kind)kind, day, place, packed, &items, err);
    free(items.at);
    return code;
}
