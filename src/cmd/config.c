/* config: is the configuration fine, and tokens for it. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/serve_load.h"
#include "report/text.h"
#include "serve/auth.h"
#include "util/suggest.h"

const char *config_database(const struct options *options, struct error *err)
{
    static const char *const keys[] = {"db"};
    struct config_node serve = options->config->sections[CONFIG_SERVE_SECTION];
    struct config_node db = config_get(serve, str_of(keys[0]));
    struct strbuf path = {0};
    if (config_kind(db) != CONFIG_SCALAR) {
        error_set(
            err, ERR_USAGE,
            "no database is named: give --db FILE, or serve: {db: FILE} in the configuration");
        return NULL;
    }
    config_file_path(db, &path);
    const char *kept = str_keep(&options->config->arena, strbuf_str(&path)).p;
    strbuf_release(&path);
    return kept;
}

/* ---- check ---- */

static void say_sound(const struct service_setup *setup, struct strbuf *out)
{
    const struct config *config = setup->config;
    strbuf_addf(out, "%.*s is fine", STR_ARG(config->path));
    if (setup->serve.sources_n) {
        strbuf_add(out, STR(": "));
        text_plural(out, (wide_t)setup->serve.sources_n, "source", "sources");
    }
    if (setup->serve.db)
        strbuf_addf(out, "%s database %s", setup->serve.sources_n ? "," : ":", setup->serve.db);
    strbuf_addc(out, '\n');
}

static enum err check(const struct options *options, struct strbuf *out, struct error *err)
{
    struct service_setup setup;
    const char *path = options->positional_n > 1 ? options->positional[1] : NULL;
    enum err code = serve_load(options, path, &setup, err);
    if (code != ERR_OK)
        return code;
    if (!setup.config->path.n)
        code =
            error_set(err, ERR_USAGE, "there is no configuration: name one, %s config check FILE",
                      options->program);
    if (code == ERR_OK)
        code = service_check(&setup, err);
    if (code == ERR_OK)
        say_sound(&setup, out);
    serve_unload(&setup);
    return code;
}

/* ---- token ---- */

static enum err token(const struct options *options, struct strbuf *out, struct error *err)
{
    char text[AUTH_TOKEN_MAX], hash[AUTH_HASH_MAX];
    const char *name = options->positional_n > 1 ? options->positional[1] : "NAME";
    enum err code = auth_token_new(text, hash, err);
    if (code == ERR_OK)
        strbuf_addf(out,
                    "token (shown once, give it to who asks): %s\n"
                    "in the configuration:\n"
                    "access:\n"
                    "  tokens:\n"
                    "    - {name: %s, hash: '%s', scopes: [read]}\n",
                    text, name, hash);
    return code;
}

/* ---- the command ---- */

static const struct action {
    const char *name;
    enum err (*run)(const struct options *options, struct strbuf *out, struct error *err);
} actions[] = {{"check", check}, {"token", token}};
#define ACTIONS (sizeof actions / sizeof *actions)

static const struct action *action_of(const struct options *options, struct error *err)
{
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++)
        names[i] = actions[i].name;
    if (options->positional_n == 0) {
        error_set(err, ERR_USAGE, "config needs to know what to do: check or token");
        return NULL;
    }
    const char *word = options->positional[0];
    if (options->positional_n > 2) {
        error_set(err, ERR_USAGE, "config %s: unexpected argument '%s'", word,
                  options->positional[2]);
        return NULL;
    }
    for (size_t i = 0; i < ACTIONS; i++)
        if (strcmp(word, actions[i].name) == 0)
            return &actions[i];
    const char *near = suggest(str_of(word), names, ACTIONS);
    if (near)
        error_set(err, ERR_USAGE, "config does not know '%s': did you mean '%s'?", word, near);
    else
        error_set(err, ERR_USAGE, "config does not know '%s': it knows check and token", word);
    return NULL;
}

int cmd_config(const struct options *options)
{
    struct error err = {0};
    struct strbuf out = {0};
    const struct action *action = action_of(options, &err);
    if (!action)
        return fail(&err);
    enum err code = action->run(options, &out, &err);
    if (code == ERR_OK)
        return print_text(&out);
    strbuf_release(&out);
    return fail(&err);
}
