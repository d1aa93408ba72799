/* Allocation that does not fail: running out of memory ends the process with a clear message, since
 * everything that grows from input has a cap well below it. Sizes are checked for overflow. */
#ifndef GPUTALLY_UTIL_MEMORY_H
#define GPUTALLY_UTIL_MEMORY_H

#include <stddef.h>
#include <string.h>

void *mem_alloc(size_t bytes) __attribute__((malloc));
void *mem_zalloc(size_t count, size_t bytes) __attribute__((malloc));
void *mem_realloc(void *old, size_t count, size_t bytes);

/* Make room in a growable array {items, n, room} for `more` items; doubles. */
#define mem_reserve(items, n, room, more)                                                          \
    do {                                                                                           \
        if ((n) + (more) > (room)) {                                                               \
            (room) = (room)*2 > (n) + (more) ? (room)*2 : (n) + (more) + 8;                        \
            (items) = mem_realloc((items), (room), sizeof *(items));                               \
        }                                                                                          \
    } while (0)

/* Append one item to such an array. */
#define mem_push(items, n, room, item)                                                             \
    do {                                                                                           \
        mem_reserve(items, n, room, 1);                                                            \
        (items)[(n)++] = (item);                                                                   \
    } while (0)

/* Memory that goes all at once: a bump allocator of blocks. One thread owns an arena. */
struct arena {
    struct arena_block *head;
    size_t used; /* bytes handed out since the last clear */
};
void *arena_alloc(struct arena *arena, size_t bytes); /* aligned to 16, not zeroed */
void *arena_zalloc(struct arena *arena, size_t bytes);
void arena_clear(struct arena *arena);   /* keeps one block for reuse */
void arena_release(struct arena *arena); /* frees everything; the arena may be used again */

#endif
