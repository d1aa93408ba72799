#include "store/block.h"

#include <stdlib.h>
#include <zstd.h>

#define FORMAT 1
#define ZSTD_LEVEL 3
#define PLAIN_MAX ((size_t)1 << 30)

enum type { TYPE_I64, TYPE_U32, TYPE_NAME, TYPE_CAPACITY, TYPE_WORKLOAD };
struct column {
    uint16_t at;
    uint8_t type, count; /* count: of neighbours in an array */
};
#define ROW(field, type_, count_)                                                                  \
    {                                                                                              \
        offsetof(struct row, field), type_, count_                                                 \
    }
#define NODE_HOUR(field, type_)                                                                    \
    {                                                                                              \
        offsetof(struct node_hour, field), type_, 1                                                \
    }

static const struct column row_columns[] = {
    ROW(key.hour, TYPE_I64, 1),
    ROW(key.cluster, TYPE_NAME, 8),
    ROW(facts.model, TYPE_NAME, 7),
    ROW(facts.capacity, TYPE_CAPACITY, 1),
    ROW(facts.type, TYPE_WORKLOAD, 1),
    ROW(flags, TYPE_U32, 1),
    ROW(cost, TYPE_I64, 1),
    ROW(category, TYPE_I64, CATEGORY_COUNT),
    ROW(held_ms, TYPE_I64, 2 + STATE_COUNT),
    ROW(share_den, TYPE_U32, 1),
    ROW(gpu_num, TYPE_I64, 3 + STATE_COUNT),
    ROW(hist_u_num, TYPE_I64, HISTOGRAM_BINS),
    ROW(hist_e_num, TYPE_I64, HISTOGRAM_BINS),
    ROW(gpu_u_num, TYPE_I64, 1),
    ROW(u, TYPE_I64, 2),
    ROW(measure, TYPE_I64, MEASURE_COUNT),
    ROW(measure_seen_ms, TYPE_I64, MEASURE_COUNT),
    ROW(mem_byte_ms, TYPE_I64, 1),
    ROW(mem_seen_ms, TYPE_I64, 3),
    ROW(energy_mj, TYPE_I64, 1),
    ROW(work, TYPE_I64, WORK_COUNT),
};
static const struct column node_hour_columns[] = {
    NODE_HOUR(hour, TYPE_I64),   NODE_HOUR(cluster, TYPE_NAME),
    NODE_HOUR(node, TYPE_NAME),  NODE_HOUR(instance_type, TYPE_NAME),
    NODE_HOUR(pool, TYPE_NAME),  NODE_HOUR(region, TYPE_NAME),
    NODE_HOUR(cloud, TYPE_NAME), NODE_HOUR(capacity, TYPE_CAPACITY),
    NODE_HOUR(price, TYPE_I64),  NODE_HOUR(booked, TYPE_I64),
    NODE_HOUR(up_ms, TYPE_I64),  NODE_HOUR(gpus, TYPE_U32),
    NODE_HOUR(flags, TYPE_U32),  NODE_HOUR(price_source, TYPE_NAME),
};
#define COLUMNS(table) (table), sizeof(table) / sizeof *(table)

static void put_varint(struct strbuf *out, uint64_t v)
{
    while (v >= 128) {
        strbuf_addc(out, (char)(v | 128));
        v >>= 7;
    }
    strbuf_addc(out, (char)v);
}

static bool get_varint(struct str *in, uint64_t *ret)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && in->n; shift += 7) {
        uint8_t byte = (uint8_t)*in->p++;
        in->n--;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static enum err load(struct store *store, const char *field, int type, int64_t *ret,
                     struct error *err)
{
    name_t name;
    uint32_t number;
    switch (type) {
    case TYPE_I64:
        memcpy(ret, field, sizeof *ret);
        return ERR_OK;
    case TYPE_NAME:
        memcpy(&name, field, sizeof name);
        enum err code = dictionary_put(store, name, &number, err);
        *ret = number;
        return code;
    default:
        memcpy(&number, field, sizeof number);
        *ret = number;
        return ERR_OK;
    }
}

static bool save(const struct store *store, char *field, int type, int64_t value)
{
    uint32_t number = (uint32_t)value;
    name_t name;
    switch (type) {
    case TYPE_I64:
        memcpy(field, &value, sizeof value);
        return true;
    case TYPE_NAME:
        if (!dictionary_get(store, (uint64_t)value, &name))
            return false;
        memcpy(field, &name, sizeof name);
        return true;
    case TYPE_CAPACITY:
    case TYPE_WORKLOAD:
        if (value < 0 ||
            value >= (type == TYPE_CAPACITY ? CAPACITY_TYPE_COUNT : WORKLOAD_TYPE_COUNT))
            return false;
        /* fall through */
    default:
        memcpy(field, &number, sizeof number);
        return true;
    }
}

static size_t size_of(int type)
{
    return type == TYPE_I64 ? 8 : 4;
}

static enum err pack_table(struct store *store, const struct column *columns, size_t columns_n,
                           const void *items, size_t n, size_t item_size, struct strbuf *plain,
                           struct error *err)
{
    put_varint(plain, n);
    for (size_t c = 0; c < columns_n; c++)
        for (size_t k = 0; k < columns[c].count; k++) {
            int64_t last = 0;
            size_t at = columns[c].at + k * size_of(columns[c].type);
            for (size_t i = 0; i < n; i++) {
                int64_t value;
                enum err code = load(store, (const char *)items + i * item_size + at,
                                     columns[c].type, &value, err);
                if (code)
                    return code;
                int64_t step = (int64_t)((uint64_t)value - (uint64_t)last);
                put_varint(plain, ((uint64_t)step << 1) ^ (uint64_t)(step >> 63));
                last = value;
            }
        }
    return ERR_OK;
}

static bool unpack_table(const struct store *store, const struct column *columns, size_t columns_n,
                         void *items, size_t n, size_t item_size, struct str *in)
{
    for (size_t c = 0; c < columns_n; c++)
        for (size_t k = 0; k < columns[c].count; k++) {
            uint64_t last = 0, v;
            size_t at = columns[c].at + k * size_of(columns[c].type);
            for (size_t i = 0; i < n; i++) {
                if (!get_varint(in, &v))
                    return false;
                last += (v >> 1) ^ (0 - (v & 1));
                if (!save(store, (char *)items + i * item_size + at, columns[c].type,
                          (int64_t)last))
                    return false;
            }
        }
    return true;
}

enum err block_pack(struct store *store, const struct row_batch *batch, struct strbuf *ret,
                    struct error *err)
{
    struct strbuf plain = {0};
    strbuf_clear(ret);
    strbuf_addc(ret, FORMAT);
    enum err code = pack_table(store, COLUMNS(row_columns), batch->rows, batch->rows_n,
                               sizeof *batch->rows, &plain, err);
    if (!code)
        code = pack_table(store, COLUMNS(node_hour_columns), batch->node_hours, batch->node_hours_n,
                          sizeof *batch->node_hours, &plain, err);
    if (!code) {
        size_t room = ZSTD_compressBound(plain.n);
        char *packed = mem_alloc(room);
        size_t n = ZSTD_compress(packed, room, plain.text, plain.n, ZSTD_LEVEL);
        invariant(!ZSTD_isError(n));
        strbuf_add(ret, (struct str){packed, n});
        free(packed);
    }
    strbuf_release(&plain);
    return code;
}

enum err block_unpack(struct store *store, struct str packed, struct row_batch *batch,
                      struct error *err)
{
    if (packed.n < 2 || packed.p[0] != FORMAT)
        return db_corrupt(store, "a block of an unknown format", err);
    unsigned long long n = ZSTD_getFrameContentSize(packed.p + 1, packed.n - 1);
    if (n > PLAIN_MAX)
        return db_corrupt(store, "a block without end", err);
    char *plain = mem_alloc(n);
    size_t got = ZSTD_decompress(plain, n, packed.p + 1, packed.n - 1);
    struct str in = {plain, n};
    uint64_t rows_n, hours_n;
    bool fine = got == n && get_varint(&in, &rows_n) && rows_n <= BLOCK_ROWS_MAX && rows_n <= in.n;
    if (fine) {
        mem_reserve(batch->rows, batch->rows_n, batch->rows_room, rows_n);
        memset(batch->rows + batch->rows_n, 0, rows_n * sizeof *batch->rows);
        fine = unpack_table(store, COLUMNS(row_columns), batch->rows + batch->rows_n, rows_n,
                            sizeof *batch->rows, &in);
    }
    fine = fine && get_varint(&in, &hours_n) && hours_n <= 24;
    if (fine) {
        mem_reserve(batch->node_hours, batch->node_hours_n, batch->node_hours_room, hours_n);
        memset(batch->node_hours + batch->node_hours_n, 0, hours_n * sizeof *batch->node_hours);
        fine =
            unpack_table(store, COLUMNS(node_hour_columns), batch->node_hours + batch->node_hours_n,
                         hours_n, sizeof *batch->node_hours, &in);
    }
    free(plain);
    if (!fine)
        return db_corrupt(store, "a block that cannot be read", err);
    batch->rows_n += rows_n;
    batch->node_hours_n += hours_n;
    return ERR_OK;
}
