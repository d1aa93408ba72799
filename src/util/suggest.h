/* "did you mean": the known word that is nearest to one that is not known. */
#ifndef GPUTALLY_UTIL_SUGGEST_H
#define GPUTALLY_UTIL_SUGGEST_H

#include "util/str.h"

/* The word of known[n] with the smallest edit distance (Damerau-Levenshtein with adjacent swaps,
 * case and '_' against '-' ignored), the first of equals; a word that only continues what was typed
 * counts as near. NULL where none is near: more than a third of the letters, at least 1 and at most
 * 3, would have to change. NULL entries are skipped. O(n x letters^2); words over 64 bytes: NULL.
 */
const char *suggest(struct str word, const char *const *known, size_t n);

#endif
