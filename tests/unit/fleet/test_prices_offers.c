/* What else could be rented: lists made by hand, beside the catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fleet/catalogue.h"
#include "fleet/prices.h"

#define HEAD                                                                                       \
    "cloud,region,instance_type,capacity_type,usd_per_hour,gpus,vcpus,memory_gib,gpu_model\n"

static struct error error;

static struct prices *book_of(const char *csv, const struct price_policy *policy)
{
    struct prices *prices = prices_new();
    if (prices_add_csv_text(prices, "prices.csv", str_of(csv), &error))
        fail_msg("%s", error.text);
    if (policy)
        prices_set_policy(prices, policy);
    prices_ready(prices);
    return prices;
}

static struct price_query at(const char *cloud, const char *region)
{
    return (struct price_query){.cloud = str_of(cloud), .region = str_of(region)};
}

static struct price_offer cheapest(const struct prices *prices, struct price_query where,
                                   int64_t vcpus, int64_t gib)
{
    struct price_offer offer = {0};
    if (!prices_cheapest_general(prices, &where, vcpus * 1000, gib * 1000, &offer))
        offer.price = -1;
    return offer;
}

static void the_cheapest_machine_of_the_list_that_is_large_enough(void **state)
{
    (void)state;
    struct prices *prices = book_of(HEAD "aws,r1,c.large,on-demand,0.5,0,8,32,\n"
                                         "aws,r1,c.wide,on-demand,0.4,0,16,16,\n"
                                         "aws,r1,c.huge,on-demand,2,0,64,256,\n"
                                         "aws,r1,c.huge,spot,0.1,0,64,256,\n"
                                         "aws,r2,c.far,on-demand,0.1,0,64,256,\n"
                                         "aws,r1,g.one,on-demand,0.3,1,64,256,T4\n"
                                         "aws,r1,c.small,on-demand,0.1,0,,,\n",
                                    NULL);
    assert_int_equal(cheapest(prices, at("aws", "r1"), 4, 16).price, NANO / 10 * 4);
    struct price_offer offer = cheapest(prices, at("aws", "r1"), 4, 20);
    assert_true(str_eq(offer.instance_type, STR("c.large")));
    assert_string_equal(offer.source, "prices.csv:2");
    assert_null(offer.gpu);
    assert_int_equal(cheapest(prices, at("aws", "r1"), 9, 20).price, 2 * NANO);
    assert_int_equal(cheapest(prices, at("aws", "r1"), 65, 20).price, -1);
    assert_int_equal(cheapest(prices, at("gcp", "r1"), 1, 1).price, -1);
    prices_free(prices);
}

/* Equal prices: the first by name. A price that has ended is none. */
static void ties_go_by_name_and_prices_have_their_time(void **state)
{
    (void)state;
    struct prices *prices = book_of("instance_type,usd_per_hour,gpus,vcpus,memory_gib,to\n"
                                    "b.two,1,0,8,32,\n"
                                    "a.two,1,0,8,32,\n"
                                    "c.two,0.5,0,8,32,2020-01-01T00:00:00Z\n",
                                    NULL);
    struct price_query where = at("", "");
    where.at = INT64_C(1795996800000);
    struct price_offer offer = cheapest(prices, where, 8, 32);
    assert_true(str_eq(offer.instance_type, STR("a.two")));
    where.at = 0;
    assert_int_equal(cheapest(prices, where, 8, 32).price, NANO / 2);
    prices_free(prices);
}

/* A list of general-purpose machines is what one can buy; without one the catalogue offers. */
static void the_catalogue_offers_where_the_list_does_not(void **state)
{
    (void)state;
    struct prices *prices = book_of(HEAD "aws,us-east-1,own.box,on-demand,3,0,64,256,\n", NULL);
    assert_int_equal(cheapest(prices, at("aws", "us-east-1"), 2, 4).price, 3 * NANO);
    struct price_offer offer = cheapest(prices, at("aws", "us-west-2"), 30, 60);
    assert_true(offer.price > 0 && offer.vcpus_milli >= 30000 && offer.memory_milli_gib >= 60000);
    assert_null(offer.source);
    assert_true(offer.date.n > 0);
    prices_free(prices);
    const struct price_policy off = {.vcpu = -1, .gib = -1, .no_catalogue = true};
    prices = book_of(HEAD "aws,us-east-1,own.box,on-demand,3,0,64,256,\n", &off);
    assert_int_equal(cheapest(prices, at("aws", "us-west-2"), 2, 4).price, -1);
    prices_free(prices);
    assert_true(cheapest(NULL, at("aws", "us-east-1"), 2, 4).price > 0);
    assert_int_equal(cheapest(NULL, at("aws", "moon-1"), 2, 4).price, -1);
    assert_int_equal(cheapest(NULL, at("aws", "us-east-1"), 5000, 4).price, -1);
}

struct seen {
    const char *type;
    struct price_offer offer;
    int n;
};

static void see(void *context, const struct price_offer *offer)
{
    struct seen *seen = context;
    if (str_eq(offer->instance_type, str_of(seen->type))) {
        seen->offer = *offer;
        seen->n++;
    }
}

static struct seen offered(const struct prices *prices, struct price_query where, const char *type)
{
    struct seen seen = {.type = type};
    prices_offers(prices, &where, see, &seen);
    return seen;
}

/* g6.xlarge: one L4. The list's price goes before the catalogue's, less 20 %. */
static void gpu_machines_are_offered_once_with_the_lists_price(void **state)
{
    (void)state;
    struct prices *prices = prices_new();
    assert_int_equal(prices_add_csv_text(prices, "p.csv",
                                         STR(HEAD "aws,us-east-1,g6.xlarge,on-demand,0.5,,,,\n"),
                                         &error),
                     ERR_OK);
    struct price_rule discount = {
        .kind = PRICE_RULE_DISCOUNT,
        .selector = {.cloud = STR("aws"), .any_capacity = true, .valid = {TIME_MIN, TIME_MAX}},
        .amount = 200000,
        .source = STR("c.yaml:1")};
    prices_add_rule(prices, &discount);
    prices_ready(prices);
    struct seen seen = offered(prices, at("aws", "us-east-1"), "g6.xlarge");
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.offer.price, NANO / 10 * 4);
    assert_int_equal(seen.offer.gpus, 1);
    assert_ptr_equal(seen.offer.gpu, catalogue_gpu(STR("L4")));
    assert_string_equal(seen.offer.source, "p.csv:2");
    seen = offered(prices, at("aws", "us-east-1"), "g6.2xlarge");
    assert_int_equal(seen.n, 1);
    assert_null(seen.offer.source);
    prices_free(prices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_machine_of_the_list_that_is_large_enough),
        cmocka_unit_test(ties_go_by_name_and_prices_have_their_time),
        cmocka_unit_test(the_catalogue_offers_where_the_list_does_not),
        cmocka_unit_test(gpu_machines_are_offered_once_with_the_lists_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
