#include "util/memory.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_MIN ((size_t)1 << 10)  /* of the first block; each next one is twice as large … */
#define BLOCK_MAX ((size_t)64 << 10) /* … up to this */

struct arena_block {
    struct arena_block *next;
    size_t room, used;
    _Alignas(16) char bytes[];
};

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "gputally: out of memory: %zu bytes are not to be had\n", bytes);
    abort();
}

void *mem_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        out_of_memory(bytes);
    return p;
}

void *mem_zalloc(size_t count, size_t bytes)
{
    void *p = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!p)
        out_of_memory(count * bytes);
    return p;
}

void *mem_realloc(void *old, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        out_of_memory((size_t)-1);
    void *p = realloc(old, total ? total : 1);
    if (!p)
        out_of_memory(total);
    return p;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct arena_block *block = arena->head;
    if (!block || block->room - block->used < bytes) {
        size_t room = block ? block->room * 2 : BLOCK_MIN;
        room = room > BLOCK_MAX ? BLOCK_MAX : room;
        room = bytes > room ? bytes : room;
        block = mem_alloc(sizeof *block + room);
        block->next = arena->head;
        block->room = room;
        block->used = 0;
        arena->head = block;
    }
    void *p = block->bytes + block->used;
    block->used += bytes;
    arena->used += bytes;
    return p;
}

void *arena_zalloc(struct arena *arena, size_t bytes)
{
    return memset(arena_alloc(arena, bytes), 0, bytes);
}

void arena_clear(struct arena *arena)
{
    struct arena_block *keep = arena->head;
    if (keep) {
        struct arena_block *next = keep->next;
        while (next) {
            struct arena_block *after = next->next;
            free(next);
            next = after;
        }
        keep->next = NULL;
        keep->used = 0;
    }
    arena->used = 0;
}

void arena_release(struct arena *arena)
{
    arena_clear(arena);
    free(arena->head);
    arena->head = NULL;
}
