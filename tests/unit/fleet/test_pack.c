/* Packed values come back as they were, whatever they are; what exporters send takes few bytes. */
#include "../../lib/unit.h"
#include "fleet/pack.h"

#define ABSENT SIGNAL_ABSENT
#define N 300

static size_t assert_same_again(const int64_t *v, size_t n)
{
    struct strbuf out = {0};
    int64_t again[N + 1];
    pack_values(&out, v, n);
    size_t bytes = out.n;
    for (int more = 0; more < 2; more++) { /* alone, and with something behind it */
        const char *end = unpack_values(out.text, out.text + out.n, again, n);
        assert_ptr_equal(end, out.text + bytes);
        assert_memory_equal(v, again, n * sizeof *v);
        strbuf_add(&out, STR("something behind it"));
    }
    strbuf_release(&out);
    return bytes;
}

static void no_values_are_no_bytes(void **state)
{
    (void)state;
    struct strbuf out = {0};
    pack_values(&out, NULL, 0);
    assert_int_equal(out.n, 0);
    static const char other[] = "x";
    assert_ptr_equal(unpack_values(other, other + 1, NULL, 0), other);
}

/* A tag of 4 bytes, and numbers of 7 bits a byte: 2 x 700 x 10^9 needs 41 bits, 6 bytes. */
static void what_never_changes_takes_a_few_bytes(void **state)
{
    (void)state;
    int64_t v[128];
    for (int i = 0; i < 128; i++)
        v[i] = INT64_C(700000000000);
    assert_int_equal(assert_same_again(v, 128), 4 + 6);
    for (int i = 0; i < 128; i++)
        v[i] = ABSENT;
    assert_int_equal(assert_same_again(v, 128), 1);
}

/* The first stamp (2 x 1.79 x 10^12: 42 bits, 6 bytes), and the step (2 x 15000: 15 bits, 3). */
static void stamps_at_one_distance_take_a_few_bytes(void **state)
{
    (void)state;
    int64_t t[128];
    for (int i = 0; i < 128; i++)
        t[i] = INT64_C(1790000000000) + i * 15000;
    assert_int_equal(assert_same_again(t, 128), 4 + 6 + 3);
}

/* Percents, in 1e-9: 0 to 100 are 7 bits. The least is 0, 1 byte. */
static void decimals_take_as_many_bits_as_their_digits(void **state)
{
    (void)state;
    int64_t v[128];
    for (int i = 0; i < 128; i++)
        v[i] = i % 101 * INT64_C(10000000);
    v[0] = INT64_C(1000000000);
    v[1] = 0;
    assert_int_equal(assert_same_again(v, 128), 4 + 1 + 128 * 7 / 8);
    for (int i = 0; i < 128; i++)
        v[i] = (int64_t)((unsigned)i * 37 % 1024) << 20; /* MiB of less than 1 GiB: 10 bits */
    assert_int_equal(assert_same_again(v, 128), 4 + 1 + 128 * 10 / 8);
}

/* 16 bytes say which of 128 are there. */
static void absent_values_take_a_bit(void **state)
{
    (void)state;
    int64_t v[128];
    for (int i = 0; i < 128; i++)
        v[i] = i == 100 ? ABSENT : 0;
    assert_int_equal(assert_same_again(v, 128), 4 + 16 + 1);
    for (int i = 0; i < 128; i++)
        v[i] = i == 100 ? 0 : ABSENT;
    assert_int_equal(assert_same_again(v, 128), 4 + 16 + 1);
}

static void the_ends_of_the_numbers_come_back(void **state)
{
    (void)state;
    static const int64_t ends[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, 0, -1, 1, INT64_MAX - 1};
    enum { ENDS = sizeof ends / sizeof *ends };
    int64_t v[N];
    for (size_t n = 1; n <= 3; n++)
        for (int i = 0; i < ENDS * ENDS * ENDS; i++) {
            v[0] = ends[i % ENDS];
            v[1] = ends[i / ENDS % ENDS];
            v[2] = ends[i / ENDS / ENDS];
            assert_same_again(v, n);
        }
}

/* Columns of all kinds: widths, common factors, counters, holes. */
static void make_column(struct random *random, int64_t *v, size_t n)
{
    static const int64_t scales[] = {1, 2, 5, 10, 1000, 1024, 1048576, 10000000, 1000000000};
    int64_t scale = scales[random_below(random, 9)], holes = random_below(random, 4);
    int64_t width = INT64_C(1) << random_below(random, 33), base = random_below(random, width + 1);
    bool counts = random_below(random, 2);
    for (size_t i = 0; i < n; i++) {
        int64_t next = random_below(random, width) * scale;
        int64_t from = counts && i ? v[i - 1] : base * scale;
        v[i] = (int64_t)((uint64_t)from + (uint64_t)next);
    }
    for (size_t i = 0; i < n; i++)
        if (holes && random_below(random, 1 << 2 * holes) == 0)
            v[i] = ABSENT;
}

static void any_column_comes_back(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 3000; round++) {
        int64_t v[N];
        size_t n = (size_t)random_below(&random, N) + 1;
        make_column(&random, v, n);
        assert_same_again(v, n);
        for (size_t i = 0; i < n; i++)
            v[i] = (int64_t)(random_next(&random) >> random_below(&random, 64));
        assert_same_again(v, n);
    }
}

/* Where bytes are cut off, it is seen; where they are wrong, nothing outside of them is touched
 * (which is the sanitizer's to see). */
static void damaged_bytes_are_refused_or_taken(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 3000; round++) {
        int64_t v[N];
        struct strbuf out = {0};
        size_t n = (size_t)random_below(&random, N) + 1;
        make_column(&random, v, n);
        pack_values(&out, v, n);
        size_t cut = (size_t)random_below(&random, (int64_t)out.n);
        char *bytes = malloc(out.n);
        memcpy(bytes, out.text, out.n);
        assert_null(unpack_values(bytes + out.n - cut, bytes + out.n - cut, v, n));
        memmove(bytes + out.n - cut, bytes, cut);
        assert_null(unpack_values(bytes + out.n - cut, bytes + out.n, v, n));
        memcpy(bytes, out.text, out.n);
        for (int i = 0; i < 3; i++)
            bytes[random_below(&random, (int64_t)out.n)] = (char)random_next(&random);
        const char *end = unpack_values(bytes, bytes + out.n, v, n);
        assert_true(!end || (end > bytes && end <= bytes + out.n));
        free(bytes);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_values_are_no_bytes),
        cmocka_unit_test(what_never_changes_takes_a_few_bytes),
        cmocka_unit_test(stamps_at_one_distance_take_a_few_bytes),
        cmocka_unit_test(decimals_take_as_many_bits_as_their_digits),
        cmocka_unit_test(absent_values_take_a_bit),
        cmocka_unit_test(the_ends_of_the_numbers_come_back),
        cmocka_unit_test(any_column_comes_back),
        cmocka_unit_test(damaged_bytes_are_refused_or_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
