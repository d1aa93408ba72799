#include "store/scan.h"

#include <stdlib.h>

#include "store/lens.h"
#include "store/rollup.h"

#define ALL_HOURS 0xffffffu

static void parts_of_series(const struct scan *scan, const struct block *block, size_t s,
                            uint32_t hours)
{
    const struct series *series = &block->series[s];
    size_t from, to;
    block_rows_of(block, s, hours, &from, &to);
    size_t step = scan->detail == SCAN_ROWS ? 1 : to - from;
    for (size_t i = from; i < to; i += step) {
        struct row_key key = series->key;
        key.hour = block->day * DAY_MS + block->hours[i] * HOUR_MS;
        struct figures figures = {0};
        block_sum(block, s, i, i + step, &figures);
        scan->part(scan->context, &(struct scan_part){&key, &series->facts, &figures});
    }
}

struct of_day {
    struct store *store;
    const struct scan *scan;
    struct rollup *nodes; /* room; so are devices */
    name_t **devices;
    size_t *devices_room;
    const bool *wanted; /* [place - 1]; NULL: all */
    struct day day;     /* hours: those of the window */
};

static void hand_over_nodes(const struct of_day *of, const struct place *place)
{
    size_t n = 0;
    for (size_t i = 0; i < of->nodes->devices_n; i++)
        mem_push(*of->devices, n, *of->devices_room, of->nodes->devices[i].name);
    for (size_t i = 0; i < of->nodes->nodes_n; i++) {
        const struct rollup_node *node = &of->nodes->nodes[i];
        struct scan_node each = {
            .key = {.hour = of->day.day * DAY_MS, .cluster = place->cluster, .node = place->node},
            .facts = node->facts,
            .hours = node->hours,
            .booked = node->booked,
            .devices = *of->devices,
            .devices_n = n};
        of->scan->node(of->scan->context, &each);
    }
}

/* nodes: also hand over what the node has to say (else the roll-up has said it). */
static enum err scan_block(const struct of_day *of, int64_t key, struct str packed, bool nodes,
                           struct error *err)
{
    uint32_t id = cell_place(key);
    struct place place;
    if (!places_get(of->store, id, &place))
        return db_corrupt(of->store, "a block of an unknown node", err);
    const struct scan *scan = of->scan;
    struct block *block = of->store->reading;
    enum err code =
        block_open(of->store, block, of->day.day, place.cluster, place.node, packed,
                   scan->texts == SCAN_TEXTS_KINDS || scan->detail == SCAN_TEAMS ? BLOCK_NAMES_KINDS
                                                                                 : BLOCK_NAMES_ALL,
                   err);
    if (code)
        return code;
    for (size_t s = 0; s < block->series_n; s++)
        parts_of_series(scan, block, s, of->day.hours);
    if (nodes) {
        rollup_clear(of->nodes, of->day.day);
        rollup_add_nodes(of->nodes, block, id, of->day.hours);
        hand_over_nodes(of, &place);
    }
    return ERR_OK;
}

/* Blocks of the places [from, to). */
static enum err scan_places(const struct of_day *of, uint32_t from, uint32_t to, bool nodes,
                            struct error *err)
{
    struct store *store = of->store;
    sqlite3_stmt *get = db_statement(store, STATEMENT_BLOCKS, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, cell_key(of->day.day, from, 0));
    sqlite3_bind_int64(get, 2, cell_key(of->day.day, to, 0));
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW)
        if ((uint32_t)sqlite3_column_int64(get, 1) & of->day.hours)
            code = scan_block(of, sqlite3_column_int64(get, 0), db_text(get, 2), nodes, err);
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    return code;
}

/* A scan of a few nodes seeks them: the blocks of a day are as many as the fleet has nodes. */
static enum err scan_blocks(const struct of_day *of, bool nodes, struct error *err)
{
    if (!of->wanted)
        return scan_places(of, 0, 1u << PLACE_BITS, nodes, err);
    enum err code = ERR_OK;
    for (uint32_t p = 0; p < of->store->places.n && !code; p++)
        if (of->wanted[p])
            code = scan_places(of, p + 1, p + 2, nodes, err);
    return code;
}

static enum err scan_rollup(const struct of_day *of, bool sums, struct error *err)
{
    struct store *store = of->store;
    sqlite3_stmt *get = db_statement(store, STATEMENT_DAY_GET, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, of->day.day);
    int rc = sqlite3_step(get);
    enum err code = rc == SQLITE_ROW    ? ERR_OK
                    : rc == SQLITE_DONE ? db_corrupt(store, "a day is missing", err)
                                        : db_fail(store, rc, "reading a day", err);
    if (!code && sums)
        code = rollup_scan_sums(store, of->day.day, db_text(get, 0), of->scan, err);
    if (!code)
        code = rollup_scan_nodes(store, of->day.day, db_text(get, 1), of->scan, err);
    sqlite3_reset(get);
    return code;
}

static enum err scan_day(struct of_day *of, struct error *err)
{
    uint32_t window = hours_in_day(of->scan->hours, of->day.day);
    bool whole = (of->day.hours & ~window) == 0;
    of->day.hours &= window;
    if (!whole)
        return scan_blocks(of, true, err);
    bool sums = of->scan->detail == SCAN_TEAMS;
    enum err code = scan_rollup(of, sums, err);
    return code || sums ? code : scan_blocks(of, false, err);
}

static void widen(struct span *recorded, const struct day *day)
{
    if (!day->hours)
        return;
    if (recorded->from >= recorded->to)
        recorded->from = day->day * DAY_MS + __builtin_ctz(day->hours) * HOUR_MS;
    recorded->to = day->day * DAY_MS + (32 - __builtin_clz(day->hours)) * HOUR_MS;
}

static enum err scan_notes(struct store *store, const struct scan *scan, struct error *err)
{
    struct row_batch batch = {.names = store->names};
    enum err code = notes_read(store, scan->hours, &batch, err);
    for (size_t i = 0; i < batch.notes_n && !code; i++)
        scan->note(scan->context, &batch.notes[i]);
    row_batch_release(&batch);
    return code;
}

static bool *wanted_places(const struct store *store, const struct scan *scan)
{
    if (!scan->wants_node)
        return NULL;
    bool *wanted = mem_zalloc(store->places.n, sizeof *wanted);
    for (size_t p = 0; p < store->places.n; p++) {
        struct place place = store->places.items[p];
        wanted[p] = scan->wants_node(scan->context, place.cluster, place.node);
    }
    return wanted;
}

enum err store_scan(struct store *store, const struct scan *scan, struct span *ret_recorded,
                    struct error *err)
{
    struct day *days = NULL;
    size_t n = 0;
    struct rollup nodes = {0};
    name_t *devices = NULL;
    size_t devices_room = 0;
    struct span recorded = {0, 0};
    struct lens_looking looking;
    struct scan through;
    enum err code = store_read_begin(store, err);
    if (code)
        return code;
    if (store->lens) {
        lens_scan(store->lens, scan, &looking, &through);
        scan = &through;
    }
    bool *wanted = wanted_places(store, scan);
    code = store_days(store, scan->hours, &days, &n, err);
    for (size_t i = 0; i < n && !code; i++) {
        struct of_day of = {store, scan, &nodes, &devices, &devices_room, wanted, days[i]};
        code = scan_day(&of, err);
        widen(&recorded, &of.day);
    }
    if (!code)
        code = scan_notes(store, scan, err);
    store_read_end(store);
    rollup_release(&nodes);
    free(devices);
    free(wanted);
    free(days);
    if (!code)
        *ret_recorded = recorded;
    return code;
}
