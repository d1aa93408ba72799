/* Decimal numbers as text formats write them: exact (the nearest double), and quick for the short
 * ones that telemetry is made of. No locale, no hexadecimal, no underscores.
 *
 * A number whose digits fit 53 bits, scaled by a power of ten up to 10^22, is one correctly rounded
 * multiplication or division of two exact doubles (Clinger 1990). Longer ones are rounded by
 * number_round, and what that cannot tell goes to strtod in the C locale. */
#ifndef GPUTALLY_WIRE_NUMBER_H
#define GPUTALLY_WIRE_NUMBER_H

#include <stdint.h>

#include "util/clock.h"
#include "util/str.h"

#define NUMBER_TEXT_MAX 1024 /* bytes of a number; longer ones are none */
#define NUMBER_EXACT_POWER 22
extern const double number_powers[NUMBER_EXACT_POWER + 1];

/* The whole text as a double: [+-]digits[.digits][e[+-]digits], or inf, infinity, nan in any case.
 * False where it is anything else. Too large is ±Inf, as strtod has it. */
bool number_parse(struct str text, double *ret);

/* The whole text, seconds with decimals, as ms: rounded, halves away from zero, exact for any
 * number of decimals. False where it is no number, not finite, or beyond TIME_MIN, TIME_MAX. */
bool number_parse_seconds(struct str text, time_ms *ret);

/* The short form -digits[.digits] at p, up to 18 digits and 2^53: where it ends, NULL where another
 * form must be tried. The bytes from p on must hold one that belongs to no number. */
static inline const char *number_scan(const char *p, double *ret)
{
    bool minus = *p == '-';
    p += minus;
    const char *from = p;
    uint64_t digits = 0;
    unsigned digit;
    while ((digit = (unsigned)(unsigned char)*p - '0') < 10) {
        digits = digits * 10 + digit;
        p++;
    }
    size_t n = (size_t)(p - from), decimals = 0;
    if (*p == '.') {
        from = ++p;
        while ((digit = (unsigned)(unsigned char)*p - '0') < 10) {
            digits = digits * 10 + digit;
            p++;
        }
        decimals = (size_t)(p - from);
        n += decimals;
    }
    if (n == 0 || n > 18 || digits > UINT64_C(1) << 53)
        return NULL;
    double value = (double)(int64_t)digits;
    if (decimals)
        value /= number_powers[decimals];
    *ret = minus ? -value : value;
    return p;
}

/* Whole digits at p, at most 18: where they end, NULL where there are none or more. As above. */
static inline const char *number_scan_whole(const char *p, int64_t *ret)
{
    const char *from = p;
    uint64_t value = 0;
    unsigned digit;
    while ((digit = (unsigned)(unsigned char)*p - '0') < 10) {
        value = value * 10 + digit;
        p++;
    }
    if (p == from || p - from > 18)
        return NULL;
    *ret = (int64_t)value;
    return p;
}

#endif
