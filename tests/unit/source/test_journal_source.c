/* The journal as a source: what of it a fetch delivers. */
#include "../../lib/journal_lab.h"
#include "../../lib/recording_intake.h"

#define MINUTE ((time_ms)60000)
#define BEGIN (LAB_T0 - LAB_T0 % HOUR_MS)
#define AT(hours) (BEGIN + (time_ms)((hours) * (double)HOUR_MS))

static void put(struct journal_batch *batch, const char *metric, const char *instance, double from,
                double to)
{
    struct label labels[] = {{STR("__name__"), str_of(metric)},
                             {STR("instance"), str_of(instance)}};
    struct journal_key key = {(uint64_t)metric[0] << 8 | (uint64_t)instance[0], 7};
    struct journal_series series;
    const char *why;
    journal_begin(batch);
    assert_true(journal_define(batch, key, labels, 2, &series, &why));
    for (time_ms t = AT(from); t <= AT(to); t += MINUTE)
        journal_add(batch, series, &t, &(double){1}, 1);
    assert_int_equal(journal_commit(batch, true, NULL), ERR_OK);
}

/* The last stamp that came of a series, in minutes from BEGIN on; -1: none. *ret_n: how many. */
static int last_of(const char *metric, const char *instance, size_t *ret_n)
{
    char text[100];
    snprintf(text, sizeof text, "%s{instance=\"%s\"}", metric, instance);
    *ret_n = 0;
    for (size_t i = 0; i < recorder.n; i++)
        if (strcmp(recorder.series[i]->text, text) == 0) {
            const struct recorded_series *series = recorder.series[i];
            *ret_n = series->n;
            time_ms last = TIME_MIN;
            for (size_t k = 0; k < series->n; k++)
                last = series->samples[k].t > last ? series->samples[k].t : last;
            return (int)((last - BEGIN) / MINUTE);
        }
    return -1;
}

#define GPU "DCGM_FI_DEV_GPU_UTIL"
#define NODE "kube_node_info"

/* Two exporters and kube-state-metrics over five hours, fetched for the second one. `quiet`: who
 * says nothing from 1:30 to 4:00. */
static void fetch_second_hour(const char *quiet)
{
    struct lab lab;
    lab_begin(&lab);
    recorder_clear();
    recorder_want(GPU, "", METRIC_GROUP_GPU);
    recorder_want(NODE, "", METRIC_GROUP_KUBE);
    struct journal *journal = lab_open(&lab, (struct journal_options){0});
    struct journal_batch *batch = journal_batch_new(journal);
    static const char *const tellers[][2] = {{GPU, "a"}, {GPU, "b"}, {NODE, "ksm"}};
    for (size_t i = 0; i < 3; i++) {
        bool is_quiet = strcmp(tellers[i][1], quiet) == 0;
        put(batch, tellers[i][0], tellers[i][1], 0, is_quiet ? 1.5 : 5);
        if (is_quiet)
            put(batch, tellers[i][0], tellers[i][1], 4, 5);
    }
    struct source *source = journal_source_new(journal);
    struct fetch fetch = {
        .kube = {AT(-4), AT(7)}, .gpu = {AT(0.5), AT(2.5)}, .hours = {AT(1), AT(2)}};
    assert_int_equal(source->ops->fetch(source, &fetch, RECORDER, NULL, NULL), ERR_OK);
    source_free(source);
    journal_batch_free(batch);
    journal_close(journal);
    lab_end(&lab);
}

static void samples_after_the_hours_are_not_read_where_all_go_on(void **state)
{
    (void)state;
    size_t n;
    fetch_second_hour("nobody");
    assert_int_equal(last_of(GPU, "a", &n), 150);
    assert_int_equal(n, 121); /* 0:30 to 2:30, both ends */
    assert_int_equal(last_of(GPU, "b", &n), 150);
    assert_int_equal(last_of(NODE, "ksm", &n), 300); /* records over their own range */
}

static void who_fell_silent_is_read_on(void **state)
{
    (void)state;
    size_t n;
    fetch_second_hour("b");
    assert_int_equal(last_of(GPU, "a", &n), 150);
    assert_int_equal(n, 121);
    assert_int_equal(last_of(GPU, "b", &n), 300);
    assert_int_equal(n, 61 + 61); /* 0:30 to 1:30, and 4:00 to 5:00 */
}

static void all_are_read_on_while_kubernetes_is_silent(void **state)
{
    (void)state;
    size_t n;
    fetch_second_hour("ksm");
    assert_int_equal(last_of(GPU, "a", &n), 300);
    assert_int_equal(last_of(GPU, "b", &n), 300);
    assert_int_equal(n, 271); /* 0:30 to 5:00 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_after_the_hours_are_not_read_where_all_go_on),
        cmocka_unit_test(who_fell_silent_is_read_on),
        cmocka_unit_test(all_are_read_on_while_kubernetes_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
