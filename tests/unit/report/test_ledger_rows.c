#include "fixture.h"

#include "report/ledger_rows.h"

/* The columns of the written ledger, in order (fleetsim/README.md). */
static const char columns[] =
    "hour,cluster,node,device,instance,namespace,pod,pod_uid,container,model,workload,type,owner,"
    "cost,used,slack,held_idle,node_idle_empty,node_idle_stranded,node_idle_unpartitioned,"
    "node_idle_cordoned,node_idle_starting,unhealthy,unobserved,unattributed,gpu_ms,held_ms,"
    "observed_ms,idle_ms,low_ms,busy_ms,gpu_held_ms,gpu_observed_ms,gpu_idle_ms,gpu_low_ms,"
    "gpu_busy_ms,u_ms,e_ms,gpu_u_ms,sm_ms,sm_seen_ms,tensor_ms,tensor_seen_ms,dram_ms,"
    "dram_seen_ms,mem_byte_ms,mem_seen_ms,mem_max_bytes,mem_total_bytes,energy_mj,hist_u,hist_e,"
    "generation_tokens,prompt_tokens,requests,flags\n";

static void the_header_has_the_columns_of_the_ledger(void **state)
{
    (void)state;
    struct strbuf out = {0};
    ledger_csv_header(&out);
    assert_string_equal(out.text, columns);
    strbuf_release(&out);
}

static struct row third_of_a_gpu(struct names *names)
{
    struct row row = {.key = {.hour = FROM_MS,
                              .node = names_put(names, STR("n1")),
                              .device = names_put(names, STR("GPU-1")),
                              .namespace = names_put(names, STR("ml")),
                              .pod = names_put(names, STR("p,1"))},
                      .facts = {.model = names_put(names, STR("A30")),
                                .workload = names_put(names, STR("Job/j")),
                                .owner = names_put(names, STR("search")),
                                .type = WORKLOAD_TRAINING},
                      .flags = FLAG_BY_COUNT | FLAG_UP_SAMPLES,
                      .cost = 7,
                      .held_ms = 1000,
                      .observed_ms = 1000,
                      .share_den = 3,
                      .gpu_num = 1000, /* a third of 1000 ms */
                      .gpu_held_num = 3000,
                      .u = 500 * NANO + NANO / 2, /* 500.5 ms */
                      .gpu_u_num = (int64_t)500 * NANO,
                      .energy_mj = 12};
    row.category[CATEGORY_USED] = 7;
    row.state_ms[STATE_BUSY] = 1000;
    row.hist_u_num[10] = 1000;
    row.work[WORK_REQUESTS] = 4;
    return row;
}

/* 1000 / 3 = 333.33333333333331 is the shortest double that reads back as that quotient;
 * 500 / 3 = 166.66666666666666. */
static void a_row_is_written_as_the_reference_writes_it(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct row row = third_of_a_gpu(names);
    struct strbuf out = {0};
    ledger_csv_row(&out, names, &row);
    assert_string_equal(
        out.text, "2026-11-23T00:00:00Z,-,n1,GPU-1,-,ml,\"p,1\",-,-,A30,Job/j,training,search,"
                  "7,7,0,0,0,0,0,0,0,0,0,0,333.3333333333333,1000,1000,0,0,1000,1000,0,0,0,0,"
                  "500.5,0,166.66666666666666,0,0,0,0,0,0,0,0,0,0,12,"
                  "0;0;0;0;0;0;0;0;0;0;333.3333333333333;0;0;0;0;0;0;0;0;0,"
                  "0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0,0,0,4,by-count;up-samples\n");
    strbuf_release(&out);
    names_free(names);
}

static void json_lines_carry_the_same_row(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct row row = third_of_a_gpu(names);
    struct strbuf out = {0};
    ledger_json_row(&out, names, &row);
    assert_non_null(strstr(out.text, "{\"hour\":\"2026-11-23T00:00:00Z\",\"cluster\":null,"));
    assert_non_null(strstr(out.text, "\"pod\":\"p,1\""));
    assert_non_null(strstr(out.text, "\"cost\":7,\"used\":7,"));
    assert_non_null(strstr(out.text, "\"hist_u\":[0,0,0,0,0,0,0,0,0,0,333.3333333333333,0,"));
    assert_non_null(strstr(out.text, "\"flags\":[\"by-count\",\"up-samples\"]}\n"));
    strbuf_release(&out);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_has_the_columns_of_the_ledger),
        cmocka_unit_test(a_row_is_written_as_the_reference_writes_it),
        cmocka_unit_test(json_lines_carry_the_same_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
