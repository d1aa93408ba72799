/* The price book against the reference calculator's way of looking a price up (a walk over the rows
 * in their order), for random lists, nodes and policies. GPUTALLY_SEED repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "fleet/prices.h"

#define LISTS 400
#define ROWS_MAX 40
#define QUERIES 40

static const char *const clouds[] = {"aws", "gcp"};
static const char *const regions[] = {"r1", "r2"};
static const char *const types[] = {"t.a", "t.ab", "t.b"}; /* not in the catalogue */
static const char *const capacities[] = {"on-demand", "spot", "reserved", ""};
static const enum capacity_type capacity_of[] = {CAPACITY_ON_DEMAND, CAPACITY_SPOT,
                                                 CAPACITY_RESERVED, CAPACITY_ON_DEMAND};

static uint64_t state;

static uint64_t random_below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

struct row {
    const char *cloud, *region, *type;
    enum capacity_type capacity;
    int64_t nano;
    int gpus;
    int64_t vcpus_tenth, gib_tenth, vcpu, gib; /* -1: an empty cell */
};

static void add_cell(struct strbuf *text, int64_t value, int64_t den)
{
    if (value < 0)
        strbuf_addc(text, ',');
    else
        strbuf_addf(text, ",%lld.%0*lld", (long long)(value / den), den == NANO ? 9 : 1,
                    (long long)(value % den));
}

static int64_t maybe(uint64_t below)
{
    return random_below(5) == 0 ? -1 : (int64_t)random_below(below);
}

static size_t random_list(struct row *rows, struct strbuf *text)
{
    size_t n = random_below(ROWS_MAX);
    strbuf_add(text, STR("cloud,region,instance_type,capacity_type,usd_per_hour,gpus,vcpus,"
                         "memory_gib,usd_per_vcpu,usd_per_gib\n"));
    for (size_t i = 0; i < n; i++) {
        size_t capacity = random_below(4);
        rows[i] = (struct row){.cloud = clouds[random_below(2)],
                               .region = regions[random_below(2)],
                               .type = types[random_below(3)],
                               .capacity = capacity_of[capacity],
                               .nano = (int64_t)random_below(200000000000),
                               .gpus = (int)random_below(9),
                               .vcpus_tenth = maybe(2000),
                               .gib_tenth = maybe(20000),
                               .vcpu = maybe(100000000),
                               .gib = maybe(10000000)};
        strbuf_addf(text, "%s,%s,%s,%s", rows[i].cloud, rows[i].region, rows[i].type,
                    capacities[capacity]);
        add_cell(text, rows[i].nano, NANO);
        strbuf_addf(text, ",%d", rows[i].gpus);
        add_cell(text, rows[i].vcpus_tenth, 10);
        add_cell(text, rows[i].gib_tenth, 10);
        add_cell(text, rows[i].vcpu, NANO);
        add_cell(text, rows[i].gib, NANO);
        strbuf_addc(text, '\n');
    }
    return n;
}

static const struct row *walk(const struct row *rows, size_t n, const struct price_query *query,
                              enum capacity_type capacity)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].cloud, query->cloud.p) == 0 &&
            strcmp(rows[i].region, query->region.p) == 0 &&
            strcmp(rows[i].type, query->instance_type.p) == 0 && rows[i].capacity == capacity)
            return &rows[i];
    return NULL;
}

/* Price in tenths of a nano-unit; -1 unpriced. */
static wide_t wanted(const struct row *rows, size_t n, const struct price_query *query,
                     const struct price_policy *policy, uint32_t *flags, int *gpus)
{
    enum capacity_type capacity =
        query->capacity == CAPACITY_UNKNOWN ? CAPACITY_ON_DEMAND : query->capacity;
    const struct row *row = walk(rows, n, query, capacity);
    *flags = 0;
    *gpus = 0;
    if (!row && capacity != CAPACITY_ON_DEMAND) {
        row = walk(rows, n, query, CAPACITY_ON_DEMAND);
        *flags = capacity == CAPACITY_SPOT ? FLAG_SPOT_AS_ON_DEMAND : FLAG_RESERVED_AS_ON_DEMAND;
    }
    if (!row) {
        *flags = FLAG_UNPRICED;
        return -1;
    }
    *gpus = row->gpus;
    if (policy->node_split == NODE_SPLIT_WHOLE)
        return (wide_t)row->nano * 10;
    int64_t p = row->vcpu >= 0 ? row->vcpu : policy->vcpu;
    int64_t q = row->gib >= 0 ? row->gib : policy->gib;
    if (p < 0 || q < 0 || row->vcpus_tenth < 0 || row->gib_tenth < 0) {
        *flags |= FLAG_SPLIT_UNKNOWN;
        return (wide_t)row->nano * 10;
    }
    wide_t rest =
        (wide_t)row->nano * 10 - (wide_t)p * row->vcpus_tenth - (wide_t)q * row->gib_tenth;
    return rest > 0 ? rest : 0;
}

static void check(const struct prices *prices, const struct row *rows, size_t n,
                  const struct price_policy *policy)
{
    for (int i = 0; i < QUERIES; i++) {
        struct price_query query = {.node = STR("n"),
                                    .cloud = str_of(clouds[random_below(2)]),
                                    .region = str_of(regions[random_below(2)]),
                                    .instance_type = str_of(types[random_below(3)]),
                                    .capacity =
                                        (enum capacity_type)random_below(CAPACITY_TYPE_COUNT)};
        struct price price;
        uint32_t flags;
        int gpus;
        wide_t tenths = wanted(rows, n, &query, policy, &flags, &gpus);
        prices_find(prices, &query, &price);
        assert_int_equal(price.flags, flags);
        assert_int_equal(price.gpus, gpus);
        assert_int_equal(price.known, tenths >= 0);
        if (tenths >= 0)
            assert_true((wide_t)price.num * 10 == tenths * price.den);
        assert_true(price.from == TIME_MIN && price.to == TIME_MAX && !price.per_gpu);
    }
}

static void random_lists_give_the_prices_of_the_reference(void **unused)
{
    (void)unused;
    for (int list = 0; list < LISTS; list++) {
        struct row rows[ROWS_MAX];
        struct strbuf text = {0};
        struct error error;
        struct prices *prices = prices_new();
        /* no catalogue: the reference has none, and would not know its price of a vCPU */
        struct price_policy policy = {.node_split = (enum node_split)random_below(2),
                                      .vcpu = maybe(100000000),
                                      .gib = maybe(10000000),
                                      .no_catalogue = true};
        size_t n = random_list(rows, &text);
        if (prices_add_csv_text(prices, "p.csv", strbuf_str(&text), &error))
            fail_msg("%s", error.text);
        prices_set_policy(prices, &policy);
        prices_ready(prices);
        check(prices, rows, n, &policy);
        prices_free(prices);
        strbuf_release(&text);
    }
}

int main(void)
{
    const char *seed = getenv("GPUTALLY_SEED");
    state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("GPUTALLY_SEED=%llu\n", (unsigned long long)state);
    state = state * 2654435769u + 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lists_give_the_prices_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
