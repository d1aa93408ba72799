/* The price book: rules, the order in which they are asked, and the arithmetic of an answer.
 *
 * An answer holds for a span. Every row and rule that is about the node, valid now or not, cuts the
 * span at the ends of its validity that lie around the instant; that may cut where the price stays
 * the same, which the ledger does not mind, and never misses a change.
 *
 * A price file goes in front of the catalogue as a whole: a type that the file lists is priced by
 * the file, also where a spot node has to take its on-demand row. Prices of the user's and of the
 * catalogue are not mixed for one type. */
#include "fleet/prices.h"

#include <stdlib.h>
#include <xxhash.h>

#include "fleet/catalogue.h"
#include "fleet/labels.h"
#include "fleet/prices_book.h"

const char *const capacity_type_words[CAPACITY_TYPE_COUNT] = {"on-demand", "spot", "reserved",
                                                              "unknown"};

#define DISCOUNT_WHOLE 1000000 /* 100 % in 1e-4 % */
#define PPM 1000000

struct prices *prices_new(void)
{
    struct prices *prices = mem_zalloc(1, sizeof *prices);
    prices->policy = (struct price_policy){.vcpu = -1, .gib = -1};
    return prices;
}

void prices_free(struct prices *prices)
{
    if (!prices)
        return;
    free(prices->rules);
    free(prices->rows);
    free(prices->assets);
    free(prices->problems);
    arena_release(&prices->arena);
    free(prices);
}

struct str price_label(const struct label *labels, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (label_name_same(labels[i].name, name))
            return labels[i].value;
    return STR_NONE;
}

static const struct label *keep_labels(struct arena *arena, const struct label *labels, size_t n)
{
    struct label *copy = arena_alloc(arena, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = (struct label){str_keep(arena, labels[i].name), str_keep(arena, labels[i].value)};
    return copy;
}

static void digest(struct prices *prices, struct str text)
{
    prices->digest = XXH3_64bits_withSeed(text.p, text.n, prices->digest + 1);
}

uint64_t prices_digest(const struct prices *prices)
{
    return prices->digest;
}

void prices_add_rule(struct prices *prices, const struct price_rule *rule)
{
    struct price_rule copy = *rule;
    struct price_selector *selector = &copy.selector;
    struct str *texts[] = {&selector->cluster, &selector->node,          &selector->cloud,
                           &selector->region,  &selector->instance_type, &selector->gpu_model,
                           &copy.source};
    invariant(!prices->ready && rule->amount >= 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = str_keep(&prices->arena, *texts[i]);
        digest(prices, *texts[i]);
    }
    selector->labels = keep_labels(&prices->arena, selector->labels, selector->labels_n);
    for (size_t i = 0; i < selector->labels_n; i++) {
        digest(prices, selector->labels[i].name);
        digest(prices, selector->labels[i].value);
    }
    int64_t numbers[] = {rule->kind,         rule->amount,         selector->any_capacity,
                         selector->capacity, selector->valid.from, selector->valid.to};
    digest(prices, (struct str){(const char *)numbers, sizeof numbers});
    if (rule->kind != PRICE_RULE_DISCOUNT)
        prices->priced = true;
    mem_push(prices->rules, prices->rules_n, prices->rules_room, copy);
}

void prices_set_policy(struct prices *prices, const struct price_policy *policy)
{
    prices->policy = *policy;
}

bool prices_configured(const struct prices *prices)
{
    return prices->priced;
}

const struct price_problem *prices_problems(const struct prices *prices, size_t *ret_n)
{
    *ret_n = prices->problems_n;
    return prices->problems;
}

static int row_order(const void *a, const void *b)
{
    const struct price_row *x = a, *y = b;
    int order = str_cmp(x->instance_type, y->instance_type);
    if (order)
        return order;
    if (x->file != y->file)
        return x->file > y->file ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static bool same_key(const struct price_row *a, const struct price_row *b)
{
    return a->file == b->file && str_eq(a->instance_type, b->instance_type) &&
           str_eq(a->cloud, b->cloud) && str_eq(a->region, b->region) &&
           a->capacity == b->capacity && a->valid.from < b->valid.to && b->valid.from < a->valid.to;
}

/* Rows next to each other that say different prices for one thing at one time. */
static void tell_contradictions(struct prices *prices)
{
    size_t told = 0;
    for (size_t i = 1; i < prices->rows_n && told < PRICE_PROBLEMS_MAX; i++) {
        const struct price_row *first = &prices->rows[i - 1], *row = &prices->rows[i];
        if (!same_key(first, row) || first->price == row->price)
            continue;
        struct strbuf text = {0};
        strbuf_addf(&text, "%s: %.*s has another price in line %d, which is the one that is used",
                    row->source, STR_ARG(row->instance_type), first->line);
        struct price_problem problem = {str_keep(&prices->arena, strbuf_str(&text)).p, true};
        mem_push(prices->problems, prices->problems_n, prices->problems_room, problem);
        strbuf_release(&text);
        told++;
    }
}

void prices_ready(struct prices *prices)
{
    if (prices->ready)
        return;
    if (prices->rows_n)
        qsort(prices->rows, prices->rows_n, sizeof *prices->rows, row_order);
    tell_contradictions(prices);
    prices->ready = true;
}

bool prices_has_catalogue(const struct prices *prices)
{
    return !prices->policy.no_catalogue && !prices->policy.not_in_usd;
}

static struct str cloud_of(const struct price_query *query)
{
    return str_eq(query->cloud, STR("gce")) ? STR("gcp") : query->cloud;
}

static bool fits(struct str glob, struct str text)
{
    if (glob.n == 0 || str_eq(glob, text))
        return true;
    for (size_t i = 0; i < glob.n; i++)
        if (memchr("*?[", glob.p[i], 3))
            return str_glob(glob, text);
    return false;
}

static bool model_fits(struct str wanted, struct str model)
{
    if (fits(wanted, model))
        return true;
    const struct gpu_model *gpu = catalogue_gpu(wanted);
    return gpu && model.n && gpu == catalogue_gpu(model);
}

/* About this node, whatever the time. */
static bool selects(const struct price_selector *selector, const struct price_query *query)
{
    if (!fits(selector->cluster, query->cluster) || !fits(selector->node, query->node) ||
        !fits(selector->cloud, cloud_of(query)) || !fits(selector->region, query->region) ||
        !fits(selector->instance_type, query->instance_type) ||
        !model_fits(selector->gpu_model, query->gpu_model))
        return false;
    enum capacity_type capacity =
        query->capacity == CAPACITY_UNKNOWN ? CAPACITY_ON_DEMAND : query->capacity;
    if (!selector->any_capacity && selector->capacity != capacity)
        return false;
    for (size_t i = 0; i < selector->labels_n; i++) {
        struct str value = price_label(query->labels, query->labels_n, selector->labels[i].name);
        if (value.n == 0 || !fits(selector->labels[i].value, value))
            return false;
    }
    return true;
}

/* Is it valid at the instant? Either way the answer holds no longer than up to its ends. */
static bool valid(struct span span, time_ms at, struct price *ret)
{
    if (span.from > at) {
        ret->to = span.from < ret->to ? span.from : ret->to;
        return false;
    }
    if (span.to <= at) {
        ret->from = span.to > ret->from ? span.to : ret->from;
        return false;
    }
    ret->from = span.from > ret->from ? span.from : ret->from;
    ret->to = span.to < ret->to ? span.to : ret->to;
    return true;
}

static const struct price_rule *override_of(const struct prices *prices,
                                            const struct price_query *query, struct price *ret)
{
    const struct price_rule *found = NULL;
    bool found_named = false;
    for (size_t i = 0; i < prices->rules_n; i++) {
        const struct price_rule *rule = &prices->rules[i];
        bool named = str_eq(rule->selector.node, query->node) && query->node.n;
        if ((rule->kind != PRICE_RULE_NODE && rule->kind != PRICE_RULE_GPU) ||
            (found && (found_named || !named)) || !selects(&rule->selector, query) ||
            !valid(rule->selector.valid, query->at, ret))
            continue;
        found = rule;
        found_named = named;
    }
    return found;
}

/* The default of a GPU model: by its exact name, else by a pattern or another spelling of it. */
static const struct price_rule *model_of(const struct prices *prices,
                                         const struct price_query *query, struct price *ret)
{
    const struct price_rule *found = NULL;
    bool found_exact = false;
    if (query->gpu_model.n == 0)
        return NULL;
    for (size_t i = 0; i < prices->rules_n; i++) {
        const struct price_rule *rule = &prices->rules[i];
        bool exact = str_eq(rule->selector.gpu_model, query->gpu_model);
        if (rule->kind != PRICE_RULE_MODEL || (found && (found_exact || !exact)) ||
            !selects(&rule->selector, query) || !valid(rule->selector.valid, query->at, ret))
            continue;
        found = rule;
        found_exact = exact;
    }
    return found;
}

money_t price_discounted(const struct prices *prices, const struct price_query *query,
                         money_t amount, struct price *ret)
{
    for (size_t i = 0; i < prices->rules_n; i++) {
        const struct price_rule *rule = &prices->rules[i];
        if (rule->kind != PRICE_RULE_DISCOUNT || !selects(&rule->selector, query) ||
            !valid(rule->selector.valid, query->at, ret))
            continue;
        ret->discount = rule->source.p;
        return money_round((wide_t)amount * (DISCOUNT_WHOLE - rule->amount), DISCOUNT_WHOLE);
    }
    return amount;
}

static const struct price_row *row_for(const struct prices *prices, const struct price_query *query,
                                       enum capacity_type capacity, struct price *ret)
{
    size_t from = 0, to = prices->rows_n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (str_cmp(prices->rows[middle].instance_type, query->instance_type) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    struct str cloud = cloud_of(query);
    for (; from < prices->rows_n; from++) {
        const struct price_row *row = &prices->rows[from];
        if (!str_eq(row->instance_type, query->instance_type))
            break;
        bool same = (row->cloud.n == 0 || str_eq(row->cloud, cloud)) &&
                    (row->region.n == 0 || str_eq(row->region, query->region)) &&
                    (row->any_capacity || row->capacity == capacity);
        if (same && valid(row->valid, query->at, ret))
            return row;
    }
    return NULL;
}

/* The row of a price file for the node, with a flag where it is the on-demand one instead. */
static const struct price_row *listed(const struct prices *prices, const struct price_query *query,
                                      uint32_t *ret_flags, struct price *ret)
{
    *ret_flags = 0;
    if (query->instance_type.n == 0)
        return NULL;
    const struct price_row *row = NULL;
    if (query->capacity == CAPACITY_SPOT || query->capacity == CAPACITY_RESERVED)
        row = row_for(prices, query, query->capacity, ret);
    if (row)
        return row;
    row = row_for(prices, query, CAPACITY_ON_DEMAND, ret);
    if (row && !row->any_capacity && query->capacity == CAPACITY_SPOT)
        *ret_flags = FLAG_SPOT_AS_ON_DEMAND;
    if (row && !row->any_capacity && query->capacity == CAPACITY_RESERVED)
        *ret_flags = FLAG_RESERVED_AS_ON_DEMAND;
    return row;
}

static bool asset_fits(const struct price_asset *asset, const struct price_query *query)
{
    struct str text = query->node, id = asset->id;
    if (asset->region.n && !str_eq_nocase(asset->region, query->region))
        return false;
    if (asset->field == ASSET_LABEL)
        text = price_label(query->labels, query->labels_n, asset->label);
    if (asset->field == ASSET_PROVIDER_ID) {
        text = query->provider_id;
        if (text.n > id.n && text.p[text.n - id.n - 1] == '/')
            text = (struct str){text.p + text.n - id.n, id.n};
    }
    return text.n && str_eq_nocase(text, id);
}

static const struct price_asset *asset_of(const struct prices *prices,
                                          const struct price_query *query, bool gpu)
{
    const struct price_asset *found = NULL;
    for (size_t i = 0; i < prices->assets_n; i++) {
        const struct price_asset *asset = &prices->assets[i];
        if (asset->gpu == gpu && (!found || asset->file > found->file) && asset_fits(asset, query))
            found = asset;
    }
    return found;
}

/* node_split: the node's price less its vCPUs x p less its GiB x q, at least 0, exact. */
static void split(const struct prices *prices, const struct price_query *query,
                  const struct price_row *row, const struct instance_type *size, struct price *ret)
{
    const struct price_policy *policy = &prices->policy;
    if (policy->node_split != NODE_SPLIT_RESIDUAL || query->whole)
        return;
    money_t p = row && row->vcpu >= 0 ? row->vcpu : policy->vcpu;
    money_t q = row && row->gib >= 0 ? row->gib : policy->gib;
    int64_t vcpus = row ? row->vcpus_ppm : -1, memory = row ? row->memory_ppm : -1;
    if ((vcpus < 0 || memory < 0) && size) {
        vcpus = size->vcpus_milli * (PPM / 1000);
        memory = size->memory_milli_gib * (PPM / 1000);
    }
    money_t list_p, list_q;
    if ((p < 0 || q < 0) && prices_has_catalogue(prices) &&
        catalogue_cpu_price(cloud_of(query), query->region, &list_p, &list_q)) {
        p = p < 0 ? list_p : p;
        q = q < 0 ? list_q : q;
    }
    if (p < 0 || q < 0 || vcpus < 0 || memory < 0) {
        ret->flags |= FLAG_SPLIT_UNKNOWN;
        return;
    }
    wide_t rest = (wide_t)ret->num * PPM - (wide_t)p * vcpus - (wide_t)q * memory;
    int64_t den = PPM;
    if (rest <= 0) {
        ret->num = 0;
        return;
    }
    while (den > 1 && rest % 10 == 0) {
        rest /= 10;
        den /= 10;
    }
    for (; rest > INT64_MAX; den /= 10) /* over 1e12 nano an hour and millionths of a GiB */
        rest = (rest + 5) / 10;
    ret->num = (int64_t)rest;
    ret->den = den;
}

/* Size and price in the catalogue. */
struct catalogued {
    const struct instance_type *type; /* exact */
    const struct instance_type *size; /* this or the same type of another region */
};

static struct catalogued catalogued(const struct prices *prices, const struct price_query *query)
{
    struct catalogued found = {0};
    struct str cloud = cloud_of(query);
    if (prices->policy.no_catalogue)
        return found;
    found.type = catalogue_instance(cloud, query->region, query->instance_type);
    found.size = found.type ? found.type : catalogue_instance_size(cloud, query->instance_type);
    return found;
}

static bool from_catalogue(const struct prices *prices, const struct price_query *query,
                           const struct catalogued *found, struct price *ret)
{
    const struct instance_type *type = found->type;
    if (!type || !prices_has_catalogue(prices))
        return false;
    money_t amount = query->capacity == CAPACITY_SPOT ? type->spot : -1;
    uint32_t flags = type->derived ? FLAG_CATALOGUE_DERIVED : 0;
    if (amount < 0) {
        amount = type->on_demand;
        if (query->capacity == CAPACITY_SPOT)
            flags |= FLAG_SPOT_AS_ON_DEMAND;
        if (query->capacity == CAPACITY_RESERVED)
            flags |= FLAG_RESERVED_AS_ON_DEMAND;
    }
    if (amount < 0)
        return false;
    ret->known = true;
    ret->num = price_discounted(prices, query, amount, ret);
    ret->flags = flags;
    ret->source = type->source;
    split(prices, query, NULL, type, ret);
    return true;
}

/* A price of each GPU: what is the same for all GPUs of the model. */
static bool from_model(const struct prices *prices, const struct price_query *query,
                       struct price *ret)
{
    const struct price_rule *rule = model_of(prices, query, ret);
    const struct gpu_model *gpu = NULL;
    const char *source = NULL;
    money_t median = 0;
    if (!rule && !prices->priced && prices_has_catalogue(prices))
        gpu = catalogue_gpu(query->gpu_model);
    if (!rule && !(gpu && catalogue_gpu_price(cloud_of(query), gpu, &median, &source)))
        return false;
    ret->known = ret->per_gpu = true;
    ret->flags = FLAG_DEFAULT_PRICE;
    ret->num = rule ? rule->amount : price_discounted(prices, query, median, ret);
    ret->source = rule ? rule->source.p : source;
    return true;
}

/* A row of OpenCost's: the node's price, and that of each GPU on top where its class has one. */
static bool from_asset(const struct prices *prices, const struct price_query *query,
                       const struct price_row *row, struct price *ret)
{
    const struct price_asset *node = asset_of(prices, query, false);
    const struct price_asset *gpu = asset_of(prices, query, true);
    bool own_row = row && row->any_capacity;
    if (!node && !gpu && !own_row)
        return false;
    if (!node && !own_row) {
        if (row)
            return false;
        ret->per_gpu = true;
        ret->flags = FLAG_DEFAULT_PRICE;
    }
    int gpus = query->gpus > 0 ? query->gpus : ret->gpus;
    if (gpu && !ret->per_gpu && gpus == 0)
        return false;
    wide_t amount = node ? node->price : own_row ? row->price : 0;
    if (gpu)
        amount += (wide_t)gpu->price * (ret->per_gpu ? 1 : gpus);
    if (amount > PRICE_MAX)
        return false;
    ret->known = true;
    ret->source = node ? node->source : own_row ? row->source : gpu->source;
    ret->num = price_discounted(prices, query, (money_t)amount, ret);
    return true;
}

void prices_find(const struct prices *prices, const struct price_query *query, struct price *ret)
{
    struct price price = {.den = 1, .from = TIME_MIN, .to = TIME_MAX, .source = ""};
    uint32_t flags;
    invariant(prices->ready);
    const struct price_rule *rule = override_of(prices, query, &price);
    const struct price_row *row = listed(prices, query, &flags, &price);
    struct catalogued found = catalogued(prices, query);
    price.gpus = row && row->gpus != GPUS_UNKNOWN ? row->gpus : found.size ? found.size->gpus : 0;
    if (rule) {
        price.known = true;
        price.per_gpu = rule->kind == PRICE_RULE_GPU;
        price.num = rule->amount;
        price.flags = FLAG_PRICE_OVERRIDE;
        price.source = rule->source.p;
        if (!price.per_gpu)
            split(prices, query, row, found.size, &price);
    } else if (from_asset(prices, query, row, &price)) {
        if (!price.per_gpu)
            split(prices, query, row, found.size, &price);
    } else if (row) {
        price.known = true;
        price.num = price_discounted(prices, query, row->price, &price);
        price.flags = flags;
        price.source = row->source;
        split(prices, query, row, found.size, &price);
    } else if (!from_catalogue(prices, query, &found, &price) &&
               !from_model(prices, query, &price)) {
        price.flags = FLAG_UNPRICED;
    }
    *ret = price;
}
