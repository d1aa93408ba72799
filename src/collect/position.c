/* The store keeps one opaque text a source: a line of ours, then the engine's carry. */
#include "collect/position.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

/* "WORDS BEGUN MARK\n" and the engine's bytes; of version 1 without a mark. */
#define CARRY_WORDS "gputally-position 2 "
#define CARRY_WORDS_1 "gputally-position 1 "

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void position_source_id(struct source *const *sources, size_t n, struct strbuf *ret)
{
    const char **ids = mem_zalloc(n ? n : 1, sizeof *ids);
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++)
        ids[i] = sources[i]->id;
    qsort(ids, n, sizeof *ids, by_text);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(ret, "%s%s", i ? " + " : "", ids[i]);
        hash = XXH3_64bits_withSeed(ids[i], strlen(ids[i]), hash + i);
    }
    strbuf_addf(ret, " #%016" PRIx64, hash);
    free(ids);
}

/* No source's name ends so. */
void position_book_id(struct str book, struct strbuf *ret)
{
    strbuf_addf(ret, "%.*s #book", STR_ARG(book));
}

static bool split_carry(struct str text, time_ms *ret_begun, struct str *ret_mark,
                        struct str *ret_carry)
{
    struct str words = STR(CARRY_WORDS);
    if (!str_starts(text, words) && !str_starts(text, STR(CARRY_WORDS_1)))
        return false;
    const char *from = text.p + words.n, *end = memchr(from, '\n', text.n - words.n);
    if (!end)
        return false;
    const char *blank = memchr(from, ' ', (size_t)(end - from));
    const char *begun_end = blank ? blank : end, *mark = blank ? blank + 1 : end;
    long long begun;
    if (!str_to_i64((struct str){from, (size_t)(begun_end - from)}, &begun))
        return false;
    *ret_begun = begun;
    *ret_mark = (struct str){mark, (size_t)(end - mark)};
    *ret_carry = (struct str){end + 1, text.n - (size_t)(end + 1 - text.p)};
    return true;
}

enum err position_read(struct store *store, struct str source, struct position *ret,
                       struct error *err)
{
    struct arena arena = {0};
    struct store_progress progress = {0};
    struct str carry = STR_NONE, mark = STR_NONE;
    *ret = (struct position){.begun = TIME_MAX, .watermark = TIME_MIN};
    enum err e = store_read_progress(store, source, &arena, &progress, err);
    if (e == ERR_OK && progress.watermark != TIME_MIN &&
        split_carry(progress.carry, &ret->begun, &mark, &carry)) {
        ret->known = true;
        ret->watermark = progress.watermark;
        strbuf_add(&ret->carry, carry);
        strbuf_add(&ret->mark, mark);
        strbuf_add(&ret->settings, progress.settings);
    }
    arena_release(&arena);
    return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err position_commit(struct store *store, struct str source, const struct position *position,
                         struct error *err)
{
    struct strbuf carry = {0};
    strbuf_addf(&carry, CARRY_WORDS "%" PRId64, position->begun);
    if (position->mark.n)
        strbuf_addf(&carry, " %.*s", STR_ARG(strbuf_str(&position->mark)));
    strbuf_addc(&carry, '\n');
    strbuf_add(&carry, strbuf_str(&position->carry));
    struct store_progress progress = {.source = source,
                                      .watermark = position->watermark,
                                      .carry = strbuf_str(&carry),
                                      .settings = strbuf_str(&position->settings)};
    enum err e = store_commit(store, &progress, err);
    strbuf_release(&carry);
    return e;
}

void position_release(struct position *position)
{
    strbuf_release(&position->carry);
    strbuf_release(&position->settings);
    strbuf_release(&position->mark);
}
