/* Rows of hosts, workloads and namespaces as columns (load_hours.c keeps them): which fields each
 * kind has, and how they are packed. */
#ifndef GPUTALLY_STORE_LOAD_PACK_H
#define GPUTALLY_STORE_LOAD_PACK_H

#include "store/internal.h"

enum load_kind { LOAD_KIND_MACHINE, LOAD_KIND_WORKLOAD, LOAD_KIND_NAMESPACE, LOAD_KIND_COUNT };

#define LOAD_FIELDS_MAX 20
struct load_field {
    size_t offset;
    enum { FIELD_HOUR, FIELD_NAME, FIELD_I64, FIELD_I32, FIELD_BOOL } type;
};

/* Fields in order of packing; rows are told apart by the first identity_n of them, and the hour.
 * Format 1 had fewer fields: what it lacks reads as 0, or nobody. */
struct load_layout {
    size_t size, hour, cluster;
    unsigned identity_n, fields_n, fields_1_n;
    struct load_field fields[LOAD_FIELDS_MAX];
};
extern const struct load_layout load_layouts[LOAD_KIND_COUNT];

/* Rows of one kind: n items of layout->size bytes. */
struct load_rows {
    const struct load_layout *layout;
    char *at;
    size_t n, room;
};
void load_rows_add(struct load_rows *rows, const void *row);
static inline void *load_row(const struct load_rows *rows, size_t i)
{
    return rows->at + i * rows->layout->size;
}
static inline time_ms load_row_hour(const struct load_layout *layout, const void *row)
{
    time_ms hour;
    memcpy(&hour, (const char *)row + layout->hour, sizeof hour);
    return hour;
}
static inline name_t load_row_name(const void *row, size_t offset)
{
    name_t name;
    memcpy(&name, (const char *)row + offset, sizeof name);
    return name;
}

/* Rows of a day, in order of identity and hour, as bytes; `out` is replaced. */
enum err load_pack(struct store *store, const struct load_rows *rows, int64_t day,
                   struct strbuf *out, struct error *err);
/* Fills `ret`, which is empty, with rows of the place's day. Bytes are not trusted: ERR_STORE. */
enum err load_unpack(struct store *store, enum load_kind kind, int64_t day, int64_t place,
                     struct str packed, struct load_rows *ret, struct error *err);

#endif
