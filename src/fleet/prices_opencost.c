/* OpenCost's CSV pricing (pkg/cloud/provider/csvprovider.go of opencost/opencost): columns
 * EndTimestamp, InstanceID, Region, AssetClass, InstanceIDField, InstanceType, MarketPriceHourly,
 * Version. EndTimestamp and Version are not used there and not here.
 *
 *   node  InstanceIDField says what InstanceID is: spec.providerID, metadata.name or
 *         metadata.labels.NAME. A node that no InstanceID names takes the price of its class
 * (Region, InstanceType). gpu   InstanceIDField is a label of nodes, InstanceID its value: the
 * price of one GPU of such a node, on top of the node's. pv    volumes, which we do not price.
 *
 * OpenCost averages the rows of a class. We take a class whose rows agree and leave out one whose
 * rows differ, since an average is the price of no machine. */
#include <stdlib.h>

#include "fleet/prices_book.h"

enum { INSTANCE_ID, REGION, ASSET_CLASS, ID_FIELD, INSTANCE_TYPE, PRICE, FIELD_COUNT };
static const char *const field_names[FIELD_COUNT] = {
    "InstanceID", "Region", "AssetClass", "InstanceIDField", "InstanceType", "MarketPriceHourly"};

static int place_of(const struct csv *header, const char *name)
{
    for (size_t i = 0; i < header->n; i++)
        if (str_eq_nocase(csv_trimmed(header->fields[i]), str_of(name)))
            return (int)i;
    return -1;
}

bool prices_is_opencost(const struct csv *header)
{
    return place_of(header, "MarketPriceHourly") >= 0 && place_of(header, "InstanceIDField") >= 0;
}

/* What InstanceIDField means. False: nothing that we know of a node. */
static bool read_field(struct str text, bool gpu, struct price_asset *asset)
{
    struct str head = STR("metadata.labels.");
    asset->field = ASSET_LABEL;
    if (text.n > head.n && str_starts(text, head)) {
        asset->label = (struct str){text.p + head.n, text.n - head.n};
        return true;
    }
    if (gpu) {
        asset->label = text;
        return text.n > 0;
    }
    asset->field = str_eq(text, STR("metadata.name")) ? ASSET_NAME : ASSET_PROVIDER_ID;
    return asset->field == ASSET_NAME || str_eq(text, STR("spec.providerID"));
}

static void add_asset(struct price_reader *reader, const struct str *fields, bool gpu,
                      money_t price)
{
    struct prices *prices = reader->prices;
    struct price_asset asset = {.gpu = gpu, .price = price, .file = reader->file};
    if (!read_field(fields[ID_FIELD], gpu, &asset)) {
        prices_problem(reader, true,
                       "InstanceIDField '%.*s' is none that is read here: write metadata.name, "
                       "spec.providerID or metadata.labels.NAME; the row names no node",
                       STR_ARG(fields[ID_FIELD]));
        return;
    }
    asset.label = str_keep(&prices->arena, asset.label);
    asset.id = str_keep(&prices->arena, fields[INSTANCE_ID]);
    asset.region = str_keep(&prices->arena, fields[REGION]);
    asset.source = prices_source(reader);
    mem_push(prices->assets, prices->assets_n, prices->assets_room, asset);
}

static void add_class(struct price_reader *reader, const struct str *fields, money_t price)
{
    struct prices *prices = reader->prices;
    struct price_row row = {.region = str_keep(&prices->arena, fields[REGION]),
                            .instance_type = str_keep(&prices->arena, fields[INSTANCE_TYPE]),
                            .any_capacity = true,
                            .price = price,
                            .gpus = GPUS_UNKNOWN,
                            .vcpus_ppm = -1,
                            .memory_ppm = -1,
                            .vcpu = -1,
                            .gib = -1,
                            .valid = {TIME_MIN, TIME_MAX},
                            .source = prices_source(reader),
                            .file = reader->file,
                            .line = reader->csv.line};
    mem_push(prices->rows, prices->rows_n, prices->rows_room, row);
}

static void read_record(struct price_reader *reader, const int *places)
{
    struct str fields[FIELD_COUNT];
    money_t price;
    for (int i = 0; i < FIELD_COUNT; i++)
        fields[i] =
            places[i] < 0 ? STR_NONE : csv_trimmed(csv_field(&reader->csv, (size_t)places[i]));
    if (reader->csv.broken) {
        prices_problem(reader, true, "%s; the row is left out", reader->csv.broken);
        return;
    }
    if (str_eq_nocase(fields[ASSET_CLASS], STR("pv")))
        return;
    if (!money_parse(fields[PRICE], &price) || price > PRICE_MAX) {
        prices_problem(reader, true,
                       "MarketPriceHourly is '%.*s': write a plain number such as 12.34, at most "
                       "1000000; the row is left out",
                       STR_ARG(fields[PRICE]));
        return;
    }
    bool gpu = str_eq_nocase(fields[ASSET_CLASS], STR("gpu"));
    if (fields[INSTANCE_ID].n)
        add_asset(reader, fields, gpu, price);
    if (!gpu && fields[INSTANCE_TYPE].n)
        add_class(reader, fields, price);
    if (fields[INSTANCE_ID].n == 0 && (gpu || fields[INSTANCE_TYPE].n == 0))
        prices_problem(reader, true,
                       "it has neither InstanceID nor InstanceType: the row is left out");
}

static int class_order(const void *a, const void *b)
{
    const struct price_row *x = a, *y = b;
    int order = str_cmp(x->instance_type, y->instance_type);
    order = order ? order : str_cmp(x->region, y->region);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* One row a class, of those that came from this file; none where they differ. */
static void join_classes(struct price_reader *reader, size_t first)
{
    struct prices *prices = reader->prices;
    struct price_row *rows = prices->rows;
    size_t kept = first, n = prices->rows_n;
    if (n > first)
        qsort(rows + first, n - first, sizeof *rows, class_order);
    for (size_t from = first, to; from < n; from = to) {
        bool agree = true;
        for (to = from; to < n && str_eq(rows[to].instance_type, rows[from].instance_type) &&
                        str_eq(rows[to].region, rows[from].region);
             to++)
            agree &= rows[to].price == rows[from].price;
        if (agree) {
            rows[kept++] = rows[from];
            continue;
        }
        reader->csv.line = rows[from].line;
        prices_problem(reader, false,
                       "%.*s has %zu rows with different prices: only nodes that an InstanceID "
                       "names take one",
                       STR_ARG(rows[from].instance_type), to - from);
    }
    prices->rows_n = kept;
}

enum err prices_read_opencost(struct price_reader *reader, struct error *err)
{
    int places[FIELD_COUNT];
    size_t first = reader->prices->rows_n;
    for (int i = 0; i < FIELD_COUNT; i++)
        places[i] = place_of(&reader->csv, field_names[i]);
    if (places[INSTANCE_ID] < 0)
        return error_set(err, ERR_CONFIG,
                         "%s:%d: a file of OpenCost's prices needs the column InstanceID",
                         reader->name, reader->csv.line);
    while (csv_next(&reader->csv)) {
        if (reader->prices->rows_n + reader->prices->assets_n >= PRICE_ROWS_MAX)
            return error_set(err, ERR_LIMIT, "%s:%d: more than %d prices", reader->name,
                             reader->csv.line, PRICE_ROWS_MAX);
        read_record(reader, places);
    }
    join_classes(reader, first);
    return ERR_OK;
}
