#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/promtext.h"

#define SERIES_MAX 64
#define SAMPLES_MAX 4096
#define BAD_MAX 64

/* What a text gave: series as printable texts, samples in order, bad lines. */
struct seen {
    char series[SERIES_MAX][512];
    size_t series_n;
    struct {
        uint32_t id;
        time_ms t;
        double v;
    } samples[SAMPLES_MAX];
    size_t samples_n;
    struct {
        uint64_t line;
        char begins[128], reason[64];
    } bad[BAD_MAX];
    size_t bad_n;
    const char *unwanted; /* metric that the sink refuses */
};

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct seen *seen = context;
    struct strbuf text = {0};
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&text, "%s%.*s=%.*s", i ? "|" : "", STR_ARG(labels[i].name),
                    STR_ARG(labels[i].value));
    assert_true(seen->series_n < SERIES_MAX && text.n < sizeof seen->series[0]);
    memcpy(seen->series[seen->series_n], text.text, text.n + 1);
    strbuf_release(&text);
    seen->series_n++;
    bool skip = seen->unwanted && str_eq(labels[0].value, str_of(seen->unwanted));
    return skip ? PROMTEXT_SKIP : (uint32_t)(seen->series_n - 1);
}

static void on_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                       size_t n)
{
    struct seen *seen = context;
    assert_true(n > 0 && n <= PROMTEXT_BATCH);
    for (size_t i = 0; i < n; i++) {
        assert_true(seen->samples_n < SAMPLES_MAX);
        seen->samples[seen->samples_n].id = id[i];
        seen->samples[seen->samples_n].t = t[i];
        seen->samples[seen->samples_n++].v = v[i];
    }
}

static void on_bad_line(void *context, uint64_t line, struct str begins, const char *reason)
{
    struct seen *seen = context;
    assert_true(seen->bad_n < BAD_MAX);
    seen->bad[seen->bad_n].line = line;
    snprintf(seen->bad[seen->bad_n].begins, sizeof seen->bad[0].begins, "%.*s", STR_ARG(begins));
    snprintf(seen->bad[seen->bad_n].reason, sizeof seen->bad[0].reason, "%s", reason);
    seen->bad_n++;
}

static struct promtext *reader(enum promtext_dialect dialect, struct seen *seen)
{
    struct promtext_sink sink = {seen, on_series, on_samples, on_bad_line};
    return promtext_new(dialect, &sink);
}

static struct promtext_stats read_text(enum promtext_dialect dialect, struct str text,
                                       struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    struct promtext *x = reader(dialect, seen);
    promtext_begin(x, PROMTEXT_NO_TIME);
    promtext_feed(x, text);
    promtext_finish(x);
    struct promtext_stats stats = *promtext_stats(x);
    promtext_free(x);
    return stats;
}

static char *read_file(const char *name, size_t *ret_n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    *ret_n = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static struct seen seen, again;

/* Expected: tests/cases/01-exposition-quirks/expected.md. */
static void quirks_lose_four_lines_and_nothing_else(void **state)
{
    (void)state;
    size_t n;
    char *text = read_file("cases/01-exposition-quirks/metrics.prom", &n);
    struct promtext_stats stats = read_text(PROMTEXT_TEXT, (struct str){text, n}, &seen);
    free(text);
    static const double util[10] = {41, 42, 43, NAN, INFINITY, 45, 46, 47, 48, 49};
    size_t found = 0;
    for (size_t i = 0; i < seen.samples_n; i++) {
        int gpu;
        if (sscanf(seen.series[seen.samples[i].id], "__name__=DCGM_FI_DEV_GPU_UTIL|gpu=%d", &gpu) !=
            1)
            continue;
        found++;
        assert_true(gpu >= 0 && gpu <= 9);
        if (isnan(util[gpu]))
            assert_true(isnan(seen.samples[i].v));
        else
            assert_true(seen.samples[i].v == util[gpu]);
        if (gpu == 1 || gpu == 6)
            assert_int_equal(seen.samples[i].t, 1780272000000);
        else
            assert_int_equal(seen.samples[i].t, PROMTEXT_NO_TIME);
    }
    assert_int_equal(found, 10);
    assert_non_null(strstr(seen.series[2], "|pod=blue \"two\" \\ end\nline2"));
    assert_non_null(strstr(seen.series[5], "|note=has } and { and = and , and # inside"));
    assert_int_equal(stats.duplicates, 1);
    assert_int_equal(stats.bad_lines, 4);
    static const struct {
        uint64_t line;
        const char *begins;
    } bad[] = {{17, "broken_one{"},
               {18, "broken_two{"},
               {19, "broken_three{"},
               {20, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\""}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(seen.bad[i].line, bad[i].line);
        assert_memory_equal(seen.bad[i].begins, bad[i].begins, strlen(bad[i].begins));
    }
    /* plain_metric_no_labels, and something_weird with its stamp in ms. */
    assert_int_equal(stats.samples, 12);
    assert_int_equal(seen.samples[seen.samples_n - 2].t, -3982045);
}

/* Cut at every place, and byte by byte, the result is the same. */
static void pieces_do_not_matter(void **state)
{
    (void)state;
    size_t n;
    char *text = read_file("cases/01-exposition-quirks/metrics.prom", &n);
    read_text(PROMTEXT_TEXT, (struct str){text, n}, &seen);
    for (size_t cut = 0; cut <= n + 1; cut++) {
        memset(&again, 0, sizeof again);
        struct promtext *x = reader(PROMTEXT_TEXT, &again);
        promtext_begin(x, PROMTEXT_NO_TIME);
        if (cut > n) {
            for (size_t i = 0; i < n; i++)
                promtext_feed(x, (struct str){text + i, 1});
        } else {
            promtext_feed(x, (struct str){text, cut});
            promtext_feed(x, (struct str){text + cut, n - cut});
        }
        promtext_finish(x);
        promtext_free(x);
        assert_memory_equal(&seen, &again, sizeof seen);
    }
    free(text);
}

static void one_line(const char *line, const char *series, double v)
{
    read_text(PROMTEXT_TEXT, str_of(line), &seen);
    if (seen.bad_n)
        fail_msg("%s: %s", line, seen.bad[0].reason);
    assert_int_equal(seen.samples_n, 1);
    assert_string_equal(seen.series[0], series);
    assert_true(seen.samples[0].v == v);
}

static void heads_are_read_in_all_their_forms(void **state)
{
    (void)state;
    one_line("up 1", "__name__=up", 1);
    one_line("up\t1\t\n", "__name__=up", 1);
    one_line("  up{} 1\n", "__name__=up", 1);
}

static void quoted_names_are_read(void **state)
{
    (void)state;
    one_line("{\"my.metric\"} 2\n", "__name__=my.metric", 2);
    one_line("{\"my.metric\",\"a b\"=\"c\",d=\"e\"} 2\n", "__name__=my.metric|a b=c|d=e", 2);
    one_line("{ \"GPU \\\"x\\\"\" , a = \"\" } 2\n", "__name__=GPU \"x\"|a=", 2);
    one_line("{a=\"b\",\"late\"} 2\n", "__name__=late|a=b", 2);
    one_line("{\"\xc3\xbc\",\"\xe2\x82\xac\"=\"\xf0\x9f\x98\x80\"} 2\n",
             "__name__=\xc3\xbc|\xe2\x82\xac=\xf0\x9f\x98\x80", 2);
}

static void escapes_are_undone_once(void **state)
{
    (void)state;
    one_line("a{b=\"\\\\n\"} 1\n", "__name__=a|b=\\n", 1);
    one_line("a{b=\"\\n\",c=\"\\\"\"} 1\n", "__name__=a|b=\n|c=\"", 1);
    one_line("a{b=\"C:\\\\DIR\\\\\"} 1\n", "__name__=a|b=C:\\DIR\\", 1);
    one_line("a{b=\"\\x\"} 1\n", "__name__=a|b=\\x", 1); /* stays, as in Prometheus */
}

static void exemplars_are_passed_over(void **state)
{
    (void)state;
    read_text(PROMTEXT_OPENMETRICS,
              STR("a_bucket{le=\"1\"} 5 # {trace_id=\"x}y\"} 0.5 1.5\n"
                  "a_bucket{le=\"2\"} 6 1.25 # {} 0.5\n"
                  "a_bucket{le=\"1\"} 7 3 # {trace_id=\"z\"} 0.5 1.5\n"),
              &seen);
    assert_int_equal(seen.bad_n, 0);
    assert_int_equal(seen.series_n, 2);
    assert_int_equal(seen.samples_n, 3);
    assert_true(seen.samples[0].v == 5 && seen.samples[1].v == 6 && seen.samples[2].v == 7);
    assert_int_equal(seen.samples[1].t, 1250);
    assert_int_equal(seen.samples[2].t, 3000);
}

static void bad(const char *line, const char *reason)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "before 1\n%s\nafter 2", line);
    struct promtext_stats stats = read_text(PROMTEXT_TEXT, strbuf_str(&text), &seen);
    strbuf_release(&text);
    if (seen.bad_n != 1)
        fail_msg("%s: %zu bad lines", line, seen.bad_n);
    assert_int_equal(stats.bad_lines, 1);
    assert_int_equal(seen.bad[0].line, 2);
    assert_string_equal(seen.bad[0].reason, reason);
    assert_int_equal(seen.samples_n, 2);
}

static void broken_lines_are_named_with_a_reason(void **state)
{
    (void)state;
    bad("a{=\"x\"} 1", "a label has no name");
    bad("a{\"\"=\"x\"} 1", "a label has no name");
    bad("a{1team=\"x\"} 1", "a label has no name");
    bad("a{b=\"c\"d=\"e\"} 1", "no comma between labels");
    bad("a{b=\"c\" d\"} 1", "no comma between labels");
    bad("a{b=c} 1", "a label's value is not quoted");
    bad("a{b} 1", "no = after a label's name");
    bad("a{b=\"c} 1", "a quoted text does not end");
    bad("a{b=\"c\\", "a quoted text does not end");
    bad("a{b=\"c\"", "the labels do not end");
    bad("a{b=\"c\",", "the labels do not end");
    bad("a{", "the labels do not end");
    bad("a{b=\"c\",b=\"d\"} 1", "a label stands twice");
    bad("a{__name__=\"c\"} 1", "a label stands twice");
    bad("a{\"b\"} 1", "the metric's name stands twice");
    bad("{b=\"c\"} 1", "no metric name");
    bad("{} 1", "no metric name");
    bad("1a 1", "no metric name");
    bad("a-b 1", "no blank after the metric's name");
    bad("a", "no value");
    bad("a{b=\"c\"}", "no value");
    bad("a twelve", "the value is no number");
    bad("a 0x1p3", "the value is no number");
    bad("a 1_000", "the value is no number");
    bad("a ERROR - FAILED TO CONVERT TO STRING", "the value is no number");
    bad("a 1 x", "the time stamp is none");
    bad("a 1 1.5", "the time stamp is none"); /* 0.0.4 has whole ms */
    bad("a 1 9999999999999999999999", "the time stamp is none");
    bad("a 1 2 3", "more than a value and a time stamp");
    bad("a{b=\"\xff\"} 1", "not UTF-8");
    bad("a{b=\"\xc0\x80\"} 1", "not UTF-8");
    bad("a{b=\"\xed\xa0\x80\"} 1", "not UTF-8");
}

/* A head that was refused is refused again, whatever was learnt from it. */
static void a_label_that_stands_twice_stays_refused(void **state)
{
    (void)state;
    struct promtext_stats stats = read_text(PROMTEXT_TEXT,
                                            STR("a{b=\"1\",b=\"2\"} 1\na{b=\"1\",b=\"2\"} 1\n"
                                                "a{b=\"3\",b=\"4\"} 1\na{b=\"5\"} 1\n"),
                                            &seen);
    assert_int_equal(stats.bad_lines, 3);
    assert_int_equal(stats.samples, 1);
}

/* A head that breaks off is no proof that its names are unique. */
static void a_head_that_breaks_off_vouches_for_nothing(void **state)
{
    static const char *const broken[] = {"a{b=\"1\",b=\"2\" c", "a{b=\"1\",b=\"2",
                                         "a{b=\"1\",b=\"2\",", "a{b=\"1\",b=\"2\",c=3} 1"};
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct strbuf text = {0};
        strbuf_addf(&text, "%s\na{b=\"1\",b=\"2\"} 1\na{b=\"1\",b=\"2\",c=\"3\"} 1\n", broken[i]);
        struct promtext_stats stats = read_text(PROMTEXT_TEXT, strbuf_str(&text), &seen);
        assert_int_equal(stats.bad_lines, 3);
        assert_int_equal(stats.samples, 0);
        strbuf_release(&text);
    }
}

static time_ms stamp(enum promtext_dialect dialect, const char *text)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "a{b=\"c\"} 1 %s\n", text);
    read_text(dialect, strbuf_str(&line), &seen);
    strbuf_release(&line);
    return seen.samples_n ? seen.samples[0].t : PROMTEXT_NO_TIME;
}

static void stamps_are_ms_or_seconds_by_dialect(void **state)
{
    (void)state;
    assert_int_equal(stamp(PROMTEXT_TEXT, "1780272000000"), 1780272000000);
    assert_int_equal(stamp(PROMTEXT_TEXT, "0"), 0);
    assert_int_equal(stamp(PROMTEXT_TEXT, "+5"), 5);
    assert_int_equal(stamp(PROMTEXT_TEXT, "+-5"), PROMTEXT_NO_TIME);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1780272000"), 1780272000000);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1780272000.5"), 1780272000500);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1780272000.0005"), 1780272000001);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1780272000.00049"), 1780272000000);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1.780272e9"), 1780272000000);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "-1.5"), -1500);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1780272000.123456789012345"), 1780272000123);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "NaN"), PROMTEXT_NO_TIME);
    assert_int_equal(stamp(PROMTEXT_OPENMETRICS, "1e300"), PROMTEXT_NO_TIME);
    assert_int_equal(stamp(PROMTEXT_AUTO, "1780272000"), 1780272000000);
    assert_int_equal(stamp(PROMTEXT_AUTO, "1780272000000"), 1780272000000);
    assert_int_equal(stamp(PROMTEXT_AUTO, "1780272000.25"), 1780272000250);
    assert_int_equal(stamp(PROMTEXT_AUTO, "99999999999"), 99999999999000);
    assert_int_equal(stamp(PROMTEXT_AUTO, "100000000000"), 100000000000);
    assert_int_equal(stamp(PROMTEXT_AUTO, "-100000000000"), -100000000000);
}

static void stats_count_what_happened(void **state)
{
    (void)state;
    struct str text = STR("# TYPE a gauge\na 1\n\nb 2\na 1\na{x=\"}\"} 3 5\n# EOF\n");
    memset(&seen, 0, sizeof seen);
    seen.unwanted = "b";
    struct promtext *x = reader(PROMTEXT_AUTO, &seen);
    for (int round = 0; round < 3; round++) {
        promtext_begin(x, 1000 + round);
        promtext_feed(x, text);
        promtext_finish(x);
        const struct promtext_stats *stats = promtext_stats(x);
        assert_int_equal(stats->bytes, text.n);
        assert_int_equal(stats->lines, 7);
        assert_int_equal(stats->samples, 2);
        assert_int_equal(stats->skipped, 1);
        assert_int_equal(stats->duplicates, 1);
        assert_int_equal(stats->unstamped, 3);
        assert_int_equal(stats->bad_lines, 0);
        assert_int_equal(stats->heads, round ? 0 : 3);
        assert_true(stats->eof_mark);
    }
    assert_int_equal(seen.series_n, 3);
    assert_int_equal(seen.samples_n, 6);
    assert_int_equal(seen.samples[4].t, 1002);
    assert_int_equal(seen.samples[5].t, 5000);
    promtext_forget(x);
    promtext_begin(x, 0);
    promtext_feed(x, text);
    promtext_finish(x);
    assert_int_equal(promtext_stats(x)->heads, 3);
    promtext_free(x);
}

/* The guess is right, wrong, right again: a scrape in which series come and go. */
static void known_heads_are_found_in_any_order(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a{i=\"0\"} 0\na{i=\"1\"} 1\na{i=\"2\"} 2\na{i=\"3\"} 3\n",
        "a{i=\"3\"} 3\na{i=\"1\"} 1\na{i=\"0\"} 0\n",
        "a{i=\"0\"} 0\na{i=\"2\"} 2\r\n # x\na{i=\"4\"} 4\na{i=\"1\"} +1\n",
        "a{i=\"0\"} 0\na{i=\"0\"} 0\na{i=\"2\"} 2\na{i=\"4\"} 4\n",
    };
    memset(&seen, 0, sizeof seen);
    struct promtext *x = reader(PROMTEXT_TEXT, &seen);
    for (size_t i = 0; i < 40; i++) {
        promtext_begin(x, (time_ms)i);
        promtext_feed(x, str_of(texts[i % 4]));
        promtext_finish(x);
    }
    promtext_free(x);
    assert_int_equal(seen.series_n, 5);
    assert_int_equal(seen.samples_n, 10 * (4 + 3 + 4 + 3));
    for (size_t i = 0; i < seen.samples_n; i++)
        assert_true(seen.samples[i].v == (double)seen.samples[i].id);
}

static void a_line_that_is_too_long_is_one_bad_line(void **state)
{
    (void)state;
    size_t n = PROMTEXT_LINE_MAX + 100;
    struct strbuf text = {0};
    strbuf_add(&text, STR("a 1\nb{c=\""));
    char *fill = malloc(n);
    memset(fill, 'x', n);
    strbuf_add(&text, (struct str){fill, n});
    strbuf_add(&text, STR("\"} 2\nd 3\n"));
    free(fill);
    for (size_t piece = 1000; piece <= text.n; piece = piece == text.n ? text.n + 1 : text.n) {
        memset(&seen, 0, sizeof seen);
        struct promtext *x = reader(PROMTEXT_TEXT, &seen);
        promtext_begin(x, 0);
        for (size_t i = 0; i < text.n; i += piece)
            promtext_feed(x, (struct str){text.text + i, text.n - i < piece ? text.n - i : piece});
        promtext_finish(x);
        assert_int_equal(promtext_stats(x)->lines, 3);
        promtext_free(x);
        assert_int_equal(seen.samples_n, 2);
        assert_int_equal(seen.bad_n, 1);
        assert_int_equal(seen.bad[0].line, 2);
        assert_string_equal(seen.bad[0].reason, "the line is too long");
        assert_int_equal(strlen(seen.bad[0].begins), 100);
    }
    strbuf_release(&text);
}

static uint32_t count_series(void *context, const struct label *labels, size_t n)
{
    uint32_t *count = context;
    assert_int_equal(n, 2);
    assert_true(labels[1].value.n > 0);
    return ++*count;
}

static void count_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                          size_t n)
{
    (void)context;
    (void)t;
    for (size_t i = 0; i < n; i++)
        assert_true(id[i] > 0 && v[i] >= 0);
}

/* What is forgotten is asked for again, and nothing is lost. */
static void more_heads_than_are_remembered_still_arrive(void **state)
{
    (void)state;
    uint32_t count = 0;
    struct promtext_sink sink = {&count, count_series, count_samples, NULL};
    struct promtext *x = promtext_new(PROMTEXT_TEXT, &sink);
    struct strbuf text = {0};
    size_t n = PROMTEXT_HEADS_MAX + 1000;
    promtext_begin(x, 0);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < n; i++) {
            strbuf_clear(&text);
            strbuf_addf(&text, "a{i=\"%zu\"} %zu %d\n", i, i, round);
            promtext_feed(x, strbuf_str(&text));
        }
    promtext_finish(x);
    assert_int_equal(promtext_stats(x)->samples, 2 * n);
    assert_true(count >= n && count <= 2 * n);
    promtext_free(x);
    strbuf_release(&text);
}

/* A target whose series change at every scrape does not make the decoder grow. */
static void heads_of_long_ago_are_forgotten(void **state)
{
    (void)state;
    uint32_t count = 0;
    struct promtext_sink sink = {&count, count_series, count_samples, NULL};
    struct promtext *x = promtext_new(PROMTEXT_TEXT, &sink);
    struct strbuf text = {0};
    for (int scrape = 0; scrape < 3000; scrape++) {
        strbuf_clear(&text);
        strbuf_addf(&text, "a{stays=\"x\"} 1\n");
        for (int i = 0; i < 10; i++)
            strbuf_addf(&text, "a{i=\"%d.%d\"} 1\n", scrape, i);
        promtext_begin(x, scrape);
        promtext_feed(x, strbuf_str(&text));
        promtext_finish(x);
        assert_int_equal(promtext_stats(x)->samples, 11);
    }
    /* 30,000 that change and one that stays, asked for again after each forgetting. */
    assert_true(count > 30001 && count < 30020);
    promtext_free(x);
    strbuf_release(&text);
}

static void too_many_labels_are_a_bad_line(void **state)
{
    (void)state;
    struct strbuf text = {0};
    for (int round = 0; round < 2; round++) {
        strbuf_addf(&text, "a{");
        for (int i = 0; i < PROMTEXT_LABELS_MAX; i++)
            strbuf_addf(&text, "l%d=\"\",", i);
        strbuf_addf(&text, "} 1\n");
    }
    struct promtext_stats stats = read_text(PROMTEXT_TEXT, strbuf_str(&text), &seen);
    assert_int_equal(stats.bad_lines, 2);
    assert_string_equal(seen.bad[1].reason, "too many labels");
    strbuf_release(&text);
}

/* One decoder, two targets: the same head is another series in each, and what vanishes is told of
 * the target in use. */
struct targets {
    uint32_t asked, vanished[4];
    size_t vanished_n;
};

static uint32_t name_of_target(void *context, const struct label *labels, size_t n)
{
    (void)labels;
    (void)n;
    return ((struct targets *)context)->asked++;
}

static void drop_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                         size_t n)
{
    (void)context, (void)id, (void)t, (void)v, (void)n;
}

static void note_vanished(void *context, uint32_t series)
{
    struct targets *targets = context;
    targets->vanished[targets->vanished_n++] = series;
}

static void read_target(struct promtext *x, struct promtext_layout *layout, const char *text)
{
    promtext_use(x, layout);
    promtext_begin(x, 1000);
    promtext_feed(x, str_of(text));
    promtext_finish(x);
}

static void one_decoder_reads_many_targets(void **state)
{
    (void)state;
    struct targets targets = {0};
    struct promtext_sink sink = {
        .context = &targets, .series = name_of_target, .samples = drop_samples};
    struct promtext *x = promtext_new(PROMTEXT_TEXT, &sink);
    struct promtext_layout *a = promtext_layout_new(), *b = promtext_layout_new();
    for (int round = 0; round < 3; round++) {
        read_target(x, a, "up 1\ndown 1\n"); /* series 0, 1 */
        assert_int_equal(promtext_stats(x)->samples, 2);
        read_target(x, b, "up 1\n"); /* series 2 */
        promtext_vanished(x, note_vanished, &targets);
    }
    assert_int_equal(targets.asked, 3);
    assert_int_equal(targets.vanished_n, 0);
    read_target(x, a, "up 1\n");
    promtext_vanished(x, note_vanished, &targets);
    assert_int_equal(targets.vanished_n, 1);
    assert_int_equal(targets.vanished[0], 1);
    read_target(x, a, ""); /* a failed scrape: what was in the one before, and not twice */
    promtext_vanished(x, note_vanished, &targets);
    read_target(x, a, "");
    promtext_vanished(x, note_vanished, &targets);
    assert_int_equal(targets.vanished_n, 2);
    assert_int_equal(targets.vanished[1], 0);
    read_target(x, NULL, "up 1\n"); /* the decoder's own */
    assert_int_equal(targets.asked, 4);
    read_target(x, b, "up 1\n");
    assert_int_equal(targets.asked, 4);
    assert_int_equal(promtext_remembered(x), 1);
    promtext_free(x);
    assert_true(promtext_layout_bytes(a) > 0);
    promtext_layout_free(a);
    promtext_layout_free(b);
}

/* Field samples (tests/samples): every sample arrives, and in 15 the raw strings, the doubled label
 * and the label that begins with a digit do not. */
static void samples_of_the_field_are_read(void **state)
{
    (void)state;
    size_t n;
    char *text = read_file("samples/dcgm-15-invalid-lines.prom", &n);
    struct promtext_stats stats = read_text(PROMTEXT_TEXT, (struct str){text, n}, &seen);
    free(text);
    assert_int_equal(stats.bad_lines, 4);
    assert_int_equal(stats.samples, 1);
    assert_int_equal(stats.duplicates, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quirks_lose_four_lines_and_nothing_else),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(heads_are_read_in_all_their_forms),
        cmocka_unit_test(quoted_names_are_read),
        cmocka_unit_test(escapes_are_undone_once),
        cmocka_unit_test(exemplars_are_passed_over),
        cmocka_unit_test(broken_lines_are_named_with_a_reason),
        cmocka_unit_test(a_label_that_stands_twice_stays_refused),
        cmocka_unit_test(a_head_that_breaks_off_vouches_for_nothing),
        cmocka_unit_test(stamps_are_ms_or_seconds_by_dialect),
        cmocka_unit_test(stats_count_what_happened),
        cmocka_unit_test(known_heads_are_found_in_any_order),
        cmocka_unit_test(a_line_that_is_too_long_is_one_bad_line),
        cmocka_unit_test(more_heads_than_are_remembered_still_arrive),
        cmocka_unit_test(heads_of_long_ago_are_forgotten),
        cmocka_unit_test(too_many_labels_are_a_bad_line),
        cmocka_unit_test(one_decoder_reads_many_targets),
        cmocka_unit_test(samples_of_the_field_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
