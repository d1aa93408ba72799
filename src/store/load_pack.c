/* The three kinds differ in their fields only: tables of fields, and one code that packs them. Rows
 * of a value lie in order of what they are of and then of the hour, so that a workload's hours are
 * a run. */
#include "store/load_pack.h"

#include <stdlib.h>

#include "store/group.h"

#define FORMAT 2
#define ITEMS_MAX (24 * (1 << 18)) /* of a place's day: 262,144 workloads at every hour */
#define RUN_MAX 24                 /* rows of one identity a day: one an hour */
#define IDENTITY_MAX 2
#define OF(type, field, kind)                                                                      \
    {                                                                                              \
        offsetof(struct type, field), FIELD_##kind                                                 \
    }
#define MACHINE(field, kind) OF(machine_hour, field, kind)
#define WORKLOAD(field, kind) OF(workload_hour, field, kind)
#define NAMESPACE(field, kind) OF(namespace_hour, field, kind)
#define LAYOUT(type, identity, fields, fields_1)                                                   \
    .size = sizeof(struct type), .hour = offsetof(struct type, hour),                              \
    .cluster = offsetof(struct type, cluster), .identity_n = identity, .fields_n = fields,         \
    .fields_1_n = fields_1

const struct load_layout load_layouts[LOAD_KIND_COUNT] = {
    [LOAD_KIND_MACHINE] = {LAYOUT(machine_hour, 0, 13, 13),
                           {MACHINE(hour, HOUR), MACHINE(cpu_workloads, NAME), MACHINE(cpu, I64),
                            MACHINE(cpu_seen_ms, I64), MACHINE(cpu_max, I64), MACHINE(cpus, I64),
                            MACHINE(net_bytes, I64), MACHINE(net_seen_ms, I64),
                            MACHINE(requested_mcpu, I64), MACHINE(requested_memory_bytes, I64),
                            MACHINE(cpu_pods, I32), MACHINE(daemon_pods, I32),
                            MACHINE(gpu_taint, I32)}},
    [LOAD_KIND_WORKLOAD] = {LAYOUT(workload_hour, 2, 18, 17),
                            {WORKLOAD(namespace, NAME), WORKLOAD(workload, NAME),
                             WORKLOAD(hour, HOUR), WORKLOAD(cpu_mcpu_ms, I64),
                             WORKLOAD(cpu_seen_ms, I64), WORKLOAD(cpu_max_mcpu, I64),
                             WORKLOAD(cpu_limit_mcpu, I64), WORKLOAD(serving_seen_ms, I64),
                             WORKLOAD(running_ms, I64), WORKLOAD(running_max, I64),
                             WORKLOAD(waiting_ms, I64), WORKLOAD(waiting_max, I64),
                             WORKLOAD(kv, I64), WORKLOAD(kv_seen_ms, I64), WORKLOAD(kv_max, I64),
                             WORKLOAD(requests, I64), WORKLOAD(tokens, I64), WORKLOAD(user, NAME)}},
    [LOAD_KIND_NAMESPACE] = {LAYOUT(namespace_hour, 1, 11, 11),
                             {NAMESPACE(namespace, NAME), NAMESPACE(hour, HOUR),
                              NAMESPACE(quotas_known, BOOL), NAMESPACE(gpu_quota, I64),
                              NAMESPACE(priorities_known, BOOL), NAMESPACE(gpu_pods, I32),
                              NAMESPACE(gpu_pods_without_priority, I32),
                              NAMESPACE(pending_pods, I32), NAMESPACE(pending_gpus, I64),
                              NAMESPACE(pending_largest, I64), NAMESPACE(pending_gpu_ms, I64)}},
};

static void reserve(struct load_rows *items, size_t more)
{
    if (items->n + more <= items->room)
        return;
    items->room = items->n + more + items->n / 2;
    items->at = mem_realloc(items->at, items->room, items->layout->size);
}

void load_rows_add(struct load_rows *items, const void *from)
{
    reserve(items, 1);
    memcpy(load_row(items, items->n++), from, items->layout->size);
}

static void set_name(void *row, size_t offset, name_t name)
{
    memcpy((char *)row + offset, &name, sizeof name);
}

/* ------------------------------------------------------------------ packing */

/* The number that stands for a field on disk; of names that is put by the dictionary. */
static enum err number_at(struct store *store, const void *row, const struct load_field *field,
                          int64_t day, int64_t *ret, struct error *err)
{
    const char *at = (const char *)row + field->offset;
    int32_t narrow;
    bool flag;
    uint32_t id = 0;
    enum err code = ERR_OK;
    switch (field->type) {
    case FIELD_NAME:
        code = dictionary_put(store, load_row_name(row, field->offset), &id, err);
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
static bool set_number(const struct store *store, void *row, const struct load_field *field,
                       int64_t day, int64_t value)
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
static void find_runs(const struct load_rows *items, uint32_t *starts, size_t *ret_n)
{
    const struct load_layout *layout = items->layout;
    *ret_n = 0;
    for (size_t i = 0; i < items->n; i++) {
        bool same = i > 0;
        for (unsigned f = 0; f < layout->identity_n && same; f++)
            same = load_row_name(load_row(items, i), layout->fields[f].offset) ==
                   load_row_name(load_row(items, i - 1), layout->fields[f].offset);
        if (!same)
            starts[(*ret_n)++] = (uint32_t)i;
    }
    starts[*ret_n] = (uint32_t)items->n;
}

enum err load_pack(struct store *store, const struct load_rows *items, int64_t day,
                   struct strbuf *out, struct error *err)
{
    const struct load_layout *layout = items->layout;
    if (items->n > ITEMS_MAX)
        return error_set(err, ERR_LIMIT,
                         "a day of a cluster has %zu hours of workloads, and %d are the most: "
                         "book it as several clusters",
                         items->n, ITEMS_MAX);
    struct group_writer group = {0};
    int64_t *values = mem_alloc((items->n + 1) * sizeof *values);
    uint32_t *starts = mem_alloc((items->n + 2) * sizeof *starts);
    struct runs runs = {starts, 0};
    enum err code = ERR_OK;
    find_runs(items, starts, &runs.n);
    for (unsigned f = 0; f < layout->fields_n && !code; f++) {
        for (size_t i = 0; i < items->n && !code; i++)
            code = number_at(store, load_row(items, i), &layout->fields[f], day, &values[i], err);
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

/* A few bytes can say that millions of rows are alike, but an identity has 24 rows a day at most:
 * so that is looked at before rows, which are ten times as large, get memory. */
static bool runs_are_short(int64_t *const *identity, unsigned identity_n, size_t n)
{
    size_t start = 0;
    for (size_t i = 1; i < n; i++) {
        for (unsigned f = 0; f < identity_n; f++)
            if (identity[f][i] != identity[f][i - 1])
                start = i;
        if (i - start >= RUN_MAX)
            return false;
    }
    return true;
}

static bool set_numbers(const struct store *store, struct load_rows *items, unsigned field,
                        int64_t day, const int64_t *values)
{
    bool fine = true;
    for (size_t i = 0; i < items->n && fine; i++)
        fine = set_number(store, load_row(items, i), &items->layout->fields[field], day, values[i]);
    return fine;
}

/* Appends n rows to `items`, which is empty. */
static bool get_all(const struct store *store, struct group_reader *group, struct load_rows *items,
                    size_t n, int64_t day)
{
    const struct load_layout *layout = items->layout;
    int64_t *columns[IDENTITY_MAX + 1] = {NULL}; /* the last one is of the field at hand */
    int64_t **values = &columns[layout->identity_n];
    uint32_t *starts = NULL;
    struct runs runs = {NULL, 0};
    bool fine = true;
    for (unsigned f = 0; f <= layout->identity_n; f++)
        columns[f] = mem_alloc((n + 1) * sizeof *columns[f]);
    for (unsigned f = 0; f < layout->identity_n && fine; f++)
        fine = group_get(group, columns[f], n, runs);
    if (fine && (fine = runs_are_short(columns, layout->identity_n, n))) {
        reserve(items, n);
        items->n = n;
        if (n)
            memset(items->at, 0, n * layout->size);
        for (unsigned f = 0; f < layout->identity_n && fine; f++)
            fine = set_numbers(store, items, f, day, columns[f]);
        starts = mem_alloc((n + 2) * sizeof *starts);
        runs.starts = starts;
        find_runs(items, starts, &runs.n);
    }
    for (unsigned f = layout->identity_n; f < group->columns && fine; f++)
        fine = group_get(group, *values, n, runs) && set_numbers(store, items, f, day, *values);
    for (unsigned f = 0; f <= layout->identity_n; f++)
        free(columns[f]);
    free(starts);
    return fine;
}

enum err load_unpack(struct store *store, enum load_kind kind, int64_t day, int64_t place_id,
                     struct str packed, struct load_rows *ret, struct error *err)
{
    struct place place;
    uint64_t n = 0;
    struct group_reader group;
    char *bytes = mem_zalloc(packed.n + COLUMN_PADDING, 1);
    if (packed.n)
        memcpy(bytes, packed.p, packed.n);
    struct str in = {bytes, packed.n};
    bool fine = places_get(store, place_id, &place) && in.n && *in.p >= 1 && *in.p <= FORMAT;
    if (fine) {
        unsigned columns = *in.p == 1 ? ret->layout->fields_1_n : ret->layout->fields_n;
        in.p++, in.n--;
        fine = varint_get(&in, &n) && n <= ITEMS_MAX && group_begin(&group, &in, columns);
    }
    if (fine) {
        fine = get_all(store, &group, ret, n, day);
        for (size_t i = 0; i < n && fine; i++) {
            set_name(load_row(ret, i), ret->layout->cluster, place.cluster);
            if (kind == LOAD_KIND_MACHINE)
                set_name(load_row(ret, i), offsetof(struct machine_hour, node), place.node);
        }
    }
    ret->n = fine ? ret->n : 0;
    free(bytes);
    return fine ? ERR_OK : db_corrupt(store, "hours of hosts or workloads cannot be read", err);
}
