/* The carry: what the next slice needs of this one, and what it may be made of. */
#include "fleet_fixture.h"
#include "ledger/carry.h"

#define A "UUID=GPU-a,gpu=0,Hostname=n1,modelName=NVIDIA A100"
#define P ",namespace=ns,pod=p,container=c"

/* Samples of an hour of one device, with an XID that stays, a pod and its node. */
static void feed(struct fleet *f)
{
    fleet_gpu(f, A P, 0, 60, 100, 0.5);
    fleet_samples(f, "DCGM_FI_DEV_XID_ERRORS", A P, 10, 60, 79);
    fleet_samples(f, "DCGM_FI_DEV_POWER_USAGE", A P, 0, 60, 250);
    fleet_record(f, "kube_node_info", "node=n1", 0, 60, 1);
    fleet_record(f, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", 0, 60, 1);
    fleet_sample(f, "vllm:generation_tokens_total", "namespace=ns,pod=p", 3590000, 1234);
}

static enum err restore(struct fleet *f, struct str carry)
{
    struct error err = {0};
    enum err code = intake_restore(f->intake, carry, &err);
    assert_int_equal(err.code, code);
    return code;
}

static bool holds(const struct strbuf *carry, const char *text)
{
    return memmem(carry->text, carry->n, text, strlen(text)) != NULL;
}

static void no_carry_is_an_empty_one(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    assert_int_equal(restore(&f, STR_NONE), ERR_OK);
    fleet_close(&f);
}

static void it_holds_the_last_samples_and_the_start_of_what_stands(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed(&f);
    fleet_book(&f, 0, 1);
    assert_true(holds(&f.carry, "DCGM_FI_DEV_XID_ERRORS"));
    assert_true(holds(&f.carry, "kube_node_info"));
    assert_true(holds(&f.carry, "vllm:generation_tokens_total"));
    assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
    assert_in_range(f.carry.n, 300, 2500); /* a few of each series, not the hour's 600 */
    fleet_close(&f);
}

/* What a slice without samples of its own hands on is what it was handed. */
static void a_silent_slice_hands_the_carry_on(void **state)
{
    (void)state;
    struct fleet f;
    struct strbuf first = {0};
    fleet_open(&f, GPU_PRICE);
    feed(&f);
    fleet_book(&f, 0, 1);
    strbuf_add(&first, strbuf_str(&f.carry));
    for (int hour = 1; hour < 4; hour++) {
        assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
        fleet_book(&f, hour, hour + 1);
        assert_true(holds(&f.carry, "DCGM_FI_DEV_XID_ERRORS"));
        assert_in_range(f.carry.n, first.n / 2, first.n);
    }
    strbuf_release(&first);
    fleet_close(&f);
}

static void it_does_not_grow_with_the_number_of_slices(void **state)
{
    (void)state;
    struct fleet f;
    size_t size = 0;
    fleet_open(&f, GPU_PRICE);
    for (int hour = 0; hour < 8; hour++) {
        assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
        for (int n = 0; n < 30; n++) {
            char node[40];
            snprintf(node, sizeof node, "node=n%d", n);
            fleet_record(&f, "kube_node_info", node, hour * 60, hour * 60 + 60, 1);
        }
        fleet_gpu(&f, A P, hour * 60, hour * 60 + 60, 100, 0.5);
        fleet_book(&f, hour, hour + 1);
        if (hour == 1)
            size = f.carry.n;
    }
    assert_int_equal(f.carry.n, size);
    fleet_close(&f);
}

static void a_lost_gpu_stays_lost_in_the_next_slice(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    fleet_record(&f, "kube_node_info", "node=n1", 0, 60, 1);
    fleet_gpu(&f, A P, 0, 30, 100, 0.5);
    fleet_samples(&f, "DCGM_FI_DEV_XID_ERRORS", A P, 30, 60, 79);
    fleet_book(&f, 0, 1);
    assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
    fleet_forget_rows(&f);
    fleet_record(&f, "kube_node_info", "node=n1", 60, 120, 1);
    fleet_book(&f, 1, 2);
    int64_t unhealthy = 0;
    for (size_t i = 0; i < f.rows_n; i++)
        unhealthy += f.rows[i].category[CATEGORY_UNHEALTHY];
    assert_int_equal(unhealthy, GPU_PRICE);
    fleet_close(&f);
}

/* A GPU went to another node, and hours later another one came in its place: that one was not there
 * before its first sample (semantics, section 3), whatever was booked in between. */
static void who_left_a_living_node_is_remembered_there(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    for (int hour = 0; hour < 5; hour++) {
        assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
        fleet_forget_rows(&f);
        fleet_record(&f, "kube_node_info", "node=n1", hour * 60, hour * 60 + 60, 1);
        fleet_record(&f, "kube_node_info", "node=n2", hour * 60, hour * 60 + 60, 1);
        if (hour == 0)
            fleet_gpu(&f, A, 0, 60, 0, 0);
        else
            fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=n2,modelName=NVIDIA A100", hour * 60,
                      hour * 60 + 60, 0, 0);
        if (hour == 4)
            fleet_gpu(&f, "UUID=GPU-b,gpu=0,Hostname=n1,modelName=NVIDIA A100", 270, 300, 0, 0);
        fleet_book(&f, hour, hour + 1);
    }
    assert_int_equal(fleet_row(&f, 4, "GPU-b", "")->cost, GPU_PRICE / 2);
    assert_int_equal(fleet_row(&f, 4, "GPU-a", "")->cost, GPU_PRICE);
    fleet_close(&f);
}

/* Who left a node that has gone since is of no use to anybody. */
static void who_left_a_node_that_is_gone_is_forgotten_there(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    for (int hour = 0; hour < 4; hour++) {
        assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
        if (hour == 0)
            fleet_record(&f, "kube_node_info", "node=n1", 0, 60, 1);
        fleet_record(&f, "kube_node_info", "node=n2", hour * 60, hour * 60 + 60, 1);
        fleet_gpu(&f,
                  hour ? "UUID=GPU-a,gpu=0,Hostname=n2,modelName=NVIDIA A100"
                       : "UUID=GPU-a,gpu=0,Hostname=n1,modelName=NVIDIA A100",
                  hour * 60, hour * 60 + 60, 0, 0);
        fleet_book(&f, hour, hour + 1);
    }
    assert_false(holds(&f.carry, "n1"));
    fleet_close(&f);
}

static void an_increase_reaches_back_into_the_slice_before(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed(&f);
    fleet_book(&f, 0, 1);
    assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
    fleet_forget_rows(&f);
    fleet_gpu(&f, A P, 60, 120, 100, 0.5);
    fleet_sample(&f, "vllm:generation_tokens_total", "namespace=ns,pod=p", 3610000, 1300);
    fleet_book(&f, 1, 2);
    assert_int_equal(fleet_row(&f, 1, "GPU-a", "p")->work[WORK_GENERATION_TOKENS], 66);
    fleet_close(&f);
}

/* A job that has exported_pod anywhere renames labels for good, also in a slice in which every GPU
 * is free and its pod label is the exporter's. */
static void a_job_that_renames_labels_is_remembered(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    const char *held = "UUID=GPU-a,gpu=0,Hostname=n1,job=gpu,namespace=mon,pod=exp-1,"
                       "exported_namespace=ns,exported_pod=p,exported_container=c";
    fleet_gpu(&f, held, 0, 60, 100, 0.5);
    fleet_book(&f, 0, 1);
    assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
    fleet_forget_rows(&f);
    const char *unheld = "UUID=GPU-a,gpu=0,Hostname=n1,job=gpu,namespace=mon,pod=exp-1";
    for (int i = 0; i < 2; i++) { /* the slice after that one knows it, too */
        fleet_gpu(&f, unheld, 60 + i * 60, 120 + i * 60, 0, 0);
        fleet_book(&f, 1 + i, 2 + i);
        assert_null(fleet_find(&f, 1 + i, "GPU-a", "exp-1"));
        fleet_row(&f, 1 + i, "GPU-a", "");
        assert_int_equal(restore(&f, strbuf_str(&f.carry)), ERR_OK);
    }
    fleet_close(&f);
}

/* ------------------------------------------------------------------ damage */

static void another_version_is_refused(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    assert_int_equal(restore(&f, STR("gputally-carry-0\nS")), ERR_PARSE);
    assert_int_equal(restore(&f, STR("x")), ERR_PARSE);
    fleet_close(&f);
}

/* Entries are whole or the carry is refused; a cut between two entries cannot be told. */
static void every_cut_is_refused_or_falls_between_entries(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    feed(&f);
    fleet_book(&f, 0, 1);
    size_t taken = 0, n = f.carry.n;
    for (size_t cut = 1; cut < n; cut++) {
        char *part = malloc(cut); /* of its own, so that sanitizers see a step beyond */
        memcpy(part, f.carry.text, cut);
        enum err code = restore(&f, (struct str){part, cut});
        assert_true(code == ERR_OK || code == ERR_PARSE);
        taken += code == ERR_OK;
        free(part);
        intake_free(f.intake);
        f.intake = intake_new(&f.settings, f.names);
    }
    assert_in_range(taken, 1, 8); /* after the magic and after each entry */
    fleet_close(&f);
}

static void flipped_bytes_never_crash_and_what_is_taken_balances(void **state)
{
    (void)state;
    struct random random = random_new();
    struct fleet f;
    struct strbuf good = {0};
    fleet_open(&f, GPU_PRICE);
    feed(&f);
    fleet_book(&f, 0, 1);
    strbuf_add(&good, strbuf_str(&f.carry));
    for (int round = 0; round < 400; round++) {
        char *bad = malloc(good.n);
        memcpy(bad, good.text, good.n);
        for (int64_t k = random_below(&random, 6); k >= 0; k--)
            bad[random_below(&random, (int64_t)good.n)] = (char)random_next(&random);
        if (restore(&f, (struct str){bad, good.n}) == ERR_OK)
            fleet_book(&f, 1, 2);
        free(bad);
        intake_free(f.intake);
        f.intake = intake_new(&f.settings, f.names);
    }
    strbuf_release(&good);
    fleet_close(&f);
}

static void put_u32(struct strbuf *out, uint32_t v)
{
    strbuf_add(out, (struct str){(const char *)&v, sizeof v});
}

static void put_i64(struct strbuf *out, int64_t v)
{
    strbuf_add(out, (struct str){(const char *)&v, sizeof v});
}

static void put_text(struct strbuf *out, const char *text)
{
    put_u32(out, (uint32_t)strlen(text));
    strbuf_add(out, str_of(text));
}

/* A strip of one sample. */
static void put_strip(struct strbuf *out, const char *metric, time_ms t, int64_t v)
{
    strbuf_addc(out, 'S');
    put_u32(out, 1);
    put_text(out, "UUID");
    put_text(out, "GPU-a");
    put_u32(out, 1);
    put_text(out, metric);
    put_u32(out, 1);
    put_i64(out, t);
    put_i64(out, v);
}

static void a_record_among_the_strips_is_passed_over(void **state)
{
    (void)state;
    struct fleet f;
    struct strbuf carry = {0};
    fleet_open(&f, GPU_PRICE);
    strbuf_add(&carry, STR("gputally-carry-1\n"));
    put_strip(&carry, "kube_node_info", T0, 1);
    put_strip(&carry, "no_such_metric", T0, 1);
    assert_int_equal(restore(&f, strbuf_str(&carry)), ERR_OK);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.rows_n, 0);
    strbuf_release(&carry);
    fleet_close(&f);
}

static void values_that_no_sample_has_are_dropped(void **state)
{
    (void)state;
    struct fleet f;
    struct strbuf carry = {0};
    fleet_open(&f, GPU_PRICE);
    strbuf_add(&carry, STR("gputally-carry-1\n"));
    put_strip(&carry, "DCGM_FI_PROF_SM_ACTIVE", T0 + 1000, 1000000001);
    put_strip(&carry, "DCGM_FI_PROF_SM_ACTIVE", T0 + 2000, -1);
    put_strip(&carry, "DCGM_FI_DEV_POWER_USAGE", T0 + 3000, INT64_MAX);
    put_strip(&carry, "DCGM_FI_DEV_FB_USED", INT64_MAX, 1);
    put_strip(&carry, "DCGM_FI_DEV_FB_USED", INT64_MIN, 1);
    assert_int_equal(restore(&f, strbuf_str(&carry)), ERR_OK);
    fleet_book(&f, 0, 1);
    assert_int_equal(f.rows_n, 0);
    strbuf_release(&carry);
    fleet_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_carry_is_an_empty_one),
        cmocka_unit_test(it_holds_the_last_samples_and_the_start_of_what_stands),
        cmocka_unit_test(a_silent_slice_hands_the_carry_on),
        cmocka_unit_test(it_does_not_grow_with_the_number_of_slices),
        cmocka_unit_test(a_lost_gpu_stays_lost_in_the_next_slice),
        cmocka_unit_test(who_left_a_living_node_is_remembered_there),
        cmocka_unit_test(who_left_a_node_that_is_gone_is_forgotten_there),
        cmocka_unit_test(an_increase_reaches_back_into_the_slice_before),
        cmocka_unit_test(a_job_that_renames_labels_is_remembered),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(every_cut_is_refused_or_falls_between_entries),
        cmocka_unit_test(flipped_bytes_never_crash_and_what_is_taken_balances),
        cmocka_unit_test(a_record_among_the_strips_is_passed_over),
        cmocka_unit_test(values_that_no_sample_has_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
