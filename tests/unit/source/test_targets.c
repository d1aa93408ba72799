/* Targets from a static list, from files that change, and from a discoverer. */
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/unit.h"
#include "source/targets.h"
#include "source/targets_impl.h"

static char folder[TEMPORARY_MAX];

static void write_file(const char *name, const char *text)
{
    char path[TEMPORARY_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_file(const char *name)
{
    char path[TEMPORARY_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static int setup(void **state)
{
    (void)state;
    temporary(folder, "targets");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    remove_file("a.json");
    remove_file("b.yaml");
    return rmdir(folder);
}

/* As if TARGETS_REFRESH_MS had passed. */
static void look_again(struct targets *targets)
{
    targets->refreshed = 0;
    targets_refresh(targets);
}

static struct targets *new_targets(const struct scrape_job *job)
{
    struct targets *targets;
    struct error err = {0};
    if (targets_new(job, 1, &targets, &err) != ERR_OK)
        fail_msg("%s", err.text);
    return targets;
}

static const struct target *find(const struct target_list *list, const char *url)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->targets[i].url, url) == 0)
            return &list->targets[i];
    return NULL;
}

static struct str label(const struct target *target, const char *name)
{
    return labels_get(target->labels, target->labels_n, str_of(name));
}

static void a_static_target_has_its_labels(void **state)
{
    (void)state;
    static const char *const addresses[] = {"gpu-1:9400", "[fd00::1]:9400"};
    static const struct label labels[] = {{STR("rack"), STR("a1")}, {STR("empty"), STR_NONE}};
    struct scrape_job job = {.name = "dcgm",
                             .static_targets = addresses,
                             .static_targets_n = 2,
                             .static_labels = labels,
                             .static_labels_n = 2};
    struct targets *targets = new_targets(&job);
    const struct target_list *list = targets_list(targets);
    assert_int_equal(list->n, 2);
    const struct target *target = find(list, "http://gpu-1:9400/metrics");
    assert_non_null(target);
    assert_int_equal(target->labels_n, 3);
    assert_true(str_eq(label(target, "job"), STR("dcgm")));
    assert_true(str_eq(label(target, "instance"), STR("gpu-1:9400")));
    assert_true(str_eq(label(target, "rack"), STR("a1")));
    assert_int_equal(target->job->interval_ms, 15000);
    assert_non_null(find(list, "http://[fd00::1]:9400/metrics"));
    targets_free(targets);
    assert_string_equal(target->instance, "gpu-1:9400"); /* lists live on */
    target_list_release(list);
}

static void files_are_read_again_when_they_change(void **state)
{
    (void)state;
    char pattern[TEMPORARY_MAX + 64];
    snprintf(pattern, sizeof pattern, "%s/*.json", folder);
    const char *const files[] = {pattern};
    struct scrape_job job = {.name = "dcgm", .files = files, .files_n = 1};
    write_file("a.json", "[{\"targets\": [\"gpu-1:9400\"],\n\t\"labels\": {\"rack\": \"a1\"}}]");
    struct targets *targets = new_targets(&job);
    const struct target_list *first = targets_list(targets), *same, *second;
    assert_int_equal(first->n, 1);
    look_again(targets);
    same = targets_list(targets);
    assert_true(same->version == first->version);
    write_file("a.json", "[{\"targets\": [\"gpu-1:9400\", \"gpu-22:9400\"]}]");
    look_again(targets);
    second = targets_list(targets);
    assert_int_equal(second->n, 2);
    assert_true(second->version != first->version);
    target_list_release(first);
    target_list_release(same);
    target_list_release(second);
    targets_free(targets);
}

static void a_bad_or_missing_file_leaves_its_targets_in_force(void **state)
{
    (void)state;
    char path[TEMPORARY_MAX + 64];
    snprintf(path, sizeof path, "%s/b.yaml", folder);
    const char *const files[] = {path};
    struct scrape_job job = {.name = "dcgm", .files = files, .files_n = 1};
    struct targets_stats stats;
    write_file("b.yaml",
               "- targets: [gpu-1:9400]\n  labels: {__scheme__: https, __metrics_path__: /m}\n");
    struct targets *targets = new_targets(&job);
    static const char *const bad[] = {"- targets: [\"http://gpu-1:9400/\"]\n", "{", "- 7\n",
                                      "- {targets: [a:1], labels: {x: [1]}}\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("b.yaml", bad[i]);
        look_again(targets);
        const struct target_list *list = targets_list(targets);
        assert_int_equal(list->n, 1);
        assert_non_null(find(list, "https://gpu-1:9400/m"));
        target_list_release(list);
        targets_stats(targets, &stats);
        assert_int_equal(stats.bad_files, 1);
        assert_non_null(strstr(stats.bad, "b.yaml"));
    }
    remove_file("b.yaml"); /* it is being replaced */
    look_again(targets);
    const struct target_list *list = targets_list(targets);
    assert_int_equal(list->n, 1);
    target_list_release(list);
    look_again(targets);
    list = targets_list(targets);
    assert_int_equal(list->n, 0);
    target_list_release(list);
    targets_stats(targets, &stats);
    assert_non_null(strstr(stats.bad, "no such file"));
    targets_free(targets);
}

static void what_is_discovered_replaces_what_was(void **state)
{
    (void)state;
    static const char *const addresses[] = {"10.0.0.1:9400"};
    struct scrape_job job = {.name = "dcgm", .static_targets = addresses, .static_targets_n = 1};
    const struct label labels[] = {{STR("node"), STR("gpu-1")},
                                   {STR("pod"), STR("dcgm-exporter-x")},
                                   {STR("namespace"), STR("gpu-operator")},
                                   {STR("instance"), STR("gpu-1")},
                                   {STR("__meta"), STR("x")}};
    const struct target_found found[] = {{STR("10.0.0.2:9400"), labels, 5},
                                         {STR("10.0.0.1:9400"), labels, 5},
                                         {STR("not an address"), NULL, 0}};
    struct error err;
    struct targets *targets = new_targets(&job);
    assert_int_equal(targets_set(targets, "none", "kubernetes", found, 1, &err), ERR_NOT_FOUND);
    assert_int_equal(targets_set(targets, "dcgm", "kubernetes", found, 3, &err), ERR_OK);
    const struct target_list *list = targets_list(targets);
    assert_int_equal(list->n, 2); /* 10.0.0.1 once, as the static list says */
    const struct target *target = find(list, "http://10.0.0.2:9400/metrics");
    assert_int_equal(target->labels_n, 3);
    assert_true(str_eq(label(target, "instance"), STR("gpu-1")));
    assert_int_equal(target->own_n, 2);
    uint64_t id = target->id;
    target_list_release(list);
    assert_int_equal(targets_set(targets, "dcgm", "kubernetes", found, 1, &err), ERR_OK);
    list = targets_list(targets);
    assert_int_equal(list->n, 2);
    assert_true(find(list, "http://10.0.0.2:9400/metrics")->id == id);
    target_list_release(list);
    assert_int_equal(targets_set(targets, "dcgm", "kubernetes", NULL, 0, &err), ERR_OK);
    list = targets_list(targets);
    assert_int_equal(list->n, 1);
    target_list_release(list);
    targets_free(targets);
}

static void jobs_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char *const bad_address[] = {"http://gpu-1:9400"};
    const struct scrape_job jobs[] = {
        {.name = ""},
        {.name = "a", .interval_ms = 10},
        {.name = "a", .scheme = "ftp"},
        {.name = "a", .path = "metrics"},
        {.name = "a", .static_targets = bad_address, .static_targets_n = 1},
        {.name = "a", .site = {.bearer_token_file = "/nonexistent"}},
    };
    const struct scrape_job twice[] = {{.name = "a"}, {.name = "a"}};
    struct targets *targets;
    struct error err;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        assert_int_not_equal(targets_new(&jobs[i], 1, &targets, &err), ERR_OK);
    assert_int_equal(targets_new(twice, 2, &targets, &err), ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_static_target_has_its_labels),
        cmocka_unit_test_setup_teardown(files_are_read_again_when_they_change, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_or_missing_file_leaves_its_targets_in_force, setup,
                                        teardown),
        cmocka_unit_test(what_is_discovered_replaces_what_was),
        cmocka_unit_test(jobs_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
