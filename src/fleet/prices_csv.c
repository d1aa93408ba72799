/* Price files. The header says by its names which columns are where; a name that is not known is a
 * column that is not read, and said so. Two spellings of rows are read here, both about instance
 * types: with cloud and region, or without (then a row is for any). OpenCost's schema has a file of
 * its own.
 *
 * A row that cannot be read costs that row and nothing else: the rest of the file stays, and the
 * problem is told with its line and what to write instead. */
#include <stdarg.h>
#include <stdio.h>
#include <xxhash.h>

#include "fleet/catalogue.h"
#include "fleet/prices.h"
#include "fleet/prices_book.h"
#include "util/config_file.h"
#include "util/suggest.h"

#define GPUS_MAX 1024
#define SIZE_MAX_PPM INT64_C(1000000000000000) /* a thousand million vCPUs or GiB */

/* X(NAME, "the column's name", "other names of it…") */
#define COLUMN_TABLE(X)                                                                            \
    X(CLOUD, "cloud", "provider")                                                                  \
    X(REGION, "region", "")                                                                        \
    X(INSTANCE_TYPE, "instance_type", "instancetype")                                              \
    X(CAPACITY_TYPE, "capacity_type", "lifecycle")                                                 \
    X(USD_PER_HOUR, "usd_per_hour", "price_per_hour")                                              \
    X(GPUS, "gpus", "gpu_count")                                                                   \
    X(GPU_MODEL, "gpu_model", "")                                                                  \
    X(VCPUS, "vcpus", "vcpu")                                                                      \
    X(MEMORY_GIB, "memory_gib", "ram_gib")                                                         \
    X(USD_PER_VCPU, "usd_per_vcpu", "")                                                            \
    X(USD_PER_GIB, "usd_per_gib", "")                                                              \
    X(FROM, "from", "valid_from")                                                                  \
    X(TO, "to", "valid_to")

enum column {
#define X(name, text, other) COLUMN_##name,
    COLUMN_TABLE(X)
#undef X
        COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT] = {
#define X(name, text, other) text,
    COLUMN_TABLE(X)
#undef X
};
static const char *const column_others[COLUMN_COUNT] = {
#define X(name, text, other) other,
    COLUMN_TABLE(X)
#undef X
};

struct columns {
    int at[COLUMN_COUNT]; /* place in a record; -1: there is none */
};

void prices_problem(struct price_reader *reader, bool row_lost, const char *format, ...)
{
    char text[512];
    if (reader->told == PRICE_PROBLEMS_MAX) {
        reader->untold++;
        return;
    }
    reader->told++;
    int n = snprintf(text, sizeof text, "%s:%d: ", reader->name, reader->csv.line);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    struct prices *prices = reader->prices;
    struct price_problem problem = {str_keep(&prices->arena, str_of(text)).p, row_lost};
    mem_push(prices->problems, prices->problems_n, prices->problems_room, problem);
}

const char *prices_source(struct price_reader *reader)
{
    char line[16];
    snprintf(line, sizeof line, ":%d", reader->csv.line);
    struct strbuf text = {0};
    strbuf_add(&text, str_of(reader->name));
    strbuf_add(&text, str_of(line));
    const char *source = str_keep(&reader->prices->arena, strbuf_str(&text)).p;
    strbuf_release(&text);
    return source;
}

struct str csv_trimmed(struct str field)
{
    while (field.n && (field.p[0] == ' ' || field.p[0] == '\t')) {
        field.p++;
        field.n--;
    }
    while (field.n && (field.p[field.n - 1] == ' ' || field.p[field.n - 1] == '\t'))
        field.n--;
    return field;
}

static struct str cell(const struct price_reader *reader, const struct columns *columns,
                       enum column column)
{
    int at = columns->at[column];
    return at < 0 ? STR_NONE : csv_trimmed(csv_field(&reader->csv, (size_t)at));
}

static enum err read_header(struct price_reader *reader, struct columns *ret, struct error *err)
{
    for (int c = 0; c < COLUMN_COUNT; c++)
        ret->at[c] = -1;
    for (size_t i = 0; i < reader->csv.n; i++) {
        struct str name = csv_trimmed(reader->csv.fields[i]);
        bool known = false;
        for (int c = 0; c < COLUMN_COUNT && !known; c++) {
            known = name.n && (str_eq_nocase(name, str_of(column_names[c])) ||
                               str_eq_nocase(name, str_of(column_others[c])));
            if (known && ret->at[c] >= 0)
                return error_set(err, ERR_CONFIG, "%s:%d: column %s stands there twice",
                                 reader->name, reader->csv.line, column_names[c]);
            if (known)
                ret->at[c] = (int)i;
        }
        if (known || name.n == 0)
            continue;
        const char *near = suggest(name, column_names, COLUMN_COUNT);
        prices_problem(reader, false, "column '%.*s' is not known and not read%s%s%s",
                       STR_ARG(name), near ? ": did you mean '" : "", near ? near : "",
                       near ? "'?" : "");
    }
    bool about = ret->at[COLUMN_INSTANCE_TYPE] >= 0 || ret->at[COLUMN_GPU_MODEL] >= 0;
    if (about && ret->at[COLUMN_USD_PER_HOUR] >= 0)
        return ERR_OK;
    return error_set(err, ERR_CONFIG,
                     "%s:%d: the first line has to name the columns, and %s is not among them; for "
                     "example: cloud,region,instance_type,capacity_type,usd_per_hour,gpus",
                     reader->name, reader->csv.line, about ? "usd_per_hour" : "instance_type");
}

static bool lost(struct price_reader *reader, const struct columns *columns, enum column column,
                 const char *instead)
{
    struct str text = cell(reader, columns, column);
    struct str shown = {text.p, text.n < 80 ? text.n : 80};
    prices_problem(reader, true, "%s is '%.*s': write %s; the row is left out",
                   column_names[column], STR_ARG(shown), instead);
    return false;
}

static bool read_capacity(struct str text, enum capacity_type *ret)
{
    static const struct {
        const char *word;
        enum capacity_type type;
    } words[] = {
        {"", CAPACITY_ON_DEMAND},          {"on-demand", CAPACITY_ON_DEMAND},
        {"on_demand", CAPACITY_ON_DEMAND}, {"ondemand", CAPACITY_ON_DEMAND},
        {"normal", CAPACITY_ON_DEMAND},    {"regular", CAPACITY_ON_DEMAND},
        {"spot", CAPACITY_SPOT},           {"preemptible", CAPACITY_SPOT},
        {"reserved", CAPACITY_RESERVED},   {"reservation", CAPACITY_RESERVED},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq_nocase(text, str_of(words[i].word))) {
            *ret = words[i].type;
            return true;
        }
    return false;
}

static bool read_price(struct price_reader *reader, const struct columns *columns,
                       enum column column, money_t *ret)
{
    struct str text = cell(reader, columns, column);
    money_t price;
    if (text.n == 0 && column != COLUMN_USD_PER_HOUR)
        return true;
    if (!money_parse(text, &price))
        return lost(reader, columns, column, "a plain number such as 12.34, in USD an hour");
    if (price > PRICE_MAX)
        return lost(reader, columns, column, "a price of at most 1000000 an hour");
    *ret = price;
    return true;
}

static bool read_size(struct price_reader *reader, const struct columns *columns,
                      enum column column, int64_t *ret)
{
    struct str text = cell(reader, columns, column);
    if (text.n == 0 || decimal_parse(text, SIZE_PLACES, SIZE_MAX_PPM, ret))
        return true;
    return lost(reader, columns, column, "a plain number such as 96 or 7.5, or nothing");
}

static bool read_time(struct price_reader *reader, const struct columns *columns,
                      enum column column, time_ms *ret)
{
    struct str text = cell(reader, columns, column);
    if (text.n == 0 || time_parse(text, ret))
        return true;
    return lost(reader, columns, column, "a time such as 2026-11-30 or 2026-11-30T08:00:00Z");
}

static bool read_row(struct price_reader *reader, const struct columns *columns,
                     struct price_row *row)
{
    long long gpus;
    struct str text = cell(reader, columns, COLUMN_GPUS);
    if (text.n && (!str_to_i64(text, &gpus) || gpus < 0 || gpus > GPUS_MAX))
        return lost(reader, columns, COLUMN_GPUS, "how many GPUs the machine has, 0 for none");
    if (text.n)
        row->gpus = (int)gpus;
    if (!read_capacity(cell(reader, columns, COLUMN_CAPACITY_TYPE), &row->capacity))
        return lost(reader, columns, COLUMN_CAPACITY_TYPE, "on-demand, spot or reserved");
    if (!read_price(reader, columns, COLUMN_USD_PER_HOUR, &row->price) ||
        !read_price(reader, columns, COLUMN_USD_PER_VCPU, &row->vcpu) ||
        !read_price(reader, columns, COLUMN_USD_PER_GIB, &row->gib) ||
        !read_size(reader, columns, COLUMN_VCPUS, &row->vcpus_ppm) ||
        !read_size(reader, columns, COLUMN_MEMORY_GIB, &row->memory_ppm) ||
        !read_time(reader, columns, COLUMN_FROM, &row->valid.from) ||
        !read_time(reader, columns, COLUMN_TO, &row->valid.to))
        return false;
    if (row->valid.from >= row->valid.to)
        return lost(reader, columns, COLUMN_TO, "a time after that of from");
    return true;
}

/* A row without an instance type is the default price of its GPU model. */
static void add_model_row(struct price_reader *reader, const struct price_row *row,
                          struct str model)
{
    if (row->gpus > 1) {
        prices_problem(reader, true,
                       "the price of a GPU model is that of one GPU, not of %d: write gpus 1 or an "
                       "instance_type; the row is left out",
                       row->gpus);
        return;
    }
    struct price_rule rule = {
        .kind = PRICE_RULE_MODEL,
        .selector = {.cloud = row->cloud,
                     .region = row->region,
                     .gpu_model = model,
                     .any_capacity = row->capacity == CAPACITY_ON_DEMAND,
                     .capacity = row->capacity,
                     .valid = row->valid},
        .amount = row->price,
        .source = str_of(row->source),
    };
    prices_add_rule(reader->prices, &rule);
}

static void read_record(struct price_reader *reader, const struct columns *columns)
{
    struct prices *prices = reader->prices;
    if (reader->csv.broken) {
        prices_problem(reader, true, "%s: quote a text as \"a \"\"b\"\" c\"; the row is left out",
                       reader->csv.broken);
        return;
    }
    struct price_row row = {.gpus = GPUS_UNKNOWN,
                            .vcpus_ppm = -1,
                            .memory_ppm = -1,
                            .vcpu = -1,
                            .gib = -1,
                            .valid = {TIME_MIN, TIME_MAX},
                            .file = reader->file,
                            .line = reader->csv.line};
    struct str type = cell(reader, columns, COLUMN_INSTANCE_TYPE);
    struct str model = cell(reader, columns, COLUMN_GPU_MODEL);
    if (type.n == 0 && model.n == 0) {
        prices_problem(reader, true, "it names no instance_type: the row is left out");
        return;
    }
    if (!read_row(reader, columns, &row))
        return;
    row.cloud = str_keep(&prices->arena, cell(reader, columns, COLUMN_CLOUD));
    row.region = str_keep(&prices->arena, cell(reader, columns, COLUMN_REGION));
    row.source = prices_source(reader);
    if (type.n == 0) {
        add_model_row(reader, &row, model);
        return;
    }
    row.instance_type = str_keep(&prices->arena, type);
    row.gpu_model = str_keep(&prices->arena, model);
    mem_push(prices->rows, prices->rows_n, prices->rows_room, row);
}

static enum err read_rows(struct price_reader *reader, struct error *err)
{
    struct columns columns;
    enum err result = read_header(reader, &columns, err);
    if (result)
        return result;
    while (csv_next(&reader->csv)) {
        if (reader->prices->rows_n >= PRICE_ROWS_MAX)
            return error_set(err, ERR_LIMIT, "%s:%d: more than %d prices", reader->name,
                             reader->csv.line, PRICE_ROWS_MAX);
        read_record(reader, &columns);
    }
    return ERR_OK;
}

enum err prices_add_csv_text(struct prices *prices, const char *name, struct str text,
                             struct error *err)
{
    struct price_reader reader = {.prices = prices, .name = name, .file = prices->files++};
    enum err result;
    invariant(!prices->ready);
    prices->digest = XXH3_64bits_withSeed(text.p, text.n, prices->digest + 1);
    csv_init(&reader.csv, text);
    if (!csv_next(&reader.csv) || reader.csv.broken)
        result = error_set(err, ERR_CONFIG,
                           "%s: it has no line that names the columns; for example: "
                           "cloud,region,instance_type,capacity_type,usd_per_hour,gpus",
                           name);
    else if (prices_is_opencost(&reader.csv))
        result = prices_read_opencost(&reader, err);
    else
        result = read_rows(&reader, err);
    if (!result && reader.untold) {
        reader.told = 0;
        prices_problem(&reader, true, "and %zu problems like these", reader.untold);
    }
    csv_release(&reader.csv);
    if (!result)
        prices->priced = true;
    return result;
}

enum err prices_add_csv(struct prices *prices, const char *path, struct error *err)
{
    struct strbuf text = {0};
    enum err result = file_text(path, PRICE_FILE_MAX, &text, err);
    if (!result)
        result = prices_add_csv_text(prices, path, strbuf_str(&text), err);
    else
        error_prefix(err, "prices");
    strbuf_release(&text);
    return result;
}
