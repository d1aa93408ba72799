/* alerts: what would ring now, and whether what rings arrives. */
#include <stdlib.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/output.h"
#include "cmd/serve_load.h"
#include "report/grid.h"
#include "report/text.h"
#include "serve/alerter.h"
#include "util/suggest.h"

/* ---- list ---- */

static void put_row(struct grid *grid, const struct service_setup *setup, const struct alert *alert)
{
    const struct alert_config *alerts = &setup->serve.alerts;
    struct strbuf text = {0};
    uint32_t to = alert_config_receivers(alerts, alert);
    grid_row(grid, alert->critical);
    if (alert->month)
        text_money(&text, alert->month, text_money_places(alert->month), setup->config->currency.p);
    grid_cell(grid, text.n ? strbuf_str(&text) : STR("–"));
    grid_cell(grid, alert->owner);
    grid_cell(grid, str_of(alert_kind_words[alert->kind]));
    strbuf_clear(&text);
    for (size_t i = 0; i < alerts->receivers_n; i++)
        if (to & 1u << i)
            strbuf_addf(&text, "%s%s", text.n ? ", " : "", alerts->receivers[i].name);
    grid_cell(grid, text.n ? strbuf_str(&text) : STR("nobody"));
    grid_cell(grid, alert->title);
    strbuf_release(&text);
}

static void show(const struct service_setup *setup, const struct alert_list *list,
                 struct strbuf *out)
{
    struct grid *grid = grid_new();
    struct grid_style style = {output_columns(), output_colour()};
    grid_column(grid, "A MONTH", GRID_RIGHT);
    grid_column(grid, "OWNER", GRID_NAME);
    grid_column(grid, "KIND", GRID_NAME);
    grid_column(grid, "TELLS", GRID_NAME);
    grid_column(grid, "WHAT", GRID_WORDS);
    for (size_t i = 0; i < list->n; i++)
        put_row(grid, setup, &list->items[i]);
    if (list->n)
        grid_text(grid, &style, out);
    strbuf_addf(out, "%s%zu alert%s would ring now; nobody was told\n", list->n ? "\n" : "",
                list->n, list->n == 1 ? "" : "s");
    grid_free(grid);
}

static enum err list(const struct service_setup *setup, struct strbuf *out, struct error *err)
{
    struct log log = {.fd = STDERR_FILENO, .level = LOG_WARN};
    struct alerter_options options = {.config = setup->config,
                                      .alerts = &setup->serve.alerts,
                                      .db = setup->serve.db,
                                      .tz = setup->tz,
                                      .currency = setup->config->currency.p,
                                      .log = &log};
    struct alert_list found = {0};
    if (!setup->serve.db)
        return error_set(err, ERR_USAGE,
                         "no database is named: give --db FILE, or serve: {db: FILE} in the "
                         "configuration");
    enum err code = alerter_look(&options, clock_now(), &found, err);
    if (code == ERR_OK)
        show(setup, &found, out);
    alert_list_release(&found);
    return code;
}

/* ---- test ---- */

static enum err test(const struct service_setup *setup, struct strbuf *out, struct error *err)
{
    const struct alert_config *alerts = &setup->serve.alerts;
    struct alert_entry entry = {.key = "test",
                                .owner = "platform",
                                .title = "gputally: a test",
                                .text = "If you read this, alerts arrive here.",
                                .kind = ALERT_TEST,
                                .since = TIME_MIN,
                                .fired = clock_now()};
    const struct alert_entry *entries = &entry;
    size_t failed = 0;
    for (size_t i = 0; i < alerts->receivers_n; i++) {
        const struct alert_receiver *receiver = &alerts->receivers[i];
        struct error why = {0};
        enum err code = alert_send(alerts, receiver, &entries, 1, clock_now(), NULL, &why);
        strbuf_addf(out, "%s (%s): %s\n", receiver->name, receiver_kind_words[receiver->kind],
                    code ? why.text : "delivered");
        failed += code != ERR_OK;
    }
    return failed ? error_set(err, ERR_NETWORK, "%zu of %zu receivers did not take the message",
                              failed, alerts->receivers_n)
                  : ERR_OK;
}

/* ---- the command ---- */

static const struct action {
    const char *name;
    enum err (*run)(const struct service_setup *setup, struct strbuf *out, struct error *err);
} actions[] = {{"list", list}, {"test", test}};
#define ACTIONS (sizeof actions / sizeof *actions)

static const struct action *action_of(const struct options *options, struct error *err)
{
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++)
        names[i] = actions[i].name;
    const char *word = options->positional_n ? options->positional[0] : "";
    for (size_t i = 0; i < ACTIONS; i++)
        if (options->positional_n == 1 && strcmp(word, names[i]) == 0)
            return &actions[i];
    const char *near = suggest(str_of(word), names, ACTIONS);
    if (options->positional_n > 1)
        error_set(err, ERR_USAGE, "alerts %s: unexpected argument '%s'", word,
                  options->positional[1]);
    else if (options->positional_n)
        error_set(err, ERR_USAGE, "alerts does not know '%s': %s%s", word,
                  near ? "did you mean " : "it knows list and test", near ? near : "");
    else
        error_set(err, ERR_USAGE, "alerts needs to know what to do: list or test");
    return NULL;
}

static enum err run(const struct options *options, const struct action *action, struct strbuf *out,
                    struct error *err)
{
    struct service_setup setup;
    enum err code = serve_load(options, NULL, &setup, err);
    if (code != ERR_OK)
        return code;
    if (setup.serve.alerts.on)
        code = action->run(&setup, out, err);
    else
        code = error_set(err, ERR_USAGE,
                         "the configuration has no alerts: add the section alerts: "
                         "(docs/alerts.md)");
    serve_unload(&setup);
    return code;
}

int cmd_alerts(const struct options *options)
{
    struct error err = {0};
    struct strbuf out = {0};
    const struct action *action = action_of(options, &err);
    if (!action)
        return fail(&err);
    enum err code = run(options, action, &out, &err);
    int status = out.n ? print_text(&out) : EXIT_DONE;
    return code == ERR_OK ? status : fail(&err);
}
