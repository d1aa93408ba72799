/* Counters of money: of closed hours, of a month, never falling. $1 an hour and team. */
#include "serve/metrics_impl.h"

#include <string.h>
#include <unistd.h>

#include "../../lib/unit.h"

#define H0 INT64_C(1795996800000) /* 2026-11-30T00:00Z: 24 hours of November */

struct lab {
    struct names *names;
    struct store *store;
    struct metrics_ledger *ledger;
    struct api_settings settings;
    struct strbuf text;
    uint64_t generation;
    char path[TEMPORARY_MAX];
};

static int open_lab(void **state)
{
    struct lab *lab = mem_zalloc(1, sizeof *lab);
    lab->names = names_new();
    temporary(lab->path, "gputally-counters");
    close(mkstemp(lab->path));
    unlink(lab->path);
    lab->ledger = metrics_ledger_new(lab->path);
    lab->settings.currency = "USD";
    must(store_open(":memory:", STORE_WRITE, lab->names, &lab->store, &failure));
    *state = lab;
    return 0;
}

static int close_lab(void **state)
{
    struct lab *lab = *state;
    metrics_ledger_free(lab->ledger);
    unlink(lab->path);
    store_close(lab->store);
    names_free(lab->names);
    strbuf_release(&lab->text);
    free(lab);
    return 0;
}

/* Books [from, to) anew: each team holds a GPU of its own, whose dollar is of the category. */
static void book(struct lab *lab, int from, int to, const char *const *teams, size_t teams_n,
                 enum category category)
{
    struct row_batch batch = {.names = lab->names,
                              .hours = {H0 + from * HOUR_MS, H0 + to * HOUR_MS}};
    for (int h = from; h < to; h++)
        for (size_t t = 0; t < teams_n; t++) {
            struct row row = {.share_den = 1, .cost = NANO, .gpu_num = HOUR_MS};
            char device[32];
            snprintf(device, sizeof device, "GPU-%03zu", t);
            row.key = (struct row_key){.hour = H0 + h * HOUR_MS,
                                       .node = names_put(lab->names, STR("n")),
                                       .device = names_put(lab->names, str_of(device)),
                                       .namespace = names_put(lab->names, STR("ns")),
                                       .pod = names_put(lab->names, STR("p"))};
            row.facts.owner = names_put(lab->names, str_of(teams[t]));
            row.facts.workload = names_put(lab->names, STR("Job/j"));
            row.held_ms = row.gpu_held_num = HOUR_MS;
            row.category[category] = NANO;
            mem_push(batch.rows, batch.rows_n, batch.rows_room, row);
        }
    must(store_begin(lab->store, &failure));
    must(store_clear_hours(lab->store, batch.hours, &failure));
    must(store_append(lab->store, &batch, &failure));
    must(store_commit(lab->store, NULL, &failure));
    row_batch_release(&batch);
    lab->generation++;
}

static const char *scrape(struct lab *lab)
{
    struct access access = {.scopes = ~0u};
    struct http_request request = {.access = &access};
    struct api_call call = {.settings = &lab->settings,
                            .request = &request,
                            .store = lab->store,
                            .generation = lab->generation};
    struct metrics_text text = {.out = &lab->text};
    strbuf_clear(&lab->text);
    must(store_extent(lab->store, &call.extent, &failure));
    must(metrics_write_ledger(lab->ledger, &call, &text, &failure));
    return lab->text.text;
}

static void assert_has(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("%s\nis not in\n%s", line, text);
}

static const char *const one[] = {"a"};

static void an_hour_counts_two_hours_after_its_end(void **state)
{
    struct lab *lab = *state;
    book(lab, 0, 6, one, 1, CATEGORY_USED);
    assert_has(scrape(lab), "gputally_cost_usd_total{team=\"a\",category=\"used\"} 4\n");
    assert_has(lab->text.text,
               "gputally_gpu_seconds_total{team=\"a\",state=\"unobserved\"} 14400\n");
    assert_has(lab->text.text, "gputally_counters_end_timestamp_seconds 1796011200\n"); /* 04:00 */
    book(lab, 6, 7, one, 1, CATEGORY_USED);
    assert_has(scrape(lab), "gputally_cost_usd_total{team=\"a\",category=\"used\"} 5\n");
}

static void money_that_moves_lowers_no_counter(void **state)
{
    struct lab *lab = *state;
    book(lab, 0, 6, one, 1, CATEGORY_UNOBSERVED);
    assert_has(scrape(lab), "{team=\"a\",category=\"unobserved\"} 4\n");
    book(lab, 0, 6, one, 1, CATEGORY_SLACK); /* late samples came */
    assert_has(scrape(lab), "{team=\"a\",category=\"unobserved\"} 4\n");
    assert_has(lab->text.text, "{team=\"a\",category=\"slack\"} 4\n");
}

static void hours_that_are_dropped_lower_no_counter(void **state)
{
    struct lab *lab = *state;
    book(lab, 0, 10, one, 1, CATEGORY_USED);
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 8\n");
    must(store_retain(lab->store, H0 + 5 * HOUR_MS, &failure));
    lab->generation++;
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 8\n");
}

static void a_new_month_begins_with_its_first_closed_hour(void **state)
{
    struct lab *lab = *state;
    book(lab, 0, 26, one, 1, CATEGORY_USED); /* closed up to the end of November */
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 24\n");
    book(lab, 26, 27, one, 1, CATEGORY_USED);
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 1\n");
    assert_has(lab->text.text, "gputally_counters_begin_timestamp_seconds 1796083200\n");
}

static void restart(struct lab *lab)
{
    metrics_ledger_free(lab->ledger);
    lab->ledger = metrics_ledger_new(lab->path);
    lab->generation = 1;
}

/* Money moved, hours were dropped: to Prometheus a smaller counter would be a reset, and all of it
 * an increase. */
static void a_restart_lowers_no_counter(void **state)
{
    struct lab *lab = *state;
    book(lab, 0, 10, one, 1, CATEGORY_UNOBSERVED);
    assert_has(scrape(lab), "{team=\"a\",category=\"unobserved\"} 8\n");
    assert_has(lab->text.text, "gputally_counters_saved 1\n");
    book(lab, 4, 8, one, 1, CATEGORY_USED);
    must(store_retain(lab->store, H0 + 2 * HOUR_MS, &failure));
    restart(lab);
    assert_has(scrape(lab), "{team=\"a\",category=\"unobserved\"} 8\n");
    assert_has(lab->text.text, "{team=\"a\",category=\"used\"} 4\n");
    assert_has(lab->text.text, "{team=\"a\",state=\"unobserved\"} 28800\n");
    book(lab, 0, 27, one, 1, CATEGORY_USED); /* December */
    restart(lab);
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 1\n");
}

/* b is dearer by the time of the restart, and stays among the others. */
static void a_restart_leaves_teams_their_series(void **state)
{
    struct lab *lab = *state;
    static const char *const first[] = {"a", "b"}, *const later[] = {"b"};
    lab->settings.metric_teams = 1;
    book(lab, 0, 3, first, 2, CATEGORY_USED);
    assert_has(scrape(lab), "{team=\"other\",category=\"used\"} 1\n");
    book(lab, 3, 9, later, 1, CATEGORY_USED);
    restart(lab);
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 3\n");        /* hours 0 to 2 */
    assert_has(lab->text.text, "{team=\"other\",category=\"used\"} 7\n"); /* 0 to 6 */
    assert_null(strstr(lab->text.text, "team=\"b\""));
}

static void a_damaged_file_is_begun_anew(void **state)
{
    struct lab *lab = *state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"schema\": \"gputally.counters/1\"}",
        "{\"schema\": \"gputally.counters/1\", \"currency\": \"EUR\", \"month_ms\": 1793491200000, "
        "\"teams\": [{\"name\": \"a\", \"cost\": {\"used\": 9000000000}}]}",
        "{\"schema\": \"gputally.counters/1\", \"currency\": \"USD\", \"month_ms\": 1793491200000, "
        "\"teams\": [1, {}, {\"name\": 5}, {\"name\": \"a\", \"cost\": {\"used\": -5}, \"gpu\": "
        "3}]}"};
    book(lab, 0, 6, one, 1, CATEGORY_USED);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = fopen(lab->path, "w");
        fputs(texts[i], file);
        fclose(file);
        restart(lab);
        assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 4\n");
    }
}

static void teams_beyond_the_cap_are_one(void **state)
{
    struct lab *lab = *state;
    static const char *const four[] = {"a", "b", "c", "d"};
    lab->settings.metric_teams = 2;
    book(lab, 0, 3, four, 4, CATEGORY_USED);
    assert_has(scrape(lab), "{team=\"a\",category=\"used\"} 1\n");
    assert_has(lab->text.text, "{team=\"b\",category=\"used\"} 1\n");
    assert_has(lab->text.text, "{team=\"other\",category=\"used\"} 2\n");
    assert_null(strstr(lab->text.text, "team=\"c\""));
    book(lab, 3, 4, four, 4, CATEGORY_USED);
    assert_has(scrape(lab), "{team=\"other\",category=\"used\"} 4\n");
}

static void names_are_escaped(void **state)
{
    struct lab *lab = *state;
    static const char *const odd[] = {"a\"b\\c\nd"};
    book(lab, 0, 3, odd, 1, CATEGORY_USED);
    assert_has(scrape(lab), "{team=\"a\\\"b\\\\c\\\\x0ad\",category=\"used\"} 1\n");
}

static void a_ledger_of_two_hours_has_no_closed_one(void **state)
{
    struct lab *lab = *state;
    book(lab, 0, 2, one, 1, CATEGORY_USED);
    assert_null(strstr(scrape(lab), "team="));
    assert_has(lab->text.text, "gputally_ledger_end_timestamp_seconds 1796004000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)
        test(an_hour_counts_two_hours_after_its_end),
        test(money_that_moves_lowers_no_counter),
        test(hours_that_are_dropped_lower_no_counter),
        test(a_new_month_begins_with_its_first_closed_hour),
        test(a_restart_lowers_no_counter),
        test(a_restart_leaves_teams_their_series),
        test(a_damaged_file_is_begun_anew),
        test(teams_beyond_the_cap_are_one),
        test(names_are_escaped),
        test(a_ledger_of_two_hours_has_no_closed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
