#include "source/seen.h"

#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

#include "util/error.h"

struct one {
    uint64_t hash;
    char *text;
    time_ms before;      /* last heard of in fetches before; TIME_MIN: not known then */
    time_ms first, last; /* in this fetch; TIME_MAX, TIME_MIN: not heard of */
};

struct seen {
    pthread_mutex_t lock;
    char *label;
    struct one *ones;
    size_t n, room;
    uint32_t *table; /* place + 1 by hash */
    size_t table_room;
};

struct seen *seen_new(struct str label)
{
    struct seen *seen = mem_zalloc(1, sizeof *seen);
    pthread_mutex_init(&seen->lock, NULL);
    seen->label = str_dup(label);
    seen->table_room = 64;
    seen->table = mem_zalloc(seen->table_room, sizeof *seen->table);
    return seen;
}

void seen_free(struct seen *seen)
{
    if (!seen)
        return;
    for (size_t i = 0; i < seen->n; i++)
        free(seen->ones[i].text);
    free(seen->ones);
    free(seen->table);
    free(seen->label);
    pthread_mutex_destroy(&seen->lock);
    free(seen);
}

static void put(struct seen *seen, uint64_t hash, size_t place)
{
    size_t at = hash & (seen->table_room - 1);
    while (seen->table[at])
        at = (at + 1) & (seen->table_room - 1);
    seen->table[at] = (uint32_t)place + 1;
}

static void grow(struct seen *seen)
{
    free(seen->table);
    seen->table_room *= 4;
    seen->table = mem_zalloc(seen->table_room, sizeof *seen->table);
    for (size_t i = 0; i < seen->n; i++)
        put(seen, seen->ones[i].hash, i);
}

static size_t find_or_add(struct seen *seen, struct str text)
{
    uint64_t hash = XXH3_64bits(text.p, text.n);
    for (size_t at = hash & (seen->table_room - 1); seen->table[at];
         at = (at + 1) & (seen->table_room - 1)) {
        const struct one *one = &seen->ones[seen->table[at] - 1];
        if (one->hash == hash && str_eq(str_of(one->text), text))
            return (size_t)seen->table[at] - 1;
    }
    struct one one = {hash, str_dup(text), TIME_MIN, TIME_MAX, TIME_MIN};
    mem_push(seen->ones, seen->n, seen->room, one);
    put(seen, hash, seen->n - 1);
    if (seen->n * 2 > seen->table_room)
        grow(seen);
    return seen->n - 1;
}

size_t seen_place(struct seen *seen, const struct label *labels, size_t n)
{
    struct str value = labels_get(labels, n, str_of(seen->label));
    pthread_mutex_lock(&seen->lock);
    size_t place = find_or_add(seen, value);
    pthread_mutex_unlock(&seen->lock);
    return place;
}

void seen_stamps(struct seen *seen, size_t place, time_ms first, time_ms last)
{
    pthread_mutex_lock(&seen->lock);
    invariant(place < seen->n);
    struct one *one = &seen->ones[place];
    if (first < one->first)
        one->first = first;
    if (last > one->last)
        one->last = last;
    pthread_mutex_unlock(&seen->lock);
}

void seen_begin(struct seen *seen)
{
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->n; i++) {
        struct one *one = &seen->ones[i];
        if (one->last > one->before)
            one->before = one->last;
        one->first = TIME_MAX;
        one->last = TIME_MIN;
    }
    pthread_mutex_unlock(&seen->lock);
}

static bool is_gone(const struct one *one, time_ms since)
{
    return one->last == TIME_MIN && one->before < since;
}

struct silence seen_silent(struct seen *seen, struct span hours, time_ms since)
{
    struct silence silence = {0};
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->n; i++) {
        const struct one *one = &seen->ones[i];
        if (is_gone(one, since))
            continue;
        silence.before += one->before != TIME_MIN && one->first > hours.from;
        silence.after += one->last <= hours.to;
    }
    pthread_mutex_unlock(&seen->lock);
    return silence;
}

static bool is_silent_after(const struct one *one, struct span hours, time_ms since)
{
    return !is_gone(one, since) && one->last <= hours.to;
}

bool seen_is_silent_after(struct seen *seen, size_t place, struct span hours, time_ms since)
{
    pthread_mutex_lock(&seen->lock);
    invariant(place < seen->n);
    bool silent = is_silent_after(&seen->ones[place], hours, since);
    pthread_mutex_unlock(&seen->lock);
    return silent;
}

static void add_quoted(struct strbuf *ret, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\.+*?()|[]{}^$", *text))
            strbuf_addc(ret, '\\');
        strbuf_addc(ret, *text);
    }
}

void seen_silent_after_regex(struct seen *seen, struct span hours, time_ms since,
                             struct strbuf *ret)
{
    const char *between = "";
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->n; i++) {
        const struct one *one = &seen->ones[i];
        if (!is_silent_after(one, hours, since))
            continue;
        strbuf_addf(ret, "%s", between);
        add_quoted(ret, one->text);
        between = "|";
    }
    pthread_mutex_unlock(&seen->lock);
}

void seen_all_regex(struct seen *seen, struct strbuf *ret)
{
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->n; i++) {
        if (!*seen->ones[i].text)
            continue;
        if (ret->n)
            strbuf_addc(ret, '|');
        add_quoted(ret, seen->ones[i].text);
    }
    pthread_mutex_unlock(&seen->lock);
}

size_t seen_count(struct seen *seen, bool *ret_unnamed)
{
    *ret_unnamed = false;
    pthread_mutex_lock(&seen->lock);
    size_t n = seen->n;
    for (size_t i = 0; i < n; i++)
        *ret_unnamed |= !*seen->ones[i].text;
    pthread_mutex_unlock(&seen->lock);
    return n;
}

void seen_only(struct seen *seen, struct strbuf *ret)
{
    pthread_mutex_lock(&seen->lock);
    if (seen->n == 1)
        strbuf_add(ret, str_of(seen->ones[0].text));
    pthread_mutex_unlock(&seen->lock);
}
