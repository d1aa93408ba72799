/* Instance types with their prices. The GPU machines are read on first use; the general-purpose
 * ones, twice as many and asked for only by residual prices and the idle scan, on theirs.
 *
 * Both lists are sorted by (name, cloud, region), and a list of prices a GPU by (model, price), so
 * that a median is one walk through its model. */
#include "fleet/catalogue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/data.h"
#include "util/config_file.h"
#include "util/csv.h"
#include "util/error.h"

#define ANY_REGION STR("*")
#define WHOLE_GPU 1000000
#define MEDIAN "catalogue, median of the GPU model"
#define MEDIAN_IN MEDIAN " in "
/* Machines beyond it weigh too much in the fit of the price of a vCPU and a GiB. */
#define FIT_VCPUS_MAX_MILLI 128000

struct gpu_price {
    const struct gpu_model *gpu;
    struct str cloud;
    money_t price; /* of one GPU */
};

/* What an answer says it is from: one text for all rows of a date and basis, and for each cloud. */
#define SOURCES_MAX 64
struct source {
    struct str key;
    bool derived;
    char text[96];
};

struct list {
    struct instance_type *items;
    size_t n, room;
};

static struct {
    pthread_once_t once;
    struct list types;
    struct gpu_price *gpu_prices;
    size_t gpu_prices_n, gpu_prices_room;
    char date[16]; /* the newest */
    struct source sources[SOURCES_MAX];
    size_t sources_n;
} gpu_book = {.once = PTHREAD_ONCE_INIT};

static struct {
    pthread_once_t once;
    struct list types;
} general_book = {.once = PTHREAD_ONCE_INIT};

static int64_t decimal(struct str text, int places)
{
    int64_t value = 0;
    invariant(text.n == 0 || decimal_parse(text, places, INT64_MAX, &value));
    return value;
}

static money_t price_of(struct str text)
{
    money_t value = -1;
    invariant(text.n == 0 || money_parse(text, &value));
    return value;
}

static const char *source_of(const char *head, struct str key, bool derived)
{
    for (size_t i = 0; i < gpu_book.sources_n; i++) {
        const struct source *known = &gpu_book.sources[i];
        if (known->derived == derived && str_eq(known->key, key))
            return known->text;
    }
    invariant(gpu_book.sources_n < SOURCES_MAX);
    struct source *source = &gpu_book.sources[gpu_book.sources_n++];
    *source = (struct source){.key = key, .derived = derived};
    snprintf(source->text, sizeof source->text, "%s%.*s%s", head, STR_ARG(key),
             derived ? " (derived)" : "");
    return source->text;
}

static int type_order(const void *a, const void *b)
{
    const struct instance_type *x = a, *y = b;
    int order = str_cmp(x->name, y->name);
    order = order ? order : str_cmp(x->cloud, y->cloud);
    return order ? order : str_cmp(x->region, y->region);
}

static int gpu_price_order(const void *a, const void *b)
{
    const struct gpu_price *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return (x->price > y->price) - (x->price < y->price);
}

/* Types of one GPU stand together: the model of the row before is most often that of this one. */
static const struct gpu_model *model_of(struct str name)
{
    size_t n = gpu_book.types.n;
    const struct gpu_model *last = n ? gpu_book.types.items[n - 1].gpu : NULL;
    return last && str_eq(last->name, name) ? last : catalogue_gpu(name);
}

static void add_gpu_type(const struct csv *csv)
{
    enum { CLOUD, REGION, NAME, MODEL, GPUS, VCPUS, MEMORY, ON_DEMAND, SPOT, DATE, BASIS };
    const struct str *f = csv->fields;
    invariant(csv->n == BASIS + 1);
    int64_t parts = decimal(f[GPUS], 6);
    struct instance_type type = {
        .cloud = f[CLOUD],
        .region = f[REGION],
        .name = f[NAME],
        .gpu = model_of(f[MODEL]),
        .gpus = parts < WHOLE_GPU ? 1 : (int)(parts / WHOLE_GPU),
        .fraction_ppm = parts < WHOLE_GPU ? (int)parts : WHOLE_GPU,
        .vcpus_milli = decimal(f[VCPUS], 3),
        .memory_milli_gib = decimal(f[MEMORY], 3),
        .on_demand = price_of(f[ON_DEMAND]),
        .spot = price_of(f[SPOT]),
        .date = f[DATE],
        .derived = str_eq(f[BASIS], STR("derived")),
    };
    invariant(type.gpu && type.gpus > 0);
    type.source = source_of("catalogue ", type.date, type.derived);
    source_of(MEDIAN_IN, type.cloud, false);
    mem_push(gpu_book.types.items, gpu_book.types.n, gpu_book.types.room, type);
    if (str_cmp(type.date, str_of(gpu_book.date)) > 0)
        snprintf(gpu_book.date, sizeof gpu_book.date, "%.*s", STR_ARG(type.date));
    if (type.on_demand < 0 || type.fraction_ppm < WHOLE_GPU)
        return;
    struct gpu_price each = {type.gpu, type.cloud, money_round(type.on_demand, type.gpus)};
    mem_push(gpu_book.gpu_prices, gpu_book.gpu_prices_n, gpu_book.gpu_prices_room, each);
}

static void add_general_type(const struct csv *csv)
{
    enum { CLOUD, REGION, NAME, VCPUS, MEMORY, ARCH, ON_DEMAND, SPOT, DATE, BASIS };
    const struct str *f = csv->fields;
    invariant(csv->n == BASIS + 1);
    struct instance_type type = {
        .cloud = f[CLOUD],
        .region = f[REGION],
        .name = f[NAME],
        .fraction_ppm = WHOLE_GPU,
        .vcpus_milli = decimal(f[VCPUS], 3),
        .memory_milli_gib = decimal(f[MEMORY], 3),
        .on_demand = price_of(f[ON_DEMAND]),
        .spot = price_of(f[SPOT]),
        .date = f[DATE],
        .derived = str_eq(f[BASIS], STR("derived")),
    };
    if (str_eq(f[ARCH], STR("x86_64")))
        mem_push(general_book.types.items, general_book.types.n, general_book.types.room, type);
}

static void build_gpus(void)
{
    data_rows(STR("prices.csv"), add_gpu_type);
    qsort(gpu_book.types.items, gpu_book.types.n, sizeof *gpu_book.types.items, type_order);
    qsort(gpu_book.gpu_prices, gpu_book.gpu_prices_n, sizeof *gpu_book.gpu_prices, gpu_price_order);
}

static void build_general(void)
{
    data_rows(STR("cpu_prices.csv"), add_general_type);
    qsort(general_book.types.items, general_book.types.n, sizeof *general_book.types.items,
          type_order);
}

/* The first that is not before key. */
static size_t lower(const struct list *list, const struct instance_type *key)
{
    size_t from = 0, to = list->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (type_order(&list->items[middle], key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static const struct instance_type *exact(const struct list *list, struct str cloud,
                                         struct str region, struct str name)
{
    struct instance_type key = {.cloud = cloud, .region = region, .name = name};
    size_t at = lower(list, &key);
    bool same = at < list->n && type_order(&list->items[at], &key) == 0;
    return same ? &list->items[at] : NULL;
}

const struct instance_type *catalogue_instance(struct str cloud, struct str region, struct str name)
{
    if (cloud.n == 0 || name.n == 0)
        return NULL;
    pthread_once(&gpu_book.once, build_gpus);
    const struct instance_type *type = exact(&gpu_book.types, cloud, region, name);
    return type ? type : exact(&gpu_book.types, cloud, ANY_REGION, name);
}

const struct instance_type *catalogue_instance_size(struct str cloud, struct str name)
{
    struct instance_type key = {.cloud = cloud, .name = name};
    pthread_once(&gpu_book.once, build_gpus);
    const struct list *types = &gpu_book.types;
    size_t at = name.n ? lower(types, &key) : types->n;
    bool same = at < types->n && str_eq(types->items[at].name, name) &&
                (cloud.n == 0 || str_eq(types->items[at].cloud, cloud));
    return same ? &types->items[at] : NULL;
}

/* Median of the model's prices in the cloud; empty: in all. False where there are none. */
static bool median(struct str cloud, const struct gpu_price *prices, size_t n, money_t *ret)
{
    size_t count = 0, seen = 0;
    money_t before = 0;
    for (size_t i = 0; i < n; i++)
        count += cloud.n == 0 || str_eq(prices[i].cloud, cloud);
    for (size_t i = 0; i < n; i++) {
        if (cloud.n && !str_eq(prices[i].cloud, cloud))
            continue;
        if (seen == count / 2) {
            *ret = count % 2 ? prices[i].price : money_round((wide_t)before + prices[i].price, 2);
            return true;
        }
        before = prices[i].price;
        seen++;
    }
    return false;
}

bool catalogue_gpu_price(struct str cloud, const struct gpu_model *model, money_t *ret,
                         const char **ret_source)
{
    pthread_once(&gpu_book.once, build_gpus);
    size_t from = 0;
    while (from < gpu_book.gpu_prices_n && gpu_book.gpu_prices[from].gpu != model)
        from++;
    size_t to = from;
    while (to < gpu_book.gpu_prices_n && gpu_book.gpu_prices[to].gpu == model)
        to++;
    const struct gpu_price *prices = gpu_book.gpu_prices + from;
    if (cloud.n && median(cloud, prices, to - from, ret)) {
        *ret_source = source_of(MEDIAN_IN, cloud, false);
        return true;
    }
    *ret_source = MEDIAN;
    return median(STR_NONE, prices, to - from, ret);
}

/* Least squares of price = p x vCPUs + q x GiB, in integers: at most some thousand machines of up
 * to 128 vCPUs (1.3e5 milli), 4 TiB (4e6 milli) and 1e12 nano keep every product under 1e37. */
static bool fit(struct str cloud, struct str region, money_t *ret_vcpu, money_t *ret_gib)
{
    wide_t vv = 0, vg = 0, gg = 0, vp = 0, gp = 0;
    for (size_t i = 0; i < general_book.types.n; i++) {
        const struct instance_type *type = &general_book.types.items[i];
        if (!str_eq(type->cloud, cloud) || (region.n && !str_eq(type->region, region)) ||
            type->on_demand < 0 || type->vcpus_milli > FIT_VCPUS_MAX_MILLI)
            continue;
        wide_t v = type->vcpus_milli, g = type->memory_milli_gib, p = type->on_demand;
        vv += v * v;
        vg += v * g;
        gg += g * g;
        vp += v * p;
        gp += g * p;
    }
    wide_t det = vv * gg - vg * vg, vcpu = vp * gg - gp * vg, gib = gp * vv - vp * vg;
    if (det <= 0 || vcpu < 0 || gib < 0)
        return false;
    *ret_vcpu = (money_t)(vcpu / (det / 1000));
    *ret_gib = (money_t)(gib / (det / 1000));
    return true;
}

bool catalogue_cpu_price(struct str cloud, struct str region, money_t *ret_vcpu, money_t *ret_gib)
{
    pthread_once(&general_book.once, build_general);
    if (region.n && fit(cloud, region, ret_vcpu, ret_gib))
        return true;
    return fit(cloud, STR_NONE, ret_vcpu, ret_gib);
}

const struct instance_type *catalogue_gpu_types(size_t *ret_n)
{
    pthread_once(&gpu_book.once, build_gpus);
    *ret_n = gpu_book.types.n;
    return gpu_book.types.items;
}

const struct instance_type *catalogue_general_types(size_t *ret_n)
{
    pthread_once(&general_book.once, build_general);
    *ret_n = general_book.types.n;
    return general_book.types.items;
}

struct str catalogue_date(void)
{
    pthread_once(&gpu_book.once, build_gpus);
    return str_of(gpu_book.date);
}
