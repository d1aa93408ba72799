/* Who accepts a finding: the command line, the configuration, and annotations in the ledger. */
#include "../../lib/hand_ledger.h"
#include "fleet/intake.h"

/* One idle workload ns/Deployment/rank, $2,920 a month; the window ends 2026-12-07. */
static struct findings *idle(void **state)
{
    return with_one(state, (struct stay){.workload = "Deployment/rank"});
}

static void wish(struct ledger *ledger, const char *subject, const char *text, int from, int to)
{
    struct note note = {.kind = NOTE_EXEMPT,
                        .subject = put(ledger, subject),
                        .text = put(ledger, text),
                        .count = 1,
                        .from = H0 + from * HOUR_MS,
                        .to = H0 + to * HOUR_MS};
    mem_push(ledger->batch.notes, ledger->batch.notes_n, ledger->batch.notes_room, note);
}

static void add(struct exemptions *list, const char *text)
{
    must(exemptions_add(list, str_of(text), STR("--ignore"), &failure));
}

static void assert_text(struct str text, const char *expected)
{
    if (!str_eq(text, str_of(expected)))
        fail_msg("'%.*s', expected '%s'", STR_ARG(text), expected);
}

static void an_accepted_finding_is_listed_and_saves_nothing(void **state)
{
    struct findings *findings = idle(state);
    struct exemptions list = {0};
    struct strbuf text = {0};
    strbuf_addf(&text, "%.*s,reason=a demo, kept warm", STR_ARG(findings->items[0].id));
    add(&list, text.text);
    struct findings *less = recommend_except(findings->books, "USD", &list);
    assert_int_equal(less->n, 1);
    assert_int_equal(less->exempt_n, 1);
    assert_int_equal(findings_saving(less), 0);
    assert_text(less->items[0].exempt, "a demo, kept warm (--ignore)");
    assert_int_equal(list.items[0].status, EXEMPTION_HOLDS);
    findings_free(less);
    exemptions_release(&list);
    strbuf_release(&text);
}

static void what_has_ended_counts_again_and_is_told(void **state)
{
    struct findings *findings = idle(state);
    struct exemptions list = {0};
    add(&list, "rule=idle-*,until=2026-12-07,reason=until the demo"); /* the window's end */
    struct findings *again = recommend_except(findings->books, "USD", &list);
    assert_int_equal(again->exempt_n, 0);
    assert_dollars(findings_saving(again), 2920);
    assert_text(again->items[0].ended, "until the demo, until 2026-12-07T00:00:00Z (--ignore)");
    assert_int_equal(list.items[0].status, EXEMPTION_ENDED);
    findings_free(again);
    exemptions_release(&list);
}

static void rules_and_subjects_are_globs(void **state)
{
    static const struct {
        const char *text;
        size_t exempt;
    } cases[] = {
        {"rule=idle-workload", 1},
        {"rule=node-*", 0},
        {"subject=ns/Deployment/*", 1},
        {"subject=workload ns/*", 1},
        {"subject=Deployment/rank", 0},
        {"rule=idle-*,subject=ns/*", 1},
        {"rule=idle-*,subject=other/*", 0},
        {"idle-workload-*", 1},
        {"id=low-use-*", 0},
    };
    struct findings *findings = idle(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exemptions list = {0};
        add(&list, cases[i].text);
        struct findings *less = recommend_except(findings->books, "USD", &list);
        if (less->exempt_n != cases[i].exempt)
            fail_msg("%s: %zu exempt", cases[i].text, less->exempt_n);
        assert_int_equal(list.items[0].status,
                         cases[i].exempt ? EXEMPTION_HOLDS : EXEMPTION_UNUSED);
        findings_free(less);
        exemptions_release(&list);
    }
}

static void texts_are_read(void **state)
{
    (void)state;
    struct exemptions list = {0};
    add(&list, "low-use-1");
    assert_int_equal(list.items[0].until, TIME_MAX);
    add(&list, "low-use-1,until=2026-11-30,reason=a, b");
    assert_text(list.items[1].id, "low-use-1");
    assert_int_equal(list.items[1].until, H0);
    assert_text(list.items[1].reason, "a, b");
    add(&list, " reason=x, rule=low-use , until=2026-11-30T01:00:00Z");
    assert_text(list.items[2].reason, "x");
    assert_text(list.items[2].rule, "low-use");
    assert_int_equal(list.items[2].until, H0 + HOUR_MS);
    exemptions_release(&list);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        ",until=2026-11-30",
        "x,until=soon",
        "x,because=y",
        "reason=nothing in particular",
        "rule=no-such-rule",
    };
    struct exemptions list = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (exemptions_add(&list, str_of(wrong[i]), STR("--ignore"), &failure) != ERR_USAGE)
            fail_msg("taken: %s", wrong[i]);
    exemptions_release(&list);
}

/* The wishes in the ledger, applied. The caller frees both. */
static struct findings *with_wishes(void **state, struct exemptions *list)
{
    struct findings *findings = idle(state);
    exemptions_add_annotations(list, findings->books);
    return recommend_except(findings->books, "USD", list);
}

static void annotations_are_asked_for_in_the_ledger(void **state)
{
    static const struct {
        const char *subject, *text;
        size_t exempt;
    } cases[] = {
        {"workload ns/Deployment/rank", "until=2027-01-31, reason=kept warm, for the fair", 1},
        {"namespace ns", "reason=a sandbox", 1},
        {"namespace n", "reason=a sandbox", 0},
        {"namespace other", "reason=a sandbox", 0},
        {"node n1", "reason=a loan", 0}, /* the finding is about the workload */
        {"workload ns/Deployment/rank", "until=2027-01-31, rule=low-use", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *ledger;
        struct exemptions list = {0};
        ledger_new(&ledger);
        wish(ledger, cases[i].subject, cases[i].text, 0, HOURS);
        struct findings *less = with_wishes(&ledger, &list);
        if (less->exempt_n != cases[i].exempt)
            fail_msg("%s, %s: %zu exempt", cases[i].subject, cases[i].text, less->exempt_n);
        if (i == 0)
            assert_text(less->items[0].exempt,
                        "kept warm, for the fair, until 2027-01-31T00:00:00Z (annotation of "
                        "workload ns/Deployment/rank)");
        findings_free(less);
        exemptions_release(&list);
        ledger_free(&ledger);
    }
    (void)state;
}

static void an_annotation_that_was_taken_away_does_not_count(void **state)
{
    struct exemptions list = {0};
    wish(*state, "namespace ns", "reason=a sandbox", 0, HOURS - 24);
    struct findings *findings = with_wishes(state, &list);
    assert_int_equal(list.n, 0);
    assert_int_equal(findings->exempt_n, 0);
    findings_free(findings);
    exemptions_release(&list);
}

static void the_newest_word_of_a_bearer_counts(void **state)
{
    struct exemptions list = {0};
    wish(*state, "namespace ns", "until=2027-01-01, reason=old", 0, HOURS - 1);
    wish(*state, "namespace ns", "until=2028-01-01, reason=new", HOURS - 1, HOURS);
    struct findings *findings = with_wishes(state, &list);
    assert_int_equal(list.n, 1);
    assert_text(list.items[0].reason, "new");
    findings_free(findings);
    exemptions_release(&list);
}

static void a_malformed_annotation_is_told_and_not_obeyed(void **state)
{
    static const char *const texts[] = {
        "true", "", "until=soon, reason=x", "rule=nosuch", "id=low-use-1", "subject=*"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        void *ledger;
        struct exemptions list = {0};
        ledger_new(&ledger);
        wish(ledger, "namespace ns", texts[i], 0, HOURS);
        struct findings *findings = with_wishes(&ledger, &list);
        assert_int_equal(list.n, 1);
        if (list.items[0].status != EXEMPTION_MALFORMED || !list.items[0].problem.n)
            fail_msg("'%s' is obeyed", texts[i]);
        assert_int_equal(findings->exempt_n, 0);
        findings_free(findings);
        exemptions_release(&list);
        ledger_free(&ledger);
    }
}

static void the_configuration_has_a_list(void **state)
{
    (void)state;
    struct exemptions list = {0};
    struct config *config = config_new();
    must(
        config_read_text(config, "c.yaml",
                         STR("ignore:\n- low-use-1,until=2026-11-30\n"
                             "- {rule: idle-*, subject: svc/*, reason: kept, until: 2027-01-31}\n"),
                         &failure));
    must(exemptions_add_config(&list, config, &failure));
    assert_int_equal(list.n, 2);
    assert_int_equal(list.items[0].until, H0);
    assert_text(list.items[1].source, "c.yaml:3:3");
    assert_text(list.items[1].subject, "svc/*");
    config_free(config);
    exemptions_release(&list);
}

static void mistakes_of_the_configuration_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"ignore: [{rulee: x}]", "c.yaml:1:11: unknown key 'rulee': did you mean 'rule'?"},
        {"ignore: [{rule: x}]", "c.yaml:1:17: there is no rule 'x'"},
        {"ignore:\n- x,until=soon\n", "c.yaml:2:3: 'soon' is no date such as 2026-12-31"},
        {"ignore: [{reason: x}]", "c.yaml:1:10: an exemption needs an id, a rule or a subject"},
        {"ignore: x", "c.yaml:1:9: ignore is a list, such as [{rule: low-use, subject: svc/*}]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exemptions list = {0};
        struct config *config = config_new();
        must(config_read_text(config, "c.yaml", str_of(cases[i].text), &failure));
        assert_int_equal(exemptions_add_config(&list, config, &failure), ERR_CONFIG);
        assert_string_equal(failure.text, cases[i].message);
        config_free(config);
        exemptions_release(&list);
    }
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(an_accepted_finding_is_listed_and_saves_nothing),
        with_ledger(what_has_ended_counts_again_and_is_told),
        with_ledger(rules_and_subjects_are_globs),
        cmocka_unit_test(texts_are_read),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(annotations_are_asked_for_in_the_ledger),
        with_ledger(an_annotation_that_was_taken_away_does_not_count),
        with_ledger(the_newest_word_of_a_bearer_counts),
        cmocka_unit_test(a_malformed_annotation_is_told_and_not_obeyed),
        cmocka_unit_test(the_configuration_has_a_list),
        cmocka_unit_test(mistakes_of_the_configuration_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
