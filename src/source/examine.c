#include "source/examine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const exam_ids[EXAM_COUNT] = {
#define X(name, id) id,
    EXAM_TABLE(X)
#undef X
};

void exam_add(struct exam *exam, enum exam_kind kind, int64_t count, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    invariant(n >= 0);
    if (++exam->found[kind] > EXAM_ITEMS_MAX)
        return;
    struct exam_item item = {kind, str_keep(&exam->arena, str_of(text)), count};
    mem_push(exam->items, exam->n, exam->room, item);
}

void exam_release(struct exam *exam)
{
    free(exam->items);
    arena_release(&exam->arena);
    *exam = (struct exam){0};
}
