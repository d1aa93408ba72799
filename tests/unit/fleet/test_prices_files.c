/* Price files: which one goes first, what is wrong with them, and OpenCost's. */
#include "price_fixture.h"

static void the_file_read_last_goes_first_and_inside_it_the_first_row(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    prices_add_csv_text(prices, "a.csv", STR("instance_type,usd_per_hour\nt,1\nu,5\n"), &error);
    prices_add_csv_text(prices, "b.csv", STR("instance_type,usd_per_hour\nt,2\nt,3\n"), &error);
    prices_ready(prices);
    assert_price(find(prices, node_of("", "", "t")), 2000000000, 0);
    assert_string_equal(find(prices, node_of("", "", "t")).source, "b.csv:2");
    assert_price(find(prices, node_of("", "", "u")), 5000000000, 0);
    size_t n;
    const struct price_problem *problems = prices_problems(prices, &n);
    assert_int_equal(n, 1);
    assert_string_equal(problems[0].text,
                        "b.csv:3: t has another price in line 2, which is the one that is used");
    prices_free(prices);
}

static void a_broken_row_is_told_and_costs_only_itself(void **state)
{
    (void)state;
    struct prices *prices = book_of("instance_type,capacity_type,usd_per_hour,gpus,hue\n"
                                    "a,,\"1,20\",1,\n"
                                    "b,,-1,1,\n"
                                    "c,weekly,1,1,\n"
                                    ",,1,1,\n"
                                    "d,,1,half,\n"
                                    "e,,1000001,1,\n"
                                    "f\"g,,1,1,\n"
                                    "\"h\"i,,1,1,\n"
                                    "good,,1.5,1,red\n",
                                    NULL);
    static const char *const wanted[] = {
        "prices.csv:1: column 'hue' is not known and not read",
        "prices.csv:2: usd_per_hour is '1,20': write a plain number such as 12.34, in USD an hour; "
        "the row is left out",
        "prices.csv:3: usd_per_hour is '-1': write a plain number such as 12.34, in USD an hour; "
        "the row is left out",
        "prices.csv:4: capacity_type is 'weekly': write on-demand, spot or reserved; the row is "
        "left out",
        "prices.csv:5: it names no instance_type: the row is left out",
        "prices.csv:6: gpus is 'half': write how many GPUs the machine has, 0 for none; the row is "
        "left out",
        "prices.csv:7: usd_per_hour is '1000001': write a price of at most 1000000 an hour; the "
        "row is left out",
        "prices.csv:9: text follows a closing quote: quote a text as \"a \"\"b\"\" c\"; the row is "
        "left out",
    };
    size_t n;
    const struct price_problem *problems = prices_problems(prices, &n);
    for (size_t i = 0; i < n && i < 8; i++)
        assert_string_equal(problems[i].text, wanted[i]);
    assert_int_equal(n, 8);
    assert_false(problems[0].row_lost);
    assert_true(problems[1].row_lost);
    assert_price(find(prices, node_of("", "", "good")), 1500000000, 0);
    assert_price(find(prices, node_of("", "", "f\"g")), 1000000000, 0);
    prices_free(prices);
}

static void many_problems_are_counted_not_listed(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, STR("instance_type,usd_per_hour\n"));
    for (int i = 0; i < PRICE_PROBLEMS_MAX + 7; i++)
        strbuf_add(&text, STR("t,x\n"));
    struct prices *prices = book_of(text.text, NULL);
    size_t n;
    const struct price_problem *problems = prices_problems(prices, &n);
    assert_int_equal(n, PRICE_PROBLEMS_MAX + 1);
    assert_non_null(strstr(problems[n - 1].text, "and 7 problems like these"));
    prices_free(prices);
    strbuf_release(&text);
}

static void a_file_that_is_no_price_list_is_refused(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    assert_int_equal(prices_add_csv_text(prices, "x.csv", STR("a,b\n1,2\n"), &error), ERR_CONFIG);
    assert_ptr_equal(strstr(error.text, "x.csv:1: the first line has to name the columns, and "
                                        "instance_type is not among them; for example: cloud,"),
                     error.text);
    assert_int_equal(
        prices_add_csv_text(prices, "x.csv", STR("instance_type,usd_per_huor\n"), &error),
        ERR_CONFIG);
    assert_non_null(strstr(error.text, "usd_per_hour is not among them"));
    assert_int_equal(prices_add_csv_text(prices, "x.csv", STR("\n\n"), &error), ERR_CONFIG);
    assert_int_equal(prices_add_csv_text(prices, "x.csv",
                                         STR("instance_type,instance_type,usd_per_hour\n"), &error),
                     ERR_CONFIG);
    assert_int_equal(prices_add_csv(prices, "/nowhere.csv", &error), ERR_IO);
    assert_string_equal(error.text, "prices: cannot open /nowhere.csv: No such file or directory");
    prices_free(prices);
}

#define OPENCOST                                                                                   \
    "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,"    \
    "Version\n"

static void opencost_nodes_are_found_by_the_field_that_names_them(void **state)
{
    (void)state;
    struct prices *prices =
        book_of(OPENCOST ",gpu-1,,node,metadata.name,,2.5,\n"
                         ",i-0abc,,node,spec.providerID,,3.5,\n"
                         ",A100,eu-1,node,metadata.labels.example.com/pool,,4.5,\n"
                         ",pvc-1,,pv,metadata.name,,0.1,\n",
                NULL);
    struct label labels[] = {{STR("example_com_pool"), STR("a100")}};
    struct price_query query = {.node = STR("GPU-1")};
    assert_price(find(prices, query), 2500000000, 0); /* OpenCost ignores case */
    assert_string_equal(find(prices, query).source, "prices.csv:2");
    query = (struct price_query){.node = STR("x"), .provider_id = STR("aws:///us-east-1a/i-0abc")};
    assert_price(find(prices, query), 3500000000, 0);
    query = (struct price_query){.region = STR("eu-1"), .labels = labels, .labels_n = 1};
    assert_price(find(prices, query), 4500000000, 0);
    query.region = STR("eu-2");
    assert_false(find(prices, query).known);
    size_t n;
    prices_problems(prices, &n);
    assert_int_equal(n, 0);
    prices_free(prices);
}

static void opencost_classes_hold_where_their_rows_agree(void **state)
{
    (void)state;
    struct prices *prices = book_of(OPENCOST ",a,r1,node,metadata.name,big,2,\n"
                                             ",b,r1,node,metadata.name,big,2,\n"
                                             ",c,r1,node,metadata.name,odd,2,\n"
                                             ",d,r1,node,metadata.name,odd,3,\n"
                                             ",,r1,node,,plain,4,\n",
                                    NULL);
    struct price_query query = node_of("aws", "r1", "big");
    query.capacity = CAPACITY_SPOT;
    assert_price(find(prices, query), 2000000000, 0);
    assert_false(find(prices, node_of("aws", "r1", "odd")).known);
    assert_false(find(prices, node_of("aws", "r2", "big")).known);
    assert_price(find(prices, node_of("aws", "r1", "plain")), 4000000000, 0);
    query = node_of("aws", "r1", "odd");
    query.node = STR("d");
    assert_price(find(prices, query), 3000000000, 0);
    size_t n;
    const struct price_problem *problems = prices_problems(prices, &n);
    assert_int_equal(n, 1);
    assert_string_equal(problems[0].text,
                        "prices.csv:4: odd has 2 rows with different prices: only nodes that an "
                        "InstanceID names take one");
    prices_free(prices);
}

static void opencost_gpus_come_on_top_of_their_node(void **state)
{
    (void)state;
    struct prices *prices = book_of(OPENCOST ",n1,,node,metadata.name,,2,\n"
                                             ",Quadro,,gpu,gpu.nvidia.com/class,,0.75,\n",
                                    NULL);
    struct label labels[] = {{STR("gpu.nvidia.com/class"), STR("quadro")}};
    struct price_query query = {.node = STR("n1"), .labels = labels, .labels_n = 1, .gpus = 4};
    assert_price(find(prices, query), 5000000000, 0); /* 2 + 4 x 0.75 */
    query.gpus = 0;                                   /* nobody knows how many */
    assert_false(find(prices, query).known);
    query.node = STR("n2"); /* no price of the node: that of each GPU */
    struct price price = find(prices, query);
    assert_true(price.known && price.per_gpu);
    assert_int_equal(price.num, 750000000);
    assert_int_equal(price.flags, FLAG_DEFAULT_PRICE);
    prices_free(prices);
}

static void a_csv_row_of_a_model_is_its_default(void **state)
{
    (void)state;
    struct prices *prices = book_of("gpu_model,usd_per_hour,gpus\n"
                                    "NVIDIA A40,1.25,\n"
                                    "NVIDIA L4,4,4\n",
                                    NULL);
    struct price_query query = node_of("", "", "rke2");
    query.gpu_model = STR("NVIDIA A40");
    struct price price = find(prices, query);
    assert_true(price.known && price.per_gpu);
    assert_int_equal(price.num, 1250000000);
    assert_int_equal(price.flags, FLAG_DEFAULT_PRICE);
    query.gpu_model = STR("NVIDIA L4");
    assert_false(find(prices, query).known);
    size_t n;
    prices_problems(prices, &n);
    assert_int_equal(n, 1);
    prices_free(prices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_read_last_goes_first_and_inside_it_the_first_row),
        cmocka_unit_test(a_broken_row_is_told_and_costs_only_itself),
        cmocka_unit_test(many_problems_are_counted_not_listed),
        cmocka_unit_test(a_file_that_is_no_price_list_is_refused),
        cmocka_unit_test(opencost_nodes_are_found_by_the_field_that_names_them),
        cmocka_unit_test(opencost_classes_hold_where_their_rows_agree),
        cmocka_unit_test(opencost_gpus_come_on_top_of_their_node),
        cmocka_unit_test(a_csv_row_of_a_model_is_its_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
