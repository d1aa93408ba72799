/* Where a set of sources stands in a store's books: what the store keeps of it, and its name. */
#ifndef GPUTALLY_COLLECT_POSITION_H
#define GPUTALLY_COLLECT_POSITION_H

#include "source/source.h"
#include "store/store.h"

struct position {
    bool known;          /* it has booked before */
    time_ms begun;       /* everything from here on was asked for … */
    time_ms watermark;   /* … up to here, and is closed */
    struct strbuf carry; /* the engine's, for the slice that begins at the watermark */
    struct strbuf settings;
    struct strbuf mark; /* where sources that keep samples themselves stood; empty: not known */
};

/* A name that does not depend on the order of the sources. Appends to ret. */
void position_source_id(struct source *const *sources, size_t n, struct strbuf *ret);
/* The name that a book with a name has its position under. Appends to ret. */
void position_book_id(struct str book, struct strbuf *ret);

/* A source that never booked gives known = false; so does what another version left. */
enum err position_read(struct store *store, struct str source, struct position *ret,
                       struct error *err);
/* Commit the open transaction with the position. */
enum err position_commit(struct store *store, struct str source, const struct position *position,
                         struct error *err);
void position_release(struct position *position);

#endif
