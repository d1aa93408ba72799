/* One pass over the text, a record at a time. Fields that hold doubled quotes are built in the
 * scratch buffer, which may move while a record is read, so their places in it are kept as offsets
 * until the record is whole.
 *
 * A stray quote must not swallow the rest of a file: a quote that closes in front of anything but a
 * comma or a line end makes its record broken, and reading goes on at the line after the record's
 * first. A line is therefore scanned at most twice. */
#include "util/csv.h"

#include <stdint.h>

#define IN_TEXT SIZE_MAX

struct record {
    size_t at[CSV_FIELDS_MAX]; /* offset in the scratch, or IN_TEXT */
    size_t n;
    const char *broken;
};

void csv_init(struct csv *csv, struct str text)
{
    *csv = (struct csv){.p = text.p, .end = text.p + text.n, .next_line = 1};
    if (str_starts(text, STR("\xef\xbb\xbf")))
        csv->p += 3;
}

void csv_release(struct csv *csv)
{
    strbuf_release(&csv->scratch);
}

struct str csv_field(const struct csv *csv, size_t i)
{
    return i < csv->n ? csv->fields[i] : STR_NONE;
}

static bool at_line_end(const struct csv *csv)
{
    return csv->p == csv->end || *csv->p == '\n' || *csv->p == '\r';
}

static void pass_line_end(struct csv *csv)
{
    if (csv->p < csv->end && *csv->p == '\r')
        csv->p++;
    else if (csv->p == csv->end)
        return;
    if (csv->p < csv->end && *csv->p == '\n')
        csv->p++;
    csv->next_line++;
}

static void pass_line(struct csv *csv)
{
    while (!at_line_end(csv))
        csv->p++;
    pass_line_end(csv);
}

/* The inside of a quoted field, p behind its first quote. NULL, or why it is broken. */
static const char *quoted(struct csv *csv, struct str *field, size_t *at)
{
    const char *from = csv->p;
    bool doubled = false;
    *at = IN_TEXT;
    for (;;) {
        const char *quote = memchr(csv->p, '"', (size_t)(csv->end - csv->p));
        if (!quote)
            return "a quote is never closed";
        csv->p = quote + 1;
        bool again = csv->p < csv->end && *csv->p == '"';
        if (!again && !doubled) {
            *field = (struct str){from, (size_t)(quote - from)};
            break;
        }
        if (!doubled)
            *at = csv->scratch.n;
        doubled = true;
        strbuf_add(&csv->scratch, (struct str){from, (size_t)(quote - from) + again});
        if (!again) {
            *field = (struct str){"", csv->scratch.n - *at};
            break;
        }
        from = ++csv->p;
    }
    return at_line_end(csv) || *csv->p == ',' ? NULL : "text follows a closing quote";
}

static void read_field(struct csv *csv, struct record *record)
{
    struct str field;
    size_t at = IN_TEXT;
    if (csv->p < csv->end && *csv->p == '"') {
        csv->p++;
        record->broken = quoted(csv, &field, &at);
        if (record->broken)
            return;
    } else {
        const char *from = csv->p;
        while (!at_line_end(csv) && *csv->p != ',')
            csv->p++;
        field = (struct str){from, (size_t)(csv->p - from)};
    }
    if (record->n == CSV_FIELDS_MAX) {
        record->broken = "it has more fields than a record may have";
        return;
    }
    record->at[record->n] = at;
    csv->fields[record->n++] = field;
}

bool csv_next(struct csv *csv)
{
    while (csv->p < csv->end && (at_line_end(csv) || *csv->p == '#'))
        pass_line(csv);
    if (csv->p == csv->end)
        return false;
    const char *start = csv->p;
    struct record record = {.n = 0};
    csv->line = csv->next_line;
    strbuf_clear(&csv->scratch);
    for (;;) {
        read_field(csv, &record);
        if (record.broken || at_line_end(csv))
            break;
        csv->p++;
    }
    csv->broken = record.broken;
    csv->n = record.broken ? 0 : record.n;
    if (record.broken) {
        csv->p = start;
        pass_line(csv);
        return true;
    }
    for (const char *p = start; p < csv->p; p++)
        csv->next_line += *p == '\n' || (*p == '\r' && !(p + 1 < csv->p && p[1] == '\n'));
    pass_line_end(csv);
    for (size_t i = 0; i < csv->n; i++)
        if (record.at[i] != IN_TEXT)
            csv->fields[i].p = csv->scratch.text + record.at[i];
    return true;
}
