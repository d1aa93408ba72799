#include "util/suggest.h"

#include <ctype.h>

#define WORD_MAX 64 /* longer ones are no mistyped words */

static char fold(char c)
{
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Optimal string alignment: insert, delete, replace, swap of neighbours, each costs 1. */
static size_t distance(struct str a, struct str b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = fold(a.p[i - 1]) == fold(b.p[j - 1]);
            now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same);
            if (i > 1 && j > 1 && fold(a.p[i - 1]) == fold(b.p[j - 2]) &&
                fold(a.p[i - 2]) == fold(b.p[j - 1]) && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b.n];
}

static bool continues(struct str head, struct str word)
{
    if (head.n < 3 || word.n <= head.n)
        return false;
    for (size_t i = 0; i < head.n; i++)
        if (fold(head.p[i]) != fold(word.p[i]))
            return false;
    return true;
}

const char *suggest(struct str word, const char *const *known, size_t n)
{
    if (word.n == 0 || word.n > WORD_MAX)
        return NULL;
    size_t allowed = word.n / 3 < 1 ? 1 : word.n / 3 > 3 ? 3 : word.n / 3;
    size_t best = allowed + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        struct str candidate = known[i] ? str_of(known[i]) : STR_NONE;
        if (candidate.n == 0 || candidate.n > WORD_MAX)
            continue;
        size_t far = distance(word, candidate);
        if (far > allowed && continues(word, candidate))
            far = allowed;
        if (far < best && far < candidate.n) {
            best = far;
            nearest = known[i];
        }
    }
    return nearest;
}
