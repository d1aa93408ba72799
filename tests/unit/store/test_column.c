#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../lib/random_rows.h"
#include "store/column.h"

#define N 300

static size_t round_trip(const int64_t *values, size_t n, struct runs runs)
{
    struct strbuf out = {0};
    strbuf_add(&out, STR("x"));
    column_pack(&out, values, n, runs);
    size_t size = out.n - 1;
    for (int i = 0; i < COLUMN_PADDING; i++)
        strbuf_addc(&out, (char)0xa5);
    struct str in = {out.text + 1, size + 3}; /* something follows */
    struct str past = in;
    int64_t back[N];
    assert_true(column_unpack(&in, back, n, runs));
    assert_int_equal(in.n, 3);
    assert_true(column_skip(&past, n, runs));
    assert_ptr_equal(past.p, in.p);
    assert_int_equal(past.n, 3);
    for (size_t i = 0; i < n; i++)
        if (back[i] != values[i])
            fail_msg("value %zu: %lld became %lld", i, (long long)values[i], (long long)back[i]);
    strbuf_release(&out);
    return size;
}

static void any_values_come_back(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    for (int round = 0; round < 20000; round++) {
        int64_t values[N];
        size_t n = dice_below(&dice, dice_chance(&dice, 50) ? 8 : N);
        int width = (int)dice_below(&dice, 65), many = 1 + (int)dice_below(&dice, 40);
        int64_t step = dice_chance(&dice, 50) ? 1 : (int64_t)dice_below(&dice, 1000000) + 1;
        int kind = (int)dice_below(&dice, 6);
        for (size_t i = 0; i < n; i++) {
            uint64_t v = dice_next(&dice) & (width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1);
            if (kind == 0)
                v = v % (uint64_t)many * 1000003;
            else if (kind == 1)
                v = dice_chance(&dice, 80) ? 0 : v;
            else if (kind == 2)
                v = (i ? (uint64_t)values[i - 1] : v) + v % 3;
            else if (kind == 3)
                v = v % 120 * 30000 + (dice_chance(&dice, 50) ? 17123 : 12877);
            values[i] = (int64_t)(v * (kind == 2 ? 1u : (uint64_t)step));
        }
        uint32_t starts[N + 1] = {0};
        size_t runs = 0;
        while (starts[runs] < n) {
            uint32_t next = starts[runs] + (uint32_t)dice_below(&dice, 30);
            starts[++runs] = next > n ? (uint32_t)n : next;
        }
        round_trip(values, n,
                   dice_chance(&dice, 70) ? (struct runs){starts, runs} : (struct runs){NULL, 0});
    }
}

static void alike_values_cost_little(void **state)
{
    (void)state;
    int64_t values[240];
    uint32_t starts[] = {0, 120, 240};
    struct runs runs = {starts, 2};
    for (int i = 0; i < 240; i++)
        values[i] = 3600000;
    assert_in_range(round_trip(values, 240, runs), 1, 6);
    for (int i = 0; i < 240; i++) /* a busy holder and an idle one: 12 bits and 0 */
        values[i] = i < 120 ? ((unsigned)i * 2654435761u >> 20) % 4096 : 0;
    assert_in_range(round_trip(values, 240, runs), 1, 120 * 12 / 8 + 12);
    for (int i = 0; i < 240; i++) /* whole half-minutes and two rests: 7 bits and 1 */
        values[i] =
            (int64_t)(((unsigned)i * 2654435761u >> 20) % 120) * 30000 + (i % 3 ? 12877 : 17123);
    assert_in_range(round_trip(values, 240, runs), 1, 240 + 40);
}

static void broken_bytes_are_refused_or_read_but_never_overrun(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    for (int round = 0; round < 200000; round++) {
        size_t n = dice_below(&dice, 40);
        char *bytes = mem_alloc(n + COLUMN_PADDING);
        for (size_t i = 0; i < n + COLUMN_PADDING; i++)
            bytes[i] = (char)dice_next(&dice);
        if (n)
            bytes[0] = (char)dice_below(&dice, 64);
        struct str in = {bytes, n};
        uint32_t starts[] = {0, 10, 10, 60};
        int64_t values[60];
        column_unpack(&in, values, 60, (struct runs){starts, 3});
        assert_true(in.p >= bytes && in.p + in.n == bytes + n);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_values_come_back),
        cmocka_unit_test(alike_values_cost_little),
        cmocka_unit_test(broken_bytes_are_refused_or_read_but_never_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
