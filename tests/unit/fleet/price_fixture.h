/* Price books of a text, and what a node costs by them. */
#ifndef GPUTALLY_TESTS_PRICE_FIXTURE_H
#define GPUTALLY_TESTS_PRICE_FIXTURE_H

#include "../../lib/unit.h"
#include "fleet/prices.h"

static struct error error;

static inline struct prices *book_of(const char *csv, const struct price_policy *policy)
{
    struct prices *prices = prices_new();
    if (csv && prices_add_csv_text(prices, "prices.csv", str_of(csv), &error))
        fail_msg("%s", error.text);
    if (policy)
        prices_set_policy(prices, policy);
    prices_ready(prices);
    return prices;
}

static inline struct price_query node_of(const char *cloud, const char *region, const char *type)
{
    return (struct price_query){.node = STR("n1"),
                                .cloud = str_of(cloud),
                                .region = str_of(region),
                                .instance_type = str_of(type)};
}

static inline struct price find(const struct prices *prices, struct price_query query)
{
    struct price price;
    prices_find(prices, &query, &price);
    assert_true(price.den >= 1 && price.den <= PRICE_PART_DEN_MAX && price.num >= 0);
    assert_int_equal(price.known, !(price.flags & FLAG_UNPRICED));
    return price;
}

/* A whole price, not a GPU's: num / den and flags. */
#define assert_price(answer, nano, wanted_flags)                                                   \
    do {                                                                                           \
        struct price got = (answer);                                                               \
        assert_true(got.known);                                                                    \
        assert_false(got.per_gpu);                                                                 \
        assert_int_equal(got.num, (nano)*got.den);                                                 \
        assert_int_equal(got.flags, wanted_flags);                                                 \
    } while (0)

#endif
