#include "util/money.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"

bool money_parse(struct str text, money_t *ret)
{
    wide_t amount = 0;
    size_t i = 0, digits = 0, places = 0;
    bool point = false, up = false, rounded = false;
    for (; i < text.n; i++) {
        char c = text.p[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || digits++ > 40)
            return false;
        if (point && ++places > 9) {
            if (!rounded)
                up = c >= '5';
            rounded = true;
            continue;
        }
        amount = amount * 10 + (c - '0');
        if (amount > (wide_t)MONEY_MAX * 10)
            return false;
    }
    if (digits == 0)
        return false;
    for (size_t k = places < 9 ? places : 9; k < 9; k++) {
        amount *= 10;
        if (amount > (wide_t)MONEY_MAX * 10)
            return false;
    }
    amount += up;
    if (amount > MONEY_MAX)
        return false;
    *ret = (money_t)amount;
    return true;
}

const char *money_format(money_t amount, char *buf)
{
    uint64_t size = amount < 0 ? (uint64_t)0 - (uint64_t)amount : (uint64_t)amount;
    snprintf(buf, MONEY_TEXT_MAX, "%s%llu.%09llu", amount < 0 ? "-" : "",
             (unsigned long long)(size / (uint64_t)NANO),
             (unsigned long long)(size % (uint64_t)NANO));
    return buf;
}

money_t money_add(money_t a, money_t b)
{
    money_t sum;
    bool wrapped = __builtin_add_overflow(a, b, &sum);
    invariant(!wrapped);
    return sum;
}

money_t money_round(wide_t num, wide_t den)
{
    invariant(num >= 0 && den > 0);
    return (money_t)((num + den / 2) / den);
}

struct part {
    wide_t rest;
    size_t i;
};

static int larger_rest_first(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->rest != y->rest)
        return x->rest > y->rest ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

void money_apportion(money_t total, const wide_t *num, wide_t den, size_t n, money_t *out)
{
    struct part few[32], *parts = n <= 32 ? few : mem_zalloc(n, sizeof *parts);
    money_t left = total;
    for (size_t i = 0; i < n; i++) {
        out[i] = (money_t)(num[i] / den);
        parts[i] = (struct part){num[i] % den, i};
        left -= out[i];
    }
    invariant(left >= 0 && (size_t)left <= n);
    if (left) {
        qsort(parts, n, sizeof *parts, larger_rest_first);
        for (money_t k = 0; k < left; k++)
            out[parts[k].i]++;
    }
    if (parts != few)
        free(parts);
}
