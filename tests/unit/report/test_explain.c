/* Where figures come from: what a name means, and that the chain says what the ledger has. */
#include "../../lib/hand_ledger.h"

#include "report/explain.h"

static struct explain_request made(void **state)
{
    struct ledger *ledger = *state;
    findings_of(state);
    return (struct explain_request){.store = ledger->store,
                                    .findings = ledger->findings,
                                    .window = ledger->batch.hours,
                                    .currency = "USD"};
}

/* Two workloads on a node of two GPUs at $4 an hour each: rank idle all week, n1-busy at 90 %. */
static struct explain_request request_of(void **state)
{
    struct ledger *ledger = *state;
    with_one(state, (struct stay){.workload = "Deployment/rank"});
    return (struct explain_request){.store = ledger->store,
                                    .findings = ledger->findings,
                                    .window = ledger->batch.hours,
                                    .currency = "USD"};
}

static struct strbuf text_of(const struct explain_request *request, const char *what)
{
    struct explanation *explanation;
    struct strbuf text = {0};
    must(explain(request, str_of(what), &explanation, &failure));
    explanation_text(explanation, &text);
    explanation_free(explanation);
    return text;
}

static void assert_explains(const struct explain_request *request, const char *what,
                            const char *part)
{
    struct strbuf text = text_of(request, what);
    if (!strstr(text.text, part))
        fail_msg("'%s' lacks\n%s\nin\n%s", what, part, text.text);
    strbuf_release(&text);
}

static const char *refused(const struct explain_request *request, const char *what, enum err code)
{
    struct explanation *explanation;
    assert_int_equal(explain(request, str_of(what), &explanation, &failure), code);
    return failure.text;
}

static void every_name_of_a_thing_is_understood(void **state)
{
    struct explain_request request = request_of(state);
    static const char *const rank[] = {"ns/Deployment/rank", "workload ns/Deployment/rank",
                                       "Deployment/rank", "rank"};
    for (size_t i = 0; i < 4; i++)
        assert_explains(&request, rank[i],
                        "workload ns/Deployment/rank\n\nrows of the ledger\n  "
                        "168 rows, one for each hour, GPU and holder: 1 GPU on "
                        "1 node\n");
    assert_explains(&request, "n1", "node n1\n");
    assert_explains(&request, "GPU-1", "gpu GPU-1\n");
    assert_explains(&request, "search", "team search\n");
    assert_explains(&request, "namespace ns", "namespace ns\n");
    assert_explains(&request, "team=search", "team=search\n");
}

/* 168 h x $4 = $672: nothing of it used, all of it held idle; n1-busy $672, 90 % used. */
static void the_chain_adds_up_to_the_cost(void **state)
{
    struct explain_request request = request_of(state);
    assert_explains(&request, "rank",
                    "  held idle             $672.00  100 %\n"
                    "  cost                  $672.00  the sum");
    assert_explains(&request, "n1", "  cost                $1,344.00  the sum");
    assert_explains(&request, "n1", "  used                  $604.80  45.0 %\n");
    assert_explains(&request, "rank",
                    "h100x2, on-demand: $8.00 an hour / 2 GPUs = $4.00 a GPU-hour");
    assert_explains(&request, "rank", "h100x2, on-demand: 168.0 GPU-hours x $4.00 = $672.00\n");
}

static void a_part_of_a_cell_is_told_with_its_whole(void **state)
{
    struct explain_request request = request_of(state);
    assert_explains(&request, "team=search/category=used", "  cost                  $604.80");
    assert_explains(&request, "team=search/category=used",
                    "it is a part of rows that cost $1,344.00");
    assert_explains(&request, "team=search,day=2026-11-30", "  cost                  $192.00");
    assert_explains(&request, "instance_type=h100x2,category=held_idle",
                    "  cost                  $672.00");
}

static void a_finding_has_its_chain_thresholds_and_what_would_change_it(void **state)
{
    struct explain_request request = request_of(state);
    const char *id = request.findings->items[0].id.p;
    assert_explains(&request, id, ": allocated but idle\n");
    assert_explains(&request, id, "\nrows of the ledger\n");
    assert_explains(&request, id, "  idle                     100.0 %");
    assert_explains(&request, id, "  held           24h: held for this long or more\n");
    assert_explains(&request, id, "what would change the verdict\n");
    assert_explains(&request, "rank", ": allocated but idle\n");
    assert_explains(&request, "GPU-1", "saves $2,920.00 a month: workload ns/Deployment/rank");
    assert_explains(&request, "search", "saves $2,920.00 a month: workload ns/Deployment/rank");
}

static void a_configured_threshold_is_said_to_be_one(void **state)
{
    struct ledger *ledger = *state;
    struct explain_request request = request_of(state);
    ledger->books->thresholds.values[THRESHOLD_IDLE_WORKLOAD_HELD] = 48 * HOUR_MS;
    assert_explains(&request, "rank", "  held           48h (configured; default 24h): held");
}

static void what_is_not_clear_is_asked_back(void **state)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    stays(ledger, (struct stay){.node = "n1",
                                .device = "GPU-1",
                                .workload = "Deployment/rank",
                                .owner = "ns",
                                .to = HOURS});
    neighbour(ledger, "n1");
    struct explain_request request = made(state);
    assert_string_equal(refused(&request, "ns", ERR_NOT_FOUND),
                        "'ns' may be several: write one of \"team ns\", \"namespace ns\"");
    assert_explains(&request, "team ns", "team ns\n");
}

static void what_is_not_known_has_something_near(void **state)
{
    struct explain_request request = request_of(state);
    assert_non_null(strstr(refused(&request, "ns/Deployment/rnak", ERR_NOT_FOUND),
                           "near are 'ns/Deployment/rank'"));
    assert_non_null(strstr(refused(&request, "eployment", ERR_NOT_FOUND), "'ns/Deployment/rank'"));
    assert_non_null(strstr(refused(&request, "", ERR_NOT_FOUND), "nothing is called ''"));
    refused(&request, "teem=search", ERR_USAGE);
    assert_string_equal(refused(&request, "team=nobody", ERR_NOT_FOUND),
                        "the ledger has no row of team=nobody in this window");
}

static void names_with_wildcards_mean_themselves(void **state)
{
    struct ledger *ledger = *state;
    node(ledger, "n1", CAPACITY_ON_DEMAND, 0);
    stays(ledger,
          (struct stay){.node = "n1", .device = "GPU-1", .workload = "Deployment/*", .to = HOURS});
    neighbour(ledger, "n1");
    struct explain_request request = made(state);
    assert_explains(&request, "ns/Deployment/*", "168 rows");
}

static void json_has_the_text_and_its_sections(void **state)
{
    struct explain_request request = request_of(state);
    struct explanation *explanation;
    struct strbuf out = {0};
    must(explain(&request, STR("rank"), &explanation, &failure));
    explanation_json(explanation, &out);
    assert_non_null(strstr(out.text, "\"schema\": \"gputally.explain/1\""));
    assert_non_null(strstr(out.text, "\"title\": \"workload ns/Deployment/rank\""));
    assert_non_null(strstr(out.text, "{\"title\": \"rows of the ledger\", \"lines\": [\"168 rows"));
    strbuf_release(&out);
    explanation_free(explanation);
}

#define with_ledger(test) cmocka_unit_test_setup_teardown(test, ledger_new, ledger_free)
int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ledger(every_name_of_a_thing_is_understood),
        with_ledger(the_chain_adds_up_to_the_cost),
        with_ledger(a_part_of_a_cell_is_told_with_its_whole),
        with_ledger(a_finding_has_its_chain_thresholds_and_what_would_change_it),
        with_ledger(a_configured_threshold_is_said_to_be_one),
        with_ledger(what_is_not_clear_is_asked_back),
        with_ledger(what_is_not_known_has_something_near),
        with_ledger(names_with_wildcards_mean_themselves),
        with_ledger(json_has_the_text_and_its_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
