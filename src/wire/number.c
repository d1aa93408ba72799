#include "wire/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "wire/number_round.h"

const double number_powers[NUMBER_EXACT_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#define DIGITS_MAX 19       /* always fit 64 bits */
#define EXPONENT_MAX 100000 /* larger ones say the same: 0 or Inf */

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* A number taken apart: (-1)^minus * digits * 10^power, digits good while !long. */
struct decimal {
    bool minus, is_long;
    uint64_t digits;
    int64_t power;
};

static const char *exponent(const char *p, const char *end, int64_t *ret)
{
    bool minus = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end)
        return NULL;
    int64_t value = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return NULL;
        if (value < EXPONENT_MAX)
            value = value * 10 + (*p - '0');
    }
    *ret = minus ? -value : value;
    return p;
}

/* Check the form and take it apart; false where it is no decimal number. */
static bool take_apart(struct str text, struct decimal *ret)
{
    const char *p = text.p, *end = text.p + text.n;
    struct decimal d = {.minus = p < end && *p == '-'};
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    size_t seen = 0, significant = 0;
    bool point = false;
    for (; p < end; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        seen++;
        if (significant || *p != '0')
            significant++;
        if (significant <= DIGITS_MAX) {
            d.digits = d.digits * 10 + (uint64_t)(*p - '0');
            d.power -= point;
        } else {
            d.is_long = true;
            d.power += !point;
        }
    }
    if (!seen)
        return false;
    if (p < end) {
        int64_t power;
        if ((*p | 0x20) != 'e' || !exponent(p + 1, end, &power))
            return false;
        d.power += power;
    }
    *ret = d;
    return true;
}

static bool is_word(struct str text, double *ret)
{
    bool minus = text.n && text.p[0] == '-', sign = text.n && (minus || text.p[0] == '+');
    struct str word = {text.p + sign, text.n - sign};
    if (str_eq_nocase(word, STR("inf")) || str_eq_nocase(word, STR("infinity"))) {
        *ret = minus ? -INFINITY : INFINITY;
        return true;
    }
    if (str_eq_nocase(word, STR("nan"))) {
        *ret = NAN;
        return true;
    }
    return false;
}

bool number_parse(struct str text, double *ret)
{
    if (text.n == 0 || text.n > NUMBER_TEXT_MAX)
        return false;
    struct decimal d;
    if (!take_apart(text, &d))
        return is_word(text, ret);
    double value;
    if (!d.is_long && d.digits <= UINT64_C(1) << 53 && d.power >= -NUMBER_EXACT_POWER &&
        d.power <= NUMBER_EXACT_POWER) {
        value = (double)(int64_t)d.digits;
        value = d.power < 0 ? value / number_powers[-d.power] : value * number_powers[d.power];
        *ret = d.minus ? -value : value;
        return true;
    }
    if (!d.is_long && number_round(d.digits, d.power, &value)) {
        *ret = d.minus ? -value : value;
        return true;
    }
    char copy[NUMBER_TEXT_MAX + 1];
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    pthread_once(&c_locale_once, c_locale_make);
    *ret = strtod_l(copy, NULL, c_locale);
    return true;
}

/* digits * 10^power rounded to whole, halves up; false where it is over TIME_MAX. */
static bool scale(uint64_t digits, int64_t power, uint64_t *ret)
{
    for (; power > 0 && digits; power--)
        if (digits > (uint64_t)TIME_MAX || __builtin_mul_overflow(digits, 10, &digits))
            return false;
    unsigned last = 0;
    for (; power < 0 && (digits || last); power++) {
        last = (unsigned)(digits % 10);
        digits /= 10;
    }
    *ret = digits + (last >= 5);
    return *ret <= (uint64_t)TIME_MAX;
}

bool number_parse_seconds(struct str text, time_ms *ret)
{
    struct decimal d;
    uint64_t value;
    if (text.n > NUMBER_TEXT_MAX || !take_apart(text, &d) || !scale(d.digits, d.power + 3, &value))
        return false;
    *ret = d.minus ? -(time_ms)value : (time_ms)value;
    return true;
}
