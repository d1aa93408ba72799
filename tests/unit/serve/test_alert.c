/* Alerts: who is told what, once; when it is over; and what the messages say. */
#include "../../lib/unit.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "serve/alert_rules.h"

#define NOW INT64_C(1796083200000) /* Tuesday 2026-12-01T00:00Z */
#define USD NANO

static const char example[] = "alerts:\n"
                              "  every: 5m\n"
                              "  findings: 500\n"
                              "  idle: 24h\n"
                              "  lag: 3h\n"
                              "  routes:\n"
                              "    - {owner: search, to: [team]}\n"
                              "    - {kind: lag, to: [ops]}\n"
                              "    - {owner: nobody, to: []}\n"
                              "    - {to: [ops, team]}\n"
                              "  receivers:\n"
                              "    - {name: ops, kind: webhook, url: \"http://127.0.0.1:1/x\"}\n"
                              "    - {name: team, kind: slack, url_file: hook}\n"
                              "  budgets:\n"
                              "    - {name: search, filter: team=search, month: 1000, warn: 80%}\n";

struct bed {
    struct config *config;
    struct alert_config alerts;
    struct alert_list list;
    struct alert_book book;
};

static enum err configure(struct bed *bed, const char *text, struct error *err)
{
    config_free(bed->config);
    alert_config_release(&bed->alerts);
    bed->config = config_new();
    enum err code = config_read_text(bed->config, "c.yaml", str_of(text), err);
    return code ? code : alert_config_read(bed->config, &bed->alerts, err);
}

static int set_up(void **state)
{
    struct error err = {0};
    *state = mem_zalloc(1, sizeof(struct bed));
    if (configure(*state, example, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    config_free(bed->config);
    alert_config_release(&bed->alerts);
    alert_list_release(&bed->list);
    alert_book_release(&bed->book);
    free(bed);
    return 0;
}

static struct alert of(const char *key, const char *owner, enum alert_kind kind)
{
    return (struct alert){.kind = kind,
                          .key = str_of(key),
                          .owner = str_of(owner),
                          .title = STR("title"),
                          .text = STR("text"),
                          .month = 2920 * USD,
                          .since = NOW - DAY_MS};
}

static void round_with(struct bed *bed, const struct alert *alerts, size_t n)
{
    struct alert_list list = {.items = (struct alert *)alerts, .n = n};
    alert_book_update(&bed->book, &bed->alerts, &list, NOW);
}

/* ---- configuration ---- */

static void the_example_is_read(void **state)
{
    struct bed *bed = *state;
    assert_true(bed->alerts.on);
    assert_int_equal(bed->alerts.every_ms, 5 * 60 * 1000);
    assert_int_equal(bed->alerts.finding_month, 500 * USD);
    assert_int_equal(bed->alerts.receivers_n, 2);
    assert_int_equal(bed->alerts.budgets[0].warn, NANO / 10 * 8);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    static const struct {
        const char *text, *place, *says;
    } cases[] = {
        {"alerts: {}", "c.yaml:1:9", "alerts need receivers"},
        {"alerts:\n  recievers: []", "c.yaml:2:3", "did you mean 'receivers'"},
        {"alerts:\n  receivers: [{name: a, kind: mail, url: http://x}]", "c.yaml:2:31",
         "webhook, slack"},
        {"alerts:\n  receivers: [{name: a, kind: slack}]", "c.yaml:2:15", "url or url_file"},
        {"alerts:\n  receivers: [{name: a, kind: slack, url: http://x, secret_file: y}]",
         "c.yaml:2:15", "only webhooks are signed"},
        {"alerts:\n  receivers: [{name: a, kind: slack, url: http://x}]\n  routes: [{to: [b]}]",
         "c.yaml:3:18", "no receiver is called 'b'"},
        {"alerts:\n  receivers: [{name: a, kind: slack, url: http://x}]\n  routes: [{owner: b}]",
         "c.yaml:3:12", "a route needs to"},
        {"alerts:\n  receivers: [{name: a, kind: slack, url: http://x}]\n  every: 1ms",
         "c.yaml:3:10", "1s at the least"},
        {"alerts:\n  receivers: [{name: a, kind: slack, url: http://x}]\n  quiet: {from: "
         "\"25:00\"}",
         "c.yaml:3:17", "time of day"},
        {"alerts:\n  receivers: [{name: a, kind: slack, url: http://x}]\n"
         "  budgets: [{name: b, filter: tema=x, month: 1}]",
         "c.yaml:3:31", "team"},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        assert_int_equal(configure(bed, cases[i].text, &err), ERR_CONFIG);
        if (!strstr(err.text, cases[i].place) || !strstr(err.text, cases[i].says))
            fail_msg("%s\nsays: %s", cases[i].text, err.text);
    }
}

static void the_first_route_that_matches_decides(void **state)
{
    struct bed *bed = *state;
    struct alert search = of("a", "search", ALERT_LAG), lag = of("b", "platform", ALERT_LAG),
                 nobody = of("c", "nobody", ALERT_IDLE), other = of("d", "vision", ALERT_IDLE);
    assert_int_equal(alert_config_receivers(&bed->alerts, &search), 2);
    assert_int_equal(alert_config_receivers(&bed->alerts, &lag), 1);
    assert_int_equal(alert_config_receivers(&bed->alerts, &nobody), 0);
    assert_int_equal(alert_config_receivers(&bed->alerts, &other), 3);
}

/* Berlin is an hour ahead of UTC in December; 2026-12-05 is a Saturday. */
static void quiet_hours_are_those_of_their_zone(void **state)
{
    struct alert_quiet quiet = {
        .on = true, .from_min = 22 * 60, .to_min = 7 * 60, .days = 1u << 5, .tz = "Europe/Berlin"};
    (void)state;
    assert_false(alert_quiet_at(&quiet, NOW + 20 * HOUR_MS + 59 * 60000)); /* 21:59 */
    assert_true(alert_quiet_at(&quiet, NOW + 21 * HOUR_MS));               /* 22:00 */
    assert_true(alert_quiet_at(&quiet, NOW));                              /* 01:00 */
    assert_true(alert_quiet_at(&quiet, NOW + 5 * HOUR_MS + 59 * 60000));   /* 06:59 */
    assert_false(alert_quiet_at(&quiet, NOW + 6 * HOUR_MS));               /* 07:00 */
    assert_true(alert_quiet_at(&quiet, NOW + 4 * DAY_MS + 12 * HOUR_MS));  /* Saturday noon */
    assert_false(alert_quiet_at(&quiet, NOW + 5 * DAY_MS + 12 * HOUR_MS)); /* Sunday noon */
    quiet.on = false;
    assert_false(alert_quiet_at(&quiet, NOW));
}

/* New York's clocks go back on Sunday, 2026-11-01 at 06:00Z, and forward on 2027-03-14 at 07:00Z.
 */
static void quiet_hours_are_those_of_the_wall_clock_where_it_changes(void **state)
{
    static const struct {
        int from, to; /* hour * 100 + minute */
        uint32_t days;
        const char *now;
        bool quiet;
    } cases[] = {
        {2200, 700, 0, "2026-11-01T01:59:00Z", false},  /* 21:59 of summer */
        {2200, 700, 0, "2026-11-01T02:00:00Z", true},   /* 22:00 */
        {2200, 700, 0, "2026-11-01T11:59:00Z", true},   /* 06:59 of winter */
        {2200, 700, 0, "2026-11-01T12:00:00Z", false},  /* 07:00 */
        {2200, 700, 0, "2027-03-14T10:59:00Z", true},   /* 06:59 of summer */
        {2200, 700, 0, "2027-03-14T11:00:00Z", false},  /* 07:00 */
        {115, 145, 0, "2026-11-01T05:30:00Z", true},    /* 01:30, the first time */
        {115, 145, 0, "2026-11-01T05:50:00Z", false},   /* 01:50 */
        {115, 145, 0, "2026-11-01T06:30:00Z", true},    /* 01:30 again */
        {215, 245, 0, "2027-03-14T06:59:00Z", false},   /* 01:59; 02:15 does not come */
        {215, 245, 0, "2027-03-14T07:00:00Z", false},   /* 03:00 */
        {230, 330, 0, "2027-03-14T07:00:00Z", true},    /* 03:00 */
        {0, 0, 1u << 6, "2026-11-01T03:59:00Z", false}, /* Saturday, 23:59 */
        {0, 0, 1u << 6, "2026-11-01T04:00:00Z", true},  /* Sunday, which has 25 hours */
        {0, 0, 1u << 6, "2026-11-02T04:59:00Z", true},  /* 23:59 */
        {0, 0, 1u << 6, "2026-11-02T05:00:00Z", false}, /* Monday */
        {0, 0, 1u << 6, "2027-03-15T03:59:00Z", true},  /* Sunday, 23:59 */
        {0, 0, 1u << 6, "2027-03-15T04:00:00Z", false}, /* Monday */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct alert_quiet quiet = {.on = true,
                                    .from_min = cases[i].from / 100 * 60 + cases[i].from % 100,
                                    .to_min = cases[i].to / 100 * 60 + cases[i].to % 100,
                                    .days = cases[i].days,
                                    .tz = "America/New_York"};
        time_ms now;
        assert_true(time_parse(str_of(cases[i].now), &now));
        if (alert_quiet_at(&quiet, now) != cases[i].quiet)
            fail_msg("%d to %d at %s", cases[i].from, cases[i].to, cases[i].now);
    }
}

/* ---- the book ---- */

static void an_alert_is_over_after_three_rounds_without_it(void **state)
{
    struct bed *bed = *state;
    struct alert alert = of("a", "search", ALERT_IDLE);
    round_with(bed, &alert, 1);
    for (int i = 0; i < ALERT_GONE_ROUNDS - 1; i++)
        round_with(bed, NULL, 0);
    assert_false(alert_is_over(&bed->book.items[0]));
    round_with(bed, &alert, 1); /* it wavered */
    assert_int_equal(bed->book.n, 1);
    assert_int_equal(bed->book.items[0].gone, 0);
    for (int i = 0; i < ALERT_GONE_ROUNDS; i++)
        round_with(bed, NULL, 0);
    assert_true(alert_is_over(&bed->book.items[0]));
    bed->book.items[0].told = 2; /* somebody is to hear that it is over */
    alert_book_forget(&bed->book);
    assert_int_equal(bed->book.n, 1);
    bed->book.items[0].told = 0;
    alert_book_forget(&bed->book);
    assert_int_equal(bed->book.n, 0);
}

static void a_book_is_the_same_after_a_restart(void **state)
{
    struct bed *bed = *state;
    struct alert alerts[] = {of("a \"b\"", "search", ALERT_IDLE), of("c", "x", ALERT_BUDGET)};
    alerts[1].since = TIME_MIN;
    alerts[1].critical = true;
    char path[TEMPORARY_MAX];
    struct error err = {0};
    struct alert_book again = {0};
    round_with(bed, alerts, 2);
    bed->book.items[0].told = 2;
    temporary(path, "gputally-alerts");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(alert_book_save(&bed->book, path, &bed->alerts, &err), ERR_OK);
    assert_int_equal(alert_book_load(&again, path, &bed->alerts, &err), ERR_OK);
    assert_int_equal(again.n, 2);
    assert_string_equal(again.items[0].key, "a \"b\"");
    assert_int_equal(again.items[0].told, 2);
    assert_int_equal(again.items[0].wanted, 2);
    assert_true(again.items[0].since == NOW - DAY_MS);
    assert_true(again.items[1].since == TIME_MIN);
    assert_true(again.items[1].critical);
    assert_int_equal(again.items[1].kind, ALERT_BUDGET);
    assert_int_equal(again.items[1].month, 2920 * USD);
    alert_book_release(&again);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"schema\": \"gputally.alert-state/1\", \"alerts\": [", file); /* cut */
    fclose(file);
    assert_int_equal(alert_book_load(&again, path, &bed->alerts, &err), ERR_PARSE);
    assert_int_equal(again.n, 0);
    unlink(path);
    assert_int_equal(alert_book_load(&again, path, &bed->alerts, &err), ERR_OK);
}

/* ---- messages ---- */

static json_t *body_of(struct bed *bed, enum receiver_kind kind, bool over)
{
    struct alert_receiver receiver = {.kind = kind};
    struct alert alert = of("a", "search", ALERT_IDLE);
    struct strbuf body = {0};
    alert.title = STR("<!channel> & co");
    round_with(bed, &alert, 1);
    bed->book.items[0].gone = over ? ALERT_GONE_ROUNDS : 0;
    const struct alert_entry *entry = &bed->book.items[0];
    alert_body(&bed->alerts, &receiver, &entry, 1, NOW, &body);
    json_t *json = json_loads(body.text, 0, NULL);
    assert_non_null(json);
    strbuf_release(&body);
    return json;
}

static void a_webhook_has_every_field(void **state)
{
    json_t *body = body_of(*state, RECEIVER_WEBHOOK, false);
    json_t *alert = json_array_get(json_object_get(body, "alerts"), 0);
    static const char *const fields[][2] = {
        {"status", "firing"},        {"kind", "idle"},
        {"severity", "warning"},     {"key", "a"},
        {"owner", "search"},         {"title", "<!channel> & co"},
        {"month", "2920.000000000"}, {"since", "2026-11-30T00:00:00Z"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_string_equal(json_string_value(json_object_get(alert, fields[i][0])), fields[i][1]);
    json_decref(body);
}

static void no_name_mentions_a_channel_of_slack(void **state)
{
    json_t *body = body_of(*state, RECEIVER_SLACK, false);
    const char *text = json_string_value(json_object_get(body, "text"));
    assert_non_null(strstr(text, "&lt;!channel&gt; &amp; co"));
    assert_null(strstr(text, "<!"));
    json_decref(body);
}

static void alertmanager_is_told_when_it_ends(void **state)
{
    json_t *body = body_of(*state, RECEIVER_ALERTMANAGER, true), *alert = json_array_get(body, 0);
    assert_string_equal(json_string_value(json_object_get(alert, "endsAt")),
                        "2026-12-01T00:00:00Z");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(alert, "labels"), "alertname")),
        "GputallyIdle");
    json_decref(body);
}

/* Python: hmac.new(b"key", b'1796083200.{"a":1}', "sha256").hexdigest() */
static void a_body_is_signed_with_its_time(void **state)
{
    struct strbuf text = {0};
    (void)state;
    alert_signature(STR("key"), NOW, STR("{\"a\":1}"), &text);
    assert_string_equal(
        text.text,
        "t=1796083200,v1=05093f0c00e90fae8911959babd0ca41edbe7831e2a071dc6c052a6d5edc3e7e");
    strbuf_release(&text);
}

/* ---- rules ---- */

static void lag(struct bed *bed, time_ms behind, bool up)
{
    struct service_stats *stats = mem_zalloc(1, sizeof *stats);
    stats->sources_n = 1;
    stats->sources[0] = (struct source_stat){
        .name = "prometheus http://p", .cluster = "prod", .up = up, .watermark = NOW - behind};
    alerts_of_lag(&bed->alerts, stats, NOW, &bed->list);
    free(stats);
}

static void a_book_rings_when_it_lags(void **state)
{
    struct bed *bed = *state;
    lag(bed, 3 * HOUR_MS - 1, true);
    assert_int_equal(bed->list.n, 0);
    lag(bed, 3 * HOUR_MS, false);
    assert_int_equal(bed->list.n, 1);
    assert_true(bed->list.items[0].critical);
    assert_true(str_eq(bed->list.items[0].key, STR("lag:prod:prometheus http://p")));
}

/* December of 31 days; it is the 11th: 20 days are left. The week before cost $140, $20 a day. */
static struct alert *budget(struct bed *bed, money_t spent, money_t pace)
{
    struct budget_state state = {.month = "2026-12",
                                 .days = {NOW, NOW + 31 * DAY_MS},
                                 .now = NOW + 11 * DAY_MS,
                                 .spent = spent,
                                 .pace = pace,
                                 .pace_ms = 7 * DAY_MS};
    alert_list_release(&bed->list);
    alerts_of_budget(&bed->alerts.budgets[0], &state, "USD", &bed->list);
    return bed->list.n ? &bed->list.items[0] : NULL;
}

static void a_budget_rings_before_it_is_passed(void **state)
{
    struct bed *bed = *state;
    assert_null(budget(bed, 600 * USD, 140 * USD)); /* 600 + 400 = 1,000: it holds */
    struct alert *alert = budget(bed, 601 * USD, 140 * USD);
    assert_non_null(alert);
    assert_true(str_eq(alert->key, STR("budget:search:2026-12:to-be-passed")));
    assert_true(str_eq(alert->owner, STR("search")));
    assert_int_equal(alert->month, 1001 * USD);
    assert_false(alert->critical);
    alert = budget(bed, 800 * USD, 0); /* 80 % */
    assert_true(str_eq(alert->key, STR("budget:search:2026-12:warned")));
    alert = budget(bed, 1000 * USD, 0);
    assert_true(str_eq(alert->key, STR("budget:search:2026-12:passed")));
    assert_true(alert->critical);
}

static void the_dearest_are_kept(void **state)
{
    struct bed *bed = *state;
    for (int i = 0; i < ALERTS_MAX + 5; i++) {
        struct alert alert = of("k", "x", ALERT_IDLE);
        alert.month = i * USD;
        mem_push(bed->list.items, bed->list.n, bed->list.room, alert);
    }
    bed->list.items[0].critical = true;
    alerts_cap(&bed->list);
    assert_int_equal(bed->list.n, ALERTS_MAX);
    assert_true(bed->list.items[0].critical);
    assert_int_equal(bed->list.items[1].month, (ALERTS_MAX + 4) * USD);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_example_is_read),
        test(what_is_wrong_is_said_with_its_place),
        test(the_first_route_that_matches_decides),
        test(quiet_hours_are_those_of_their_zone),
        test(quiet_hours_are_those_of_the_wall_clock_where_it_changes),
        test(an_alert_is_over_after_three_rounds_without_it),
        test(a_book_is_the_same_after_a_restart),
        test(a_webhook_has_every_field),
        test(no_name_mentions_a_channel_of_slack),
        test(alertmanager_is_told_when_it_ends),
        test(a_body_is_signed_with_its_time),
        test(a_book_rings_when_it_lags),
        test(a_budget_rings_before_it_is_passed),
        test(the_dearest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
