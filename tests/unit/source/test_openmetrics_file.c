/* Files as a source: what arrives at the intake, and what is said of lines that do not. */
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "../../lib/recording_intake.h"
#include "../../lib/unit.h"
#include "source/openmetrics_file.h"

#define GPU0 "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-0\",gpu=\"0\"}"
#define TEXT                                                                                       \
    "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" GPU0 " 10 1000\n" GPU0 " 20 1030.5\n" GPU0 " 30 1060\n"  \
    "other_metric{a=\"b\"} 5 1000\n"                                                               \
    "kube_pod_info{pod=\"p\"} 1 500\n"                                                             \
    "kube_pod_info{pod=\"p\"} 1 1000\n"                                                            \
    "# EOF\n"

static char path[TEMPORARY_MAX];

static const char *write_bytes(const void *bytes, size_t n)
{
    temporary(path, "gputally-test");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    return path;
}

static const char *write_text(const char *text)
{
    return write_bytes(text, strlen(text));
}

static void begin(void)
{
    recorder_clear();
    recorder_want("DCGM_FI_DEV_GPU_UTIL", "", METRIC_GROUP_GPU);
    recorder_want("kube_pod_info", "", METRIC_GROUP_KUBE);
}

static struct source *open_source(const char *file, time_ms default_stamp)
{
    struct source *source = NULL;
    struct error err = {0};
    assert_int_equal(openmetrics_source_new(&file, 1, default_stamp, &source, &err), ERR_OK);
    return source;
}

static enum err fetch(const char *file, time_ms default_stamp, const struct fetch *span,
                      struct error *err)
{
    struct source *source = open_source(file, default_stamp);
    struct progress progress = {0};
    begin();
    enum err e = source->ops->fetch(source, span, RECORDER, &progress, err);
    source_free(source);
    unlink(file);
    recorder_settle();
    return e;
}

static const struct fetch everything = {.kube = {TIME_MIN, TIME_MAX}, .gpu = {TIME_MIN, TIME_MAX}};

static void expect_text(void)
{
    const struct recorded_series *gpu = recorder_find(GPU0);
    const struct recorded_series *pod = recorder_find("kube_pod_info{pod=\"p\"}");
    assert_int_equal(recorder.n, 2);
    assert_non_null(gpu);
    assert_non_null(pod);
    assert_int_equal(gpu->n, 3);
    assert_int_equal(gpu->samples[1].t, 1030500);
    assert_true(gpu->samples[1].v == 20);
    assert_int_equal(pod->n, 2);
    assert_int_equal(recorder.broken_promises, 0);
}

static void plain_text_arrives(void **state)
{
    (void)state;
    assert_int_equal(fetch(write_text(TEXT), 0, &everything, NULL), ERR_OK);
    expect_text();
    assert_int_equal(recorder.notes_n, 0);
}

static void gzip_is_known_by_its_bytes(void **state)
{
    (void)state;
    unsigned char packed[1024];
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)TEXT;
    z.avail_in = sizeof TEXT - 1;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = sizeof packed - z.avail_out;
    deflateEnd(&z);
    assert_int_equal(fetch(write_bytes(packed, n), 0, &everything, NULL), ERR_OK);
    expect_text();
}

static void zstd_is_known_by_its_bytes(void **state)
{
    (void)state;
    char packed[1024];
    size_t n = ZSTD_compress(packed, sizeof packed, TEXT, sizeof TEXT - 1, 3);
    assert_false(ZSTD_isError(n));
    assert_int_equal(fetch(write_bytes(packed, n), 0, &everything, NULL), ERR_OK);
    expect_text();
}

static void samples_outside_of_the_wider_range_are_left_out(void **state)
{
    (void)state;
    struct fetch span = {.kube = {1000000, 1030500}, .gpu = {1030500, 1030500}};
    assert_int_equal(fetch(write_text(TEXT), 0, &span, NULL), ERR_OK);
    assert_int_equal(recorder_find(GPU0)->n, 2);
    assert_int_equal(recorder_find(GPU0)->samples[1].t, 1030500);
    assert_int_equal(recorder_find("kube_pod_info{pod=\"p\"}")->n, 1);
}

static void broken_lines_are_counted_and_the_first_ones_named(void **state)
{
    (void)state;
    const char *file =
        write_text(GPU0 " 10 1000\nbroken{=\"x\"} 0\n" GPU0 " twelve 1030\n" GPU0 " 30 1060\nx{\n");
    assert_int_equal(fetch(file, 0, &everything, NULL), ERR_OK);
    assert_int_equal(recorder_find(GPU0)->n, 2);
    assert_int_equal(recorder.notes_n, 1);
    const struct recorded_note *note = &recorder.notes[0];
    assert_int_equal(note->kind, NOTE_REJECTED);
    assert_int_equal(note->count, 3);
    assert_string_equal(note->subject, file);
    assert_non_null(strstr(note->text, "line 2 ("));
    assert_non_null(strstr(note->text, "line 3 ("));
    assert_non_null(strstr(note->text, "line 5 ("));
}

static void lines_without_stamps_take_the_given_one(void **state)
{
    (void)state;
    assert_int_equal(fetch(write_text(GPU0 " 10\n"), 123000, &everything, NULL), ERR_OK);
    assert_int_equal(recorder_find(GPU0)->samples[0].t, 123000);
}

static void lines_without_stamps_are_counted_where_none_is_given(void **state)
{
    (void)state;
    assert_int_equal(fetch(write_text(GPU0 " 10\n" GPU0 " 20 1000\n"), 0, &everything, NULL),
                     ERR_OK);
    assert_int_equal(recorder_find(GPU0)->n, 1);
    assert_int_equal(recorder.notes_n, 1);
    assert_int_equal(recorder.notes[0].count, 1);
    assert_non_null(strstr(recorder.notes[0].text, "without a time stamp"));
}

static void a_file_of_stampless_lines_only_is_an_error(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(fetch(write_text(GPU0 " 10\n"), 0, &everything, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "none of its 1 samples has a time stamp"));
}

static void a_file_without_gpu_metrics_is_an_error(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(fetch(write_text("a 1 1\nb 2 2\n"), 0, &everything, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "no metrics of GPUs"));
    assert_int_equal(fetch(write_text(""), 0, &everything, &err), ERR_NOT_FOUND);
}

static void a_missing_file_is_an_error_with_its_name(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(fetch("/nonexistent/metrics.om", 0, &everything, &err), ERR_IO);
    assert_non_null(strstr(err.text, "/nonexistent/metrics.om"));
}

static void a_saved_answer_of_a_server_is_read(void **state)
{
    (void)state;
    const char *file = write_text(
        " {\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{"
        "\"__name__\":\"DCGM_FI_DEV_GPU_UTIL\",\"UUID\":\"GPU-0\",\"gpu\":\"0\"},\"values\":[[1000,"
        "\"10\"],[1030.5,\"20\"],[1060,\"30\"]]}]},\"warnings\":[\"a store is down\"]}");
    struct fetch span = {.kube = {0, 1030500}, .gpu = {0, 0}};
    assert_int_equal(fetch(file, 0, &span, NULL), ERR_OK);
    assert_int_equal(recorder_find(GPU0)->n, 2);
    assert_int_equal(recorder_find(GPU0)->samples[1].t, 1030500);
    assert_int_equal(recorder.notes_n, 1);
    assert_int_equal(recorder.notes[0].kind, NOTE_PARTIAL);
    assert_string_equal(recorder.notes[0].text, "a store is down");
}

static void a_quoted_metric_name_is_no_json(void **state)
{
    (void)state;
    const char *file = write_text("{\"DCGM_FI_DEV_GPU_UTIL\",UUID=\"GPU-0\",gpu=\"0\"} 10 1000\n");
    assert_int_equal(fetch(file, 0, &everything, NULL), ERR_OK);
    assert_int_equal(recorder_find(GPU0)->n, 1);
}

static void a_saved_answer_that_is_cut_is_an_error(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(
        fetch(write_text("{\"status\":\"success\",\"data\":{\"resultT"), 0, &everything, &err),
        ERR_NETWORK);
    assert_int_equal(
        fetch(write_text("{\"status\":\"error\",\"error\":\"bad query\"}"), 0, &everything, &err),
        ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "bad query"));
}

static void a_survey_without_bounds_tells_the_times_of_the_file(void **state)
{
    (void)state;
    struct source *source = open_source(write_text(TEXT), 0);
    struct progress progress = {0};
    struct span extent;
    double rate = 1;
    begin();
    struct span all = {-((time_ms)1 << 52), (time_ms)1 << 52};
    assert_int_equal(source->ops->survey(source, all, &extent, &rate, &progress, NULL), ERR_OK);
    assert_int_equal(extent.from, 499999); /* the first sample describes the time before it */
    assert_int_equal(extent.to, 1060000);
    assert_true(rate == 0);
    assert_int_equal(recorder.n, 0);
    source_free(source);
    unlink(path);
}

static void a_long_file_arrives_whole_across_blocks(void **state)
{
    (void)state;
    struct strbuf text = {0};
    enum { SAMPLES = 60000 };
    for (int i = 0; i < SAMPLES; i++)
        strbuf_addf(&text, GPU0 " %d %d\n", i % 100, 1000 + i * 30);
    assert_true(text.n > 3u << 20);
    assert_int_equal(fetch(write_bytes(text.text, text.n), 0, &everything, NULL), ERR_OK);
    assert_int_equal(recorder_find(GPU0)->n, SAMPLES);
    strbuf_release(&text);
}

static void standard_input_is_read_once_and_kept_by_a_survey(void **state)
{
    (void)state;
    struct span all = {-((time_ms)1 << 52), (time_ms)1 << 52}, extent;
    struct error err = {0};
    struct progress progress = {0};
    double rate;
    for (int survey = 0; survey < 2; survey++) {
        assert_non_null(freopen(write_text(TEXT), "r", stdin));
        struct source *source = open_source("-", 0);
        begin();
        if (survey)
            assert_int_equal(source->ops->survey(source, all, &extent, &rate, &progress, &err),
                             ERR_OK);
        assert_int_equal(source->ops->fetch(source, &everything, RECORDER, &progress, &err),
                         ERR_OK);
        recorder_settle();
        expect_text();
        enum err again = source->ops->fetch(source, &everything, RECORDER, &progress, &err);
        assert_int_equal(again, survey ? ERR_OK : ERR_USAGE);
        source_free(source);
        unlink(path);
    }
}

static void a_stop_ends_the_reading(void **state)
{
    (void)state;
    volatile int stop = 15;
    struct source *source = open_source(write_text(TEXT), 0);
    struct progress progress = {.stop = &stop};
    begin();
    assert_int_equal(source->ops->fetch(source, &everything, RECORDER, &progress, NULL),
                     ERR_STOPPED);
    source_free(source);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_arrives),
        cmocka_unit_test(gzip_is_known_by_its_bytes),
        cmocka_unit_test(zstd_is_known_by_its_bytes),
        cmocka_unit_test(samples_outside_of_the_wider_range_are_left_out),
        cmocka_unit_test(broken_lines_are_counted_and_the_first_ones_named),
        cmocka_unit_test(lines_without_stamps_take_the_given_one),
        cmocka_unit_test(lines_without_stamps_are_counted_where_none_is_given),
        cmocka_unit_test(a_file_of_stampless_lines_only_is_an_error),
        cmocka_unit_test(a_file_without_gpu_metrics_is_an_error),
        cmocka_unit_test(a_missing_file_is_an_error_with_its_name),
        cmocka_unit_test(a_saved_answer_of_a_server_is_read),
        cmocka_unit_test(a_quoted_metric_name_is_no_json),
        cmocka_unit_test(a_saved_answer_that_is_cut_is_an_error),
        cmocka_unit_test(a_survey_without_bounds_tells_the_times_of_the_file),
        cmocka_unit_test(a_long_file_arrives_whole_across_blocks),
        cmocka_unit_test(standard_input_is_read_once_and_kept_by_a_survey),
        cmocka_unit_test(a_stop_ends_the_reading),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    recorder_clear();
    return failed;
}
