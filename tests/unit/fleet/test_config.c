#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/unit.h"
#include "fleet/config.h"

#define PATH_ROOM (TEMPORARY_MAX + 32)

static struct error error;

static struct config *config_of(const char *text)
{
    struct config *config = config_new();
    if (config_read_text(config, "c.yaml", str_of(text), &error) || config_finish(config, &error))
        fail_msg("%s", error.text);
    return config;
}

static const char *refused(const char *text)
{
    struct config *config = config_new();
    error.text[0] = 0;
    if (config_read_text(config, "c.yaml", str_of(text), &error) == ERR_OK &&
        config_finish(config, &error) == ERR_OK)
        fail_msg("taken: %s", text);
    config_free(config);
    return error.text;
}

static struct price price_of(const struct config *config, struct price_query query)
{
    struct price price;
    prices_find(config->prices, &query, &price);
    return price;
}

static time_ms time_of(const char *text)
{
    time_ms t = 0;
    assert_true(time_parse(str_of(text), &t));
    return t;
}

static void without_a_file_the_defaults_of_the_semantics_hold(void **state)
{
    (void)state;
    struct config *config = config_of("");
    const struct settings *s = &config->settings;
    assert_int_equal(s->step_ms, 30000);
    assert_int_equal(s->gap_ms, 300000);
    assert_int_equal(s->idle_below, 100000000);
    assert_int_equal(s->busy_from, 300000000);
    assert_int_equal(s->node_break_ms, 6 * HOUR_MS);
    assert_int_equal(s->starting_max_ms, 900000);
    assert_int_equal(s->frozen_ms, 300000);
    assert_int_equal(s->lost_xids_n, 1);
    assert_int_equal(s->lost_xids[0], 79);
    assert_int_equal(s->exporter_containers_n, 3);
    assert_true(s->share_policy == SHARE_POLICY_REPLICAS && s->node_split == NODE_SPLIT_WHOLE);
    assert_true(config->idle.power_auto);
    assert_int_equal(config->idle.days, 7);
    assert_int_equal(config->idle.floor_samples, 100);
    assert_true(config->from == TIME_MIN && config->to == TIME_MAX);
    assert_true(str_eq(config->currency, STR("USD")));
    assert_false(prices_configured(config->prices));
    assert_false(owners_configured(config->owners));
    config_free(config);
}

/* Every key of fleetsim/settings.py. */
static void fleetsims_config_is_read_as_it_is(void **state)
{
    (void)state;
    struct config *config = config_of(
        "{\"step_s\": 60, \"gap_s\": 600, \"idle_below\": 0.05, \"busy_from\": 0.5, "
        "\"node_break_s\": 7200, \"share_policy\": \"even\", \"node_split\": \"residual\", "
        "\"usd_per_vcpu\": \"0.05\", \"usd_per_gib\": null, \"starting_max_s\": 60, \"lost_xids\": "
        "[79, 48], \"tz\": \"UTC\", \"idle_days\": 2, \"idle_floor_samples\": 3, \"frozen_s\": "
        "120, \"idle_power\": 12.5, \"power_limit_w\": {\"BIG\": 300, \"SMALL\": 72.5}, \n"
        "\"price_overrides\": {\"n1\": \"3.6\"}, \"model_prices\": {\"TEST-GPU\": \"1.8\"}, "
        "\"exporter_containers\": [\"x\"], \"from\": \"2026-01-01T00:00:00Z\", \"to\": "
        "\"2026-01-01T01:00:00Z\"}");
    const struct settings *s = &config->settings;
    assert_int_equal(s->step_ms, 60000);
    assert_int_equal(s->gap_ms, 600000);
    assert_int_equal(s->idle_below, 50000000);
    assert_int_equal(s->busy_from, 500000000);
    assert_int_equal(s->node_break_ms, 2 * HOUR_MS);
    assert_int_equal(s->starting_max_ms, 60000);
    assert_int_equal(s->frozen_ms, 120000);
    assert_true(s->share_policy == SHARE_POLICY_EVEN && s->node_split == NODE_SPLIT_RESIDUAL);
    assert_int_equal(s->lost_xids_n, 2);
    assert_int_equal(s->lost_xids[1], 48);
    assert_int_equal(s->exporter_containers_n, 1);
    assert_true(str_eq(s->exporter_containers[0], STR("x")));
    assert_int_equal(config->idle.days, 2);
    assert_int_equal(config->idle.floor_samples, 3);
    assert_false(config->idle.power_auto);
    assert_int_equal(config->idle.power_below, 125000000);
    assert_int_equal(config->power_limits_n, 2);
    assert_int_equal(config->power_limits[1].mw, 72500);
    assert_int_equal(config->from, time_of("2026-01-01T00:00:00Z"));
    assert_int_equal(config->to, time_of("2026-01-01T01:00:00Z"));
    assert_int_equal(config->price_policy.vcpu, 50000000);
    assert_int_equal(config->price_policy.gib, -1);
    struct price price = price_of(config, (struct price_query){.node = STR("n1")});
    assert_int_equal(price.num, 3600000000);
    assert_int_equal(price.flags, FLAG_PRICE_OVERRIDE | FLAG_SPLIT_UNKNOWN);
    assert_string_equal(price.source, "c.yaml:2:21");
    price = price_of(config, (struct price_query){.gpu_model = STR("TEST-GPU")});
    assert_true(price.per_gpu);
    assert_int_equal(price.num, 1800000000);
    config_free(config);
}

static void people_write_durations_with_units(void **state)
{
    (void)state;
    struct config *config = config_of("settings:\n"
                                      "  step: 15s\n"
                                      "  gap: 2m\n"
                                      "  starting_max: 1h30m\n"
                                      "  idle_below: 5%\n"
                                      "  idle_power: 12 %\n");
    assert_int_equal(config->settings.step_ms, 15000);
    assert_int_equal(config->settings.gap_ms, 120000);
    assert_int_equal(config->settings.starting_max_ms, 5400000);
    assert_int_equal(config->settings.idle_below, 50000000);
    config_free(config);
    assert_string_equal(refused("step: 30\n"),
                        "c.yaml:1:7: '30' is no duration: write it as 30s, 5m or 6h");
}

static void prices_with_all_that_they_can_say(void **state)
{
    (void)state;
    struct config *config = config_of("prices:\n"
                                      "  overrides:\n"
                                      "  - node: gpu-*\n"
                                      "    labels: {pool: a100-*}\n"
                                      "    usd_per_hour: 12.5\n"
                                      "    from: 2026-06-01\n"
                                      "    to: 2026-07-01\n"
                                      "  - {gpu_model: NVIDIA L4, usd_per_gpu_hour: 0.4}\n"
                                      "  model_prices:\n"
                                      "  - {gpu_model: '*H100*', usd_per_gpu_hour: 2}\n"
                                      "  discounts:\n"
                                      "  - {cloud: aws, capacity_type: on-demand, percent: 30%}\n"
                                      "  catalogue: on\n");
    struct label labels[] = {{STR("pool"), STR("a100-1")}};
    struct price_query query = {
        .node = STR("gpu-1"), .labels = labels, .labels_n = 1, .at = time_of("2026-06-10")};
    struct price price = price_of(config, query);
    assert_true(price.known && !price.per_gpu);
    assert_int_equal(price.num, 12500000000);
    assert_string_equal(price.source, "c.yaml:3:5");
    assert_int_equal(price.from, time_of("2026-06-01"));
    assert_int_equal(price.to, time_of("2026-07-01"));
    query.at = time_of("2026-07-01");
    assert_false(price_of(config, query).known);
    price = price_of(config, (struct price_query){.gpu_model = STR("NVIDIA L4")});
    assert_true(price.per_gpu);
    assert_int_equal(price.num, 400000000);
    assert_int_equal(price.flags, FLAG_PRICE_OVERRIDE);
    price = price_of(config, (struct price_query){.gpu_model = STR("NVIDIA H100 NVL")});
    assert_int_equal(price.num, 2000000000);
    price = price_of(config, (struct price_query){.cloud = STR("aws"),
                                                  .region = STR("us-east-1"),
                                                  .instance_type = STR("g5.xlarge")});
    assert_int_equal(price.num, 704200000); /* 1.006 less 30 % */
    assert_string_equal(price.discount, "c.yaml:12:5");
    config_free(config);
}

static void switching_the_catalogue_off(void **state)
{
    (void)state;
    struct config *config = config_of("prices: {catalogue: off}");
    struct price price = price_of(config, (struct price_query){.cloud = STR("aws"),
                                                               .region = STR("us-east-1"),
                                                               .instance_type = STR("g5.xlarge")});
    assert_false(price.known);
    config_free(config);
}

static void a_ledger_in_another_currency_takes_no_prices_in_usd(void **state)
{
    (void)state;
    struct config *config = config_of("currency: EUR\n");
    struct price_query query = {.cloud = STR("aws"),
                                .region = STR("us-east-1"),
                                .instance_type = STR("p5.48xlarge"),
                                .gpu_model = STR("NVIDIA H100 80GB HBM3")};
    struct price price = price_of(config, query);
    assert_false(price.known);
    assert_int_equal(price.gpus, 8);
    config_free(config);
}

static const char *described(const char *text)
{
    static char line[2][1024];
    static int turn;
    struct strbuf out = {0};
    struct config *config = config_of(text);
    config_describe(config, &out);
    turn = !turn;
    snprintf(line[turn], sizeof line[turn], "%.*s", STR_ARG(strbuf_str(&out)));
    strbuf_release(&out);
    config_free(config);
    return line[turn];
}

static void a_description_changes_with_what_rows_depend_on(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "step: 31s",
        "gap: 10m",
        "idle_below: 0.2",
        "busy_from: 0.4",
        "node_break: 7h",
        "starting_max: 1m",
        "frozen: 1m",
        "share_policy: even",
        "node_split: residual",
        "lost_xids: [79, 48]",
        "exporter_containers: [x]",
        "cluster: c",
        "usd_per_gib: 1",
        "price_overrides: {n: 1}",
        "price_overrides: {n: 2}",
        "model_prices: {n: 1}",
        "prices: {discounts: [{percent: 1, labels: {a: b}}]}",
        "currency: EUR",
        "prices: {discounts: [{percent: 1, labels: {a: c}}]}",
        "prices: {catalogue: off}",
        "owners: [{namespace: a, team: b}]",
        "owners: [{namespace: a, team: c}]",
        "types: [{kind: a, type: other}]",
    };
    char plain[1024];
    snprintf(plain, sizeof plain, "%s", described(""));
    assert_string_equal(described("tz: Europe/Berlin\noptions: {db: x}\nidle_days: 3\n"), plain);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char one[1024];
        snprintf(one, sizeof one, "%s", described(changes[i]));
        assert_string_not_equal(one, plain);
        assert_string_equal(one, described(changes[i]));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(one, described(changes[k]));
    }
}

/* The message about an unknown key lists all that are known. */
static void every_key_stands_in_the_documents(void **state)
{
    (void)state;
    static char page[131072];
    FILE *in = fopen(TEST_DATA "/../docs/configuration.md", "r");
    assert_non_null(in);
    page[fread(page, 1, sizeof page - 1, in)] = 0;
    fclose(in);
    refused("xyzzy: 1\n");
    char *keys = strstr(error.text, "known here are ");
    assert_non_null(keys);
    int n = 0;
    for (char *key = strtok(keys + strlen("known here are "), ", "); key;
         key = strtok(NULL, ", ")) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", key);
        if (!strstr(page, quoted))
            fail_msg("docs/configuration.md lacks %s", quoted);
        n++;
    }
    assert_in_range(n, 30, 60);
}

static void owners_and_types_stand_in_the_file(void **state)
{
    (void)state;
    struct config *config = config_of("owners:\n- {namespace: a-*, team: alpha}\n"
                                      "types:\n- {kind: Deployment, type: inference}\n");
    struct owner_query query = {.namespace = STR("a-1"), .workload = STR("Deployment/d")};
    struct arena scratch = {0};
    bool is_default;
    assert_true(str_eq(owners_team(config->owners, &query, &scratch, &is_default), STR("alpha")));
    assert_int_equal(owners_type(config->owners, &query), WORKLOAD_INFERENCE);
    config_free(config);
    config = config_of("types:\n- {kind: Deployment, type: inference}\n");
    assert_true(str_eq(owners_team(config->owners, &query, &scratch, &is_default), STR("a-1")));
    assert_true(is_default);
    config_free(config);
}

static void options_are_kept_for_the_command_line(void **state)
{
    (void)state;
    struct config *config = config_of("options:\n"
                                      "  prometheus: http://p:9090\n"
                                      "  header: ['A: 1', 'B: 2']\n");
    assert_int_equal(config->options_n, 3);
    assert_true(str_eq(config->options[0].name, STR("prometheus")));
    assert_true(str_eq(config->options[0].value, STR("http://p:9090")));
    assert_true(str_eq(config->options[2].name, STR("header")));
    assert_true(str_eq(config->options[2].value, STR("B: 2")));
    assert_int_equal(config->options[2].line, 3);
    assert_int_equal(config->options[2].column, 3);
    config_free(config);
    assert_string_equal(refused("options: {db: {a: 1}}"), "c.yaml:1:15: a text is needed here");
}

static void paths_are_relative_to_the_file(void **state)
{
    (void)state;
    char folder[TEMPORARY_MAX], path[PATH_ROOM], prices[PATH_ROOM], owners[PATH_ROOM];
    temporary(folder, "gputally-config");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    snprintf(prices, sizeof prices, "%s/p.csv", folder);
    snprintf(owners, sizeof owners, "%s/o.yaml", folder);
    static const char *const texts[] = {
        "prices: {files: [p.csv]}\nowners: o.yaml\n",
        "instance_type,usd_per_hour\nt,2\n",
        "rules: [{namespace: a, team: b}]\n",
    };
    const char *paths[] = {path, prices, owners};
    for (int i = 0; i < 3; i++) {
        FILE *out = fopen(paths[i], "w");
        assert_non_null(out);
        fputs(texts[i], out);
        fclose(out);
    }
    struct config *config = config_new();
    if (config_read(config, path, &error) || config_finish(config, &error))
        fail_msg("%s", error.text);
    assert_int_equal(price_of(config, (struct price_query){.instance_type = STR("t")}).num,
                     2000000000);
    assert_true(owners_configured(config->owners));
    assert_true(str_eq(config->path, str_of(path)));
    config_free(config);
    for (int i = 0; i < 3; i++)
        unlink(paths[i]);
    rmdir(folder);
}

static void the_default_path_is_looked_for(void **state)
{
    (void)state;
    char folder[TEMPORARY_MAX], below[PATH_ROOM], path[PATH_ROOM];
    struct config *config = config_new();
    struct str found = STR_NONE;
    temporary(folder, "gputally-config");
    assert_non_null(mkdtemp(folder));
    snprintf(below, sizeof below, "%s/gputally", folder);
    snprintf(path, sizeof path, "%s/gputally/config.yaml", folder);
    setenv("XDG_CONFIG_HOME", folder, 1);
    if (config_default_path(config, &found)) /* that of the machine */
        assert_true(str_eq(found, STR("/etc/gputally/config.yaml")));
    mkdir(below, 0700);
    fclose(fopen(path, "w"));
    assert_true(config_default_path(config, &found));
    assert_true(str_eq(found, str_of(path)));
    unlink(path);
    rmdir(below);
    rmdir(folder);
    config_free(config);
}

static void what_is_wrong_has_its_place_and_what_would_be_right(void **state)
{
    (void)state;
    assert_string_equal(refused("step: 30s\n\n\npricess: a.csv\n"),
                        "c.yaml:4:1: unknown key 'pricess': did you mean 'prices'?");
    assert_string_equal(refused("settings:\n  stepp: 30s\n"),
                        "c.yaml:2:3: unknown key 'stepp': did you mean 'step'?");
    assert_string_equal(refused("share_policy: usage\n"),
                        "c.yaml:1:15: unknown share_policy 'usage': write replicas or even");
    assert_string_equal(refused("prices: {overrides: [{node: a, usd_per_huor: 1}]}\n"),
                        "c.yaml:1:32: unknown key 'usd_per_huor': did you mean 'usd_per_hour'?");
    assert_string_equal(refused("prices: {overrides: [{node: a}]}\n"),
                        "c.yaml:1:22: an override needs one of usd_per_hour (the whole node) and "
                        "usd_per_gpu_hour");
    assert_string_equal(refused("prices: {overrides: [{node: a, usd_per_hour: 1000000.1}]}\n"),
                        "c.yaml:1:46: 1000000.1 is more than 1000000.000000000, the most that a "
                        "price may be");
    assert_string_equal(refused("prices: {discounts: [{percent: 101}]}\n"),
                        "c.yaml:1:32: percent is from 0 to 100, such as 30 or 12.5");
    assert_string_equal(refused("prices: {discounts: [{percent: 1, usd_per_hour: 1}]}\n"),
                        "c.yaml:1:49: usd_per_hour does not belong into discounts");
    assert_string_equal(
        refused("prices: {overrides: [{usd_per_hour: 1, from: 2026-02-01, to: 2026-01-01}]}\n"),
        "c.yaml:1:62: from has to be before to");
    assert_string_equal(refused("prices: nowhere.csv\n"),
                        "c.yaml:1:9: prices: cannot open nowhere.csv: No such file or directory");
    assert_string_equal(refused("prices:\n  files: [nowhere.csv]\n"),
                        "c.yaml:2:11: prices: cannot open nowhere.csv: No such file or directory");
    assert_string_equal(refused("owners: nowhere.yaml\n"),
                        "c.yaml:1:9: owners: cannot open nowhere.yaml: No such file or directory");
    assert_string_equal(refused("gap: 10s\n"), "gap (10 s) has to be at least step (30 s)");
    assert_string_equal(refused("step: 0s\n"), "step has to be more than 0: the time that one "
                                               "sample stands for, such as 30s");
    assert_string_equal(refused("idle_below: 0.4\n"), "idle_below has to be at most busy_from");
    assert_string_equal(refused("- a\n"),
                        "c.yaml:1:1: a configuration is a mapping, such as `prices: FILE`");
    assert_string_equal(refused("lost_xids: 79\n"),
                        "c.yaml:1:12: a list is needed here, such as [a, b]");
    assert_string_equal(refused("lost_xids: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]\n"),
                        "c.yaml:1:12: more than 16 of them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_file_the_defaults_of_the_semantics_hold),
        cmocka_unit_test(fleetsims_config_is_read_as_it_is),
        cmocka_unit_test(people_write_durations_with_units),
        cmocka_unit_test(prices_with_all_that_they_can_say),
        cmocka_unit_test(switching_the_catalogue_off),
        cmocka_unit_test(a_ledger_in_another_currency_takes_no_prices_in_usd),
        cmocka_unit_test(a_description_changes_with_what_rows_depend_on),
        cmocka_unit_test(every_key_stands_in_the_documents),
        cmocka_unit_test(owners_and_types_stand_in_the_file),
        cmocka_unit_test(options_are_kept_for_the_command_line),
        cmocka_unit_test(paths_are_relative_to_the_file),
        cmocka_unit_test(the_default_path_is_looked_for),
        cmocka_unit_test(what_is_wrong_has_its_place_and_what_would_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
