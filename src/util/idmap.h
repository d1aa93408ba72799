/* A hash map from up to four ids to one number: facts are looked up by interned names.
 * Zero-initialise; idmap_release() frees. One thread owns a map while it changes; then any may
 * read. */
#ifndef GPUTALLY_UTIL_IDMAP_H
#define GPUTALLY_UTIL_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idkey {
    uint32_t part[4];
};
#define IDKEY(...) ((struct idkey){{__VA_ARGS__}})

struct idmap {
    struct idmap_slot *slots;
    uint32_t mask, count;
};
#define IDMAP_NONE UINT32_MAX

uint32_t idmap_get(const struct idmap *map, struct idkey key); /* IDMAP_NONE: not there */
/* The value that is there, else put `value` and give it; *ret_new (may be NULL) says which. */
uint32_t idmap_add(struct idmap *map, struct idkey key, uint32_t value, bool *ret_new);
void idmap_set(struct idmap *map, struct idkey key, uint32_t value);
void idmap_clear(struct idmap *map); /* keeps its room */
void idmap_release(struct idmap *map);

#endif
