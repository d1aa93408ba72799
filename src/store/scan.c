#include "store/scan.h"

#include <stdlib.h>

#include "store/hour_sums.h"
#include "store/lens.h"
#include "store/unpack.h"

#define ALL_HOURS 0xffffffu

struct part {
    struct row_key key;
    struct row_facts facts;
    struct figures figures;
};

/* What a block of a node's day has to say. */
struct said {
    struct part *parts;
    size_t n, room;
    struct rollup nodes;
    struct place place;
};

/* A series of which only the cost is asked for. */
static void hand_over_cost(const struct scan *scan, const struct block *block, size_t s,
                           uint32_t hours)
{
    const struct series *series = &block->series[s];
    struct row_key key = series->key;
    struct figures figures = {0};
    size_t from, to;
    block_rows_of(block, s, hours, &from, &to);
    if (from == to)
        return;
    key.hour = block->day * DAY_MS + block->hours[from] * HOUR_MS;
    for (size_t i = from; i < to; i++)
        sum_add(&figures.cost, block->columns[COLUMN_COST][i]);
    scan->part(scan->context, &(struct scan_part){&key, &series->facts, &figures});
}

static bool is_wanted(const struct scan *scan, const struct series *series)
{
    return !scan->wants_series || scan->wants_series(scan->context, &series->key, &series->facts);
}

/* Kept in `ret`, or handed over at once where that is NULL. */
static void parts_of_series(const struct scan *scan, const struct block *block, size_t s,
                            uint32_t hours, struct said *ret)
{
    const struct series *series = &block->series[s];
    struct part own, *part = &own;
    size_t from, to;
    block_rows_of(block, s, hours, &from, &to);
    size_t step = scan->detail & SCAN_HOURS ? 1 : to - from;
    for (size_t i = from; i < to; i += step) {
        if (ret) {
            mem_reserve(ret->parts, ret->n, ret->room, 1);
            part = &ret->parts[ret->n++];
        }
        part->key = series->key;
        part->key.hour = block->day * DAY_MS + block->hours[i] * HOUR_MS;
        part->facts = series->facts;
        memset(&part->figures, 0, sizeof part->figures);
        block_sum(block, s, i, i + step, &part->figures);
        if (!ret)
            scan->part(scan->context,
                       &(struct scan_part){&part->key, &part->facts, &part->figures});
    }
}

struct of_day {
    struct store *store;
    const struct scan *scan;
    name_t **devices; /* room */
    size_t *devices_room;
    const bool *wanted; /* [place - 1]; NULL: all */
    struct day day;     /* hours: those of the window */
};

static void hand_over_nodes(const struct of_day *of, const struct said *said)
{
    const struct place *place = &said->place;
    size_t n = 0;
    for (size_t i = 0; i < said->nodes.devices_n; i++)
        mem_push(*of->devices, n, *of->devices_room, said->nodes.devices[i].name);
    for (size_t i = 0; i < said->nodes.nodes_n; i++) {
        const struct rollup_node *node = &said->nodes.nodes[i];
        struct scan_node each = {
            .key = {.hour = of->day.day * DAY_MS, .cluster = place->cluster, .node = place->node},
            .facts = node->facts,
            .hours = (uint64_t)__builtin_popcount(node->hours),
            .devices = *of->devices,
            .devices_n = n};
        for (int h = 0; h < 24; h++)
            sum_add(&each.booked, node->booked[h]);
        of->scan->node(of->scan->context, &each);
    }
}

struct places_scan {
    const struct of_day *of;
    bool nodes;   /* also what nodes have to say (else the roll-up has said it) */
    bool in_turn; /* parts are handed over as they come, on the calling thread */
};

static enum err hear_block(void *context, void *scratch, const struct unpack_value *value,
                           void *room, struct error *err)
{
    const struct places_scan *places = context;
    const struct of_day *of = places->of;
    const struct scan *scan = of->scan;
    struct block *block = scratch;
    struct said *said = room;
    static const enum block_names names[] = {[SCAN_TEXTS_ALL] = BLOCK_NAMES_ALL,
                                             [SCAN_TEXTS_PODS] = BLOCK_NAMES_PODS,
                                             [SCAN_TEXTS_WORKLOADS] = BLOCK_NAMES_WORKLOADS,
                                             [SCAN_TEXTS_KINDS] = BLOCK_NAMES_KINDS};
    enum scan_texts texts = scan->detail & SCAN_SERIES ? scan->texts : SCAN_TEXTS_KINDS;
    uint32_t id = cell_place(value->keys[0]);
    said->n = 0;
    rollup_clear(&said->nodes, of->day.day, false);
    if (!((uint32_t)value->keys[1] & of->day.hours))
        return ERR_OK;
    if (!places_get(of->store, id, &said->place))
        return db_corrupt(of->store, "a block of an unknown node", err);
    enum err code = block_open(of->store, block, of->day.day, said->place.cluster, said->place.node,
                               value->packed, names[texts], err);
    for (size_t s = 0; s < block->series_n && !code; s++)
        if (places->in_turn && !is_wanted(scan, &block->series[s]))
            hand_over_cost(scan, block, s, of->day.hours);
        else
            parts_of_series(scan, block, s, of->day.hours, places->in_turn ? NULL : said);
    if (!code && places->nodes)
        rollup_add_nodes(&said->nodes, block, id, of->day.hours);
    return code;
}

static bool hand_over(void *context, const void *room)
{
    const struct places_scan *places = context;
    const struct scan *scan = places->of->scan;
    const struct said *said = room;
    for (size_t i = 0; i < said->n; i++) {
        const struct part *part = &said->parts[i];
        scan->part(scan->context, &(struct scan_part){&part->key, &part->facts, &part->figures});
    }
    hand_over_nodes(places->of, said);
    return true;
}

static void release_said(void *room)
{
    struct said *said = room;
    free(said->parts);
    rollup_release(&said->nodes);
}

static void release_block(void *scratch)
{
    block_release(scratch);
}

/* One after the other: figures of single rows are larger than the columns that they come from, and
 * for one node no crew is called. */
static enum err scan_in_turn(struct places_scan *places, sqlite3_stmt *get, struct error *err)
{
    struct store *store = places->of->store;
    struct said said = {0};
    enum err code = ERR_OK;
    int rc = SQLITE_DONE;
    places->in_turn = true;
    while (!code && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        const struct unpack_value value = {
            {sqlite3_column_int64(get, 0), sqlite3_column_int64(get, 1)}, db_text(get, 2)};
        code = hear_block(places, store->reading, &value, &said, err);
        if (!code)
            hand_over_nodes(places->of, &said);
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading rows", err);
    sqlite3_reset(get);
    release_said(&said);
    return code;
}

/* Blocks of the places [from, to), summed up on all cores where they are unpacked. */
static enum err scan_places(const struct of_day *of, uint32_t from, uint32_t to, bool nodes,
                            struct error *err)
{
    struct places_scan places = {of, nodes, false};
    const struct unpacking unpacking = {.store = of->store,
                                        .rows = db_statement(of->store, STATEMENT_BLOCKS, err),
                                        .keys_n = 2,
                                        .doing = "reading rows",
                                        .context = &places,
                                        .room_size = sizeof(struct said),
                                        .scratch_size = sizeof(struct block),
                                        .unpack = hear_block,
                                        .take = hand_over,
                                        .release_room = release_said,
                                        .release_scratch = release_block};
    if (!unpacking.rows)
        return ERR_STORE;
    sqlite3_bind_int64(unpacking.rows, 1, cell_key(of->day.day, from, 0));
    sqlite3_bind_int64(unpacking.rows, 2, cell_key(of->day.day, to, 0));
    if (of->scan->detail & SCAN_HOURS || to - from == 1)
        return scan_in_turn(&places, unpacking.rows, err);
    return unpack_all(&unpacking, err);
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
        code = rollup_scan_sums(store, of->day.day * DAY_MS, db_text(get, 0), of->scan, err);
    if (!code)
        code = rollup_scan_nodes(store, of->day.day, db_text(get, 1), of->scan, err);
    sqlite3_reset(get);
    return code;
}

static enum err scan_hours(const struct of_day *of, struct error *err)
{
    bool found;
    enum err code = hour_sums_scan(of->store, of->day.day, of->day.hours, of->scan, &found, err);
    return code || found ? code : scan_blocks(of, true, err);
}

static enum err scan_day(struct of_day *of, struct error *err)
{
    uint32_t window = hours_in_day(of->scan->hours, of->day.day);
    enum scan_detail detail = of->scan->detail;
    bool whole = (of->day.hours & ~window) == 0;
    of->day.hours &= window;
    if (!(detail & SCAN_SERIES) && (!whole || detail == SCAN_HOURS))
        return scan_hours(of, err);
    if (!whole)
        return scan_blocks(of, true, err);
    enum err code = scan_rollup(of, detail == SCAN_TEAMS, err);
    return code || detail == SCAN_TEAMS ? code : scan_blocks(of, false, err);
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
        struct of_day of = {store, scan, &devices, &devices_room, wanted, days[i]};
        code = scan_day(&of, err);
        widen(&recorded, &of.day);
    }
    if (!code)
        code = scan_notes(store, scan, err);
    store_read_end(store);
    free(devices);
    free(wanted);
    free(days);
    if (!code)
        *ret_recorded = recorded;
    return code;
}
