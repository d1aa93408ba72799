/* Exact fractions of a device: shares, prices a part. num/den in lowest terms, den >= 1.
 *
 * Denominators come from the world (replica counts, MIG slices, thousandths) and are capped where
 * they are read, so that products of a few of them stay far inside int64; a result that would not
 * is rounded to FRAC_COARSE parts. */
#ifndef GPUTALLY_UTIL_FRAC_H
#define GPUTALLY_UTIL_FRAC_H

#include <stdbool.h>
#include <stdint.h>

#define FRAC_COARSE INT64_C(1000000000)

struct frac {
    int64_t num, den;
};
#define FRAC_ZERO ((struct frac){0, 1})
#define FRAC_ONE ((struct frac){1, 1})

int64_t gcd_of(int64_t a, int64_t b);            /* of magnitudes; gcd_of(0, b) = b */
struct frac frac_of(__int128 num, __int128 den); /* den > 0 */

static inline struct frac frac_add(struct frac a, struct frac b)
{
    return frac_of((__int128)a.num * b.den + (__int128)b.num * a.den, (__int128)a.den * b.den);
}
static inline struct frac frac_sub(struct frac a, struct frac b)
{
    return frac_of((__int128)a.num * b.den - (__int128)b.num * a.den, (__int128)a.den * b.den);
}
static inline struct frac frac_mul(struct frac a, struct frac b)
{
    return frac_of((__int128)a.num * b.num, (__int128)a.den * b.den);
}
static inline struct frac frac_div(struct frac a, struct frac b) /* b > 0 */
{
    return frac_of((__int128)a.num * b.den, (__int128)a.den * b.num);
}
static inline int frac_cmp(struct frac a, struct frac b)
{
    __int128 left = (__int128)a.num * b.den, right = (__int128)b.num * a.den;
    return (left > right) - (left < right);
}
static inline struct frac frac_min(struct frac a, struct frac b)
{
    return frac_cmp(a, b) <= 0 ? a : b;
}

#endif
