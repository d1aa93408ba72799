/* Samples as the journal keeps them: the same to the bit, and as earlier versions kept them. */
#include "../../lib/journal_lab.h"
#include "source/journal_frame.h"
#include "wire/protobuf.h"

static double of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void add(struct frame_samples *samples, uint32_t number, time_ms t, double v)
{
    frame_samples_reserve(samples, 1);
    samples->number[samples->n] = number;
    samples->t[samples->n] = t;
    samples->v[samples->n++] = v;
}

/* Write, read, compare bytes; gives the payload's size. */
static size_t goes_round(const struct frame_samples *samples)
{
    struct strbuf raw = {0};
    struct frame_samples again = {0};
    struct frame frame = {.kind = FRAME_SAMPLES, .plain = true, .count = (uint32_t)samples->n};
    frame_samples_put(samples, &raw);
    assert_true(frame_samples_read(&frame, strbuf_str(&raw), &again));
    assert_int_equal(again.n, samples->n);
    assert_memory_equal(again.number, samples->number, samples->n * sizeof *samples->number);
    assert_memory_equal(again.t, samples->t, samples->n * sizeof *samples->t);
    assert_memory_equal(again.v, samples->v, samples->n * sizeof *samples->v);
    size_t n = raw.n;
    frame_samples_release(&again);
    strbuf_release(&raw);
    return n;
}

static void values_come_back_to_the_bit(void **state)
{
    (void)state;
    static const double odd[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.1,
                                 0.123456,
                                 -0.5,
                                 300.123,
                                 61.43,
                                 1e-9,
                                 0.3333333333333333,
                                 1e300,
                                 -1e-300,
                                 5e-324,
                                 9007199254740991.0,
                                 9007199254740992.0,
                                 9007199254740994.0,
                                 -9223372036854775808.0,
                                 1.5e15 + 0.25,
                                 123456789.123456789,
                                 1790000000.123};
    static const uint64_t bits[] = {0x7ff0000000000002, /* stale */ 0x7ff8000000000001,
                                    0xfff8000000000000, 0x7ff0000000000000,
                                    0xfff0000000000000, 0x0000000000000001,
                                    0x8000000000000001, UINT64_MAX};
    struct random random = random_new();
    struct frame_samples samples = {0};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        add(&samples, (uint32_t)i, LAB_T0, odd[i]);
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        add(&samples, UINT32_MAX - (uint32_t)i, i % 2 ? TIME_MIN : TIME_MAX, of_bits(bits[i]));
    for (int i = 0; i < 20000; i++) {
        uint64_t any = random_next(&random);
        double printed = (double)(any % 1000000000) / (i % 3 == 0 ? 1e3 : i % 3 == 1 ? 1e6 : 1e9);
        add(&samples, (uint32_t)(any >> 32), (time_ms)(any * 7), i % 4 ? printed : of_bits(any));
    }
    goes_round(&samples);
    frame_samples_release(&samples);
}

/* 2,000 series at one stamp with ratios of six places: a column of runs, three bytes of digits. */
static void a_live_batch_is_small(void **state)
{
    (void)state;
    struct frame_samples samples = {0};
    for (uint32_t i = 0; i < 2000; i++)
        add(&samples, 1000 + 2 * i, LAB_T0, (double)(500000 + i) / 1e6);
    assert_true(goes_round(&samples) < 2000 * 4 + 60);
    frame_samples_release(&samples);
}

static void bytes_that_are_no_columns_are_refused(void **state)
{
    (void)state;
    struct random random = random_new();
    struct frame_samples samples = {0}, again = {0};
    struct strbuf raw = {0};
    for (uint32_t i = 0; i < 50; i++)
        add(&samples, 2 * i, LAB_T0 + i % 3, i / 7.0);
    frame_samples_put(&samples, &raw);
    struct frame frame = {.kind = FRAME_SAMPLES, .plain = true, .count = 50};
    for (size_t n = 0; n < raw.n; n++)
        assert_false(frame_samples_read(&frame, (struct str){raw.text, n}, &again));
    for (frame.count = 0; frame.count < 200; frame.count++)
        if (frame.count != 50)
            assert_false(frame_samples_read(&frame, strbuf_str(&raw), &again));
    frame.count = 50;
    for (int i = 0; i < 20000; i++) { /* whatever comes, it is inside of the bytes */
        char *copy = memcpy(malloc(raw.n), raw.text, raw.n);
        copy[random_below(&random, (int64_t)raw.n)] = (char)random_next(&random);
        frame_samples_read(&frame, (struct str){copy, raw.n}, &again);
        again.n = 0;
        free(copy);
    }
    frame_samples_release(&samples);
    frame_samples_release(&again);
    strbuf_release(&raw);
}

/* ---- earlier versions: differences one by one, planes of bytes, zstd */

static uint64_t zigzag(int64_t difference)
{
    return (uint64_t)difference << 1 ^ (uint64_t)(difference >> 63);
}

static void put_planes(const struct frame_samples *samples, struct strbuf *ret)
{
    struct strbuf numbers = {0};
    int64_t before = 0;
    for (size_t i = 0; i < samples->n; before = samples->number[i++])
        protobuf_put_varint(&numbers, zigzag(samples->number[i] - before));
    uint32_t end = (uint32_t)numbers.n + 4;
    strbuf_add(ret, (struct str){(const char *)&end, 4});
    strbuf_add(ret, strbuf_str(&numbers));
    before = 0;
    for (size_t i = 0; i < samples->n; before = samples->t[i++])
        protobuf_put_varint(ret, zigzag(samples->t[i] - before));
    for (int plane = 0; plane < 8; plane++)
        for (size_t i = 0; i < samples->n; i++)
            strbuf_addc(ret, ((const char *)&samples->v[i])[plane]);
    strbuf_release(&numbers);
}

static void put_packed(struct frame frame, uint64_t salt, const struct strbuf *raw,
                       struct strbuf *ret)
{
    struct frame_packer *packer = frame_packer_new();
    struct strbuf packed = {0};
    char head[FRAME_HEADER_BYTES];
    frame.raw = (uint32_t)raw->n;
    frame.packed = (uint32_t)frame_pack(packer, strbuf_str(raw), &packed);
    frame_seal(&frame, strbuf_str(&packed));
    frame_put(&frame, salt, head);
    strbuf_add(ret, (struct str){head, sizeof head});
    strbuf_add(ret, strbuf_str(&packed));
    strbuf_release(&packed);
    frame_packer_free(packer);
}

static void journals_of_earlier_versions_are_read(void **state)
{
    (void)state;
    struct lab lab;
    struct strbuf file = {0}, raw = {0};
    struct segment_head head = {.number = 1, .salt = 77, .created = LAB_T0};
    struct frame_samples samples = {0};
    char number[16], path[200];
    lab_begin(&lab);
    segment_head_put(&head, &file);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(number, sizeof number, "%u", i);
        struct label labels[] = {{STR("UUID"), str_of(number)},
                                 {STR("__name__"), STR("DCGM_FI_DEV_GPU_UTIL")},
                                 {STR("node"), STR("gpu-1")}};
        frame_definition_put(labels, 3, &raw);
    }
    put_packed((struct frame){.kind = FRAME_DEFINITIONS, .count = 3, .first = 0, .last = 2}, 77,
               &raw, &file);
    strbuf_clear(&raw);
    for (unsigned i = 0; i < 12; i++)
        add(&samples, i % 3 << 1, LAB_T0 + i / 3 * 15000, lab_value(i % 3, LAB_T0 + i / 3 * 15000));
    put_planes(&samples, &raw);
    put_packed((struct frame){.kind = FRAME_SAMPLES,
                              .count = 12,
                              .sequence = 1,
                              .first = LAB_T0,
                              .last = LAB_T0 + 45000},
               77, &raw, &file);
    snprintf(path, sizeof path, "%s/%016x.journal", lab.folder, 1);
    FILE *out = fopen(path, "wb");
    assert_int_equal(fwrite(file.text, 1, file.n, out), file.n);
    fclose(out);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    assert_int_equal(lab_put(batch, 0, 3, LAB_T0 + 60000, true), ERR_OK); /* and written on */
    journal_batch_free(batch);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, 15);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.stats.damaged_frames, 0);
    assert_true(lab_has(&seen, 2, LAB_T0 + 45000) && lab_has(&seen, 2, LAB_T0 + 60000));
    free(seen.samples);
    journal_close(journal);
    frame_samples_release(&samples);
    strbuf_release(&raw);
    strbuf_release(&file);
    lab_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back_to_the_bit),
        cmocka_unit_test(a_live_batch_is_small),
        cmocka_unit_test(bytes_that_are_no_columns_are_refused),
        cmocka_unit_test(journals_of_earlier_versions_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
