/* Requests as senders and as strangers make them. The recorded one is a real Prometheus's, written
 * down with what protoc's Python makes of it. */
#include "../../lib/unit.h"

#include "wire/protobuf.h"
#include "wire/remote_write.h"
#include "wire/snappy_block.h"

/* ---- an encoder of our own: fields in any order */

static void put_label(struct strbuf *series, const char *name, const char *value)
{
    struct strbuf label = {0};
    protobuf_put_bytes(&label, 1, str_of(name));
    protobuf_put_bytes(&label, 2, str_of(value));
    protobuf_put_bytes(series, 1, strbuf_str(&label));
    strbuf_release(&label);
}

static void put_sample(struct strbuf *series, time_ms t, double v)
{
    struct strbuf sample = {0};
    protobuf_put_double(&sample, 1, v);
    protobuf_put_uint64(&sample, 2, (uint64_t)t);
    protobuf_put_bytes(series, 2, strbuf_str(&sample));
    strbuf_release(&sample);
}

/* Decode a message; the request is the caller's to release. */
static enum err decode(const struct strbuf *message, struct remote_write *ret, struct error *err)
{
    struct strbuf body = {0};
    snappy_block_encode(strbuf_str(message), &body);
    enum err e = remote_write_read(ret, strbuf_str(&body), (size_t)64 << 20, err);
    strbuf_release(&body);
    return e;
}

static void series_keep_their_samples_and_label_bytes(void **state)
{
    (void)state;
    struct strbuf message = {0}, series = {0};
    struct remote_write request = {0};
    struct label labels[REMOTE_WRITE_LABELS_MAX];
    const char *why;
    size_t n;
    put_label(&series, "__name__", "up");
    put_label(&series, "job", "dcgm");
    size_t label_bytes = series.n;
    put_sample(&series, 1790000000000, 1);
    put_sample(&series, -5, -0.5);
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    strbuf_clear(&series);
    put_label(&series, "__name__", "down");
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    assert_int_equal(decode(&message, &request, NULL), ERR_OK);
    assert_int_equal(request.series_n, 2);
    assert_int_equal(request.samples_n, 2);
    assert_int_equal(request.series[0].n, 2);
    assert_int_equal(request.series[0].labels.n, label_bytes);
    assert_false(request.series[0].scattered);
    assert_int_equal(request.series[1].n, 0);
    assert_int_equal(request.t[0], 1790000000000);
    assert_true(request.v[0] == 1);
    assert_int_equal(request.t[1], -5);
    assert_true(request.v[1] == -0.5);
    assert_true(remote_write_labels(request.series[0].labels, labels, &n, &why));
    assert_int_equal(n, 2);
    assert_true(str_eq(labels[1].name, STR("job")) && str_eq(labels[1].value, STR("dcgm")));
    remote_write_release(&request);
    strbuf_release(&message);
    strbuf_release(&series);
}

/* proto3 leaves zeros out: 0 at 1 s, 7 at the epoch, and 0 at the epoch. */
static void zeros_that_are_not_sent_are_zeros(void **state)
{
    (void)state;
    static const char bytes[] = "\x0a\x12"
                                "\x12\x03\x10\xe8\x07"
                                "\x12\x09\x09\0\0\0\0\0\0\x1c\x40"
                                "\x12\x00";
    struct strbuf message = {0};
    struct remote_write request = {0};
    strbuf_add(&message, (struct str){bytes, 20});
    assert_int_equal(decode(&message, &request, NULL), ERR_OK);
    assert_int_equal(request.samples_n, 3);
    assert_true(request.t[0] == 1000 && request.v[0] == 0);
    assert_true(request.t[1] == 0 && request.v[1] == 7);
    assert_true(request.t[2] == 0 && request.v[2] == 0);
    remote_write_release(&request);
    strbuf_release(&message);
}

static void what_is_not_wanted_is_counted_and_skipped(void **state)
{
    (void)state;
    struct strbuf message = {0}, series = {0};
    struct remote_write request = {0};
    put_label(&series, "__name__", "up");
    put_sample(&series, 1, 1);
    protobuf_put_bytes(&series, 3, STR(""));  /* an exemplar */
    protobuf_put_bytes(&series, 4, STR(""));  /* a histogram */
    protobuf_put_uint64(&series, 99, 7);      /* of another time */
    protobuf_put_bytes(&message, 3, STR("")); /* metadata */
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    protobuf_put_double(&message, 77, 1);
    assert_int_equal(decode(&message, &request, NULL), ERR_OK);
    assert_int_equal(request.series_n, 1);
    assert_int_equal(request.samples_n, 1);
    assert_int_equal(request.exemplars, 1);
    assert_int_equal(request.histograms, 1);
    assert_int_equal(request.metadata, 1);
    remote_write_release(&request);
    strbuf_release(&message);
    strbuf_release(&series);
}

static void labels_behind_samples_are_found(void **state)
{
    (void)state;
    struct strbuf message = {0}, series = {0};
    struct remote_write request = {0};
    struct label labels[REMOTE_WRITE_LABELS_MAX];
    const char *why;
    size_t n;
    put_label(&series, "a", "1");
    put_sample(&series, 5, 6);
    put_label(&series, "__name__", "up");
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    assert_int_equal(decode(&message, &request, NULL), ERR_OK);
    assert_true(request.series[0].scattered);
    assert_int_equal(request.series[0].n, 1);
    assert_true(remote_write_labels(request.series[0].labels, labels, &n, &why));
    assert_int_equal(n, 2);
    assert_true(str_eq(labels_get(labels, n, STR("__name__")), STR("up")));
    remote_write_release(&request);
    strbuf_release(&message);
    strbuf_release(&series);
}

/* ---- what is refused */

static void a_declared_length_over_the_limit_is_refused_unread(void **state)
{
    (void)state;
    struct remote_write request = {0};
    struct error err;
    /* 3 GiB in five bytes. */
    assert_int_equal(
        remote_write_read(&request, STR("\x80\x80\x80\x80\x0c"), (size_t)1 << 20, &err), ERR_LIMIT);
    assert_true(request.decoded.room < 100);
    assert_int_equal(remote_write_read(&request, STR(""), 100, &err), ERR_PARSE);
    remote_write_release(&request);
}

static void too_many_series_or_samples_are_refused(void **state)
{
    (void)state;
    struct strbuf message = {0};
    struct remote_write request = {0};
    struct error err;
    for (size_t i = 0; i <= REMOTE_WRITE_SERIES_MAX; i++)
        strbuf_add(&message, STR("\x0a\x00"));
    assert_int_equal(decode(&message, &request, &err), ERR_LIMIT);
    assert_int_equal(request.series_n, 0);
    strbuf_clear(&message);
    struct strbuf series = {0};
    for (size_t i = 0; i <= REMOTE_WRITE_SAMPLES_MAX; i++)
        strbuf_add(&series, STR("\x12\x00"));
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    assert_int_equal(decode(&message, &request, &err), ERR_LIMIT);
    assert_int_equal(request.samples_n, 0);
    remote_write_release(&request);
    strbuf_release(&series);
    strbuf_release(&message);
}

static void other_types_of_fields_are_refused(void **state)
{
    (void)state;
    static const struct str broken[] = {
        {"\x08\x01", 2},                 /* timeseries as a number */
        {"\x0a\x02\x08\x01", 4},         /* a label as a number */
        {"\x0a\x02\x10\x01", 4},         /* a sample as a number */
        {"\x0a\x04\x12\x02\x08\x01", 6}, /* a value as a number */
        {"\x0a\x04\x12\x02\x12\x00", 6}, /* a stamp as bytes */
        {"\x0a\x05\x12", 3},             /* cut */
        {"\x0a\x7f", 2},                 /* longer than there is */
        {"\x0b", 1},                     /* a group */
        {"\x0a\x03\x12\x01\x10", 5},     /* a stamp that is cut */
    };
    struct remote_write request = {0};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct strbuf message = {0};
        struct error err;
        strbuf_add(&message, broken[i]);
        assert_int_equal(decode(&message, &request, &err), ERR_PARSE);
        assert_int_equal(request.series_n + request.samples_n, 0);
        strbuf_release(&message);
    }
    remote_write_release(&request);
}

static void labels_that_are_none_say_why(void **state)
{
    (void)state;
    struct label labels[REMOTE_WRITE_LABELS_MAX];
    struct strbuf many = {0};
    const char *why;
    size_t n;
    assert_false(remote_write_labels(STR("\x0a\x02\x08\x01"), labels, &n, &why));
    for (int i = 0; i <= REMOTE_WRITE_LABELS_MAX; i++)
        put_label(&many, "a", "b");
    assert_false(remote_write_labels(strbuf_str(&many), labels, &n, &why));
    assert_string_equal(why, "too many labels");
    strbuf_release(&many);
}

/* A message cut anywhere is refused whole, or is one of fewer series. */
static void a_cut_request_is_never_half_a_series(void **state)
{
    (void)state;
    struct strbuf message = {0};
    struct remote_write request = {0};
    for (int s = 0; s < 3; s++) {
        struct strbuf series = {0};
        put_label(&series, "__name__", "up");
        put_sample(&series, 1790000000000 + s, s + 0.25);
        put_sample(&series, 1790000015000 + s, s + 0.5);
        protobuf_put_bytes(&message, 1, strbuf_str(&series));
        strbuf_release(&series);
    }
    size_t each = message.n / 3;
    for (size_t cut = 0; cut <= message.n; cut++) {
        struct strbuf part = {0};
        strbuf_add(&part, (struct str){message.text, cut});
        bool whole = cut % each == 0;
        assert_int_equal(decode(&part, &request, NULL), whole ? ERR_OK : ERR_PARSE);
        assert_int_equal(request.series_n, whole ? cut / each : 0);
        assert_int_equal(request.samples_n, whole ? 2 * (cut / each) : 0);
        strbuf_release(&part);
    }
    remote_write_release(&request);
    strbuf_release(&message);
}

/* ---- a real Prometheus's */

static char *read_file(const char *name, size_t *ret_n)
{
    char path[400];
    snprintf(path, sizeof path, "%s/unit/wire/data/%s", TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    *ret_n = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* Each line: labels as name=value with tabs between, then stamp, then the value's bits in hex. */
static void a_recorded_request_is_what_protoc_says(void **state)
{
    (void)state;
    struct remote_write request = {0};
    struct strbuf text = {0};
    size_t body_n, expected_n;
    char *body = read_file("remote_write.snappy", &body_n);
    char *expected = read_file("remote_write.txt", &expected_n);
    assert_int_equal(remote_write_read(&request, (struct str){body, body_n}, 1 << 24, NULL),
                     ERR_OK);
    for (size_t i = 0; i < request.series_n; i++) {
        struct label labels[REMOTE_WRITE_LABELS_MAX];
        const char *why;
        size_t n;
        assert_true(remote_write_labels(request.series[i].labels, labels, &n, &why));
        assert_false(request.series[i].scattered);
        for (uint32_t s = 0; s < request.series[i].n; s++) {
            uint64_t bits;
            memcpy(&bits, &request.v[request.series[i].first + s], sizeof bits);
            for (size_t l = 0; l < n; l++)
                strbuf_addf(&text, "%.*s=%.*s\t", STR_ARG(labels[l].name),
                            STR_ARG(labels[l].value));
            strbuf_addf(&text, "%lld\t%016llx\n", (long long)request.t[request.series[i].first + s],
                        (unsigned long long)bits);
        }
    }
    assert_true(request.samples_n > 10);
    assert_int_equal(text.n, expected_n);
    assert_memory_equal(text.text, expected, expected_n);
    free(body);
    free(expected);
    strbuf_release(&text);
    remote_write_release(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_keep_their_samples_and_label_bytes),
        cmocka_unit_test(zeros_that_are_not_sent_are_zeros),
        cmocka_unit_test(what_is_not_wanted_is_counted_and_skipped),
        cmocka_unit_test(labels_behind_samples_are_found),
        cmocka_unit_test(a_declared_length_over_the_limit_is_refused_unread),
        cmocka_unit_test(too_many_series_or_samples_are_refused),
        cmocka_unit_test(other_types_of_fields_are_refused),
        cmocka_unit_test(labels_that_are_none_say_why),
        cmocka_unit_test(a_cut_request_is_never_half_a_series),
        cmocka_unit_test(a_recorded_request_is_what_protoc_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
