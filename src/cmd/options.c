/* Reading the command line, the environment and the configuration's options, in this order of rank.
 *
 * getopt_long knows every option of every command; whether an option belongs to the command is
 * checked afterwards, so that "report --gpus 8" is told apart from a word that nobody knows. */
#include "cmd/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "fleet/config.h"
#include "util/str.h"
#include "util/suggest.h"

const struct option_def option_defs[OPTION_COUNT] = {
#define X(id, name, letter, kind, argument, commands, hidden, group, help)                         \
    {name, letter, kind, argument, commands, hidden, group, help},
    OPTION_TABLE(X)
#undef X
};

#define LONG_BASE 256 /* getopt's value of option i is LONG_BASE + i, or its letter */

static void give(struct options *options, enum option_id id, const char *value, const char *origin)
{
    struct option_values *values = &options->values[id];
    if (option_defs[id].kind != OPTION_SEVERAL)
        values->n = 0;
    mem_push(values->items, values->n, values->room, value);
    values->origin = origin;
}

static const char *keep(struct options *options, struct str text)
{
    return str_keep(&options->arena, text).p;
}

void options_known(unsigned commands, const char **ret)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool fits = option_defs[i].commands & (commands | IN_ALL);
        ret[i] = fits && !option_defs[i].hidden ? option_defs[i].name : NULL;
    }
}

/* ---- the command line ---- */

static void make_getopt(struct option *longs, char *letters)
{
    size_t n = 0;
    letters[n++] = ':';
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_def *def = &option_defs[i];
        bool value = def->kind != OPTION_SWITCH;
        longs[i] = (struct option){def->name, value ? required_argument : no_argument, NULL,
                                   def->letter ? def->letter : LONG_BASE + i};
        if (def->letter) {
            letters[n++] = def->letter;
            if (value)
                letters[n++] = ':';
        }
    }
    longs[OPTION_COUNT] = (struct option){0};
    letters[n] = 0;
}

static enum option_id option_of(int code)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (code == LONG_BASE + i || (option_defs[i].letter && code == option_defs[i].letter))
            return (enum option_id)i;
    return OPTION_COUNT;
}

static enum err unknown_option(const struct options *options, const char *word, struct error *err)
{
    const char *known[OPTION_COUNT];
    struct str name = str_of(word);
    if (str_starts(name, STR("--"))) {
        name.p += 2;
        name.n -= 2;
    }
    const char *equals = memchr(name.p, '=', name.n);
    if (equals)
        name.n = (size_t)(equals - name.p);
    options_known(~0u, known);
    const char *near = suggest(name, known, OPTION_COUNT);
    if (near)
        return error_set(err, ERR_USAGE, "unknown option '%s': did you mean --%s?", word, near);
    return error_set(err, ERR_USAGE, "unknown option '%s' (%s --help lists the options)", word,
                     options->program);
}

static enum err getopt_failed(const struct options *options, int code, char **argv,
                              const struct option *longs, struct error *err)
{
    const char *word = argv[optind - 1];
    char letter[3] = {'-', (char)optopt, 0};
    bool is_letter = optopt && optopt < LONG_BASE && strncmp(word, "--", 2) != 0;
    if (code == ':') {
        enum option_id id = option_of(optopt);
        return error_set(err, ERR_USAGE, "option %s needs a value: --%s %s",
                         is_letter ? letter : word, option_defs[id].name, option_defs[id].argument);
    }
    if (optopt >= LONG_BASE)
        return error_set(err, ERR_USAGE, "option --%s takes no value",
                         option_defs[option_of(optopt)].name);
    if (is_letter)
        return unknown_option(options, letter, err);
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word), like = 0;
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (strncmp(longs[i].name, word + 2, n - 2) != 0 || n <= 2)
            continue;
        if (strlen(longs[i].name) == n - 2)
            return error_set(err, ERR_USAGE, "option --%s takes no value", longs[i].name);
        like++;
    }
    if (like > 1)
        return error_set(err, ERR_USAGE, "option '%s' could be several: write it in full", word);
    return unknown_option(options, word, err);
}

static enum err read_arguments(int argc, char **argv, struct options *ret, struct error *err)
{
    struct option longs[OPTION_COUNT + 1];
    char letters[2 * OPTION_COUNT + 2];
    int code;
    make_getopt(longs, letters);
    optind = 0; /* start anew: tests parse many */
    opterr = 0;
    while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (code == '?' || code == ':')
            return getopt_failed(ret, code, argv, longs, err);
        enum option_id id = option_of(code);
        give(ret, id, option_defs[id].kind == OPTION_SWITCH ? "1" : optarg, NULL);
    }
    for (int i = optind; i < argc; i++)
        mem_push(ret->positional, ret->positional_n, ret->positional_room, argv[i]);
    return ERR_OK;
}

static enum err find_command(struct options *ret, struct error *err)
{
    const char *known[32];
    size_t n = 0;
    if (ret->positional_n == 0)
        return ERR_OK;
    const char *word = ret->positional[0];
    for (size_t i = 0; i < command_defs_n; i++) {
        if (strcmp(command_defs[i].name, word) == 0)
            ret->command = &command_defs[i];
        if (!command_defs[i].hidden && n < sizeof known / sizeof *known)
            known[n++] = command_defs[i].name;
    }
    if (!ret->command) {
        const char *near = suggest(str_of(word), known, n);
        if (near)
            return error_set(err, ERR_USAGE, "unknown command '%s': did you mean '%s'?", word,
                             near);
        return error_set(err, ERR_USAGE, "unknown command '%s' (%s help lists the commands)", word,
                         ret->program);
    }
    memmove(ret->positional, ret->positional + 1, --ret->positional_n * sizeof *ret->positional);
    return ERR_OK;
}

static enum err check_applies(const struct options *options, struct error *err)
{
    if (!options->command)
        return ERR_OK;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options->values[i].n && !(option_defs[i].commands & (options->command->bit | IN_ALL)))
            return error_set(err, ERR_USAGE,
                             "%s has no option --%s (%s %s --help lists its options)",
                             options->command->name, option_defs[i].name, options->program,
                             options->command->name);
    if (options->positional_n && !options->command->positional)
        return error_set(err, ERR_USAGE, "%s: unexpected argument '%s' (%s %s --help)",
                         options->command->name, options->positional[0], options->program,
                         options->command->name);
    return ERR_OK;
}

/* ---- the environment ---- */

static const char *switch_value(const char *text)
{
    static const char *const on[] = {"1", "true", "yes", "on"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        if (strcasecmp(text, on[i]) == 0)
            return "1";
    return NULL;
}

static void read_variable(struct options *ret, enum option_id id)
{
    const struct option_def *def = &option_defs[id];
    struct strbuf name = {0};
    strbuf_add(&name, STR("GPUTALLY_"));
    for (const char *p = def->name; *p; p++)
        strbuf_addc(&name, *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
    const char *value = getenv(name.text), *origin = keep(ret, strbuf_str(&name));
    strbuf_release(&name);
    if (!value || !*value)
        return;
    if (def->kind == OPTION_SWITCH) {
        if (switch_value(value))
            give(ret, id, "1", origin);
    } else if (def->kind == OPTION_VALUE) {
        give(ret, id, value, origin);
    } else {
        for (const char *p = value; *p;) {
            size_t n = strcspn(p, "\n");
            if (n)
                give(ret, id, keep(ret, (struct str){p, n}), origin);
            p += n + (p[n] == '\n');
        }
    }
}

static void read_environment(struct options *ret)
{
    for (int i = 0; ret->command && i < OPTION_COUNT; i++)
        if (ret->values[i].n == 0 && (option_defs[i].commands & ret->command->bit & IN_CONFIGURED))
            read_variable(ret, (enum option_id)i);
}

enum err options_parse(int argc, char **argv, struct options *ret, struct error *err)
{
    *ret = (struct options){.program = "gputally", .argc = argc, .argv = argv};
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *base = argc > 0 ? (slash ? slash + 1 : argv[0]) : "";
    if (strcmp(base, "kubectl-gputally") == 0)
        ret->program = "kubectl gputally";
    enum err code = read_arguments(argc, argv, ret, err);
    if (code == ERR_OK)
        code = find_command(ret, err);
    if (code == ERR_OK)
        code = check_applies(ret, err);
    if (code == ERR_OK)
        read_environment(ret);
    return code;
}

/* ---- the configuration ---- */

static enum err add_config_option(struct options *options, const struct config *config,
                                  const struct config_option *option, bool *given,
                                  struct error *err)
{
    const char *known[OPTION_COUNT];
    char place[512];
    snprintf(place, sizeof place, "%.*s:%d:%d", STR_ARG(config->path), option->line,
             option->column);
    options_known(~0u, known);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_def *def = &option_defs[i];
        if (!known[i] || !str_eq(str_of(def->name), option->name) || i == OPTION_CONFIG)
            continue;
        if (given[i] || !(def->commands & options->command->bit))
            return ERR_OK;
        const char *value = keep(options, option->value);
        if (def->kind == OPTION_SWITCH && !switch_value(value))
            return ERR_OK;
        give(options, (enum option_id)i, def->kind == OPTION_SWITCH ? "1" : value,
             keep(options, str_of(place)));
        return ERR_OK;
    }
    const char *near = suggest(option->name, known, OPTION_COUNT);
    if (near)
        return error_set(err, ERR_CONFIG, "%s: unknown option '%.*s': did you mean '%s'?", place,
                         STR_ARG(option->name), near);
    return error_set(err, ERR_CONFIG, "%s: unknown option '%.*s'", place, STR_ARG(option->name));
}

enum err options_add_config(struct options *options, const struct config *config, struct error *err)
{
    bool given[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++)
        given[i] = options->values[i].n > 0;
    for (size_t i = 0; i < config->options_n; i++) {
        enum err code = add_config_option(options, config, &config->options[i], given, err);
        if (code != ERR_OK)
            return code;
    }
    return ERR_OK;
}

enum err options_read_config(struct options *options, const char *path, struct error *err)
{
    options->config = config_new();
    if (!path)
        path = options_text(options, OPTION_CONFIG);
    struct str found;
    if (!path && config_default_path(options->config, &found))
        path = found.p;
    enum err code = path ? config_read(options->config, path, err) : ERR_OK;
    return code == ERR_OK ? options_add_config(options, options->config, err) : code;
}

void options_release(struct options *options)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        free(options->values[i].items);
    free(options->positional);
    arena_release(&options->arena);
    *options = (struct options){0};
}

/* ---- values ---- */

enum err options_refuse(const struct options *options, enum option_id id, struct error *err,
                        const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    const char *origin = options->values[id].origin;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (origin)
        return error_set(err, ERR_USAGE, "%s (for --%s): %s", origin, option_defs[id].name, text);
    return error_set(err, ERR_USAGE, "--%s: %s", option_defs[id].name, text);
}

const char *options_text(const struct options *options, enum option_id id)
{
    const struct option_values *values = &options->values[id];
    return values->n ? values->items[values->n - 1] : NULL;
}

bool options_switch(const struct options *options, enum option_id id)
{
    return options->values[id].n > 0;
}

enum err options_number(const struct options *options, enum option_id id, long long least,
                        long long *ret, struct error *err)
{
    const char *text = options_text(options, id);
    long long value;
    if (!text)
        return ERR_OK;
    if (!str_to_i64(str_of(text), &value) || value < least)
        return options_refuse(options, id, err, "'%s' is not a whole number from %lld on", text,
                              least);
    *ret = value;
    return ERR_OK;
}

enum err options_duration(const struct options *options, enum option_id id, long long *ret,
                          struct error *err)
{
    static const struct {
        const char *unit;
        long long ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    const char *text = options_text(options, id);
    if (!text)
        return ERR_OK;
    size_t digits = strspn(text, "0123456789");
    long long value;
    if (digits && str_to_i64((struct str){text, digits}, &value))
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(text + digits, units[i].unit) == 0 && value > 0 &&
                value < INT64_MAX / 4 / units[i].ms) {
                *ret = value * units[i].ms;
                return ERR_OK;
            }
    return options_refuse(options, id, err, "'%s' is not a duration: 30s, 5m, 1h, 1500ms", text);
}
