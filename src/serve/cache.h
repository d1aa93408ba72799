/* Finished answers, by a text that says everything that they depend on. Bounded in bytes; what was
 * asked for longest ago goes first. Any thread. */
#ifndef GPUTALLY_SERVE_CACHE_H
#define GPUTALLY_SERVE_CACHE_H

#include <stdint.h>

#include "util/str.h"

/* An answer that its users hold: it stays while somebody does. Read-only. */
struct cached {
    struct str plain, gzip; /* gzip empty: not worth it */
    uint64_t digest[2];     /* of plain */
};

struct cache;
struct cache *cache_new(size_t bytes_max);
void cache_free(struct cache *cache); /* NULL is fine; answers that are held stay */

/* Held, or NULL. */
struct cached *cache_get(struct cache *cache, struct str key);
/* Takes both texts over and gives the answer, held. What is larger than a quarter of the cache is
 * given and not kept. */
struct cached *cache_put(struct cache *cache, struct str key, struct strbuf *plain,
                         struct strbuf *gzip);
/* The same, kept nowhere. */
struct cached *cached_new(struct strbuf *plain, struct strbuf *gzip);
struct cached *cached_hold(struct cached *cached); /* one more */
void cached_release(void *cached);
void cache_clear(struct cache *cache);

struct cache_counts {
    uint64_t hits, misses;
    size_t bytes, answers;
};
void cache_counts(struct cache *cache, struct cache_counts *ret);

#endif
