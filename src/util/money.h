/* Money: integer nano-units of the ledger's currency (1 USD = 1,000,000,000). No double ever holds
 * money; it is rounded in one place, money_apportion(). (semantics, sections 2 and 7) */
#ifndef GPUTALLY_UTIL_MONEY_H
#define GPUTALLY_UTIL_MONEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/str.h"

typedef int64_t money_t;
#define NANO INT64_C(1000000000)
#define MONEY_MAX INT64_C(1000000000000000000) /* 1e9 units: no sum in a ledger may pass it */

typedef __int128 wide_t;

/* Decimal text in whole currency units ("98.32", "4e1" is refused) -> nano-units, halves away from
 * zero. False on anything else, on a negative amount and above MONEY_MAX. */
bool money_parse(struct str text, money_t *ret);

#define MONEY_TEXT_MAX 32
/* "16128.000000000", nine places, always; buf holds MONEY_TEXT_MAX bytes; returns buf. */
const char *money_format(money_t amount, char *buf);

/* Sums that must not wrap: an overflow is a bug of ours (prices are capped when read). */
money_t money_add(money_t a, money_t b);

/* Nearest integer of num/den, halves upwards; num >= 0, den > 0. */
money_t money_round(wide_t num, wide_t den);

/* Share the integer `total` out over n ideals num[i]/den (all >= 0, with one denominator, summing
 * to within one of total): each gets its floor, the rest goes one by one to the largest remainders,
 * the first on ties. out[n]. O(n log n). (semantics, section 7: Balance) */
void money_apportion(money_t total, const wide_t *num, wide_t den, size_t n, money_t *out);

#endif
