#include "serve/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <xxhash.h>

#include "util/memory.h"

#define SLOTS 4096 /* chains: answers are few and large */
#define ENTRY_OVERHEAD 256

struct entry {
    struct cached cached; /* first: what users have is this */
    atomic_int owners;
    struct strbuf plain, gzip;
    char *key;
    size_t key_n, bytes;
    uint64_t hash;
    struct entry *chain;         /* of its slot */
    struct entry *newer, *older; /* by last use */
};

struct cache {
    pthread_mutex_t lock;
    size_t bytes, bytes_max, answers;
    uint64_t hits, misses;
    struct entry *slots[SLOTS];
    struct entry *newest, *oldest;
};

struct cache *cache_new(size_t bytes_max)
{
    struct cache *cache = mem_zalloc(1, sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    cache->bytes_max = bytes_max;
    return cache;
}

void cached_release(void *cached)
{
    struct entry *entry = cached;
    if (!entry || atomic_fetch_sub(&entry->owners, 1) > 1)
        return;
    strbuf_release(&entry->plain);
    strbuf_release(&entry->gzip);
    free(entry->key);
    free(entry);
}

static void unlink_used(struct cache *cache, struct entry *entry)
{
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void link_newest(struct cache *cache, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void drop(struct cache *cache, struct entry *entry)
{
    struct entry **at = &cache->slots[entry->hash % SLOTS];
    while (*at != entry)
        at = &(*at)->chain;
    *at = entry->chain;
    unlink_used(cache, entry);
    cache->bytes -= entry->bytes;
    cache->answers--;
    cached_release(entry);
}

static struct entry *find(struct cache *cache, struct str key, uint64_t hash)
{
    struct entry *entry = cache->slots[hash % SLOTS];
    while (entry && (entry->hash != hash || !str_eq((struct str){entry->key, entry->key_n}, key)))
        entry = entry->chain;
    return entry;
}

struct cached *cache_get(struct cache *cache, struct str key)
{
    uint64_t hash = XXH3_64bits(key.p, key.n);
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = find(cache, key, hash);
    if (entry) {
        unlink_used(cache, entry);
        link_newest(cache, entry);
        atomic_fetch_add(&entry->owners, 1);
        cache->hits++;
    } else {
        cache->misses++;
    }
    pthread_mutex_unlock(&cache->lock);
    return entry ? &entry->cached : NULL;
}

struct cached *cached_new(struct strbuf *plain, struct strbuf *gzip)
{
    struct entry *entry = mem_zalloc(1, sizeof *entry);
    XXH128_hash_t digest = XXH3_128bits(strbuf_str(plain).p, plain->n);
    entry->plain = *plain;
    entry->gzip = *gzip;
    *plain = *gzip = (struct strbuf){0};
    entry->cached = (struct cached){.plain = strbuf_str(&entry->plain),
                                    .gzip = strbuf_str(&entry->gzip),
                                    .digest = {digest.high64, digest.low64}};
    atomic_init(&entry->owners, 1);
    return &entry->cached;
}

struct cached *cached_hold(struct cached *cached)
{
    atomic_fetch_add(&((struct entry *)cached)->owners, 1);
    return cached;
}

struct cached *cache_put(struct cache *cache, struct str key, struct strbuf *plain,
                         struct strbuf *gzip)
{
    struct entry *entry = (struct entry *)cached_new(plain, gzip);
    entry->key = str_dup(key);
    entry->key_n = key.n;
    entry->hash = XXH3_64bits(key.p, key.n);
    entry->bytes = entry->plain.room + entry->gzip.room + key.n + ENTRY_OVERHEAD;
    pthread_mutex_lock(&cache->lock);
    if (entry->bytes <= cache->bytes_max / 4 && !find(cache, key, entry->hash)) {
        atomic_fetch_add(&entry->owners, 1);
        entry->chain = cache->slots[entry->hash % SLOTS];
        cache->slots[entry->hash % SLOTS] = entry;
        link_newest(cache, entry);
        cache->bytes += entry->bytes;
        cache->answers++;
        while (cache->bytes > cache->bytes_max)
            drop(cache, cache->oldest);
    }
    pthread_mutex_unlock(&cache->lock);
    return &entry->cached;
}

void cache_clear(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    while (cache->oldest)
        drop(cache, cache->oldest);
    pthread_mutex_unlock(&cache->lock);
}

void cache_free(struct cache *cache)
{
    if (!cache)
        return;
    cache_clear(cache);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void cache_counts(struct cache *cache, struct cache_counts *ret)
{
    pthread_mutex_lock(&cache->lock);
    *ret = (struct cache_counts){cache->hits, cache->misses, cache->bytes, cache->answers};
    pthread_mutex_unlock(&cache->lock);
}
