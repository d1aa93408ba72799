#include "report/meta_json.h"

#include "report/figure.h"
#include "report/text.h"

#define META_SCHEMA "gputally.meta/1"

static void add_string(struct strbuf *out, struct str text)
{
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_addc(out, '"');
}

static void add_field(struct strbuf *out, const char *name, struct str text)
{
    strbuf_addf(out, "\"%s\": ", name);
    add_string(out, text);
}

static void add_time(struct strbuf *out, const char *name, time_ms t)
{
    char buf[TIME_TEXT_MAX];
    add_field(out, name, str_of(time_format(t, buf)));
}

static void add_figures(struct strbuf *out)
{
    strbuf_add(out, STR("  \"figures\": ["));
    for (int i = 0; i < FIGURE_COUNT; i++) {
        const struct figure *figure = &figure_defs[i];
        strbuf_addf(out, "%s\n    {", i ? "," : "");
        add_field(out, "name", str_of(figure->name));
        strbuf_add(out, STR(", "));
        add_field(out, "unit", str_of(figure_unit_words[figure->unit]));
        strbuf_add(out, STR(", "));
        add_field(out, "heading", str_of(figure->heading));
        strbuf_add(out, STR(", "));
        add_field(out, "meaning", str_of(figure->meaning));
        strbuf_addc(out, '}');
    }
    strbuf_add(out, STR("\n  ],\n"));
}

/* Who can act on a category of money (semantics, section 6). */
static const char *who_acts(int category)
{
    switch (category) {
    case CATEGORY_USED:
    case CATEGORY_SLACK:
    case CATEGORY_HELD_IDLE:
        return "the holder's team";
    default:
        return "the platform";
    }
}

static void add_categories(struct strbuf *out)
{
    strbuf_add(out, STR("  \"categories\": ["));
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        strbuf_addf(out, "%s\n    {", c ? "," : "");
        add_field(out, "name", str_of(category_columns[c]));
        strbuf_add(out, STR(", "));
        add_field(out, "words", str_of(category_words[c]));
        strbuf_add(out, STR(", "));
        add_field(out, "who", str_of(who_acts(c)));
        strbuf_addc(out, '}');
    }
    strbuf_add(out, STR("\n  ],\n"));
}

static void add_rules(struct strbuf *out, const struct thresholds *thresholds)
{
    struct strbuf text = {0};
    strbuf_add(out, STR("  \"rules\": ["));
    for (int r = 0; r < RULE_COUNT; r++) {
        strbuf_clear(&text);
        rule_text((enum rule_id)r, thresholds, &text);
        strbuf_addf(out, "%s\n    {", r ? "," : "");
        add_field(out, "id", str_of(rules[r].name));
        strbuf_add(out, STR(", "));
        add_field(out, "title", str_of(rules[r].title));
        strbuf_add(out, STR(", "));
        add_field(out, "actor", str_of(rules[r].actor));
        strbuf_add(out, STR(", "));
        add_field(out, "thresholds", strbuf_str(&text));
        strbuf_addf(out, ", \"off\": %s}", thresholds->off[r] ? "true" : "false");
    }
    strbuf_release(&text);
    strbuf_add(out, STR("\n  ],\n"));
}

void meta_json(const struct meta *meta, struct strbuf *out)
{
    strbuf_add(out, STR("{\n  \"schema\": \"" META_SCHEMA "\",\n  "));
    add_field(out, "version", str_of(meta->version));
    strbuf_add(out, STR(",\n  "));
    add_field(out, "currency", str_of(meta->currency));
    strbuf_add(out, STR(",\n  "));
    add_field(out, "tz", str_of(meta->tz ? meta->tz : "UTC"));
    strbuf_add(out, STR(",\n  "));
    add_time(out, "now", meta->now);
    strbuf_add(out, STR(",\n  \"extent\": "));
    if (meta->extent.from < meta->extent.to) {
        strbuf_addc(out, '{');
        add_time(out, "from", meta->extent.from);
        strbuf_add(out, STR(", "));
        add_time(out, "to", meta->extent.to);
        strbuf_add(out, STR("},\n"));
    } else {
        strbuf_add(out, STR("null,\n"));
    }
    strbuf_add(out, STR("  \"clusters\": ["));
    for (size_t i = 0; i < meta->clusters_n; i++) {
        strbuf_add(out, str_of(i ? ", " : ""));
        add_string(out, meta->clusters[i]);
    }
    strbuf_add(out, STR("],\n  \"keys\": ["));
    for (int k = 0; k < KEY_COUNT; k++)
        strbuf_addf(out, "%s\"%s\"", k ? ", " : "", key_words[k]);
    strbuf_add(out, STR("],\n"));
    add_figures(out);
    add_categories(out);
    add_rules(out, meta->thresholds);
    out->n -= 2; /* the last section's comma */
    strbuf_add(out, STR("\n}\n"));
}
