/* A group of columns: a bit for each that is not all 0, then those columns. Most fields of most
 * ledgers are 0 all day, and cost a bit. */
#ifndef GPUTALLY_STORE_GROUP_H
#define GPUTALLY_STORE_GROUP_H

#include "store/column.h"

#define GROUP_COLUMNS_MAX 256

struct group_writer {
    struct strbuf columns;
    uint8_t bits[GROUP_COLUMNS_MAX / 8];
    unsigned next;
};
void group_put(struct group_writer *group, const int64_t *values, size_t n, struct runs runs);
void group_end(struct group_writer *group, struct strbuf *out); /* appends it, and releases */

struct group_reader {
    struct str *in;
    uint8_t bits[GROUP_COLUMNS_MAX / 8];
    unsigned next, columns;
};
/* False where the bytes are no group of so many columns; likewise below. */
bool group_begin(struct group_reader *group, struct str *in, unsigned columns);
bool group_get(struct group_reader *group, int64_t *values, size_t n, struct runs runs);
bool group_skip(struct group_reader *group, size_t n, struct runs runs); /* past the next one */
/* Is the next column all 0? It is then skipped. */
bool group_skip_zero(struct group_reader *group);

#endif
