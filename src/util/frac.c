#include "util/frac.h"

#include "util/error.h"

int64_t gcd_of(int64_t a, int64_t b)
{
    if (a < 0)
        a = -a;
    if (b < 0)
        b = -b;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct frac frac_of(__int128 num, __int128 den)
{
    invariant(den > 0);
    __int128 a = num < 0 ? -num : num, b = den;
    while (b) {
        __int128 rest = a % b;
        a = b;
        b = rest;
    }
    if (a > 1) {
        num /= a;
        den /= a;
    }
    if (den > INT64_MAX / 4 || num > INT64_MAX / 4 || num < -(INT64_MAX / 4)) {
        num = (__int128)((long double)num / (long double)den * (long double)FRAC_COARSE + 0.5L);
        den = FRAC_COARSE;
    }
    return (struct frac){(int64_t)num, (int64_t)den};
}
