#include "report/cube_json.h"

#include "report/figure.h"
#include "report/text.h"

/* Which figures some row has. */
static void find_figures(const struct result *result, size_t n, bool *ret)
{
    wide_t value;
    for (size_t i = 0; i < n; i++)
        for (int id = 0; id < FIGURE_COUNT; id++)
            if (!ret[id] && id != FIGURE_NODE_IDLE) /* the sum of its causes */
                ret[id] = figure_get(&result->groups[i].figures, (enum figure_id)id, &value) &&
                          (value != 0 || id == FIGURE_COST);
}

static void add_row(struct strbuf *out, const struct group *group, size_t keys_n, const bool *there)
{
    for (size_t i = 0; i < keys_n; i++) {
        strbuf_add(out, str_of(i ? "," : ""));
        if (str_eq(group->keys[i], STR("-"))) {
            strbuf_add(out, STR("null"));
            continue;
        }
        strbuf_addc(out, '"');
        text_json(out, group->keys[i]);
        strbuf_addc(out, '"');
    }
    for (int id = 0; id < FIGURE_COUNT; id++) {
        wide_t value;
        if (!there[id])
            continue;
        strbuf_addc(out, ',');
        if (figure_get(&group->figures, (enum figure_id)id, &value)) {
            if (figure_defs[id].unit == UNIT_MONEY)
                text_nano_plain(out, value);
            else
                figure_machine(out, figure_defs[id].unit, value);
        } else
            strbuf_add(out, STR("null"));
    }
}

void cube_json(const struct result *result, size_t limit, struct strbuf *out)
{
    size_t n = limit && limit < result->groups_n ? limit : result->groups_n;
    bool there[FIGURE_COUNT] = {false};
    find_figures(result, n, there);
    strbuf_add(out, STR("{\"by\": ["));
    for (size_t i = 0; i < result->query.keys_n; i++)
        strbuf_addf(out, "%s\"%s\"", i ? ", " : "", key_words[result->query.keys[i]]);
    strbuf_add(out, STR("], \"figures\": ["));
    bool first = true;
    for (int id = 0; id < FIGURE_COUNT; id++)
        if (there[id]) {
            strbuf_addf(out, "%s\"%s\"", first ? "" : ", ", figure_defs[id].name);
            first = false;
        }
    strbuf_addf(out, "], \"rows_total\": %zu, \"rows\": [", result->groups_n);
    for (size_t i = 0; i < n; i++) {
        strbuf_add(out, str_of(i ? ",\n[" : "\n["));
        add_row(out, &result->groups[i], result->query.keys_n, there);
        strbuf_addc(out, ']');
    }
    strbuf_add(out, STR("]}"));
}
