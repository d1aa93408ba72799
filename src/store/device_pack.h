/* What a node's GPUs did in the hours of a UTC day, as columns (device_hours.c keeps them). */
#ifndef GPUTALLY_STORE_DEVICE_PACK_H
#define GPUTALLY_STORE_DEVICE_PACK_H

#include "store/unpack.h"

/* Of one node and day, in order of device and hour. */
struct device_rows {
    struct device_hour *items;
    size_t n, room;
};

/* What a thread needs to unpack; zeroed to begin with. */
struct device_scratch {
    struct strbuf bytes;
    int64_t *values;
    uint32_t *starts;
    size_t room;
};
void device_scratch_release(void *scratch);

/* `out` is replaced. New names are put into the dictionary. */
enum err device_pack(struct store *store, const struct device_rows *rows, int64_t day,
                     struct strbuf *out, struct error *err);
/* In place of what `ret` holds; keys[0] of the value is the block_key(). Bytes are not trusted:
 * ERR_STORE. */
enum err device_unpack(struct store *store, const struct unpack_value *value,
                       enum device_hour_fields fields, struct device_scratch *scratch,
                       struct device_rows *ret, struct error *err);

#endif
