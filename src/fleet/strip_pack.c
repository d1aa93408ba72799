/* Rows of strips that nobody looks at: packed (fleet/pack.h), and put aside (fleet/spill.h).
 *
 * While sources deliver, a strip packs its oldest complete rows, some 32 at a time, and keeps at
 * least one as it is, so that whatever reaches back over it is known by its stamp: such samples go
 * to the odd ones and meet their rows when the strip is settled. A chunk says where the one before
 * it lies, so that a strip has no index. A strip that was loaded is packed again as one chunk,
 * which stays good for as long as nothing changes its rows.
 *
 *     chunk:  head, stamps, a column for each bit of `columns`, tail
 *
 * The disk is the world's: each chunk has a checksum. */
#include <stdlib.h>
#include <xxhash.h>

#include "fleet/intake_data.h"
#include "fleet/pack.h"
#include "util/error.h"

struct chunk_head {
    uint64_t check; /* of what follows it */
    struct spill_ref before;
    uint32_t rows, columns;
};

/* Behind the columns, which are then unpacked by words without looking where they end. */
static const char tail[sizeof(uint64_t)];

void strip_set_room(struct strip *strip, size_t room)
{
    size_t columns = 1;
    if (room != strip->room && room) {
        strip->t = mem_realloc(strip->t, room, sizeof *strip->t);
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (strip->column[s])
                strip->column[s] = mem_realloc(strip->column[s], room, sizeof *strip->column[s]);
    }
    strip->room = room;
    if (!strip->packing)
        return;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        columns += strip->column[s] != NULL;
    size_t bytes = room * columns * sizeof(int64_t);
    __atomic_fetch_add(&strip->packing->held_bytes, bytes - strip->held_bytes, __ATOMIC_RELAXED);
    strip->held_bytes = bytes;
}

void strip_fill_absent(struct strip *strip, enum signal signal, size_t upto)
{
    int64_t *column = strip->column[signal];
    for (size_t i = strip->filled[signal]; i < upto; i++)
        column[i] = SIGNAL_ABSENT;
    if (strip->filled[signal] < upto)
        strip->filled[signal] = upto;
}

/* ------------------------------------------------------------------ packing */

static uint64_t checksum(struct str chunk)
{
    return XXH3_64bits(chunk.p + sizeof(uint64_t), chunk.n - sizeof(uint64_t));
}

/* The first rows, whose columns are filled, as the strip's last chunk. */
static void put_chunk(struct strip *strip, size_t rows)
{
    struct chunk_head head = {.before = strip->packed, .rows = (uint32_t)rows};
    struct strbuf out = {0};
    for (int s = 0; s < SIGNAL_COUNT; s++)
        head.columns |= (strip->column[s] != NULL) * 1u << s;
    strbuf_add(&out, (struct str){(const char *)&head, sizeof head});
    pack_values(&out, strip->t, rows);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s])
            pack_values(&out, strip->column[s], rows);
    strbuf_add(&out, (struct str){tail, sizeof tail});
    head.check = checksum(strbuf_str(&out));
    memcpy(out.text, &head.check, sizeof head.check);
    strip->packed = spill_put(strip->packing->spill, strbuf_str(&out));
    strip->packed_rows += rows;
    __atomic_store_n(&strip->packing->used, true, __ATOMIC_RELAXED);
    strbuf_release(&out);
}

/* How many rows can go: those that have all they get, but for signals that are far behind. */
static size_t complete_rows(const struct strip *strip)
{
    size_t rows = strip->n - 1;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s] && strip->filled[s] < rows)
            rows = strip->filled[s];
    if (rows >= STRIP_PACK_ROWS)
        return rows;
    return strip->n >= STRIP_LAG_ROWS ? strip->n - STRIP_PACK_ROWS : 0;
}

void strip_pack_rows(struct strip *strip)
{
    size_t rows = complete_rows(strip);
    if (!rows)
        return;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s]) {
            strip->packed_samples += strip->filled[s] < rows ? strip->filled[s] : rows;
            strip_fill_absent(strip, (enum signal)s, rows);
        }
    put_chunk(strip, rows);
    size_t left = strip->n - rows;
    memmove(strip->t, strip->t + rows, left * sizeof *strip->t);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s]) {
            strip->filled[s] -= rows;
            memmove(strip->column[s], strip->column[s] + rows, strip->filled[s] * sizeof(int64_t));
        }
    strip->n = left;
    size_t enough = left + STRIP_PACK_ROWS + STRIP_PACK_ROWS / 4;
    if (strip->room > 3 * enough)
        strip_set_room(strip, enough);
}

/* ------------------------------------------------------------------ loading */

/* The chunk of a reference, which is whole; false: it is not. */
static bool get_chunk(const struct strip *strip, struct spill_ref ref, struct strbuf *bytes,
                      struct chunk_head *ret)
{
    if (!spill_get(strip->packing->spill, ref, bytes) || bytes->n < sizeof *ret)
        return false;
    memcpy(ret, bytes->text, sizeof *ret);
    return ret->check == checksum(strbuf_str(bytes));
}

/* The chunk's rows to those that end at row `end`. */
static bool unpack_chunk(struct strip *wide, const struct strbuf *bytes,
                         const struct chunk_head *head, size_t end)
{
    const char *p = bytes->text + sizeof *head, *stop = bytes->text + bytes->n;
    size_t first = end - head->rows;
    p = unpack_values(p, stop, wide->t + first, head->rows);
    for (int s = 0; s < SIGNAL_COUNT && p; s++) {
        int64_t *column = wide->column[s];
        if (head->columns & 1u << s)
            p = column ? unpack_values(p, stop, column + first, head->rows) : NULL;
        else if (column)
            for (size_t i = first; i < end; i++)
                column[i] = SIGNAL_ABSENT;
    }
    return p == stop - sizeof tail;
}

/* Columns for all rows of a strip whose last chunk is this one; later chunks have no fewer. */
static void open_wide(const struct strip *strip, const struct chunk_head *last, struct strip *wide)
{
    size_t room = strip->packed_rows + strip->n;
    *wide = (struct strip){.n = room, .room = room};
    wide->t = mem_alloc(room * sizeof *wide->t);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s] || last->columns & 1u << s)
            wide->column[s] = mem_alloc(room * sizeof(int64_t));
}

/* The packed rows, from the last chunk back to the first. */
static bool read_chunks(const struct strip *strip, struct strip *wide, size_t *ret_chunks)
{
    struct strbuf bytes = {0};
    struct chunk_head head;
    size_t end = strip->packed_rows;
    bool good = true;
    *ret_chunks = 0;
    for (struct spill_ref ref = strip->packed; good && ref.bytes; ref = head.before) {
        good = get_chunk(strip, ref, &bytes, &head) && head.rows <= end;
        if (good && ++*ret_chunks == 1)
            open_wide(strip, &head, wide);
        good = good && unpack_chunk(wide, &bytes, &head, end);
        end -= good ? head.rows : 0;
    }
    strbuf_release(&bytes);
    return good && end == 0;
}

/* The plain rows behind the packed ones. */
static void add_plain(const struct strip *strip, struct strip *wide)
{
    size_t first = strip->packed_rows;
    if (strip->n)
        memcpy(wide->t + first, strip->t, strip->n * sizeof *strip->t);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!wide->column[s])
            continue;
        size_t filled = strip->column[s] ? strip->filled[s] : 0;
        if (filled)
            memcpy(wide->column[s] + first, strip->column[s], filled * sizeof(int64_t));
        wide->filled[s] = first + filled;
    }
}

bool strip_load(struct strip *strip)
{
    if (strip->loaded || !strip->packed.bytes) {
        strip_settle(strip);
        return true;
    }
    struct strip wide = {0};
    size_t chunks;
    bool good = read_chunks(strip, &wide, &chunks);
    if (good) {
        add_plain(strip, &wide);
        strip->same = chunks == 1 && strip->n == 0 && strip->odd_n == 0;
        strip->loaded = true;
        free(strip->t);
        for (int s = 0; s < SIGNAL_COUNT; s++)
            free(strip->column[s]);
        strip->t = wide.t;
        strip->n = wide.n;
        memcpy(strip->column, wide.column, sizeof strip->column);
        memcpy(strip->filled, wide.filled, sizeof strip->filled);
        strip->room = wide.room;
        strip_set_room(strip, wide.room);
        strip_settle(strip);
    } else {
        strip_clear(&wide);
    }
    return good;
}

void strip_unload(struct strip *strip)
{
    if (!strip->packing || !__atomic_load_n(&strip->packing->used, __ATOMIC_RELAXED))
        return;
    if (strip->n && !(strip->loaded && strip->same)) {
        strip->packed = (struct spill_ref){0, 0};
        strip->packed_rows = 0;
        put_chunk(strip, strip->n);
    }
    strip_clear(strip);
}
