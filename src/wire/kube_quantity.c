/* Quantities, as Kubernetes writes amounts of resources. */
#include "wire/kube_objects.h"

/* 10^exponent or 2^exponent of a suffix. False: no suffix that Kubernetes knows. */
static bool suffix_scale(struct str suffix, int *ret_ten, int *ret_two)
{
    static const struct {
        const char *text;
        int ten, two;
    } suffixes[] = {
        {"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
        {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
        {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
    };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (str_eq(suffix, str_of(suffixes[i].text))) {
            *ret_ten = suffixes[i].ten;
            *ret_two = suffixes[i].two;
            return true;
        }
    if (suffix.n < 2 || suffix.n > 4 || (suffix.p[0] != 'e' && suffix.p[0] != 'E'))
        return false;
    size_t sign = suffix.p[1] == '+' || suffix.p[1] == '-';
    long long exponent;
    struct str digits = {suffix.p + 1 + sign, suffix.n - 1 - sign};
    if (digits.n == 0 || digits.p[0] == '-' || !str_to_i64(digits, &exponent))
        return false;
    *ret_ten = suffix.p[1] == '-' ? -(int)exponent : (int)exponent;
    *ret_two = 0;
    return true;
}

#define QUANTITY_DIGITS_MAX 18 /* significant ones; Kubernetes canonicalises to fewer */

bool kube_quantity_parse(struct str text, int64_t *ret_milli)
{
    size_t i = text.n && text.p[0] == '+';
    __int128 value = 0;
    int digits = 0, point = -1, after = 0;
    for (; i < text.n; i++) {
        char c = text.p[i];
        if (c == '.' && point < 0) {
            point = digits;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        if (value || c != '0') {
            if (++digits > QUANTITY_DIGITS_MAX)
                return false;
        }
        value = value * 10 + (c - '0');
        after += point >= 0;
    }
    bool any = i > 0 && text.p[i - 1] >= '0' && text.p[i - 1] <= '9';
    if (!any && !(point >= 0 && after == 0 && i >= 2 && text.p[i - 2] >= '0'))
        return false;
    int ten, two;
    if (!suffix_scale((struct str){text.p + i, text.n - i}, &ten, &two))
        return false;
    ten += 3 - after; /* thousandths */
    __int128 divisor = 1;
    for (; ten > 0 && value && value <= INT64_MAX; ten--)
        value *= 10;
    for (; ten < 0 && divisor <= INT64_MAX; ten++)
        divisor *= 10;
    for (; two > 0 && value && value / divisor <= INT64_MAX; two--) {
        if (value > ((__int128)1 << 120))
            return false;
        value *= 2;
    }
    value = (value + divisor - 1) / divisor;
    if (value > INT64_MAX)
        return false;
    *ret_milli = (int64_t)value;
    return true;
}
