#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fleet/catalogue.h"
#include "fleet/data.h"

static const char *model(const char *text)
{
    static char name[64];
    const struct gpu_model *gpu = catalogue_gpu(str_of(text));
    if (!gpu)
        return "(none)";
    memcpy(name, gpu->name.p, gpu->name.n);
    name[gpu->name.n] = 0;
    return name;
}

static void the_tables_are_in_the_binary(void **state)
{
    (void)state;
    assert_true(str_starts(data_file(STR("gpus.csv")), STR("gpu_model,vendor,")));
    assert_true(data_file(STR("cpu_prices.csv")).n > 100000);
    assert_true(data_file(STR("mig_profiles.csv")).p[data_file(STR("mig_profiles.csv")).n - 1] ==
                '\n');
    assert_int_equal(data_file(STR("none.csv")).n, 0);
}

static void a_model_is_found_by_every_spelling(void **state)
{
    (void)state;
    assert_string_equal(model("NVIDIA H100 80GB HBM3"), "H100-SXM5-80GB");
    assert_string_equal(model("NVIDIA-H100-80GB-HBM3"), "H100-SXM5-80GB");
    assert_string_equal(model("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"), "A100-SXM4-80GB");
    assert_string_equal(model("NVIDIA-A100-SXM4-40GB-SHARED"), "A100-SXM4-40GB");
    assert_string_equal(model("A100-SXM-80GB"), "A100-SXM4-80GB");
    assert_string_equal(model("NVIDIA A100 80GB PCIe"), "A100-PCIE-80GB");
    assert_string_equal(model("nvidia-tesla-t4"), "T4");
    assert_string_equal(model("Tesla T4"), "T4");
    assert_string_equal(model("nvidia-l4"), "L4");
    assert_string_equal(model("NVIDIA H100 NVL"), "H100-NVL-94GB");
    assert_string_equal(model("NVIDIA H100 PCIe"), "H100-PCIE-80GB");
    assert_string_equal(model("AMD Instinct MI300X OAM"), "MI300X");
    assert_string_equal(model("NVIDIA A10-24Q"), "A10"); /* a vGPU of it */
}

static void a_longer_name_wins_and_a_shorter_word_is_another_model(void **state)
{
    (void)state;
    assert_string_equal(model("NVIDIA A10G"), "A10G");
    assert_string_equal(model("NVIDIA A10"), "A10");
    assert_string_equal(model("NVIDIA L40S"), "L40S");
    assert_string_equal(model("NVIDIA H200 NVL"), "H200-NVL");
    assert_string_equal(model("NVIDIA GH200 144G HBM3e"), "GH200-144GB");
    assert_string_equal(model("TEST-GPU"), "(none)");
    assert_string_equal(model(""), "(none)");
    assert_string_equal(model("nvidia"), "(none)");
    assert_string_equal(model("Quadro RTX 6000"), "(none)");
}

static void slices_are_7_but_4_on_a30(void **state)
{
    (void)state;
    assert_int_equal(catalogue_mig_slices(STR("NVIDIA A100-SXM4-80GB")), 7);
    assert_int_equal(catalogue_mig_slices(STR("NVIDIA A30")), 4);
    assert_int_equal(catalogue_mig_slices(STR("an unknown one")), 7);
    const struct gpu_model *t4 = catalogue_gpu(STR("Tesla T4"));
    assert_int_equal(t4->mig_slices, 0);
    assert_int_equal(t4->power_limit_mw, 70000);
    assert_int_equal(catalogue_gpu(STR("NVIDIA A16"))->power_limit_mw, 62500);
    assert_int_equal(catalogue_gpu(STR("NVIDIA H100 80GB HBM3"))->memory_bytes, INT64_C(81559)
                                                                                    << 20);
}

static void profiles_of_a_model(void **state)
{
    (void)state;
    size_t n;
    const struct gpu_model *a100 = catalogue_gpu(STR("NVIDIA A100-SXM4-40GB"));
    const struct mig_profile *profiles = catalogue_mig_profiles(a100, &n);
    assert_int_equal(n, 7);
    assert_true(str_eq(profiles[0].name, STR("1g.5gb")));
    const struct mig_profile *three = catalogue_mig_profile(a100, STR("3g.20gb"));
    assert_int_equal(three->slices, 3);
    assert_int_equal(three->memory_slices, 4);
    assert_int_equal(three->max_instances, 2);
    assert_int_equal(three->memory_bytes, INT64_C(19968) << 20);
    assert_ptr_equal(catalogue_mig_profile(a100, STR("1g.5gb.me")),
                     catalogue_mig_profile(a100, STR("1g.5gb+me")));
    assert_null(catalogue_mig_profile(a100, STR("3g.40gb"))); /* the 80 GB board's */
    catalogue_mig_profiles(catalogue_gpu(STR("Tesla T4")), &n);
    assert_int_equal(n, 0);
    assert_null(catalogue_mig_profiles(NULL, &n));
}

static void an_instance_is_found_exactly(void **state)
{
    (void)state;
    const struct instance_type *g5 =
        catalogue_instance(STR("aws"), STR("us-east-1"), STR("g5.xlarge"));
    assert_int_equal(g5->on_demand, 1006000000);
    assert_int_equal(g5->gpus, 1);
    assert_int_equal(g5->vcpus_milli, 4000);
    assert_int_equal(g5->memory_milli_gib, 16000);
    assert_false(g5->derived);
    assert_string_equal(model("NVIDIA A10G"), "A10G");
    assert_ptr_equal(g5->gpu, catalogue_gpu(STR("NVIDIA A10G")));
    const struct instance_type *tokyo =
        catalogue_instance(STR("aws"), STR("ap-northeast-1"), STR("g4dn.12xlarge"));
    assert_true(tokyo->derived);
    assert_int_equal(tokyo->gpus, 4);
    assert_null(catalogue_instance(STR("gcp"), STR("us-east-1"), STR("g5.xlarge")));
    assert_null(catalogue_instance(STR("aws"), STR("nowhere"), STR("g5.xlarge")));
    assert_null(catalogue_instance(STR_NONE, STR("us-east-1"), STR("g5.xlarge")));
    /* general-purpose machines are no GPU machines */
    assert_null(catalogue_instance(STR("aws"), STR("us-east-1"), STR("m7i.xlarge")));
}

static void a_size_needs_no_region_and_a_slice_is_one_device(void **state)
{
    (void)state;
    assert_int_equal(catalogue_instance_size(STR("aws"), STR("p5.48xlarge"))->gpus, 8);
    assert_int_equal(catalogue_instance_size(STR_NONE, STR("p5.48xlarge"))->gpus, 8);
    assert_null(catalogue_instance_size(STR("fake"), STR("p5.48xlarge")));
    assert_null(catalogue_instance_size(STR("aws"), STR_NONE));
    const struct instance_type *slice =
        catalogue_instance_size(STR("azure"), STR("Standard_NV6ads_A10_v5"));
    assert_int_equal(slice->gpus, 1);
    assert_int_equal(slice->fraction_ppm, 166700);
    /* Lambda has one price everywhere */
    assert_non_null(catalogue_instance(STR("lambda"), STR("us-west-3"), STR("gpu_1x_gh200")));
}

static void the_newest_list_dates_the_catalogue(void **state)
{
    (void)state;
    assert_string_equal(catalogue_date().p, "2026-08-03"); /* karpenter-provider-gcp's */
    assert_int_equal(catalogue_date().n, 10);
}

static void the_median_of_a_model(void **state)
{
    (void)state;
    money_t price = 0;
    const char *source = NULL;
    /* aws lists B200 once: p6-b200.48xlarge, 8 of them at 113.9328 */
    assert_true(
        catalogue_gpu_price(STR("aws"), catalogue_gpu(STR("NVIDIA B200")), &price, &source));
    assert_string_equal(source, "catalogue, median of the GPU model in aws");
    assert_int_equal(price, INT64_C(113932800000) / 8);
    /* oci lists none: of nebius 5.50, lambda 6.69, 6.89, 6.99 and aws 14.2416 the middle one */
    assert_true(
        catalogue_gpu_price(STR("oci"), catalogue_gpu(STR("NVIDIA B200")), &price, &source));
    assert_string_equal(source, "catalogue, median of the GPU model");
    assert_int_equal(price, 6890000000);
    assert_false(
        catalogue_gpu_price(STR("aws"), catalogue_gpu(STR("NVIDIA A16")), &price, &source));
    assert_false(catalogue_gpu_price(STR_NONE, NULL, &price, &source));
}

static void a_vcpu_and_a_gib_cost_what_the_lists_say(void **state)
{
    (void)state;
    money_t vcpu = 0, gib = 0;
    /* least squares over the same table in floating point: 0.0377314335, 0.0035673976 */
    assert_true(catalogue_cpu_price(STR("aws"), STR("us-east-1"), &vcpu, &gib));
    assert_in_range(vcpu, 37731433 - 2, 37731433 + 2);
    assert_in_range(gib, 3567397 - 2, 3567397 + 2);
    /* eu-west-1 lists one ratio of memory to vCPUs only: the cloud's fit, 0.0427835951,
     * 0.0032065288 */
    assert_true(catalogue_cpu_price(STR("aws"), STR("eu-west-1"), &vcpu, &gib));
    assert_in_range(vcpu, 42783595 - 2, 42783595 + 2);
    assert_in_range(gib, 3206528 - 2, 3206528 + 2);
    assert_false(catalogue_cpu_price(STR("onprem"), STR("hall-1"), &vcpu, &gib));
}

static void bandwidth_and_compute_are_those_of_the_data_sheets(void **state)
{
    (void)state;
    const struct gpu_model *h100 = catalogue_gpu(STR("NVIDIA H100 80GB HBM3"));
    assert_int_equal(h100->bandwidth_gbs, 3352);
    assert_int_equal(h100->sms, 132);
    assert_int_equal(h100->gflops, 989000);
    assert_int_equal(catalogue_gpu(STR("NVIDIA A40"))->gflops, 149700);
    assert_int_equal(catalogue_gpu(STR("NVIDIA T4G"))->gflops, 0); /* not known */
    assert_int_equal(catalogue_gpu(STR("NVIDIA T4G"))->specs.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_are_in_the_binary),
        cmocka_unit_test(a_model_is_found_by_every_spelling),
        cmocka_unit_test(a_longer_name_wins_and_a_shorter_word_is_another_model),
        cmocka_unit_test(slices_are_7_but_4_on_a30),
        cmocka_unit_test(profiles_of_a_model),
        cmocka_unit_test(an_instance_is_found_exactly),
        cmocka_unit_test(a_size_needs_no_region_and_a_slice_is_one_device),
        cmocka_unit_test(the_newest_list_dates_the_catalogue),
        cmocka_unit_test(the_median_of_a_model),
        cmocka_unit_test(a_vcpu_and_a_gib_cost_what_the_lists_say),
        cmocka_unit_test(bandwidth_and_compute_are_those_of_the_data_sheets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
