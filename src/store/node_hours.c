/* What nodes cost by the hour, out of the blocks of their days: what stands before it in a block is
 * stepped over, and what is dear, the columns after it, is left packed. */
#include "store/block.h"
#include "store/unpack.h"

struct reading {
    struct store *store;
    struct span span;
    store_node_hours_fn each;
    void *context;
};

struct hours {
    struct node_hour items[24];
    size_t n;
};

static enum err unpack_hours(void *context, void *scratch, const struct unpack_value *value,
                             void *room, struct error *err)
{
    const struct reading *reading = context;
    struct store *store = reading->store;
    struct block *block = scratch;
    struct hours *hours = room;
    struct place place;
    int64_t key = value->keys[0];
    hours->n = 0;
    if (!places_get(store, cell_place(key), &place))
        return db_corrupt(store, "a block of an unknown node", err);
    enum err code = block_open_node_hours(store, block, cell_day(key), place.cluster, place.node,
                                          value->packed, err);
    for (size_t i = 0; i < block->node_hours_n && !code; i++) {
        time_ms hour = block->node_hours[i].hour;
        if (hour >= reading->span.from && hour < reading->span.to)
            hours->items[hours->n++] = block->node_hours[i];
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
    (void)room;
}

static void release_block(void *scratch)
{
    block_release(scratch);
}

static enum err read_all(struct reading *reading, struct error *err)
{
    struct store *store = reading->store;
    struct unpacking unpacking = {.store = store,
                                  .rows = db_statement(store, STATEMENT_BLOCKS, err),
                                  .keys_n = 2,
                                  .doing = "reading node-hours",
                                  .context = reading,
                                  .room_size = sizeof(struct hours),
                                  .scratch_size = sizeof(struct block),
                                  .unpack = unpack_hours,
                                  .take = take_hours,
                                  .release_room = release_hours,
                                  .release_scratch = release_block};
    if (!unpacking.rows)
        return ERR_STORE;
    sqlite3_bind_int64(unpacking.rows, 1, cell_key(day_of(reading->span.from), 0, 0));
    sqlite3_bind_int64(unpacking.rows, 2, cell_key(day_of(reading->span.to - 1) + 1, 0, 0));
    return unpack_all(&unpacking, err);
}

enum err store_read_node_hours(struct store *store, struct span span, store_node_hours_fn each,
                               void *context, struct error *err)
{
    struct reading reading = {store, store_span_with_keys(span), each, context};
    if (reading.span.from >= reading.span.to || store->lens)
        return ERR_OK;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    code = read_all(&reading, err);
    store_read_end(store);
    return code;
}
