/* What the rows of a block are of: its series, with the names that are wanted of them, and the
 * hours of its node. */
#include "store/block_format.h"

/* In place of what was wanted where names stay in the block. */
static name_t kind_of(struct names *names, struct str workload)
{
    const char *slash = workload.n ? memchr(workload.p, '/', workload.n) : NULL;
    if (slash)
        workload.n = (size_t)(slash - workload.p);
    return names_put(names, workload);
}

struct series_reader {
    struct store *store;
    struct block *block;
    name_t *of_string, *kind_of_string; /* [index]; 0 is none, or not put yet */
    name_t some;                        /* in place of names that are not wanted */
    enum block_names names;
};

static void resolve_strings(struct series_reader *reader)
{
    struct arena *arena = &reader->block->texts;
    const struct strings *strings = &reader->block->strings;
    size_t bytes = (strings->n + 1) * sizeof(name_t);
    struct names *names = reader->store->names;
    reader->of_string = arena_zalloc(arena, bytes);
    reader->kind_of_string = reader->of_string;
    if (reader->names == BLOCK_NAMES_ALL)
        return;
    reader->some = names_put(names, STR("(pod)"));
    if (reader->names != BLOCK_NAMES_KINDS)
        return;
    reader->kind_of_string = arena_zalloc(arena, bytes);
    for (size_t i = 0; i < strings->n; i++) {
        struct str text = strings->texts[i];
        if (text.n && memchr(text.p, '/', text.n))
            reader->kind_of_string[i + 1] = kind_of(names, text);
    }
}

/* Texts are put where they are wanted. */
static bool string_name(const struct series_reader *reader, name_t *table, int64_t index,
                        name_t *ret)
{
    const struct strings *strings = &reader->block->strings;
    if (index < 0 || (uint64_t)index > strings->n)
        return false;
    if (index && !table[index] && reader->names != BLOCK_NAMES_KINDS)
        table[index] = names_put(reader->store->names, strings->texts[index - 1]);
    *ret = table[index];
    return true;
}

/* `wanted`: the name itself; else some name says that there is one. */
static bool pod_name(const struct series_reader *reader, bool wanted, int64_t index, name_t *ret)
{
    if (wanted)
        return string_name(reader, reader->of_string, index, ret);
    *ret = index ? reader->some : NAME_NONE;
    return index >= 0 && (uint64_t)index <= reader->block->strings.n;
}

static bool set_series_field(const struct series_reader *reader, enum series_column column,
                             struct series *series, int64_t v)
{
    const struct store *store = reader->store;
    struct row_key *key = &series->key;
    struct row_facts *facts = &series->facts;
    uint64_t id = (uint64_t)v;
    switch (column) {
    case SERIES_DEVICE:
        return dictionary_get(store, id, &key->device);
    case SERIES_INSTANCE:
        return dictionary_get(store, id, &key->instance);
    case SERIES_NAMESPACE:
        return dictionary_get(store, id, &key->namespace);
    case SERIES_CONTAINER:
        return dictionary_get(store, id, &key->container);
    case SERIES_MODEL:
        return dictionary_get(store, id, &facts->model);
    case SERIES_OWNER:
        return dictionary_get(store, id, &facts->owner);
    case SERIES_INSTANCE_TYPE:
        return dictionary_get(store, id, &facts->instance_type);
    case SERIES_POOL:
        return dictionary_get(store, id, &facts->pool);
    case SERIES_REGION:
        return dictionary_get(store, id, &facts->region);
    case SERIES_CLOUD:
        return dictionary_get(store, id, &facts->cloud);
    case SERIES_CAPACITY:
        facts->capacity = (enum capacity_type)id;
        return id < CAPACITY_TYPE_COUNT;
    case SERIES_TYPE:
        facts->type = (enum workload_type)id;
        return id < WORKLOAD_TYPE_COUNT;
    case SERIES_WORKLOAD:
        return string_name(reader, reader->kind_of_string, v, &facts->workload);
    case SERIES_POD:
        series->pod = (uint32_t)id;
        return pod_name(reader, reader->names <= BLOCK_NAMES_PODS, v, &key->pod);
    case SERIES_UID:
        return pod_name(reader, reader->names == BLOCK_NAMES_ALL, v, &key->pod_uid);
    case SERIES_FIRST_HOUR: /* first hour, how many, and what that gets wrong */
        series->hours = (uint32_t)id;
        return id < 24;
    case SERIES_HOUR_COUNT:
        if (id > 24)
            return false;
        series->hours = ((1u << id) - 1) << series->hours;
        return true;
    case SERIES_HOLES:
        series->hours ^= (uint32_t)id;
        return series->hours < 1u << 24;
    case SERIES_SHARE:
        series->share = (uint32_t)id;
        return id <= UINT32_MAX;
    case SERIES_COLUMNS:
        break;
    }
    return false;
}

static bool read_series(struct series_reader *reader, struct str *in, size_t n)
{
    struct block *block = reader->block;
    struct group_reader group;
    int64_t *values = arena_alloc(&block->texts, 2 * n * sizeof *values), *workloads = values + n;
    if (!group_begin(&group, in, SERIES_COLUMNS))
        return false;
    memset(block->series, 0, n * sizeof *block->series);
    for (enum series_column c = 0; c < SERIES_COLUMNS; c++) {
        if (!group_get(&group, values, n, (struct runs){NULL, 0}))
            return false;
        /* Strings follow each other: workload, its pod, its uid. */
        if (c == SERIES_POD || c == SERIES_UID)
            for (size_t s = 0; s < n; s++)
                values[s] = (int64_t)((uint64_t)values[s] + (uint64_t)workloads[s]);
        if (c == SERIES_WORKLOAD || c == SERIES_POD)
            memcpy(workloads, values, n * sizeof *values);
        for (size_t s = 0; s < n; s++)
            if (!set_series_field(reader, c, &block->series[s], values[s]))
                return false;
    }
    for (size_t s = 0; s < n; s++) {
        block->series[s].key.cluster = block->cluster;
        block->series[s].key.node = block->node;
    }
    return true;
}

bool block_read_series(struct store *store, struct block *block, enum block_names names,
                       struct str *in)
{
    struct series_reader reader = {.store = store, .block = block, .names = names};
    resolve_strings(&reader);
    return read_series(&reader, in, block->series_n);
}

bool block_skip_series(struct block *block, struct str *in)
{
    struct group_reader group;
    bool fine = group_begin(&group, in, SERIES_COLUMNS);
    for (enum series_column c = 0; c < SERIES_COLUMNS && fine; c++)
        fine = group_skip(&group, block->series_n, (struct runs){NULL, 0});
    return fine;
}

static bool set_node_hour_field(const struct store *store, enum node_hour_column column,
                                struct node_hour *hour, int64_t v)
{
    uint64_t id = (uint64_t)v;
    switch (column) {
    case NODE_HOUR_HOUR:
        if (id >= 24)
            return false;
        hour->hour += v * HOUR_MS;
        return true;
    case NODE_HOUR_INSTANCE_TYPE:
        return dictionary_get(store, id, &hour->instance_type);
    case NODE_HOUR_POOL:
        return dictionary_get(store, id, &hour->pool);
    case NODE_HOUR_REGION:
        return dictionary_get(store, id, &hour->region);
    case NODE_HOUR_CLOUD:
        return dictionary_get(store, id, &hour->cloud);
    case NODE_HOUR_CAPACITY:
        hour->capacity = (enum capacity_type)id;
        return id < CAPACITY_TYPE_COUNT;
    case NODE_HOUR_PRICE:
        hour->price = v;
        return true;
    case NODE_HOUR_UP:
        hour->up_ms = v;
        return true;
    case NODE_HOUR_BOOKED:
        hour->booked = (int64_t)((uint64_t)v + (uint64_t)node_hour_booked(hour));
        return true;
    case NODE_HOUR_GPUS:
        hour->gpus = (int32_t)v;
        return true;
    case NODE_HOUR_FLAGS:
        hour->flags = (uint32_t)id;
        return true;
    case NODE_HOUR_SOURCE:
        return dictionary_get(store, id, &hour->price_source);
    case NODE_HOUR_COLUMNS:
        break;
    }
    return false;
}

bool block_read_node_hours(const struct store *store, struct block *block, struct str *in)
{
    struct group_reader group;
    int64_t values[24];
    if (!group_begin(&group, in, NODE_HOUR_COLUMNS))
        return false;
    memset(block->node_hours, 0, sizeof block->node_hours);
    for (size_t i = 0; i < block->node_hours_n; i++) {
        block->node_hours[i].hour = block->day * DAY_MS;
        block->node_hours[i].cluster = block->cluster;
        block->node_hours[i].node = block->node;
    }
    for (enum node_hour_column c = 0; c < NODE_HOUR_COLUMNS; c++) {
        if (!group_get(&group, values, block->node_hours_n, (struct runs){NULL, 0}))
            return false;
        for (size_t i = 0; i < block->node_hours_n; i++)
            if (!set_node_hour_field(store, c, &block->node_hours[i], values[i]))
                return false;
    }
    return true;
}
