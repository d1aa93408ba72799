/* What else could be rented: the machines of a cloud and region, from the user's price files and
 * from the catalogue.
 *
 * A row of a price file stands for its type and hides the catalogue's, as it does for the price of
 * a node. General-purpose machines are told by having no GPUs; a row that says neither gpus nor a
 * type that the catalogue knows says nothing about that, and is no offer. */
#include "fleet/catalogue.h"
#include "fleet/prices_book.h"

#define MILLI_PPM 1000
#define WHOLE_GPU_PPM 1000000

struct offering {
    const struct prices *prices; /* may be NULL */
    const struct price_query *where;
    struct str cloud;
    price_offer_fn each;
    void *context;
};

static bool same_place(const struct offering *offering, struct str cloud, struct str region)
{
    return str_eq(cloud, offering->cloud) &&
           (str_eq(region, offering->where->region) || str_eq(region, STR("*")));
}

/* Is the row a price on demand, here and now? */
static bool is_here(const struct offering *offering, const struct price_row *row)
{
    const struct price_query *where = offering->where;
    return (row->any_capacity || row->capacity == CAPACITY_ON_DEMAND) &&
           (!row->cloud.n || str_eq(row->cloud, offering->cloud)) &&
           (!row->region.n || str_eq(row->region, where->region)) && row->valid.from <= where->at &&
           row->valid.to > where->at;
}

/* Rows are in order of type: the first of a type that is here is the one that counts. */
static const struct price_row *row_of(const struct offering *offering, struct str type)
{
    const struct prices *prices = offering->prices;
    size_t from = 0, to = prices ? prices->rows_n : 0;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (str_cmp(prices->rows[middle].instance_type, type) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    for (; prices && from < prices->rows_n; from++) {
        if (!str_eq(prices->rows[from].instance_type, type))
            break;
        if (is_here(offering, &prices->rows[from]))
            return &prices->rows[from];
    }
    return NULL;
}

static money_t less_discount(const struct offering *offering, struct str type,
                             const struct gpu_model *gpu, money_t amount)
{
    if (!offering->prices)
        return amount;
    struct price_query query = *offering->where;
    struct price ignored = {.from = TIME_MIN, .to = TIME_MAX};
    query.instance_type = type;
    query.gpu_model = gpu ? gpu->name : STR_NONE;
    query.node = query.provider_id = STR_NONE;
    query.labels_n = 0;
    query.capacity = CAPACITY_ON_DEMAND;
    return price_discounted(offering->prices, &query, amount, &ignored);
}

/* True: it is a general-purpose machine. */
static bool offer_row(const struct offering *offering, const struct price_row *row)
{
    const struct instance_type *size = catalogue_instance_size(offering->cloud, row->instance_type);
    int gpus = row->gpus != GPUS_UNKNOWN ? row->gpus : size ? size->gpus : GPUS_UNKNOWN;
    const struct gpu_model *gpu = row->gpu_model.n ? catalogue_gpu(row->gpu_model)
                                  : size           ? size->gpu
                                                   : NULL;
    if (gpus < 0 || (gpus > 0 && !gpu) || (size && size->fraction_ppm < WHOLE_GPU_PPM))
        return false;
    struct price_offer offer = {
        .instance_type = row->instance_type,
        .gpu = gpus ? gpu : NULL,
        .gpus = gpus,
        .vcpus_milli = row->vcpus_ppm >= 0 ? row->vcpus_ppm / MILLI_PPM
                       : size              ? size->vcpus_milli
                                           : -1,
        .memory_milli_gib = row->memory_ppm >= 0 ? row->memory_ppm / MILLI_PPM
                            : size               ? size->memory_milli_gib
                                                 : -1,
        .source = row->source,
    };
    offer.price = less_discount(offering, row->instance_type, offer.gpu, row->price);
    offering->each(offering->context, &offer);
    return gpus == 0;
}

static void offer_type(const struct offering *offering, const struct instance_type *type)
{
    if (!same_place(offering, type->cloud, type->region) || type->on_demand < 0 ||
        type->fraction_ppm < WHOLE_GPU_PPM || row_of(offering, type->name))
        return;
    struct price_offer offer = {
        .instance_type = type->name,
        .gpu = type->gpu,
        .gpus = type->gpus,
        .vcpus_milli = type->vcpus_milli,
        .memory_milli_gib = type->memory_milli_gib,
        .price = less_discount(offering, type->name, type->gpu, type->on_demand),
        .derived = type->derived,
        .date = type->date,
    };
    offering->each(offering->context, &offer);
}

void prices_offers(const struct prices *prices, const struct price_query *where,
                   price_offer_fn each, void *context)
{
    struct str cloud = str_eq(where->cloud, STR("gce")) ? STR("gcp") : where->cloud;
    struct offering offering = {prices, where, cloud, each, context};
    bool general = false;
    size_t n;
    invariant(!prices || prices->ready);
    for (size_t i = 0; prices && i < prices->rows_n; i++)
        if (row_of(&offering, prices->rows[i].instance_type) == &prices->rows[i])
            general |= offer_row(&offering, &prices->rows[i]);
    if (!cloud.n || !where->region.n || (prices && !prices_has_catalogue(prices)))
        return;
    const struct instance_type *types = catalogue_gpu_types(&n);
    for (size_t i = 0; i < n; i++)
        offer_type(&offering, &types[i]);
    types = general ? NULL : catalogue_general_types(&n);
    for (size_t i = 0; types && i < n; i++)
        offer_type(&offering, &types[i]);
}

struct cheapest {
    int64_t vcpus_milli, memory_milli_gib;
    struct price_offer *ret;
    bool found;
};

static void take_general(void *context, const struct price_offer *offer)
{
    struct cheapest *of = context;
    if (offer->gpus || offer->vcpus_milli < of->vcpus_milli ||
        offer->memory_milli_gib < of->memory_milli_gib)
        return;
    bool better = !of->found || offer->price < of->ret->price ||
                  (offer->price == of->ret->price &&
                   str_cmp(offer->instance_type, of->ret->instance_type) < 0);
    if (better)
        *of->ret = *offer;
    of->found = true;
}

bool prices_cheapest_general(const struct prices *prices, const struct price_query *where,
                             int64_t vcpus_milli, int64_t memory_milli_gib, struct price_offer *ret)
{
    struct cheapest of = {vcpus_milli, memory_milli_gib, ret, false};
    prices_offers(prices, where, take_general, &of);
    return of.found;
}
