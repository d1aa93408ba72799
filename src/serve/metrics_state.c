/* What the counters have shown, on disk: a file beside the database, so that a new start goes on
 * where the last one was. It is written before a scrape is answered with what is new in it.
 *
 *     {"schema": "gputally.counters/1", "currency": "USD", "month_ms": …, "others": false,
 *      "teams": [{"name", "cost": {"used": nano, …}, "gpu": {"busy": [seconds, ns], …}}, …]}
 *
 * One that is damaged, or of another currency, is no state: the ledger says what to begin with. */
#include <jansson.h>
#include <stdlib.h>

#include "serve/metrics_impl.h"
#include "util/config_file.h"
#include "util/file.h"

#define SCHEMA "gputally.counters/1"
#define STATE_BYTES_MAX ((size_t)16 << 20)
#define TEAMS_MAX 10000

/* ---- writing ---- */

static json_t *team_json(const struct metrics_team *team)
{
    json_t *cost = json_object(), *gpu = json_object();
    for (int c = 0; c < CATEGORY_COUNT; c++)
        json_object_set_new(cost, category_columns[c], json_integer(team->category[c]));
    for (int s = 0; s < GPU_STATES; s++)
        json_object_set_new(gpu, gpu_state_words[s],
                            json_pack("[I, I]", (json_int_t)(team->gpu_ns[s] / NANO),
                                      (json_int_t)(team->gpu_ns[s] % NANO)));
    return json_pack("{s:s, s:o, s:o}", "name", team->name, "cost", cost, "gpu", gpu);
}

bool metrics_state_save(const struct metrics_state *state, const char *path, const char *currency)
{
    struct error none = {0};
    json_t *teams = json_array();
    bool whole = true;
    for (size_t i = 0; i < state->teams_n; i++)
        whole &= json_array_append_new(teams, team_json(&state->teams[i])) == 0;
    json_t *root =
        json_pack("{s:s, s:s, s:I, s:b, s:o}", "schema", SCHEMA, "currency", currency, "month_ms",
                  (json_int_t)state->month, "others", state->others, "teams", teams);
    char *text = whole ? json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
    bool saved = text && file_replace(path, str_of(text), &none) == ERR_OK;
    free(text);
    json_decref(root);
    return saved;
}

/* ---- reading ---- */

static void read_team(struct metrics_state *state, const json_t *from)
{
    const char *name = json_string_value(json_object_get(from, "name"));
    if (!name)
        return;
    struct metrics_team team = {.name = str_dup(str_of(name))};
    for (int c = 0; c < CATEGORY_COUNT; c++) {
        json_int_t nano =
            json_integer_value(json_object_get(json_object_get(from, "cost"), category_columns[c]));
        team.category[c] = nano > 0 ? nano : 0;
    }
    for (int s = 0; s < GPU_STATES; s++) {
        const json_t *pair = json_object_get(json_object_get(from, "gpu"), gpu_state_words[s]);
        json_int_t seconds = json_integer_value(json_array_get(pair, 0));
        json_int_t ns = json_integer_value(json_array_get(pair, 1));
        team.gpu_ns[s] = seconds >= 0 && ns >= 0 ? (wide_t)seconds * NANO + ns : 0;
    }
    mem_push(state->teams, state->teams_n, state->teams_room, team);
}

void metrics_state_load(struct metrics_state *state, const char *path, const char *currency)
{
    struct strbuf text = {0};
    struct error none = {0};
    json_t *root = NULL;
    if (file_text(path, STATE_BYTES_MAX, &text, &none) == ERR_OK)
        root = json_loadb(text.text ? text.text : "", text.n, 0, NULL);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const char *of = json_string_value(json_object_get(root, "currency"));
    const json_t *teams = json_object_get(root, "teams");
    if (schema && of && strcmp(schema, SCHEMA) == 0 && strcmp(of, currency) == 0) {
        state->month = json_integer_value(json_object_get(root, "month_ms"));
        for (size_t i = 0; i < json_array_size(teams) && i < TEAMS_MAX; i++)
            read_team(state, json_array_get(teams, i));
        state->others = state->teams_n && json_is_true(json_object_get(root, "others"));
    }
    json_decref(root);
    strbuf_release(&text);
}
