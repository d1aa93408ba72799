/* Any bytes as a block or a day's roll-up: rows, an error, never a crash; and what was read as rows
 * is packed and read again as the same. */
#include "store/block.h"
#include "store/rollup.h"

#define NAMES 64 /* ids that blocks may name */

static struct store *store;
static struct names *names;

static void begin(void)
{
    names = names_new();
    invariant(store_open(":memory:", STORE_WRITE, names, &store, NULL) == ERR_OK);
    invariant(store_begin(store, NULL) == ERR_OK);
    for (int i = 0; i < NAMES; i++) {
        char text[16];
        uint32_t id;
        snprintf(text, sizeof text, "name-%d", i);
        name_t name = names_put(names, str_of(text));
        invariant(dictionary_put(store, name, &id, NULL) == ERR_OK);
        invariant(places_put(store, (struct place){NAME_NONE, name}, &id, NULL) == ERR_OK);
    }
}

static void on_part(void *context, const struct scan_part *part)
{
    *(wide_t *)context += part->figures->gpu_ns;
}
static void on_node(void *context, const struct scan_node *node)
{
    for (size_t i = 0; i < node->devices_n; i++)
        *(wide_t *)context += node->devices[i];
}

static void as_rollup(struct str bytes)
{
    wide_t sum = 0;
    struct scan scan = {.context = &sum, .part = on_part, .node = on_node};
    uint32_t with_sums;
    rollup_scan_sums(store, 20000 * DAY_MS, bytes, &scan, NULL);
    rollup_scan_nodes(store, 20000, bytes, &scan, NULL);
    rollup_scan_node_hours(store, 20000, bytes, 0xff, &scan, &with_sums, NULL);
}

static bool open_all(struct str bytes, struct row_batch *rows)
{
    struct place place;
    invariant(places_get(store, 1, &place));
    return block_open(store, store->reading, 20000, place.cluster, place.node, bytes,
                      BLOCK_NAMES_ALL, NULL) == ERR_OK &&
           block_rows(store, store->reading, UINT32_MAX, rows, NULL) == ERR_OK;
}

/* As columns, and node-hours alone: what is there, or an error. */
static void in_parts(struct str bytes)
{
    static const char slack[COLUMN_PADDING];
    struct place place;
    struct row_histogram u;
    struct strbuf padded = {0};
    invariant(places_get(store, 1, &place));
    if (block_open(store, store->reading, 20000, place.cluster, place.node, bytes,
                   BLOCK_NAMES_WORKLOADS, NULL) == ERR_OK)
        block_columns(store, store->reading, &u, NULL);
    strbuf_add(&padded, bytes);
    strbuf_add(&padded, (struct str){slack, sizeof slack});
    block_open_node_hours(store, store->reading, 20000, place.cluster, place.node,
                          (struct str){padded.text, bytes.n}, NULL);
    strbuf_release(&padded);
}

/* Node-hours that come twice or out of order are never packed. */
static bool can_be_packed(const struct row_batch *rows)
{
    for (size_t i = 1; i < rows->node_hours_n; i++)
        if (rows->node_hours[i - 1].hour >= rows->node_hours[i].hour)
            return false;
    return rows->rows_n || rows->node_hours_n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!store)
        begin();
    struct str bytes = {(const char *)data, size};
    struct row_batch rows = {.names = names}, again = {.names = names};
    struct strbuf packed = {0};
    as_rollup(bytes);
    in_parts(bytes);
    if (open_all(bytes, &rows) && can_be_packed(&rows)) {
        invariant(block_pack(store, &rows, &packed, NULL) == ERR_OK);
        invariant(open_all(strbuf_str(&packed), &again));
        invariant(again.rows_n == rows.rows_n && again.node_hours_n == rows.node_hours_n);
        wide_t costs = 0;
        for (size_t i = 0; i < rows.rows_n; i++)
            costs += (wide_t)rows.rows[i].cost - again.rows[i].cost;
        invariant(costs == 0);
    }
    strbuf_release(&packed);
    row_batch_release(&rows);
    row_batch_release(&again);
    return 0;
}
