/* Reports: worked examples by hand, and random queries against a plain loop over all rows. */
#include <math.h>

#include "../../lib/random_rows.h"
#include "../../lib/unit.h"
#include "query/keys.h"
#include "query/window.h"
#include "store/internal.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define USD NANO

/* cmocka's are of float */
#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

/* by_hour: with sums of hours. */
static struct store *store_of_days(const struct row_batch *batch, bool by_hour)
{
    struct store *store;
    must(store_open(":memory:", STORE_WRITE, batch->names, &store, &failure));
    store->rows_a_sum = by_hour;
    must(store_begin(store, &failure));
    must(store_append(store, batch, &failure));
    must(store_commit(store, NULL, &failure));
    return store;
}

static struct store *store_of(const struct row_batch *batch)
{
    return store_of_days(batch, false);
}

static struct result *run(struct store *store, const char *keys, const char *const *filters,
                          struct span window, const char *tz)
{
    struct query query = {.window = window, .tz = tz};
    struct result *result;
    if (*keys)
        must(query_parse_keys(str_of(keys), &query, &failure));
    for (; filters && *filters; filters++)
        must(query_parse_filter(str_of(*filters), &query, &failure));
    must(query_run(store, &query, &result, &failure));
    return result;
}

static const struct group *group(const struct result *result, const char *a, const char *b)
{
    for (size_t g = 0; g < result->groups_n; g++)
        if (str_eq(result->groups[g].keys[0], str_of(a)) &&
            (!b || str_eq(result->groups[g].keys[1], str_of(b))))
            return &result->groups[g];
    fail_msg("no group %s %s", a, b ? b : "");
    return NULL;
}

/* One node of two $4 GPUs, hours 0 and 1. GPU 0 is held by search/Deployment, half used in hour 0
 * and idle in hour 1; GPU 1 is free. Hand: cost 4 x 4 = 16; used 2; slack 2; held idle 4 - 0.2. */
static void small_ledger(struct row_batch *batch)
{
    struct names *names = batch->names;
    batch->hours = (struct span){H0, H0 + 2 * HOUR_MS};
    for (int h = 0; h < 2; h++) {
        struct node_hour hour = {.hour = H0 + h * HOUR_MS,
                                 .node = names_put(names, STR("n1")),
                                 .pool = names_put(names, STR("gpu")),
                                 .price = 8 * USD,
                                 .booked = 8 * USD,
                                 .up_ms = HOUR_MS,
                                 .gpus = 2};
        mem_push(batch->node_hours, batch->node_hours_n, batch->node_hours_room, hour);
        for (int g = 0; g < 2; g++) {
            struct row row;
            memset(&row, 0, sizeof row);
            row.key.hour = hour.hour;
            row.key.node = hour.node;
            row.key.device = names_put(names, g ? STR("GPU-b") : STR("GPU-a"));
            row.facts.pool = hour.pool;
            row.facts.model = names_put(names, STR("H100"));
            row.share_den = 1;
            row.cost = 4 * USD;
            row.gpu_num = HOUR_MS;
            if (g == 0) {
                row.key.namespace = names_put(names, STR("search"));
                row.key.pod = names_put(names, STR("rank-0"));
                row.facts.workload = names_put(names, STR("Deployment/rank"));
                row.facts.owner = names_put(names, STR("search"));
                row.facts.type = WORKLOAD_INFERENCE;
                row.held_ms = row.gpu_held_num = HOUR_MS;
                row.observed_ms = row.gpu_observed_num = HOUR_MS;
                row.u = h ? HOUR_MS * (NANO / 20) : HOUR_MS * (NANO / 2); /* 5 % and 50 % */
                row.gpu_u_num = row.u;
                row.state_ms[h ? STATE_IDLE : STATE_BUSY] = HOUR_MS;
                row.gpu_state_num[h ? STATE_IDLE : STATE_BUSY] = HOUR_MS;
                row.category[CATEGORY_USED] = h ? USD / 5 : 2 * USD;
                row.category[h ? CATEGORY_HELD_IDLE : CATEGORY_SLACK] = row.cost - row.category[0];
                row.energy_mj = 1000;
                row.flags = h ? FLAG_STEP : FLAG_STEP | FLAG_BY_COUNT;
            } else {
                row.category[CATEGORY_STRANDED] = row.cost;
            }
            mem_push(batch->rows, batch->rows_n, batch->rows_room, row);
        }
    }
}

static void figures_are_those_worked_out_by_hand(void **state)
{
    (void)state;
    struct row_batch batch = {.names = names_new()};
    small_ledger(&batch);
    struct store *store = store_of(&batch);
    struct span window = {H0 - DAY_MS, H0 + DAY_MS};
    struct result *result = run(store, "team", NULL, window, NULL);
    assert_int_equal(result->groups_n, 2);
    const struct figures *f = &group(result, "search", NULL)->figures;
    assert_int_equal(f->cost, 8 * USD);
    assert_int_equal(f->category[CATEGORY_USED], 2 * USD + USD / 5);
    assert_int_equal(f->category[CATEGORY_SLACK], 2 * USD);
    assert_int_equal(f->category[CATEGORY_HELD_IDLE], 4 * USD - USD / 5);
    assert_true(f->gpu_ns == 2 * (wide_t)3600 * NANO);
    assert_true(f->gpu_state_held_ns[STATE_IDLE] == (wide_t)3600 * NANO);
    assert_true(f->flag_cost[FLAG_INDEX_STEP] == 8 * USD);
    assert_true(f->flag_cost[FLAG_INDEX_BY_COUNT] == 4 * USD);
    assert_true(f->flag_gpu_ns[FLAG_INDEX_BY_COUNT] == (wide_t)3600 * NANO);
    /* 0.55 useful GPU-hours of 2: 27.5 %; $8 / 0.55 h = $14.545454… */
    assert_near(figures_utilisation(f), 0.275);
    assert_near(figures_effective_price(f), 8 / 0.55);
    assert_near(figures_coverage(f), 1);
    assert_near(figures_efficiency(f), 2.2 / 8);
    const struct figures *idle = &group(result, "-", NULL)->figures;
    assert_int_equal(figures_node_idle(idle), 8 * USD);
    assert_true(isnan(figures_utilisation(idle)) && isnan(figures_coverage(idle)));
    assert_true(isnan(figures_efficiency(idle)) && isnan(figures_effective_price(idle)));
    /* over all, efficiency is of what was held: 2.2 of 8, not of 16 */
    assert_near(figures_efficiency(&result->total), 2.2 / 8);
    assert_int_equal(result->total.cost, 16 * USD);
    assert_int_equal(result->price, 16 * USD);
    assert_int_equal(result->booked, 16 * USD);
    assert_int_equal(result->node_hours, 2);
    assert_int_equal(result->gpus, 2);
    assert_int_equal(result->nodes, 1);
    assert_int_equal(result->recorded.from, H0);
    assert_int_equal(result->recorded.to, H0 + 2 * HOUR_MS);
    result_free(result);
    store_close(store);
    names_free(batch.names);
    row_batch_release(&batch);
}

static void a_share_of_a_gpu_weighs_as_its_share(void **state)
{
    (void)state;
    struct row_batch batch = {.names = names_new()};
    small_ledger(&batch);
    /* 2/7 of the GPU: 3,600,000 x 2 / 7 ms = 1,028,571.428571… ms -> 1,028,571,428,571 ns */
    batch.rows_n = 1;
    batch.rows[0].share_den = 7;
    batch.rows[0].gpu_num = batch.rows[0].gpu_held_num = batch.rows[0].gpu_observed_num =
        2 * HOUR_MS;
    batch.rows[0].gpu_u_num = 2 * batch.rows[0].u;
    struct store *store = store_of(&batch);
    struct result *result = run(store, "", NULL, batch.hours, NULL);
    assert_int_equal(result->groups_n, 1);
    assert_true(result->total.gpu_ns == INT64_C(1028571428571));
    assert_true(result->total.gpu_held_ns == INT64_C(1028571428571));
    assert_near(figures_utilisation(&result->total), 0.5);
    result_free(result);
    store_close(store);
    names_free(batch.names);
    row_batch_release(&batch);
}

static void categories_and_causes_split_money_only(void **state)
{
    (void)state;
    struct row_batch batch = {.names = names_new()};
    small_ledger(&batch);
    struct store *store = store_of(&batch);
    struct result *result = run(store, "category,cause", NULL, batch.hours, NULL);
    assert_int_equal(result->groups_n, 4);
    assert_int_equal(group(result, "used", "-")->figures.cost, 2 * USD + USD / 5);
    assert_int_equal(group(result, "slack", "-")->figures.cost, 2 * USD);
    assert_int_equal(group(result, "node_idle", "stranded")->figures.cost, 8 * USD);
    assert_int_equal(group(result, "held_idle", "-")->figures.cost, 4 * USD - USD / 5);
    assert_true(group(result, "used", "-")->figures.gpu_ns == 0);
    assert_int_equal(result->total.cost, 16 * USD);
    result_free(result);
    result =
        run(store, "team", (const char *const[]){"category=held_idle", NULL}, batch.hours, NULL);
    assert_int_equal(result->groups_n, 1);
    assert_int_equal(result->groups[0].figures.cost, 4 * USD - USD / 5);
    assert_int_equal(result->booked, 16 * USD);
    result_free(result);
    store_close(store);
    names_free(batch.names);
    row_batch_release(&batch);
}

static void groups_sort_by_figures_and_by_name(void **state)
{
    (void)state;
    struct row_batch batch = {.names = names_new()};
    small_ledger(&batch);
    struct store *store = store_of(&batch);
    struct result *result = run(store, "hour,team", NULL, batch.hours, NULL);
    assert_int_equal(result->groups_n, 4);
    must(result_sort(result, STR("used"), &failure));
    assert_true(str_eq(result->groups[0].keys[1], STR("search")));
    assert_true(str_eq(result->groups[0].keys[0], STR("2026-11-30T00:00:00Z")));
    must(result_sort(result, STR("name"), &failure));
    assert_true(str_eq(result->groups[0].keys[1], STR("-")));
    assert_true(str_eq(result->groups[3].keys[0], STR("2026-11-30T01:00:00Z")));
    must(result_sort(result, STR_NONE, &failure)); /* cost: all are 4, so by name */
    assert_true(str_eq(result->groups[0].keys[1], STR("-")));
    must(result_sort(result, STR("utilisation"), &failure)); /* none at the end */
    assert_true(str_eq(result->groups[3].keys[1], STR("-")));
    assert_int_equal(result_sort(result, STR("held-idel"), &failure), ERR_USAGE);
    assert_non_null(strstr(failure.text, "did you mean held_idle"));
    result_free(result);
    store_close(store);
    names_free(batch.names);
    row_batch_release(&batch);
}

/* Hand: search holds $4 an hour on GPU-a for two hours, GPU-b is nobody's for $4 an hour. */
static void a_condition_may_have_any_shape(void **state)
{
    (void)state;
#define FITS(key_, not, glob)                                                                      \
    {                                                                                              \
        QUERY_FITS, {KEY_##key_, not, STR(glob)}, 0                                                \
    }
    const struct query_condition either[] = {
        {.test = QUERY_ANY, .inside = 2}, FITS(TEAM, false, "se*"), FITS(GPU, false, "GPU-b")};
    const struct query_condition nested[] = {
        {.test = QUERY_ALL, .inside = 4}, FITS(NODE, false, "n1"),
        {.test = QUERY_ANY, .inside = 2}, FITS(POD, false, "rank-0"),
        FITS(KIND, false, "Job"),
    };
    const struct query_condition none[] = {
        {.test = QUERY_ALL, .inside = 2}, FITS(TEAM, true, "search"), FITS(GPU, true, "GPU-b")};
    const struct query_condition nobody[] = {FITS(NAMESPACE, false, "-")};
    const struct query_condition empty[] = {{.test = QUERY_ANY}};
#undef FITS
    const struct {
        const struct query_condition *where;
        size_t n;
        money_t cost;
    } cases[] = {{either, 3, 16 * USD}, {nested, 5, 8 * USD}, {none, 3, 0},
                 {nobody, 1, 8 * USD},  {empty, 1, 0},        {NULL, 0, 16 * USD}};
    struct row_batch batch = {.names = names_new()};
    small_ledger(&batch);
    struct store *store = store_of(&batch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query query = {
            .window = {H0 - DAY_MS, H0 + DAY_MS}, .where = cases[i].where, .where_n = cases[i].n};
        struct result *result;
        must(query_run(store, &query, &result, &failure));
        if (result->total.cost != cases[i].cost)
            fail_msg("case %zu: %lld", i, (long long)result->total.cost);
        assert_int_equal(result->price, 16 * USD); /* the nodes' side is left alone */
        result_free(result);
    }
    store_close(store);
    names_free(batch.names);
    row_batch_release(&batch);
}

static void wrong_keys_and_filters_name_what_was_meant(void **state)
{
    (void)state;
    struct query query = {0};
    assert_int_equal(query_parse_keys(STR("tema"), &query, &failure), ERR_USAGE);
    assert_non_null(strstr(failure.text, "did you mean team"));
    assert_int_equal(query_parse_keys(STR("team,"), &query, &failure), ERR_USAGE);
    assert_int_equal(query_parse_keys(STR(""), &query, &failure), ERR_USAGE);
    assert_int_equal(query_parse_keys(STR("team,team"), &query, &failure), ERR_USAGE);
    assert_int_equal(query_parse_keys(STR("team,node,gpu,pod,day,hour,type"), &query, &failure),
                     ERR_USAGE);
    assert_int_equal(query.keys_n, 0);
    must(query_parse_keys(STR("team, instance-type"), &query, &failure));
    assert_int_equal(query.keys_n, 2);
    assert_int_equal(query_parse_filter(STR("team"), &query, &failure), ERR_USAGE);
    assert_int_equal(query_parse_filter(STR("=x"), &query, &failure), ERR_USAGE);
    assert_int_equal(query_parse_filter(STR("nod=x"), &query, &failure), ERR_USAGE);
    assert_non_null(strstr(failure.text, "did you mean node"));
    must(query_parse_filter(STR("node!=a=b"), &query, &failure));
    assert_int_equal(query.filters_n, 1);
    assert_true(query.filters[0].negate && str_eq(query.filters[0].value, STR("a=b")));
}

/* Random queries against a loop over all rows. */

static const char *or_none(const struct names *names, name_t name)
{
    return name ? names_text(names, name).p : "-";
}

static void key_text(const struct names *names, enum key key, const struct row *row, int category,
                     const char *tz, char *out)
{
    bool node_idle = category >= CATEGORY_NODE_IDLE_FIRST && category <= CATEGORY_NODE_IDLE_LAST;
    const char *text = "-";
    switch (key) {
    case KEY_CLUSTER:
        text = or_none(names, row->key.cluster);
        break;
    case KEY_NODE:
        text = or_none(names, row->key.node);
        break;
    case KEY_POOL:
        text = or_none(names, row->facts.pool);
        break;
    case KEY_INSTANCE_TYPE:
        text = or_none(names, row->facts.instance_type);
        break;
    case KEY_REGION:
        text = or_none(names, row->facts.region);
        break;
    case KEY_CLOUD:
        text = or_none(names, row->facts.cloud);
        break;
    case KEY_CAPACITY_TYPE:
        text = capacity_type_words[row->facts.capacity];
        break;
    case KEY_MODEL:
        text = or_none(names, row->facts.model);
        break;
    case KEY_GPU:
        text = or_none(names, row->key.device);
        break;
    case KEY_INSTANCE:
        text = or_none(names, row->key.instance);
        break;
    case KEY_NAMESPACE:
        text = or_none(names, row->key.namespace);
        break;
    case KEY_TEAM:
        text = or_none(names, row->facts.owner);
        break;
    case KEY_WORKLOAD:
        text = or_none(names, row->facts.workload);
        break;
    case KEY_KIND:
        snprintf(out, 64, "%s", or_none(names, row->facts.workload));
        out[strcspn(out, "/")] = 0;
        return;
    case KEY_TYPE:
        text = workload_type_words[row->facts.type];
        break;
    case KEY_POD:
        text = or_none(names, row->key.pod);
        break;
    case KEY_CONTAINER:
        text = or_none(names, row->key.container);
        break;
    case KEY_CATEGORY:
        text = category < 0 ? "-" : node_idle ? "node_idle" : category_columns[category];
        break;
    case KEY_CAUSE:
        text = node_idle ? category_words[category] : "-";
        break;
    case KEY_DAY:
        day_name(row->key.hour, tz, out);
        return;
    case KEY_HOUR:
        time_format(row->key.hour, out);
        return;
    case KEY_COUNT:
        break;
    }
    snprintf(out, 64, "%s", text);
}

static bool fits(const struct names *names, const struct query *query, const struct row *row,
                 int category, bool only_nodes)
{
    for (enum key key = 0; key < KEY_COUNT; key++) {
        bool of_node = key <= KEY_CAPACITY_TYPE;
        bool asked = false, wanted = false;
        if ((only_nodes && !of_node) || (category < 0 && (key == KEY_CATEGORY || key == KEY_CAUSE)))
            continue;
        char text[64];
        key_text(names, key, row, category, query->tz, text);
        for (size_t i = 0; i < query->filters_n; i++) {
            if (query->filters[i].key != key)
                continue;
            bool match = str_glob(query->filters[i].value, str_of(text));
            if (query->filters[i].negate && match)
                return false;
            asked |= !query->filters[i].negate;
            wanted |= match && !query->filters[i].negate;
        }
        if (asked && !wanted)
            return false;
    }
    return true;
}

struct expected {
    struct {
        char keys[QUERY_KEYS_MAX][64];
        struct figures figures;
    } * groups;
    size_t n, room;
    struct figures total;
    money_t booked;
};

static struct figures *expected_group(struct expected *expected, const struct names *names,
                                      const struct query *query, const struct row *row,
                                      int category)
{
    char keys[QUERY_KEYS_MAX][64];
    memset(keys, 0, sizeof keys);
    for (size_t k = 0; k < query->keys_n; k++)
        key_text(names, query->keys[k], row, category, query->tz, keys[k]);
    for (size_t g = 0; g < expected->n; g++) {
        bool same = true;
        for (size_t k = 0; k < query->keys_n; k++)
            same &= strcmp(expected->groups[g].keys[k], keys[k]) == 0;
        if (same)
            return &expected->groups[g].figures;
    }
    mem_reserve(expected->groups, expected->n, expected->room, 1);
    memset(&expected->groups[expected->n], 0, sizeof *expected->groups);
    memcpy(expected->groups[expected->n].keys, keys, sizeof keys);
    return &expected->groups[expected->n++].figures;
}

static void expect_row(struct expected *expected, const struct names *names,
                       const struct query *query, const struct row *row, bool splits)
{
    if (fits(names, query, row, -1, true))
        expected->booked += row->cost;
    if (!splits) {
        if (fits(names, query, row, -1, false)) {
            figures_add_row(expected_group(expected, names, query, row, -1), row);
            figures_add_row(&expected->total, row);
        }
        return;
    }
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        if (!row->category[c] || !fits(names, query, row, c, false))
            continue;
        struct figures part = {.cost = row->category[c]};
        part.category[c] = row->category[c];
        figures_add(expected_group(expected, names, query, row, c), &part);
        figures_add(&expected->total, &part);
    }
}

static void compare(const struct result *result, const struct expected *expected)
{
    assert_int_equal(result->groups_n, expected->n);
    assert_memory_equal(&result->total, &expected->total, sizeof result->total);
    assert_int_equal(result->booked, expected->booked);
    for (size_t e = 0; e < expected->n; e++) {
        const struct group *found = NULL;
        for (size_t g = 0; g < result->groups_n && !found; g++) {
            bool same = true;
            for (size_t k = 0; k < result->query.keys_n; k++)
                same &= str_eq(result->groups[g].keys[k], str_of(expected->groups[e].keys[k]));
            found = same ? &result->groups[g] : NULL;
        }
        if (!found)
            fail_msg("no group %s %s", expected->groups[e].keys[0], expected->groups[e].keys[1]);
        if (memcmp(&found->figures, &expected->groups[e].figures, sizeof found->figures) != 0)
            fail_msg("figures of %s %s", expected->groups[e].keys[0], expected->groups[e].keys[1]);
    }
}

static void random_keys(struct dice *dice, struct query *query)
{
    query->keys_n = dice_below(dice, 4);
    for (size_t k = 0; k < query->keys_n; k++)
        query->keys[k] = (enum key)dice_below(dice, KEY_COUNT);
}

static void random_query(struct dice *dice, const struct row_batch *rows, struct query *query)
{
    static char values[QUERY_FILTERS_MAX][64];
    time_ms from = H0 + (time_ms)dice_below(dice, 40) * HOUR_MS;
    query->window = (struct span){from, from + (time_ms)(1 + dice_below(dice, 80)) * HOUR_MS};
    if (dice_chance(dice, 40))
        query->window = (struct span){H0, H0 + (time_ms)(1 + dice_below(dice, 4)) * DAY_MS};
    if (dice_chance(dice, 30))
        query->tz = dice_chance(dice, 50) ? "Europe/Berlin" : "Asia/Kolkata";
    random_keys(dice, query);
    for (uint64_t n = dice_below(dice, 3); n > 0; n--) {
        struct query_filter *filter = &query->filters[query->filters_n];
        char *value = values[query->filters_n++];
        filter->key = (enum key)dice_below(dice, KEY_COUNT);
        filter->negate = dice_chance(dice, 40);
        if (rows->rows_n)
            key_text(rows->names, filter->key, &rows->rows[dice_below(dice, rows->rows_n)],
                     (int)dice_below(dice, CATEGORY_COUNT), query->tz, value);
        if (dice_chance(dice, 30) && strlen(value) > 1)
            strcpy(value + strlen(value) - 1, "*");
        filter->value = str_of(value);
    }
}

static void compare_with_loop(const struct result *result, const struct row_batch *batch,
                              const struct query *query)
{
    struct expected expected = {0};
    bool splits = false;
    for (size_t k = 0; k < query->keys_n; k++)
        splits |= query->keys[k] == KEY_CATEGORY || query->keys[k] == KEY_CAUSE;
    for (size_t i = 0; i < query->filters_n; i++)
        splits |= query->filters[i].key == KEY_CATEGORY || query->filters[i].key == KEY_CAUSE;
    for (size_t i = 0; i < batch->rows_n; i++)
        if (batch->rows[i].key.hour >= query->window.from &&
            batch->rows[i].key.hour < query->window.to)
            expect_row(&expected, batch->names, query, &batch->rows[i], splits);
    compare(result, &expected);
    free(expected.groups);
}

/* The nodes' side: node-hours that the filters on nodes leave, what they cost, and the distinct
 * nodes; GPUs, where nothing is filtered: those that have rows. */
static void compare_nodes(const struct result *result, const struct row_batch *batch,
                          const struct query *query)
{
    uint64_t hours = 0, nodes = 0, gpus = 0;
    money_t price = 0;
    size_t names_n = 1 + names_put(batch->names, STR("a name after all others"));
    bool *seen = mem_zalloc(names_n, sizeof *seen); /* names of nodes and GPUs tell clusters too */
    for (size_t i = 0; i < batch->node_hours_n; i++) {
        const struct node_hour *hour = &batch->node_hours[i];
        const struct row row = {
            .key = {.hour = hour->hour, .cluster = hour->cluster, .node = hour->node},
            .facts = {.instance_type = hour->instance_type,
                      .pool = hour->pool,
                      .region = hour->region,
                      .cloud = hour->cloud,
                      .capacity = hour->capacity}};
        if (hour->hour < query->window.from || hour->hour >= query->window.to ||
            !fits(batch->names, query, &row, -1, true))
            continue;
        hours++;
        price += hour->booked;
        nodes += !seen[hour->node];
        seen[hour->node] = true;
    }
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row_key *key = &batch->rows[i].key;
        if (key->hour < query->window.from || key->hour >= query->window.to)
            continue;
        gpus += !seen[key->device];
        seen[key->device] = true;
    }
    free(seen);
    assert_int_equal(result->node_hours, hours);
    assert_int_equal(result->price, price);
    assert_int_equal(result->nodes, nodes);
    if (!query->filters_n)
        assert_int_equal(result->gpus, gpus);
}

/* Alone and beside others that one scan answers. */
static void any_query_equals_a_loop_over_rows(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    for (int round = 0; round < 12; round++) {
        struct row_batch batch = {.names = names_new(), .hours = {H0, H0 + 100 * HOUR_MS}};
        for (int h = 0; h < 100; h++)
            for (int n = 0; n < 3; n++) {
                char text[32];
                snprintf(text, sizeof text, "node-%d", n);
                name_t cluster = n == 2 ? names_put(batch.names, STR("eu")) : NAME_NONE;
                if (dice_chance(&dice, 70))
                    random_node_hour(&dice, &batch, H0 + h * HOUR_MS, cluster,
                                     names_put(batch.names, str_of(text)));
            }
        struct store *store = store_of_days(&batch, round % 2);
        for (int q = 0; q < 60; q++) {
            struct query queries[QUERY_RUN_MAX];
            memset(queries, 0, sizeof queries);
            struct result *results[QUERY_RUN_MAX];
            size_t n = 1 + dice_below(&dice, QUERY_RUN_MAX);
            random_query(&dice, &batch, &queries[0]);
            for (size_t i = 1; i < n; i++) {
                queries[i] = queries[0];
                random_keys(&dice, &queries[i]);
            }
            must(query_run_beside(store, queries, n, results, &failure));
            for (size_t i = 0; i < n; i++) {
                compare_with_loop(results[i], &batch, &queries[i]);
                compare_nodes(results[i], &batch, &queries[i]);
                result_free(results[i]);
            }
        }
        store_close(store);
        names_free(batch.names);
        row_batch_release(&batch);
    }
}

/* Of a series with rows at 22, 23 and 1 o'clock: by the hour only where a filter is on it. */
static void filters_are_told_by_the_hours_of_a_series(void **state)
{
    (void)state;
    const struct {
        struct query_filter filters[2];
        size_t n;
        uint32_t hours;
    } cases[] = {
        {{{KEY_NODE, false, STR("x")}}, 0, 1u << 1 | 3u << 22},
        {{{KEY_NODE, false, STR("n")}}, 1, 1u << 1 | 3u << 22},
        {{{KEY_NODE, false, STR("m")}}, 1, 0},
        {{{KEY_HOUR, false, STR("*T2*")}}, 1, 3u << 22},
        {{{KEY_HOUR, true, STR("*T22*")}}, 1, 1u << 1 | 1u << 23},
        {{{KEY_DAY, false, STR("2026-12-01")}}, 1, 1u << 23}, /* in Berlin, an hour ahead */
        {{{KEY_DAY, false, STR("2026-11-30")}, {KEY_TEAM, false, STR("t")}}, 2, 1u << 1 | 1u << 22},
        {{{KEY_DAY, false, STR("2026-11-30")}, {KEY_TEAM, true, STR("t")}}, 2, 0},
        {{{KEY_CATEGORY, false, STR("used")}}, 1, 1u << 1 | 3u << 22}, /* of parts of rows */
    };
    struct names *names = names_new();
    struct day_series series = {.key = {.hour = H0 + HOUR_MS, .node = names_put(names, STR("n"))},
                                .facts = {.owner = names_put(names, STR("t"))},
                                .hours = 1u << 1 | 3u << 22,
                                .n = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query query = {.filters_n = cases[i].n, .tz = "Europe/Berlin"};
        struct keys keys;
        struct filters filters;
        memcpy(query.filters, cases[i].filters, sizeof cases[i].filters);
        must(keys_init(&keys, names, query.tz, &failure));
        filters_init(&filters, &query, &keys);
        assert_int_equal(filters_pass_hours(&filters, &series), cases[i].hours);
        filters_release(&filters);
        keys_release(&keys);
    }
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_worked_out_by_hand),
        cmocka_unit_test(a_share_of_a_gpu_weighs_as_its_share),
        cmocka_unit_test(categories_and_causes_split_money_only),
        cmocka_unit_test(groups_sort_by_figures_and_by_name),
        cmocka_unit_test(a_condition_may_have_any_shape),
        cmocka_unit_test(wrong_keys_and_filters_name_what_was_meant),
        cmocka_unit_test(filters_are_told_by_the_hours_of_a_series),
        cmocka_unit_test(any_query_equals_a_loop_over_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
