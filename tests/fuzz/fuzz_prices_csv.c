/* Price files from strangers: nothing crashes; the reader's records are the same when their fields
 * are written out quoted and read again; whatever was taken from a file gives prices within their
 * cap. */
#include <stdlib.h>

#include "fleet/prices.h"
#include "util/csv.h"
#include "util/error.h"

static void write_quoted(struct strbuf *out, const struct csv *csv)
{
    for (size_t i = 0; i < csv->n; i++) {
        struct str field = csv_field(csv, i);
        strbuf_add(out, i ? STR(",\"") : STR("\""));
        for (size_t k = 0; k < field.n; k++)
            strbuf_add(out, field.p[k] == '"' ? STR("\"\"") : (struct str){field.p + k, 1});
        strbuf_addc(out, '"');
    }
    strbuf_addc(out, '\n');
}

static void rewrite_and_compare(struct str text)
{
    struct csv csv, again;
    struct strbuf copy = {0};
    int line = 0;
    csv_init(&csv, text);
    while (csv_next(&csv)) {
        invariant(csv.line > line && csv.n <= CSV_FIELDS_MAX);
        line = csv.line;
        if (!csv.broken)
            write_quoted(&copy, &csv);
    }
    csv_release(&csv);
    csv_init(&csv, text);
    csv_init(&again, strbuf_str(&copy));
    while (csv_next(&csv)) {
        if (csv.broken)
            continue;
        bool more = csv_next(&again);
        invariant(more && !again.broken && again.n == csv.n);
        for (size_t i = 0; i < csv.n; i++)
            invariant(str_eq(csv_field(&csv, i), csv_field(&again, i)));
    }
    invariant(!csv_next(&again));
    csv_release(&csv);
    csv_release(&again);
    strbuf_release(&copy);
}

static void look_up(struct str text)
{
    struct prices *prices = prices_new();
    struct error err;
    struct price_policy policy = {.node_split = NODE_SPLIT_RESIDUAL, .vcpu = 1, .gib = 1};
    bool taken = prices_add_csv_text(prices, "f.csv", text, &err) == ERR_OK;
    prices_set_policy(prices, &policy);
    prices_ready(prices);
    invariant(prices_configured(prices) == taken);
    static const char *const types[] = {"t.one", "g5.xlarge", "a"};
    for (int i = 0; i < 3 * CAPACITY_TYPE_COUNT; i++) {
        struct price_query query = {.cloud = STR("aws"),
                                    .region = STR("us-east-1"),
                                    .node = STR("n"),
                                    .gpu_model = STR("NVIDIA L4"),
                                    .instance_type = str_of(types[i % 3]),
                                    .capacity = (enum capacity_type)(i / 3),
                                    .at = 1780000000000};
        struct price price;
        prices_find(prices, &query, &price);
        invariant(price.den >= 1 && price.den <= PRICE_PART_DEN_MAX && price.num >= 0);
        invariant(price.num / price.den <= PRICE_MAX);
        invariant(price.from <= query.at && query.at < price.to);
        invariant(price.known || price.flags == FLAG_UNPRICED);
    }
    prices_free(prices);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size};
    rewrite_and_compare(text);
    look_up(text);
    return 0;
}
