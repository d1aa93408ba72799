/* Help, out of the tables: of the program, of a command, and of the words that options take. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/output.h"
#include "query/query.h"
#include "report/figure.h"
#include "util/suggest.h"

#define HELP_INDENT 26 /* where the texts of options begin */

void help_option_spelling(struct strbuf *out, const struct option_def *def)
{
    if (def->letter)
        strbuf_addf(out, "-%c, ", def->letter);
    strbuf_addf(out, "--%s", def->name);
    if (def->argument)
        strbuf_addf(out, " %s", def->argument);
}

static void add_option(struct strbuf *out, const struct option_def *def)
{
    struct strbuf left = {0}, right = {0};
    strbuf_add(&left, STR("  "));
    help_option_spelling(&left, def);
    output_wrapped(&right, def->help, HELP_INDENT);
    strbuf_add(out, strbuf_str(&left));
    if (left.n + 2 > HELP_INDENT) {
        strbuf_addc(out, '\n');
        strbuf_add(out, strbuf_str(&right));
    } else {
        for (size_t i = left.n; i < HELP_INDENT; i++)
            strbuf_addc(out, ' ');
        strbuf_add(out, (struct str){right.text + HELP_INDENT, right.n - HELP_INDENT});
    }
    strbuf_release(&left);
    strbuf_release(&right);
}

bool help_option_shown(const struct command_def *command, int i)
{
    return !option_defs[i].hidden && option_defs[i].commands & (command->bit | IN_ALL);
}

static void add_options(struct strbuf *out, const struct command_def *command)
{
    const char *group = "";
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!help_option_shown(command, i))
            continue;
        if (strcmp(group, option_defs[i].group) != 0) {
            group = option_defs[i].group;
            strbuf_addf(out, "\n%s\n", group);
        }
        add_option(out, &option_defs[i]);
    }
}

void help_usage(struct strbuf *out, const char *program, const struct command_def *command)
{
    strbuf_addf(out, "%s %s", program, command->name);
    if (command->positional)
        strbuf_addf(out, " %s", command->positional);
    if (command->bit & IN_CONFIGURED)
        strbuf_add(out, STR(" [OPTIONS]"));
}

static void add_examples(struct strbuf *out, const char *program, const char *examples)
{
    if (!*examples)
        return;
    strbuf_add(out, STR("\nExamples\n"));
    for (const char *p = examples; *p;) {
        size_t n = strcspn(p, "\n");
        struct str line = {p, n}, own = STR("  gputally ");
        if (str_starts(line, own))
            strbuf_addf(out, "  %s %.*s\n", program, (int)(line.n - own.n), line.p + own.n);
        else
            strbuf_addf(out, "%.*s\n", STR_ARG(line));
        p += n + (p[n] == '\n');
    }
}

void help_command(struct strbuf *out, const char *program, const struct command_def *command)
{
    strbuf_add(out, STR("Usage: "));
    help_usage(out, program, command);
    strbuf_addf(out, "\n\n%s: %s.\n", command->name, command->summary);
    if (*command->details) {
        strbuf_addc(out, '\n');
        output_wrapped(out, command->details, 0);
    }
    add_options(out, command);
    add_examples(out, program, command->examples);
    if (command->bit & IN_CONFIGURED) {
        strbuf_addc(out, '\n');
        output_wrapped(out,
                       "Every option can be given by the environment: --db by GPUTALLY_DB, and so "
                       "on. Exit status: 0 done, 1 failed, 2 used wrongly, 3 done but the data is "
                       "incomplete (with --strict).",
                       0);
    }
}

void help_program(struct strbuf *out, const char *program)
{
    strbuf_addf(out, "Usage: %s COMMAND [OPTIONS]\n\n", program);
    output_wrapped(out,
                   "gputally tells where every GPU dollar went: used, slack, held idle, node idle, "
                   "or not known. It reads the telemetry that a fleet already has and changes "
                   "nothing.",
                   0);
    strbuf_add(out, STR("\nCommands\n"));
    for (size_t i = 0; i < command_defs_n; i++)
        if (!command_defs[i].hidden)
            strbuf_addf(out, "  %-11s%s\n", command_defs[i].name, command_defs[i].summary);
    strbuf_add(out, STR("\nStart with\n"));
    strbuf_addf(out, "  %s report --prometheus http://prometheus:9090\n", program);
    strbuf_addf(out, "  %s demo\n", program);
    strbuf_addf(out, "\n%s COMMAND --help tells more.\n", program);
}

/* ---- the words that options take ---- */

static void help_keys(struct strbuf *out)
{
    strbuf_add(out, STR("Keys of --by and --filter\n"));
    for (int i = 0; i < KEY_COUNT; i++)
        strbuf_addf(out, "  %s\n", key_words[i]);
}

static void help_figures(struct strbuf *out)
{
    strbuf_add(out, STR("Figures of a report (--sort, and the fields of csv and json)\n"));
    for (int i = 0; i < FIGURE_COUNT; i++)
        strbuf_addf(out, "  %-26s%-11s%s\n", figure_defs[i].name,
                    figure_unit_words[figure_defs[i].unit], figure_defs[i].meaning);
}

static void help_flags(struct strbuf *out)
{
    strbuf_add(out, STR("Flags of rows: fallbacks that were taken\n"));
    for (int i = 0; i < FLAG_COUNT; i++)
        strbuf_addf(out, "  %-24s%s\n", flag_words[i], flag_meanings[i]);
}

static const struct topic {
    const char *name;
    void (*add)(struct strbuf *out);
} topics[] = {{"keys", help_keys}, {"figures", help_figures}, {"flags", help_flags}};
#define TOPICS_N (sizeof topics / sizeof *topics)

static enum err add_topic(const struct options *options, struct strbuf *out, struct error *err)
{
    const char *word = options->positional[0], *known[32];
    size_t n = 0;
    for (size_t i = 0; i < TOPICS_N; i++) {
        known[n++] = topics[i].name;
        if (strcmp(topics[i].name, word) == 0) {
            topics[i].add(out);
            return ERR_OK;
        }
    }
    for (size_t i = 0; i < command_defs_n; i++) {
        known[n++] = command_defs[i].hidden ? NULL : command_defs[i].name;
        if (strcmp(command_defs[i].name, word) == 0) {
            help_command(out, options->program, &command_defs[i]);
            return ERR_OK;
        }
    }
    const char *near = suggest(str_of(word), known, n);
    if (near)
        return error_set(err, ERR_USAGE, "help: nothing is called '%s': did you mean '%s'?", word,
                         near);
    return error_set(err, ERR_USAGE, "help: nothing is called '%s' (%s help lists the commands)",
                     word, options->program);
}

int print_text(struct strbuf *text)
{
    struct error err = {0};
    enum err code = output_write(strbuf_str(text), &err);
    if (code == ERR_OK)
        code = output_finish(&err);
    strbuf_release(text);
    return code == ERR_OK ? EXIT_DONE : fail(&err);
}

int cmd_help(const struct options *options)
{
    struct strbuf out = {0};
    struct error err = {0};
    if (options->positional_n == 0)
        help_program(&out, options->program);
    else if (add_topic(options, &out, &err) != ERR_OK) {
        strbuf_release(&out);
        return fail(&err);
    }
    return print_text(&out);
}

int cmd_version(const struct options *options)
{
    (void)options;
    struct strbuf out = {0};
    strbuf_add(&out, STR("gputally " GPUTALLY_VERSION "\n"));
    return print_text(&out);
}
