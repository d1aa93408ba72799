/* Values of many rows of a table, unpacked on all cores and handed over in their order.
 *
 *     SQLite -> batch -> a thread unpacks it -> handed over
 *               batch -> another does        -> …
 *
 * SQLite is read by the calling thread only, so that all threads see one state of the database;
 * what is dear is unpacking, which needs nothing of a handle but its dictionary and its places. The
 * calling thread fills batches, hands over those that are ready, and helps where it has nothing
 * else to do; on one core it does all of it. Memory: some batches of UNPACK_BATCH values. */
#ifndef GPUTALLY_STORE_UNPACK_H
#define GPUTALLY_STORE_UNPACK_H

#include "store/internal.h"

#define UNPACK_BATCH 32
#define UNPACK_KEYS 2

struct unpack_value {
    int64_t keys[UNPACK_KEYS]; /* the row's first columns */
    struct str packed;         /* its last one, with COLUMN_PADDING bytes behind it */
};

struct unpacking {
    struct store *store;
    sqlite3_stmt *rows; /* bound; reset in the end */
    int keys_n;         /* columns before the value */
    const char *doing;  /* "reading GPU hours" */
    void *context;
    size_t room_size;    /* of what a value becomes: zeroed once, then used again and again */
    size_t scratch_size; /* of what a thread needs meanwhile: likewise */
    /* On any thread, values at once; replaces what the room holds. */
    enum err (*unpack)(void *context, void *scratch, const struct unpack_value *value, void *room,
                       struct error *err);
    /* On the calling thread, in order of rows. False: stop. */
    bool (*take)(void *context, const void *room);
    void (*release_room)(void *room);
    void (*release_scratch)(void *scratch);
};
enum err unpack_all(const struct unpacking *unpacking, struct error *err);

#endif
