/* Texts lie in an arena; segments of pointers double in size so that none ever moves, and a reader
 * finds an id's segment from its highest bit. The hash table (open addressing, XXH3 with a random
 * seed, since names come from strangers) is only touched under the lock. */
#include "util/names.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "util/error.h"

#define SEGMENTS 27

struct entry {
    const char *p;
    uint32_t n;
    uint32_t hash;
};

struct names {
    pthread_mutex_t lock;
    struct arena texts;
    struct entry *segment[SEGMENTS]; /* segment k holds ids [2^k - 1, 2^(k+1) - 1) */
    uint32_t *table;                 /* id + 1; 0 is free */
    uint32_t mask, count;
    uint64_t seed;
};

static struct entry *entry_of(const struct names *names, name_t id)
{
    unsigned k = 31u - (unsigned)__builtin_clz(id + 1);
    return &__atomic_load_n(&names->segment[k], __ATOMIC_ACQUIRE)[id + 1 - (1u << k)];
}

struct names *names_new(void)
{
    struct names *names = mem_zalloc(1, sizeof *names);
    pthread_mutex_init(&names->lock, NULL);
    if (getrandom(&names->seed, sizeof names->seed, GRND_NONBLOCK) < 0)
        names->seed = (uint64_t)(uintptr_t)names;
    names->mask = 1023;
    names->table = mem_zalloc(1024, sizeof *names->table);
    names_put(names, STR_NONE);
    return names;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    for (int k = 0; k < SEGMENTS; k++)
        free(names->segment[k]);
    arena_release(&names->texts);
    free(names->table);
    pthread_mutex_destroy(&names->lock);
    free(names);
}

static void grow(struct names *names)
{
    uint32_t mask = names->mask * 2 + 1;
    uint32_t *table = mem_zalloc((size_t)mask + 1, sizeof *table);
    for (uint32_t id = 0; id < names->count; id++) {
        uint32_t at = entry_of(names, id)->hash & mask;
        while (table[at])
            at = (at + 1) & mask;
        table[at] = id + 1;
    }
    free(names->table);
    names->table = table;
    names->mask = mask;
}

/* Where text stands in the table, or the free place where it would. Lock held. */
static uint32_t place_of(const struct names *names, struct str text, uint32_t hash)
{
    uint32_t at = hash & names->mask;
    while (names->table[at]) {
        const struct entry *entry = entry_of(names, names->table[at] - 1);
        if (entry->hash == hash && entry->n == text.n &&
            (text.n == 0 || memcmp(entry->p, text.p, text.n) == 0))
            break;
        at = (at + 1) & names->mask;
    }
    return at;
}

name_t names_put(struct names *names, struct str text)
{
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(text.p, text.n, names->seed);
    pthread_mutex_lock(&names->lock);
    uint32_t at = place_of(names, text, hash);
    if (!names->table[at]) {
        invariant(names->count < NAMES_MAX && text.n < UINT32_MAX);
        name_t id = names->count;
        unsigned k = 31u - (unsigned)__builtin_clz(id + 1);
        if (!names->segment[k])
            __atomic_store_n(&names->segment[k],
                             (struct entry *)mem_zalloc((size_t)1 << k, sizeof(struct entry)),
                             __ATOMIC_RELEASE);
        struct entry *entry = entry_of(names, id);
        *entry = (struct entry){str_keep(&names->texts, text).p, (uint32_t)text.n, hash};
        names->table[at] = id + 1;
        __atomic_store_n(&names->count, id + 1, __ATOMIC_RELEASE);
        if (names->count * 2 > names->mask)
            grow(names);
        pthread_mutex_unlock(&names->lock);
        return id;
    }
    name_t id = names->table[at] - 1;
    pthread_mutex_unlock(&names->lock);
    return id;
}

bool names_find(struct names *names, struct str text, name_t *ret)
{
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(text.p, text.n, names->seed);
    pthread_mutex_lock(&names->lock);
    uint32_t at = place_of(names, text, hash);
    bool found = names->table[at] != 0;
    if (found)
        *ret = names->table[at] - 1;
    pthread_mutex_unlock(&names->lock);
    return found;
}

struct str names_text(const struct names *names, name_t id)
{
    invariant(id < names_count(names));
    const struct entry *entry = entry_of(names, id);
    return (struct str){entry->p, entry->n};
}

uint32_t names_count(const struct names *names)
{
    return __atomic_load_n(&names->count, __ATOMIC_ACQUIRE);
}

size_t names_bytes(struct names *names)
{
    pthread_mutex_lock(&names->lock);
    size_t bytes = names->texts.used + (size_t)names->count * sizeof(struct entry) +
                   ((size_t)names->mask + 1) * sizeof *names->table;
    pthread_mutex_unlock(&names->lock);
    return bytes;
}
