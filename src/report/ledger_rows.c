/* The rows of the ledger.
 *
 * One function walks a row's fields in the order of the columns and hands each to a writer; CSV
 * header, CSV and JSON are three writers, so that they cannot get out of step. */
#include "report/ledger_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "report/csv.h"
#include "report/text.h"
#include "util/error.h"

enum field_kind { FIELD_NAME, FIELD_MONEY, FIELD_NUMBER, FIELD_LIST };

struct writer {
    struct strbuf *out;
    struct strbuf *scratch; /* for texts that are put together: reused for every field */
    bool first;
    void (*field)(struct writer *writer, const char *column, enum field_kind kind, struct str text);
};

static void header_field(struct writer *writer, const char *column, enum field_kind kind,
                         struct str text)
{
    (void)kind, (void)text;
    strbuf_addf(writer->out, "%s%s", writer->first ? "" : ",", column);
}

static void csv_field(struct writer *writer, const char *column, enum field_kind kind,
                      struct str text)
{
    (void)column;
    if (!writer->first)
        strbuf_addc(writer->out, ',');
    if (kind == FIELD_NAME)
        csv_text(writer->out, text);
    else
        strbuf_add(writer->out, text);
}

/* "a;b" -> ["a","b"]; numbers of a list stay numbers. */
static void json_list(struct strbuf *out, struct str text)
{
    bool numbers = text.n && text.p[0] >= '0' && text.p[0] <= '9';
    strbuf_addc(out, '[');
    for (size_t i = 0, start = 0; text.n && i <= text.n; i++) {
        if (i < text.n && text.p[i] != ';')
            continue;
        strbuf_add(out, str_of(!numbers ? (start ? ",\"" : "\"") : start ? "," : ""));
        strbuf_add(out, (struct str){text.p + start, i - start});
        strbuf_add(out, str_of(numbers ? "" : "\""));
        start = i + 1;
    }
    strbuf_addc(out, ']');
}

static void json_field(struct writer *writer, const char *column, enum field_kind kind,
                       struct str text)
{
    struct strbuf *out = writer->out;
    strbuf_add(out, str_of(writer->first ? "{\"" : ",\""));
    strbuf_add(out, str_of(column));
    strbuf_add(out, STR("\":"));
    if (kind == FIELD_LIST)
        json_list(out, text);
    else if (kind == FIELD_NAME && (text.n == 0 || str_eq(text, STR("-"))))
        strbuf_add(out, STR("null"));
    else if (kind == FIELD_NAME) {
        strbuf_addc(out, '"');
        text_json(out, text);
        strbuf_addc(out, '"');
    } else
        strbuf_add(out, text);
}

static void put(struct writer *writer, const char *column, enum field_kind kind, struct str text)
{
    writer->field(writer, column, kind, text);
    writer->first = false;
}

/* A row has a hundred numbers, most of them 0: printf would be most of an export. */
static void add_integer(struct strbuf *out, int64_t value)
{
    char text[24];
    size_t at = sizeof text;
    uint64_t size = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    do
        text[--at] = (char)('0' + (int)(size % 10));
    while (size /= 10);
    if (value < 0)
        text[--at] = '-';
    strbuf_add(out, (struct str){text + at, sizeof text - at});
}

static void put_integer(struct writer *writer, const char *column, enum field_kind kind,
                        int64_t value)
{
    strbuf_clear(writer->scratch);
    add_integer(writer->scratch, value);
    put(writer, column, kind, strbuf_str(writer->scratch));
}

/* num / den as an integer where it is one, else the shortest double that reads back. */
static void quotient(struct strbuf *out, wide_t num, wide_t den)
{
    if (num == 0 || den == 1 || num % den == 0) {
        add_integer(out, num == 0 ? 0 : (int64_t)(num / den));
        return;
    }
    char text[40];
    double value = (double)((long double)num / (long double)den);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    strbuf_add(out, str_of(text));
}

static void put_quotient(struct writer *writer, const char *column, wide_t num, wide_t den)
{
    strbuf_clear(writer->scratch);
    quotient(writer->scratch, num, den);
    put(writer, column, FIELD_NUMBER, strbuf_str(writer->scratch));
}

static void put_histogram(struct writer *writer, const char *column, const int64_t *bins,
                          uint32_t den)
{
    strbuf_clear(writer->scratch);
    for (int i = 0; i < HISTOGRAM_BINS; i++) {
        if (i)
            strbuf_addc(writer->scratch, ';');
        quotient(writer->scratch, bins[i], den);
    }
    put(writer, column, FIELD_LIST, strbuf_str(writer->scratch));
}

static struct str name_or_dash(const struct names *names, name_t id)
{
    return id == NAME_NONE ? STR("-") : names_text(names, id);
}

static void walk_key(struct writer *writer, const struct names *names, const struct row *row)
{
    const struct row_key *key = &row->key;
    char hour[TIME_TEXT_MAX];
    put(writer, "hour", FIELD_NAME, str_of(time_format(key->hour, hour)));
    put(writer, "cluster", FIELD_NAME, name_or_dash(names, key->cluster));
    put(writer, "node", FIELD_NAME, name_or_dash(names, key->node));
    put(writer, "device", FIELD_NAME, name_or_dash(names, key->device));
    put(writer, "instance", FIELD_NAME, name_or_dash(names, key->instance));
    put(writer, "namespace", FIELD_NAME, name_or_dash(names, key->namespace));
    put(writer, "pod", FIELD_NAME, name_or_dash(names, key->pod));
    put(writer, "pod_uid", FIELD_NAME, name_or_dash(names, key->pod_uid));
    put(writer, "container", FIELD_NAME, name_or_dash(names, key->container));
    put(writer, "model", FIELD_NAME, names_text(names, row->facts.model));
    put(writer, "workload", FIELD_NAME, name_or_dash(names, row->facts.workload));
    put(writer, "type", FIELD_NAME, str_of(workload_type_words[row->facts.type]));
    put(writer, "owner", FIELD_NAME, name_or_dash(names, row->facts.owner));
}

static void walk_times(struct writer *writer, const struct row *row)
{
    static const char *const states[STATE_COUNT] = {"idle_ms", "low_ms", "busy_ms"};
    static const char *const gpu_states[STATE_COUNT] = {"gpu_idle_ms", "gpu_low_ms", "gpu_busy_ms"};
    put_quotient(writer, "gpu_ms", row->gpu_num, row->share_den);
    put_integer(writer, "held_ms", FIELD_NUMBER, row->held_ms);
    put_integer(writer, "observed_ms", FIELD_NUMBER, row->observed_ms);
    for (int i = 0; i < STATE_COUNT; i++)
        put_integer(writer, states[i], FIELD_NUMBER, row->state_ms[i]);
    put_quotient(writer, "gpu_held_ms", row->gpu_held_num, row->share_den);
    put_quotient(writer, "gpu_observed_ms", row->gpu_observed_num, row->share_den);
    for (int i = 0; i < STATE_COUNT; i++)
        put_quotient(writer, gpu_states[i], row->gpu_state_num[i], row->share_den);
}

static void walk_measures(struct writer *writer, const struct row *row)
{
    static const char *const columns[MEASURE_COUNT][2] = {
        [MEASURE_SM] = {"sm_ms", "sm_seen_ms"},
        [MEASURE_TENSOR] = {"tensor_ms", "tensor_seen_ms"},
        [MEASURE_DRAM] = {"dram_ms", "dram_seen_ms"},
    };
    put_quotient(writer, "u_ms", row->u, NANO);
    put_quotient(writer, "e_ms", row->e, NANO);
    put_quotient(writer, "gpu_u_ms", row->gpu_u_num, (wide_t)row->share_den * NANO);
    for (int i = 0; i < MEASURE_COUNT; i++) {
        put_quotient(writer, columns[i][0], row->measure[i], NANO);
        put_integer(writer, columns[i][1], FIELD_NUMBER, row->measure_seen_ms[i]);
    }
    put_quotient(writer, "mem_byte_ms", (wide_t)row->mem_byte_ms, 1);
    put_integer(writer, "mem_seen_ms", FIELD_NUMBER, row->mem_seen_ms);
    put_integer(writer, "mem_max_bytes", FIELD_NUMBER, row->mem_max_bytes);
    put_integer(writer, "mem_total_bytes", FIELD_NUMBER, row->mem_total_bytes);
    put_integer(writer, "energy_mj", FIELD_NUMBER, row->energy_mj);
    put_histogram(writer, "hist_u", row->hist_u_num, row->share_den);
    put_histogram(writer, "hist_e", row->hist_e_num, row->share_den);
}

static void walk(struct writer *writer, const struct names *names, const struct row *row)
{
    invariant(row->share_den > 0);
    walk_key(writer, names, row);
    put_integer(writer, "cost", FIELD_MONEY, row->cost);
    for (int i = 0; i < CATEGORY_COUNT; i++)
        put_integer(writer, category_columns[i], FIELD_MONEY, row->category[i]);
    walk_times(writer, row);
    walk_measures(writer, row);
    for (int i = 0; i < WORK_COUNT; i++)
        put_integer(writer, work_columns[i], FIELD_NUMBER, row->work[i]);
    strbuf_clear(writer->scratch);
    for (int flag = 0; flag < FLAG_COUNT; flag++) { /* the table is in order of the words */
        if (!(row->flags >> flag & 1))
            continue;
        if (writer->scratch->n)
            strbuf_addc(writer->scratch, ';');
        strbuf_add(writer->scratch, str_of(flag_words[flag]));
    }
    put(writer, "flags", FIELD_LIST, strbuf_str(writer->scratch));
}

static void write_row(struct strbuf *out, const struct names *names, const struct row *row,
                      void (*field)(struct writer *, const char *, enum field_kind, struct str))
{
    struct strbuf scratch = {0};
    struct writer writer = {.out = out, .scratch = &scratch, .first = true, .field = field};
    walk(&writer, names, row);
    strbuf_release(&scratch);
}

void ledger_csv_header(struct strbuf *out)
{
    struct names *names = names_new();
    struct row none = {.share_den = 1};
    write_row(out, names, &none, header_field);
    strbuf_addc(out, '\n');
    names_free(names);
}

void ledger_csv_row(struct strbuf *out, const struct names *names, const struct row *row)
{
    write_row(out, names, row, csv_field);
    strbuf_addc(out, '\n');
}

void ledger_json_row(struct strbuf *out, const struct names *names, const struct row *row)
{
    write_row(out, names, row, json_field);
    strbuf_add(out, STR("}\n"));
}
