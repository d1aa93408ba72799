/* What a node costs: lists, the catalogue, rules, discounts and times. */
#include "price_fixture.h"

#define FLEET "cloud,region,instance_type,capacity_type,usd_per_hour,gpus,vcpus,memory_gib\n"

static void a_row_is_found_by_cloud_region_type_and_capacity(void **state)
{
    (void)state;
    struct prices *prices = book_of(FLEET "aws,us-east-1,t.two,on-demand,9.9,2,8,64\n"
                                          "aws,us-east-1,t.two,spot,7.2,2,8,64\n",
                                    NULL);
    struct price_query query = node_of("aws", "us-east-1", "t.two");
    assert_price(find(prices, query), 9900000000, 0);
    assert_int_equal(find(prices, query).gpus, 2);
    assert_string_equal(find(prices, query).source, "prices.csv:2");
    query.capacity = CAPACITY_SPOT;
    assert_price(find(prices, query), 7200000000, 0);
    query.capacity = CAPACITY_UNKNOWN;
    assert_price(find(prices, query), 9900000000, 0);
    assert_false(find(prices, node_of("aws", "us-west-2", "t.two")).known);
    assert_false(find(prices, node_of("gcp", "us-east-1", "t.two")).known);
    assert_false(find(prices, node_of("aws", "us-east-1", "t.tw")).known);
    assert_false(find(prices, node_of("", "", "")).known);
    prices_free(prices);
}

static void a_spot_node_without_a_spot_price_takes_on_demand_with_a_flag(void **state)
{
    (void)state;
    struct prices *prices = book_of(FLEET "aws,us-east-1,t.one,on-demand,3.6,1,8,64\n", NULL);
    struct price_query query = node_of("aws", "us-east-1", "t.one");
    query.capacity = CAPACITY_SPOT;
    assert_price(find(prices, query), 3600000000, FLAG_SPOT_AS_ON_DEMAND);
    query.capacity = CAPACITY_RESERVED;
    assert_price(find(prices, query), 3600000000, FLAG_RESERVED_AS_ON_DEMAND);
    prices_free(prices);
}

static void a_list_without_capacity_types_means_on_demand(void **state)
{
    (void)state;
    struct prices *prices = book_of("cloud,region,instance_type,usd_per_hour,gpus\n"
                                    "aws,us-east-1,t.one,3.6,1\n",
                                    NULL);
    struct price_query query = node_of("aws", "us-east-1", "t.one");
    assert_price(find(prices, query), 3600000000, 0);
    query.capacity = CAPACITY_SPOT;
    assert_price(find(prices, query), 3600000000, FLAG_SPOT_AS_ON_DEMAND);
    prices_free(prices);
}

/* tests/cases/11-spot-labels-missing-price: the table of its expected.md. */
static void spot_labels_and_missing_prices(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    if (prices_add_csv(prices, TEST_DATA "/cases/11-spot-labels-missing-price/prices.csv", &error))
        fail_msg("%s", error.text);
    prices_ready(prices);
    struct price_query a = node_of("fake", "", "g5.xlarge");
    a.capacity = CAPACITY_SPOT;
    assert_price(find(prices, a), 400000000, 0);
    struct price_query c = node_of("fake", "", "a2-highgpu-1g");
    c.capacity = CAPACITY_SPOT;
    assert_price(find(prices, c), 1200000000, 0);
    struct price_query d = node_of("fake", "", "Standard_NC24ads_A100_v4");
    d.capacity = CAPACITY_SPOT;
    assert_price(find(prices, d), 3673000000, FLAG_SPOT_AS_ON_DEMAND);
    struct price_query e = node_of("fake", "", "g5.xlarge");
    e.capacity = CAPACITY_RESERVED;
    assert_price(find(prices, e), 850000000, 0);
    struct price_query f = node_of("fake", "", "rke2");
    f.gpu_model = STR("NVIDIA A40");
    struct price unpriced = find(prices, f);
    assert_int_equal(unpriced.flags, FLAG_UNPRICED);
    assert_false(unpriced.known);
    assert_int_equal(unpriced.num, 0);
    prices_free(prices);
}

static void without_any_price_of_the_users_a_model_has_the_catalogues_default(void **state)
{
    (void)state;
    struct prices *prices = book_of(NULL, NULL);
    struct price_query query = node_of("onprem", "hall-1", "dgx");
    query.gpu_model = STR("NVIDIA B200");
    struct price price = find(prices, query);
    assert_true(price.known && price.per_gpu);
    assert_int_equal(price.num, 6890000000); /* worked out in test_catalogue */
    assert_int_equal(price.flags, FLAG_DEFAULT_PRICE);
    assert_string_equal(price.source, "catalogue, median of the GPU model");
    query.gpu_model = STR("TEST-GPU");
    assert_false(find(prices, query).known);
    assert_false(prices_configured(prices));
    prices_free(prices);

    prices = book_of(FLEET, NULL); /* a list, though with nothing in it, is a configured price */
    query.gpu_model = STR("NVIDIA B200");
    assert_false(find(prices, query).known);
    assert_true(prices_configured(prices));
    prices_free(prices);
}

static void the_catalogue_prices_what_a_list_lacks(void **state)
{
    (void)state;
    struct prices *prices = book_of(FLEET "aws,us-east-1,t.one,on-demand,3.6,1,8,64\n", NULL);
    struct price price = find(prices, node_of("aws", "us-east-1", "g5.xlarge"));
    assert_price(price, 1006000000, 0);
    assert_int_equal(price.gpus, 1);
    assert_string_equal(price.source, "catalogue 2026-07-20");
    price = find(prices, node_of("aws", "ap-northeast-1", "g4dn.12xlarge"));
    assert_price(price, 5280460000, FLAG_CATALOGUE_DERIVED);
    assert_string_equal(price.source, "catalogue 2026-07-20 (derived)");
    /* no region, no price; the size is the type's */
    price = find(prices, node_of("aws", "", "p5.48xlarge"));
    assert_false(price.known);
    assert_int_equal(price.gpus, 8);
    /* a general-purpose machine's price is not that of the GPUs attached to it */
    assert_false(find(prices, node_of("gcp", "us-central1", "n1-standard-8")).known);
    assert_false(find(prices, node_of("aws", "us-east-1", "m7i.xlarge")).known);
    prices_free(prices);
}

static void a_list_goes_before_the_catalogue_as_a_whole(void **state)
{
    (void)state;
    struct prices *prices = book_of(FLEET "aws,ap-northeast-1,g4dn.xlarge,,0.5,1,4,16\n", NULL);
    struct price_query query = node_of("aws", "ap-northeast-1", "g4dn.xlarge");
    query.capacity = CAPACITY_SPOT; /* the catalogue has a spot price */
    assert_price(find(prices, query), 500000000, FLAG_SPOT_AS_ON_DEMAND);
    prices_free(prices);
    prices = book_of(NULL, NULL);
    assert_price(find(prices, query), 258400000, 0);
    prices_free(prices);
}

static void the_catalogue_can_be_switched_off(void **state)
{
    (void)state;
    struct price_policy policy = {.vcpu = -1, .gib = -1, .no_catalogue = true};
    struct prices *prices = book_of(NULL, &policy);
    struct price_query query = node_of("aws", "us-east-1", "g5.xlarge");
    query.gpu_model = STR("NVIDIA A10G");
    struct price price = find(prices, query);
    assert_false(price.known);
    assert_int_equal(price.gpus, 0);
    prices_free(prices);
}

/* fleetsim's case `residual`: 3.6 - 4 x 0.05 - 16 x 0.0125 = 3.2; 0.3 is less than its CPU's: 0. */
static void residual_takes_off_cpu_and_memory_exactly(void **state)
{
    (void)state;
    struct price_policy policy = {
        .node_split = NODE_SPLIT_RESIDUAL, .vcpu = 50000000, .gib = 12500000};
    struct prices *prices =
        book_of("cloud,region,instance_type,capacity_type,usd_per_hour,gpus,vcpus,memory_gib,"
                "usd_per_vcpu,usd_per_gib\n"
                "aws,us-east-1,t.one,on-demand,3.6,1,4,16,0.05,0.0125\n"
                "aws,us-east-1,t.small,on-demand,0.3,1,4,16,,\n"
                "aws,us-east-1,t.odd,on-demand,1,1,1,1.5,0,0.000000001\n"
                "aws,us-east-1,t.nosize,on-demand,1,1,,,,\n",
                &policy);
    struct price_query query = node_of("aws", "us-east-1", "t.one");
    assert_price(find(prices, query), 3200000000, 0);
    assert_int_equal(find(prices, query).den, 1);
    query.whole = true;
    assert_price(find(prices, query), 3600000000, 0);
    assert_price(find(prices, node_of("aws", "us-east-1", "t.small")), 0, 0);
    struct price odd = find(prices, node_of("aws", "us-east-1", "t.odd"));
    assert_int_equal(odd.num, 9999999985); /* 1e9 - 1.5, in tenths */
    assert_int_equal(odd.den, 10);
    assert_price(find(prices, node_of("aws", "us-east-1", "t.nosize")), 1000000000,
                 FLAG_SPLIT_UNKNOWN);
    prices_free(prices);
}

static void residual_falls_back_to_the_catalogues_price_of_cpu_and_memory(void **state)
{
    (void)state;
    struct price_policy policy = {.node_split = NODE_SPLIT_RESIDUAL, .vcpu = -1, .gib = -1};
    struct prices *prices = book_of(NULL, &policy);
    struct price price = find(prices, node_of("aws", "us-east-1", "g5.xlarge"));
    /* 1.006 - 4 x 0.037731433 - 16 x 0.003567397 = 0.797996 ; a fit over three machines gives
     * 0.8008 */
    assert_true(price.known);
    assert_in_range(price.num / price.den, 797990000, 798002000);
    assert_int_equal(price.flags, 0);
    /* a cloud whose machines nobody lists: the whole price stays, and says so */
    price = find(prices, node_of("nebius", "eu-north1", "gpu-h100-sxm_1gpu-16vcpu-200gb"));
    assert_true(price.known && price.flags & FLAG_SPLIT_UNKNOWN);
    prices_free(prices);
}

static struct price_rule rule_of(enum price_rule_kind kind, int64_t amount)
{
    return (struct price_rule){.kind = kind,
                               .amount = amount,
                               .selector = {.any_capacity = true, .valid = {TIME_MIN, TIME_MAX}},
                               .source = STR("c.yaml:1:1")};
}

static void an_override_goes_first_and_a_nodes_own_before_the_rest(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    prices_add_csv_text(prices, "p.csv", STR(FLEET "aws,us-east-1,t.one,,3.6,2,8,64\n"), &error);
    struct price_rule every = rule_of(PRICE_RULE_GPU, 5), own = rule_of(PRICE_RULE_NODE, 7);
    every.selector.instance_type = STR("t.*");
    own.selector.node = STR("n1");
    prices_add_rule(prices, &every);
    prices_add_rule(prices, &own);
    prices_ready(prices);
    struct price_query query = node_of("aws", "us-east-1", "t.one");
    query.capacity = CAPACITY_SPOT;
    struct price price = find(prices, query);
    assert_price(price, 7, FLAG_PRICE_OVERRIDE); /* and no spot-as-on-demand */
    assert_int_equal(price.gpus, 2);             /* the list still says its size */
    query.node = STR("n2");
    price = find(prices, query);
    assert_true(price.per_gpu);
    assert_int_equal(price.num, 5);
    assert_string_equal(price.source, "c.yaml:1:1");
    prices_free(prices);
}

static void a_rule_selects_by_all_that_it_says(void **state)
{
    (void)state;
    struct label wanted[] = {{STR("node.example/pool"), STR("a100-*")}};
    struct label ksm[] = {{STR("node_example_pool"), STR("a100-big")}};
    struct label other[] = {{STR("node.example/pool"), STR("h100")}};
    struct prices *prices = prices_new();
    struct price_rule rule = rule_of(PRICE_RULE_NODE, 7);
    rule.selector.labels = wanted;
    rule.selector.labels_n = 1;
    rule.selector.any_capacity = false;
    rule.selector.capacity = CAPACITY_ON_DEMAND;
    rule.selector.cluster = STR("prod*");
    prices_add_rule(prices, &rule);
    prices_ready(prices);
    struct price_query query = {.cluster = STR("prod-1"),
                                .node = STR("x"),
                                .labels = ksm,
                                .labels_n = 1,
                                .capacity = CAPACITY_UNKNOWN};
    assert_price(find(prices, query), 7, FLAG_PRICE_OVERRIDE);
    query.capacity = CAPACITY_SPOT;
    assert_false(find(prices, query).known);
    query.capacity = CAPACITY_ON_DEMAND;
    query.labels = other;
    assert_false(find(prices, query).known);
    query.labels_n = 0;
    assert_false(find(prices, query).known);
    query.labels = ksm;
    query.labels_n = 1;
    query.cluster = STR("test");
    assert_false(find(prices, query).known);
    prices_free(prices);
}

static void a_model_price_is_that_of_each_gpu(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    struct price_rule pattern = rule_of(PRICE_RULE_MODEL, 4), exact = rule_of(PRICE_RULE_MODEL, 3);
    pattern.selector.gpu_model = STR("*H100*");
    exact.selector.gpu_model = STR("NVIDIA H100 80GB HBM3");
    prices_add_rule(prices, &pattern);
    prices_add_rule(prices, &exact);
    struct price_rule spelled = rule_of(PRICE_RULE_MODEL, 2);
    spelled.selector.gpu_model = STR("nvidia-l4");
    prices_add_rule(prices, &spelled);
    prices_ready(prices);
    struct price_query query = node_of("onprem", "", "dgx");
    query.gpu_model = STR("NVIDIA H100 80GB HBM3");
    struct price price = find(prices, query);
    assert_true(price.known && price.per_gpu);
    assert_int_equal(price.num, 3);
    assert_int_equal(price.flags, FLAG_DEFAULT_PRICE);
    query.gpu_model = STR("NVIDIA H100 NVL");
    assert_int_equal(find(prices, query).num, 4);
    query.gpu_model = STR("NVIDIA L4");
    assert_int_equal(find(prices, query).num, 2);
    query.gpu_model = STR("NVIDIA B200"); /* prices are configured: no catalogue default */
    assert_false(find(prices, query).known);
    query.gpu_model = STR_NONE;
    assert_false(find(prices, query).known);
    query = node_of("aws", "us-east-1", "g5.xlarge"); /* an exact type goes before a default */
    query.gpu_model = STR("NVIDIA L4");
    assert_price(find(prices, query), 1006000000, 0);
    prices_free(prices);
}

static void a_price_holds_for_its_time(void **state)
{
    (void)state;
    struct prices *prices = book_of("instance_type,usd_per_hour,from,to\n"
                                    "t.one,2,,2026-06-01\n"
                                    "t.one,3,2026-06-01,2026-07-01T00:00:00Z\n",
                                    NULL);
    time_ms june, july;
    time_parse(STR("2026-06-01"), &june);
    time_parse(STR("2026-07-01"), &july);
    struct price_query query = node_of("", "", "t.one");
    query.at = june - 1;
    struct price price = find(prices, query);
    assert_price(price, 2000000000, 0);
    assert_true(price.from == TIME_MIN && price.to == june);
    query.at = june;
    price = find(prices, query);
    assert_price(price, 3000000000, 0);
    assert_true(price.from == june && price.to == july);
    query.at = july;
    price = find(prices, query);
    assert_false(price.known);
    assert_true(price.from == july && price.to == TIME_MAX);
    prices_free(prices);
}

static void an_override_that_is_to_come_ends_the_answer_of_today(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    struct price_rule rule = rule_of(PRICE_RULE_NODE, 7);
    rule.selector.valid = (struct span){1000, 2000};
    prices_add_rule(prices, &rule);
    prices_add_csv_text(prices, "p.csv", STR("instance_type,usd_per_hour\nt.one,2\n"), &error);
    prices_ready(prices);
    struct price_query query = node_of("", "", "t.one");
    struct price price = find(prices, query);
    assert_price(price, 2000000000, 0);
    assert_true(price.from == TIME_MIN && price.to == 1000);
    query.at = 1999;
    price = find(prices, query);
    assert_price(price, 7, FLAG_PRICE_OVERRIDE);
    assert_true(price.from == 1000 && price.to == 2000);
    query.at = 2000;
    price = find(prices, query);
    assert_price(price, 2000000000, 0);
    assert_true(price.from == 2000 && price.to == TIME_MAX);
    prices_free(prices);
}

static void a_discount_is_taken_off_list_prices_and_rounded_once(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    prices_add_csv_text(prices, "p.csv",
                        STR("instance_type,lifecycle,usd_per_hour\n"
                            "t.one,on-demand,10\nt.one,spot,4\nt.odd,on-demand,0.000000005\n"),
                        &error);
    struct price_rule off = rule_of(PRICE_RULE_DISCOUNT, 125000); /* 12.5 % */
    off.selector.instance_type = STR("t.*");
    off.selector.any_capacity = false;
    off.selector.capacity = CAPACITY_ON_DEMAND;
    prices_add_rule(prices, &off);
    struct price_rule own = rule_of(PRICE_RULE_NODE, 100);
    own.selector.node = STR("mine");
    prices_add_rule(prices, &own);
    prices_ready(prices);
    struct price price = find(prices, node_of("", "", "t.one"));
    assert_price(price, 8750000000, 0);
    assert_string_equal(price.discount, "c.yaml:1:1");
    assert_price(find(prices, node_of("", "", "t.odd")), 4, 0); /* 4.375 */
    struct price_query query = node_of("", "", "t.one");
    query.capacity = CAPACITY_SPOT;
    assert_price(find(prices, query), 4000000000, 0);
    assert_null(find(prices, query).discount);
    query.capacity = CAPACITY_ON_DEMAND;
    query.node = STR("mine"); /* an override is what it says */
    assert_price(find(prices, query), 100, FLAG_PRICE_OVERRIDE);
    prices_free(prices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_found_by_cloud_region_type_and_capacity),
        cmocka_unit_test(a_spot_node_without_a_spot_price_takes_on_demand_with_a_flag),
        cmocka_unit_test(a_list_without_capacity_types_means_on_demand),
        cmocka_unit_test(spot_labels_and_missing_prices),
        cmocka_unit_test(without_any_price_of_the_users_a_model_has_the_catalogues_default),
        cmocka_unit_test(the_catalogue_prices_what_a_list_lacks),
        cmocka_unit_test(a_list_goes_before_the_catalogue_as_a_whole),
        cmocka_unit_test(the_catalogue_can_be_switched_off),
        cmocka_unit_test(residual_takes_off_cpu_and_memory_exactly),
        cmocka_unit_test(residual_falls_back_to_the_catalogues_price_of_cpu_and_memory),
        cmocka_unit_test(an_override_goes_first_and_a_nodes_own_before_the_rest),
        cmocka_unit_test(a_rule_selects_by_all_that_it_says),
        cmocka_unit_test(a_model_price_is_that_of_each_gpu),
        cmocka_unit_test(a_price_holds_for_its_time),
        cmocka_unit_test(an_override_that_is_to_come_ends_the_answer_of_today),
        cmocka_unit_test(a_discount_is_taken_off_list_prices_and_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
