#include "../../lib/unit.h"
#include "fleet/labels.h"

#define LABELS(...)                                                                                \
    (struct label[]){__VA_ARGS__}, sizeof((struct label[]){__VA_ARGS__}) / sizeof(struct label)
#define L(name, value)                                                                             \
    {                                                                                              \
        STR(name), STR(value)                                                                      \
    }

static const char *role(struct names *names, const name_t *value, enum gpu_label label)
{
    return names_text(names, value[label]).p;
}

static void each_exporter_s_spelling_is_known(void **state)
{
    (void)state;
    struct names *names = names_new();
    name_t value[GPU_LABEL_COUNT];
    gpu_labels_read(LABELS(L("uuid", "GPU-1"), L("hostname", "h"), L("pod_name", "p"),
                           L("pod_namespace", "ns"), L("gpu", "3"), L("modelName", "A100")),
                    names, value);
    assert_string_equal(role(names, value, GPU_LABEL_UUID), "GPU-1");
    assert_string_equal(role(names, value, GPU_LABEL_HOSTNAME), "h");
    assert_string_equal(role(names, value, GPU_LABEL_EXPORTED_POD), "p");
    assert_string_equal(role(names, value, GPU_LABEL_EXPORTED_NAMESPACE), "ns");
    assert_string_equal(role(names, value, GPU_LABEL_INDEX), "3");
    assert_string_equal(role(names, value, GPU_LABEL_MODEL), "A100");
    assert_int_equal(value[GPU_LABEL_NODE], NAME_NONE);
    gpu_labels_read(LABELS(L("serial_number", "s1"), L("gpu_id", "0"), L("card_model", "MI300X"),
                           L("gpu_partition_id", "1")),
                    names, value);
    assert_string_equal(role(names, value, GPU_LABEL_UUID), "s1");
    assert_string_equal(role(names, value, GPU_LABEL_PARTITION), "1");
    names_free(names);
}

static void the_first_spelling_that_says_something_wins(void **state)
{
    (void)state;
    struct names *names = names_new();
    name_t value[GPU_LABEL_COUNT];
    gpu_labels_read(LABELS(L("hostname", "lower"), L("Hostname", "Upper"), L("UUID", ""),
                           L("gpu_uuid", "GPU-2")),
                    names, value);
    assert_string_equal(role(names, value, GPU_LABEL_HOSTNAME), "Upper");
    assert_string_equal(role(names, value, GPU_LABEL_UUID), "GPU-2");
    names_free(names);
}

static void every_spelling_of_the_table_leads_to_its_role_alone(void **state)
{
    (void)state;
#define ROOM 6
    static const char *const spellings[GPU_LABEL_COUNT][ROOM] = {
#define X(name, ...) [GPU_LABEL_##name] = {__VA_ARGS__},
        GPU_LABEL_TABLE(X)
#undef X
    };
    for (int of = 0; of < GPU_LABEL_COUNT; of++)
        for (int k = 0; k < ROOM && spellings[of][k]; k++) {
            struct label labels[] = {{STR("xpod"), STR("no")},
                                     {str_of(spellings[of][k]), STR("yes")},
                                     {STR("pod_"), STR("no")},
                                     {STR_NONE, STR("no")}};
            struct str value[GPU_LABEL_COUNT];
            gpu_labels_find(labels, 4, value);
            for (int other = 0; other < GPU_LABEL_COUNT; other++)
                assert_true(str_eq(value[other], other == of ? STR("yes") : STR_NONE));
        }
}

static void node_labels_are_read_in_both_spellings(void **state)
{
    (void)state;
    struct node_attributes a = node_attributes_read(
        LABELS(L("node.kubernetes.io/instance-type", "p5.48xlarge"),
               L("topology.kubernetes.io/region", "us-east-1"), L("karpenter.sh/nodepool", "gpu"),
               L("nvidia.com/gpu.replicas", "4")));
    struct node_attributes b = node_attributes_read(
        LABELS(L("node_kubernetes_io_instance_type", "p5.48xlarge"),
               L("topology_kubernetes_io_region", "us-east-1"), L("karpenter_sh_nodepool", "gpu"),
               L("nvidia_com_gpu_replicas", "4")));
    assert_true(str_eq(a.instance_type, STR("p5.48xlarge")));
    assert_true(str_eq(a.instance_type, b.instance_type) && str_eq(a.region, b.region));
    assert_true(str_eq(a.pool, STR("gpu")) && str_eq(b.pool, STR("gpu")));
    assert_int_equal(a.replicas, 4);
    assert_int_equal(b.replicas, 4);
    assert_int_equal(a.capacity, CAPACITY_UNKNOWN);
}

static enum capacity_type capacity(const char *name, const char *value)
{
    struct label label = {str_of(name), str_of(value)};
    return node_attributes_read(&label, 1).capacity;
}

static void spot_is_told_by_each_cloud_s_label_in_any_case(void **state)
{
    (void)state;
    assert_int_equal(capacity("karpenter.sh/capacity-type", "spot"), CAPACITY_SPOT);
    assert_int_equal(capacity("karpenter.sh/capacity-type", "reserved"), CAPACITY_RESERVED);
    assert_int_equal(capacity("eks.amazonaws.com/capacityType", "SPOT"), CAPACITY_SPOT);
    assert_int_equal(capacity("eks_amazonaws_com_capacityType", "ON_DEMAND"), CAPACITY_ON_DEMAND);
    assert_int_equal(capacity("cloud.google.com/gke-spot", "true"), CAPACITY_SPOT);
    assert_int_equal(capacity("kubernetes.azure.com/scalesetpriority", "Spot"), CAPACITY_SPOT);
    assert_int_equal(capacity("cloud.google.com/gke-spot", "false"), CAPACITY_UNKNOWN);
    assert_int_equal(capacity("spot", "true"), CAPACITY_UNKNOWN);
}

static void replicas_that_are_no_count_are_not_known(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "0", "-4", "four", "4.5", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct label label = {STR("nvidia.com/gpu.replicas"), str_of(bad[i])};
        assert_int_equal(node_attributes_read(&label, 1).replicas, 0);
    }
}

static void the_cloud_is_what_stands_before_the_colon(void **state)
{
    (void)state;
    assert_true(str_eq(cloud_of_provider(STR("aws:///us-east-1a/i-1")), STR("aws")));
    assert_true(str_eq(cloud_of_provider(STR("gce://project/zone/name")), STR("gcp")));
    assert_true(str_eq(cloud_of_provider(STR("azure:///subscriptions/x")), STR("azure")));
    assert_int_equal(cloud_of_provider(STR_NONE).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_exporter_s_spelling_is_known),
        cmocka_unit_test(the_first_spelling_that_says_something_wins),
        cmocka_unit_test(every_spelling_of_the_table_leads_to_its_role_alone),
        cmocka_unit_test(node_labels_are_read_in_both_spellings),
        cmocka_unit_test(spot_is_told_by_each_cloud_s_label_in_any_case),
        cmocka_unit_test(replicas_that_are_no_count_are_not_known),
        cmocka_unit_test(the_cloud_is_what_stands_before_the_colon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
