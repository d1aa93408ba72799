/* The table of signals: names, units, ranges. Expected values are worked out by hand from section 4
 * of the semantics and the table of blanks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fleet/signals.h"

#define GIB ((int64_t)1 << 30)

static void check_name(const char *metric, enum signal signal, enum signal_unit unit,
                       enum exporter_family exporter)
{
    const struct signal_name *name = signal_of_metric(str_of(metric));
    if (!name)
        fail_msg("%s is not known", metric);
    assert_int_equal(name->signal, signal);
    assert_int_equal(name->unit, unit);
    assert_int_equal(name->exporter, exporter);
}

static void every_generation_of_dcgm_names_is_known(void **state)
{
    (void)state;
    check_name("DCGM_FI_DEV_GPU_UTIL", SIGNAL_UTIL, UNIT_PERCENT, EXPORTER_DCGM);
    check_name("dcgm_gpu_utilization", SIGNAL_UTIL, UNIT_PERCENT, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_GPU_UTIL_RATIO", SIGNAL_UTIL, UNIT_PERCENT_OR_RATIO, EXPORTER_DCGM);
    check_name("dcgm_fi_prof_gr_engine_active", SIGNAL_GR, UNIT_RATIO, EXPORTER_DCGM);
    check_name("DCGM_FI_PROF_SM_UTIL_RATIO", SIGNAL_SM, UNIT_RATIO, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_FB_USED", SIGNAL_MEM_USED, UNIT_MIB, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_FB_USED_BYTES", SIGNAL_MEM_USED, UNIT_BYTES, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_FB_CAPACITY_BYTES", SIGNAL_MEM_TOTAL, UNIT_BYTES, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_BOARD_POWER_WATTS", SIGNAL_POWER, UNIT_WATT, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", SIGNAL_ENERGY, UNIT_MILLIJOULE,
               EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", SIGNAL_ENERGY, UNIT_JOULE, EXPORTER_DCGM);
    check_name("DCGM_FI_DEV_XID_ERROR", SIGNAL_XID, UNIT_NUMBER, EXPORTER_DCGM);
}

static void dcgm_names_compare_without_case_and_others_with(void **state)
{
    (void)state;
    check_name("dcgm_fi_dev_gpu_util", SIGNAL_UTIL, UNIT_PERCENT, EXPORTER_DCGM);
    check_name("Dcgm_Fi_Dev_Fb_Used", SIGNAL_MEM_USED, UNIT_MIB, EXPORTER_DCGM);
    assert_null(signal_of_metric(STR("GPU_GFX_ACTIVITY")));
    assert_null(signal_of_metric(STR("NVIDIA_SMI_POWER_DRAW_WATTS")));
}

static void the_same_prefix_has_other_units_in_other_exporters(void **state)
{
    (void)state;
    check_name("nvidia_smi_utilization_gpu_ratio", SIGNAL_UTIL, UNIT_RATIO, EXPORTER_NVIDIA_GPU);
    check_name("nvidia_smi_utilization_gpu", SIGNAL_UTIL, UNIT_PERCENT, EXPORTER_NVIDIA_SMI);
    check_name("nvidia_smi_memory_used_bytes", SIGNAL_MEM_USED, UNIT_BYTES, EXPORTER_NVIDIA_GPU);
    check_name("nvidia_smi_memory_used", SIGNAL_MEM_USED, UNIT_MIB, EXPORTER_NVIDIA_SMI);
    check_name("gpu_gfx_activity", SIGNAL_UTIL, UNIT_PERCENT, EXPORTER_AMD);
    check_name("gpu_energy_consumed", SIGNAL_ENERGY, UNIT_MICROJOULE, EXPORTER_AMD);
    check_name("kubernetes_io:container_accelerator_duty_cycle", SIGNAL_UTIL, UNIT_PERCENT,
               EXPORTER_GKE);
}

static void what_is_no_signal_is_not_found(void **state)
{
    (void)state;
    static const char *const others[] = {"",
                                         "up",
                                         "DCGM_FI_DEV_GPU_TEMP",
                                         "DCGM_FI_DEV_GPU_UTI",
                                         "DCGM_FI_DEV_GPU_UTIL_",
                                         "DCGM_FI_DEV_FB_USED_PERCENT",
                                         "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (signal_of_metric(str_of(others[i])))
            fail_msg("%s is taken for a signal", others[i]);
}

static void every_entry_of_the_table_finds_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < signal_names_n; i++)
        assert_ptr_equal(signal_of_metric(str_of(signal_names[i].metric)), &signal_names[i]);
}

static void values_are_brought_to_one_unit(void **state)
{
    (void)state;
    assert_int_equal(signal_clean(SIGNAL_UTIL, UNIT_PERCENT, 55), 550000000);
    assert_int_equal(signal_clean(SIGNAL_UTIL, UNIT_RATIO, 0.63), 630000000);
    assert_int_equal(signal_clean(SIGNAL_UTIL, UNIT_PERCENT_OR_RATIO, 0.63), 630000000);
    assert_int_equal(signal_clean(SIGNAL_SM, UNIT_RATIO, 0.123456), 123456000);
    assert_int_equal(signal_clean(SIGNAL_GR, UNIT_PERCENT, 37.5), 375000000);
    assert_int_equal(signal_clean(SIGNAL_MEM_USED, UNIT_MIB, 40960), 40 * GIB);
    assert_int_equal(signal_clean(SIGNAL_MEM_USED, UNIT_BYTES, 42949672960.0), 40 * GIB);
    assert_int_equal(signal_clean(SIGNAL_POWER, UNIT_WATT, 241.77), 241770000000);
    assert_int_equal(signal_clean(SIGNAL_ENERGY, UNIT_MILLIJOULE, 192000000), 192000000000);
    assert_int_equal(signal_clean(SIGNAL_ENERGY, UNIT_JOULE, 192000.25), 192000250000);
    assert_int_equal(signal_clean(SIGNAL_ENERGY, UNIT_MICROJOULE, 7), 7);
    assert_int_equal(signal_clean(SIGNAL_XID, UNIT_NUMBER, 79), 79);
}

static void ratios_round_half_up_at_one_thousand_millionth(void **state)
{
    (void)state;
    assert_int_equal(signal_clean(SIGNAL_DRAM, UNIT_RATIO, 2.5e-9), 3);
    assert_int_equal(signal_clean(SIGNAL_DRAM, UNIT_RATIO, 2.4e-9), 2);
    assert_int_equal(signal_clean(SIGNAL_DRAM, UNIT_RATIO, 0), 0);
}

static void profiling_ratios_a_little_above_one_are_clamped_and_util_is_not(void **state)
{
    (void)state;
    assert_int_equal(signal_clean(SIGNAL_SM, UNIT_RATIO, 1.294), 1000000000);
    assert_int_equal(signal_clean(SIGNAL_SM, UNIT_RATIO, 1.5), 1000000000);
    assert_true(signal_clean(SIGNAL_SM, UNIT_RATIO, 1.51) == SIGNAL_ABSENT);
    assert_int_equal(signal_clean(SIGNAL_UTIL, UNIT_PERCENT, 100), 1000000000);
    assert_true(signal_clean(SIGNAL_UTIL, UNIT_PERCENT, 100.5) == SIGNAL_ABSENT);
    assert_true(signal_clean(SIGNAL_UTIL, UNIT_PERCENT, 4294967295.0) == SIGNAL_ABSENT);
    assert_true(signal_clean(SIGNAL_UTIL, UNIT_RATIO, 1.01) == SIGNAL_ABSENT);
}

static void blanks_and_what_is_no_number_are_absent(void **state)
{
    (void)state;
    static const double blanks[] = {2147483632,      2147483633, 2147483634, 2147483635,
                                    140737488355328, 9.3e18,     NAN,        INFINITY,
                                    -INFINITY,       -1,         1e300};
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        for (size_t k = 0; k < signal_names_n; k++) {
            const struct signal_name *name = &signal_names[k];
            if (name->signal == SIGNAL_ENERGY && blanks[i] > 0 && blanks[i] < 1e18)
                continue;
            if (signal_clean(name->signal, name->unit, blanks[i]) != SIGNAL_ABSENT)
                fail_msg("%s takes %g", name->metric, blanks[i]);
        }
    }
    assert_int_equal(signal_clean(SIGNAL_MEM_USED, UNIT_BYTES, 2147483636.0), 2147483636);
    assert_int_equal(signal_clean(SIGNAL_MEM_USED, UNIT_BYTES, 2147483631.0), 2147483631);
}

static void energy_counters_pass_the_int32_blanks_and_stay_exact(void **state)
{
    (void)state;
    assert_int_equal(signal_clean(SIGNAL_ENERGY, UNIT_MILLIJOULE, 2147483632.0), 2147483632000);
    /* above 2^53 as uJ: neighbours in mJ must not fall together */
    assert_int_equal(signal_clean(SIGNAL_ENERGY, UNIT_MILLIJOULE, 9007199254740991.0),
                     INT64_C(9007199254740991000));
    assert_int_equal(signal_clean(SIGNAL_ENERGY, UNIT_MILLIJOULE, 9007199254740990.0),
                     INT64_C(9007199254740990000));
    assert_true(signal_clean(SIGNAL_ENERGY, UNIT_MILLIJOULE, 9.3e15) == SIGNAL_ABSENT);
    assert_true(signal_clean(SIGNAL_ENERGY, UNIT_JOULE, 9.3e12) == SIGNAL_ABSENT);
}

static void limits_of_ranges_are_in_and_what_lies_above_is_out(void **state)
{
    (void)state;
    assert_int_equal(signal_clean(SIGNAL_MEM_TOTAL, UNIT_MIB, 4194304), 4096 * GIB);
    assert_true(signal_clean(SIGNAL_MEM_TOTAL, UNIT_MIB, 4194305) == SIGNAL_ABSENT);
    assert_int_equal(signal_clean(SIGNAL_MEM_TOTAL, UNIT_BYTES, 4398046511104.0), 4096 * GIB);
    assert_true(signal_clean(SIGNAL_MEM_TOTAL, UNIT_BYTES, 4398046511105.0) == SIGNAL_ABSENT);
    assert_int_equal(signal_clean(SIGNAL_POWER, UNIT_WATT, 5000), 5000000000000);
    assert_true(signal_clean(SIGNAL_POWER, UNIT_WATT, 5000.5) == SIGNAL_ABSENT);
    assert_int_equal(signal_clean(SIGNAL_XID, UNIT_NUMBER, 100000), 100000);
    assert_true(signal_clean(SIGNAL_XID, UNIT_NUMBER, 100001) == SIGNAL_ABSENT);
}

static void every_name_stands_in_the_document(void **state)
{
    (void)state;
    FILE *file = fopen(TEST_DATA "/../docs/signals.md", "r");
    assert_non_null(file);
    static char text[65536];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (size_t i = 0; i < signal_names_n; i++) {
        const char *name = signal_names[i].metric;
        char quoted[128];
        bool amd = signal_names[i].exporter == EXPORTER_AMD && strncmp(name, "amd_", 4) == 0;
        const char *shown = amd ? name + 4 : name;
        snprintf(quoted, sizeof quoted, "`%s`", shown);
        if (!strstr(text, quoted))
            fail_msg("docs/signals.md lacks %s", shown);
    }
}

static double random_value(void)
{
    static const double edges[] = {0,   -0.0, 1,          100,           1.5,    5000,  4194304,
                                   NAN, -1,   2147483633, 4398046511104, 9.2e18, 9.2e15};
    int kind = rand() % 4;
    double part = (double)rand() / RAND_MAX;
    if (kind == 0)
        return edges[(size_t)rand() % (sizeof edges / sizeof *edges)];
    return kind == 1 ? part * 1.6 : kind == 2 ? part * 120 : part * 6e6;
}

static void cleaning_many_is_cleaning_each(void **state)
{
    (void)state;
    const char *given = getenv("SEED");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : 20261130u;
    printf("seed %u\n", seed);
    srand(seed);
    for (size_t k = 0; k < signal_names_n; k++) {
        double v[257];
        int64_t out[257];
        size_t absent = 0;
        for (size_t i = 0; i < 257; i++)
            v[i] = random_value();
        size_t told = signal_clean_many(signal_names[k].signal, signal_names[k].unit, v, 257, out);
        for (size_t i = 0; i < 257; i++) {
            int64_t one = signal_clean(signal_names[k].signal, signal_names[k].unit, v[i]);
            absent += one == SIGNAL_ABSENT;
            if (one != out[i])
                fail_msg("%s %.17g: %lld, many %lld", signal_names[k].metric, v[i], (long long)one,
                         (long long)out[i]);
        }
        assert_int_equal(told, absent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_generation_of_dcgm_names_is_known),
        cmocka_unit_test(dcgm_names_compare_without_case_and_others_with),
        cmocka_unit_test(the_same_prefix_has_other_units_in_other_exporters),
        cmocka_unit_test(what_is_no_signal_is_not_found),
        cmocka_unit_test(every_entry_of_the_table_finds_itself),
        cmocka_unit_test(values_are_brought_to_one_unit),
        cmocka_unit_test(ratios_round_half_up_at_one_thousand_millionth),
        cmocka_unit_test(profiling_ratios_a_little_above_one_are_clamped_and_util_is_not),
        cmocka_unit_test(blanks_and_what_is_no_number_are_absent),
        cmocka_unit_test(energy_counters_pass_the_int32_blanks_and_stay_exact),
        cmocka_unit_test(limits_of_ranges_are_in_and_what_lies_above_is_out),
        cmocka_unit_test(every_name_stands_in_the_document),
        cmocka_unit_test(cleaning_many_is_cleaning_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
