/* What changed between two windows A and B, row by row (docs/diff.md).
 *
 * All amounts are whole numbers, and the parts add up to the change exactly, because each is the
 * difference of two neighbours on one way from A to B:
 *
 *     cost   A --volume--> A's rate x B's GPU-hours --price--> B
 *     used   A --volume--> .. --price--> A's used share x B's cost --efficiency--> B
 *
 * Pure functions; one thread. */
#ifndef GPUTALLY_INSIGHT_DIFF_H
#define GPUTALLY_INSIGHT_DIFF_H

#include "query/query.h"

/* Of a key in one window; money from 0 to MONEY_MAX. */
struct diff_amounts {
    money_t cost, used;
    wide_t gpu_nano; /* GPU-hours x 1e9 */
};
struct diff_entry {
    struct str keys[QUERY_KEYS_MAX]; /* "-" none */
    struct diff_amounts amounts;
};
/* One side, of a ledger or of a saved report. Texts live in arena. */
struct diff_side {
    struct arena arena;
    struct str name; /* a file's; empty: a window of the ledger */
    struct span window, recorded;
    struct str keys[QUERY_KEYS_MAX]; /* words of the keys, as machine formats write them */
    size_t keys_n;
    struct str filters;  /* as text: two sides with other filters are told */
    struct str currency; /* empty: the ledger's */
    bool hours_known;    /* no key or filter divides rows by their money */
    struct diff_entry *entries;
    size_t entries_n, entries_room;
    struct diff_amounts total;
    wide_t unpriced_nano; /* GPU-hours x 1e9 without a price */
};
void diff_side_release(struct diff_side *side);
/* Copies what it needs of the result. */
void diff_side_of_result(const struct result *result, struct diff_side *ret);

enum diff_presence { DIFF_BOTH, DIFF_NEW, DIFF_GONE };
extern const char *const diff_presence_words[]; /* "both", "new", "gone" */

struct diff_row {
    struct str keys[QUERY_KEYS_MAX];
    enum diff_presence presence;
    struct diff_amounts a, b;
    bool split;            /* price and volume are known */
    money_t price, volume; /* add up to b.cost - a.cost */
    bool used_split;
    money_t used_price, used_volume, efficiency; /* add up to b.used - a.used */
};
/* The parts of a row whose a and b are set. hours_known: GPU-hours are meant. */
void diff_row_split(struct diff_row *row, bool hours_known);

struct diff {
    const struct diff_side *a, *b; /* borrowed */
    struct diff_row *rows;         /* the largest change first; keys are the sides' */
    size_t rows_n;
    struct diff_row total; /* sums of the rows */
};
struct diff *diff_new(const struct diff_side *a, const struct diff_side *b);
void diff_free(struct diff *diff); /* NULL is fine */

#endif
