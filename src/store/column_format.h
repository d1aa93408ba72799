/* What column.c and column_unpack.c must agree on. Private to these two. */
#ifndef GPUTALLY_STORE_COLUMN_FORMAT_H
#define GPUTALLY_STORE_COLUMN_FORMAT_H

#include <stdint.h>

enum shape { SHAPE_CONSTANT, SHAPE_PLAIN, SHAPE_RUNS, SHAPE_CLASSES, SHAPE_WORDS, SHAPE_SPLIT };
#define SHAPE_MASK 0x0f
#define SHAPE_DELTA 0x10 /* of neighbours' differences, zigzag */
#define SHAPE_STEP 0x20  /* the step is written; 1 otherwise */
#define WORDS_MAX 16
#define CLASSES 4
#define WIDTH_BITS 7

/* Bits that a number needs. */
static inline int width_of(uint64_t v)
{
    return v ? 64 - __builtin_clzll(v) : 0;
}

#endif
