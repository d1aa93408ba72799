/* What sources may hand to an intake, and what it makes of it. */
#include <math.h>
#include <pthread.h>

#include "../../lib/unit.h"
#include "fleet/intake_data.h"
#include "fleet/objects.h"

#define T0 INT64_C(1767225600000)

struct fixture {
    struct settings settings;
    struct names *names;
    struct intake *intake;
};

static int open_intake(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    settings_defaults(&f->settings);
    f->names = names_new();
    f->intake = intake_new(&f->settings, f->names);
    *state = f;
    return 0;
}

static int close_intake(void **state)
{
    struct fixture *f = *state;
    intake_free(f->intake);
    names_free(f->names);
    free(f);
    return 0;
}

#define L(name, value)                                                                             \
    {                                                                                              \
        STR(name), STR(value)                                                                      \
    }
#define SERIES(f, ...)                                                                             \
    intake_series((f)->intake, (struct label[]){__VA_ARGS__},                                      \
                  sizeof((struct label[]){__VA_ARGS__}) / sizeof(struct label))
#define UTIL L("__name__", "DCGM_FI_DEV_GPU_UTIL")
#define SM L("__name__", "DCGM_FI_PROF_SM_ACTIVE")

static void what_nobody_reads_is_unwanted(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(SERIES(f, L("__name__", "node_memory_MemFree_bytes")), SERIES_UNWANTED);
    assert_int_equal(SERIES(f, L("pod", "p")), SERIES_UNWANTED);
    assert_int_equal(SERIES(f, L("__name__", "up")), SERIES_UNWANTED); /* of no pod */
    assert_int_equal(SERIES(f, L("__name__", "kube_node_status_capacity"), L("resource", "cpu")),
                     SERIES_UNWANTED);
    assert_int_equal(SERIES(f, L("__name__", "kube_pod_status_phase"), L("phase", "Running")),
                     SERIES_UNWANTED);
    assert_false(intake_wants_metric(STR("node_memory_MemFree_bytes")));
    assert_true(intake_wants_metric(STR("DCGM_FI_DEV_GPU_UTIL")));
    assert_true(intake_wants_metric(STR("kube_pod_info")));
    double v = 1;
    time_ms t = T0;
    intake_append(f->intake, SERIES_UNWANTED, &t, &v, 1); /* is fine */
}

static void every_wanted_metric_is_wanted(void **state)
{
    (void)state;
    size_t n;
    const struct wanted_metric *wanted = wanted_metrics(&n);
    assert_true(n > 60);
    for (size_t i = 0; i < n; i++)
        assert_true(intake_wants_metric(str_of(wanted[i].name)));
}

static void labels_in_any_order_and_empty_ones_name_the_same_series(void **state)
{
    struct fixture *f = *state;
    series_id id = SERIES(f, UTIL, L("UUID", "GPU-1"), L("gpu", "0"));
    assert_int_equal(SERIES(f, L("gpu", "0"), UTIL, L("UUID", "GPU-1"), L("pod", "")), id);
    assert_int_not_equal(SERIES(f, UTIL, L("UUID", "GPU-1"), L("gpu", "1")), id);
    assert_int_not_equal(SERIES(f, SM, L("UUID", "GPU-1"), L("gpu", "0")), id);
    assert_int_equal(f->intake->series_n, 3);
    assert_int_equal(f->intake->strips_n, 2); /* one set of labels but for the name is one strip */
}

static void a_series_with_too_many_labels_is_refused_and_counted(void **state)
{
    struct fixture *f = *state;
    static struct label labels[INTAKE_LABELS_MAX + 1];
    static char texts[INTAKE_LABELS_MAX + 1][8];
    labels[0] = (struct label)UTIL;
    for (size_t i = 1; i <= INTAKE_LABELS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "l%zu", i);
        labels[i] = (struct label){str_of(texts[i]), STR("x")};
    }
    assert_int_not_equal(intake_series(f->intake, labels, INTAKE_LABELS_MAX), SERIES_UNWANTED);
    assert_int_equal(intake_series(f->intake, labels, INTAKE_LABELS_MAX + 1), SERIES_UNWANTED);
    assert_int_equal(f->intake->refused, 1);
}

static double stale(void)
{
    uint64_t bits = 0x7ff0000000000002;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void stale_markers_and_stamps_of_no_calendar_are_no_samples(void **state)
{
    struct fixture *f = *state;
    const time_ms t[] = {INT64_MIN, -TIME_LAST - 1, T0, T0 + 1, T0 + 2, TIME_LAST + 1, INT64_MAX};
    const double v[] = {1, 1, 1, stale(), (double)NAN, 1, 1};
    intake_append(f->intake, SERIES(f, UTIL, L("UUID", "GPU-1")), t, v, 7);
    intake_append(f->intake, SERIES(f, L("__name__", "kube_node_info"), L("node", "n")), t, v, 7);
    struct strip *strip = f->intake->strips[0];
    strip_settle(strip);
    assert_int_equal(strip->n, 2); /* a NaN that is no marker is a row without a value */
    assert_int_equal(strip->rejected, 1);
    struct record *record = f->intake->records[0];
    assert_int_equal(record_first(record), T0);
    assert_int_equal(record_last(record), T0 + 2);
}

static void a_long_append_is_taken_whole(void **state)
{
    struct fixture *f = *state;
    enum { N = 5000 };
    static time_ms t[N];
    static double v[N];
    for (int i = 0; i < N; i++) {
        t[i] = T0 + i * 1000;
        v[i] = i % 101;
    }
    intake_append(f->intake, SERIES(f, UTIL, L("UUID", "GPU-1")), t, v, N);
    struct strip *strip = f->intake->strips[0];
    strip_settle(strip);
    assert_int_equal(strip->n, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(strip->column[SIGNAL_UTIL][i], (i % 101) * 10000000);
}

static void notes_of_one_kind_subject_and_text_add_up(void **state)
{
    struct fixture *f = *state;
    intake_note(f->intake, NOTE_PARTIAL, STR("a"), 1, STR("cut"));
    intake_note(f->intake, NOTE_PARTIAL, STR("a"), 2, STR("cut"));
    intake_note(f->intake, NOTE_PARTIAL, STR("b"), 4, STR("cut"));
    assert_int_equal(f->intake->notes_n, 2);
    assert_int_equal(f->intake->notes[0].count, 3);
    for (int i = 0; i < 5000; i++) {
        char text[20];
        snprintf(text, sizeof text, "warning %d", i);
        intake_note(f->intake, NOTE_PARTIAL, STR_NONE, 1, str_of(text));
    }
    intake_note(f->intake, NOTE_PARTIAL, STR("a"), 1, STR("cut"));
    assert_int_equal(f->intake->notes_n, INTAKE_NOTES_MAX);
    assert_int_equal(f->intake->notes[0].count, 4);
}

static void thousands_of_series_are_told_apart(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            char uuid[20];
            snprintf(uuid, sizeof uuid, "GPU-%d", i);
            struct label labels[] = {UTIL, {STR("UUID"), str_of(uuid)}};
            assert_int_equal(intake_series(f->intake, labels, 2), i);
        }
}

static void objects_keep_what_counts_only(void **state)
{
    struct fixture *f = *state;
    struct resource_count capacity[] = {{STR("cpu"), 96},
                                        {STR("nvidia.com/gpu"), 8},
                                        {STR("nvidia.com/mig-1g.10gb"), INT64_MAX},
                                        {STR("amd.com/gpu"), -3}};
    struct node_object node = {
        .name = STR("n1"), .created = INT64_MAX, .capacity = capacity, .capacity_n = 4};
    intake_node(f->intake, &node);
    const struct object_node *kept = &f->intake->nodes[0];
    assert_int_equal(kept->created, TIME_MIN);
    assert_int_equal(kept->capacity_n, 1);
    assert_string_equal(names_text(f->names, kept->capacity_names[0].name).p, "nvidia_com_gpu");
    assert_int_equal(kept->allocatable[0], -1);
    struct resource_count requests[] = {{STR("nvidia.com/gpu"), 2},
                                        {STR("cpu"), 4},
                                        {STR("nvidia.com/gpu"), INT64_MAX},
                                        {STR("nvidia.com/gpu"), -1}};
    struct container_object container = {.name = STR("c"), .requests = requests, .requests_n = 4};
    struct pod_object pod = {.name = STR("p"),
                             .node = STR("n1"),
                             .phase = STR("Succeeded"),
                             .scheduled = TIME_MIN,
                             .started = T0,
                             .finished = T0 + 5000,
                             .deleted = T0 + 2000,
                             .containers = &container,
                             .containers_n = 1};
    intake_pod(f->intake, &pod);
    assert_int_equal(f->intake->pods[0].requests_n, 1);
    assert_int_equal(f->intake->pods[0].since, T0);
    assert_int_equal(f->intake->pods[0].until, T0 + 2000);
}

/* ------------------------------------------------------------------ threads */

struct feeder {
    struct fixture *f;
    int which;
};

/* All signals of the same strips, each signal on a thread of its own. */
static void *feed(void *context)
{
    struct feeder *feeder = context;
    static const char *const metrics[] = {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE",
                                          "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED"};
    for (int g = 0; g < 50; g++) {
        char uuid[20];
        snprintf(uuid, sizeof uuid, "GPU-%d", g);
        struct label labels[] = {{STR("__name__"), str_of(metrics[feeder->which])},
                                 {STR("UUID"), str_of(uuid)}};
        series_id id = intake_series(feeder->f->intake, labels, 2);
        for (int i = 0; i < 100; i++) {
            time_ms t = T0 + i * 30000;
            double v = i % 2;
            intake_append(feeder->f->intake, id, &t, &v, 1);
        }
    }
    return NULL;
}

static void signals_of_a_strip_may_come_on_several_threads(void **state)
{
    struct fixture *f = *state;
    pthread_t ids[4];
    struct feeder feeders[4];
    for (int i = 0; i < 4; i++) {
        feeders[i] = (struct feeder){f, i};
        assert_int_equal(pthread_create(&ids[i], NULL, feed, &feeders[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    assert_int_equal(f->intake->strips_n, 50);
    for (size_t i = 0; i < 50; i++) {
        struct strip *strip = f->intake->strips[i];
        strip_settle(strip);
        assert_int_equal(strip->n, 100);
        for (size_t row = 0; row < 100; row++) {
            assert_int_equal(strip->column[SIGNAL_SM][row], (row % 2) * 1000000000);
            assert_int_equal(strip->column[SIGNAL_MEM_USED][row], (row % 2) * 1048576);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_intake, close_intake)
    const struct CMUnitTest tests[] = {
        TEST(what_nobody_reads_is_unwanted),
        TEST(every_wanted_metric_is_wanted),
        TEST(labels_in_any_order_and_empty_ones_name_the_same_series),
        TEST(a_series_with_too_many_labels_is_refused_and_counted),
        TEST(stale_markers_and_stamps_of_no_calendar_are_no_samples),
        TEST(a_long_append_is_taken_whole),
        TEST(notes_of_one_kind_subject_and_text_add_up),
        TEST(thousands_of_series_are_told_apart),
        TEST(objects_keep_what_counts_only),
        TEST(signals_of_a_strip_may_come_on_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
