/* Completions for shells, out of the tables: commands, their options, and the words that options
 * take where these are known. Files are completed where the argument is FILE. */
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "query/query.h"
#include "report/figure.h"
#include "report/report.h"
#include "util/suggest.h"

static void add_words(struct strbuf *out, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, "%s%s", i ? " " : "", words[i]);
}

/* What an option takes, as words; false where only the user knows. */
static bool values_of(struct strbuf *out, int id)
{
    switch (id) {
    case OPTION_BY:
        add_words(out, key_words, KEY_COUNT);
        return true;
    case OPTION_OUTPUT:
        add_words(out, report_format_words, REPORT_FORMAT_COUNT);
        return true;
    case OPTION_SORT:
        strbuf_add(out, STR("name"));
        for (int i = 0; i < FIGURE_COUNT; i++)
            strbuf_addf(out, " %s", figure_defs[i].name);
        return true;
    case OPTION_WINDOW:
        strbuf_add(out, STR("7d 24h today yesterday week lastweek month lastmonth"));
        return true;
    default:
        return false;
    }
}

static bool takes_file(const struct option_def *def)
{
    return def->argument && strcmp(def->argument, "FILE") == 0;
}

static void add_commands(struct strbuf *out)
{
    bool first = true;
    for (size_t i = 0; i < command_defs_n; i++)
        if (!command_defs[i].hidden) {
            strbuf_addf(out, "%s%s", first ? "" : " ", command_defs[i].name);
            first = false;
        }
}

static void bash(struct strbuf *out)
{
    strbuf_add(out, STR("# bash completion of gputally\n_gputally() {\n"
                        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                        "    COMPREPLY=()\n    case $prev in\n"));
    for (int i = 0; i < OPTION_COUNT; i++) {
        struct strbuf words = {0};
        if (option_defs[i].hidden)
            continue;
        if (values_of(&words, i))
            strbuf_addf(out, "    --%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n",
                        option_defs[i].name, words.text);
        else if (takes_file(&option_defs[i]))
            strbuf_addf(out, "    --%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
                        option_defs[i].name);
        strbuf_release(&words);
    }
    strbuf_add(out, STR("    esac\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                        "        COMPREPLY=($(compgen -W '"));
    add_commands(out);
    strbuf_add(out, STR("' -- \"$cur\"))\n        return\n    fi\n"
                        "    case ${COMP_WORDS[1]} in\n"));
    for (size_t k = 0; k < command_defs_n; k++) {
        if (command_defs[k].hidden)
            continue;
        strbuf_addf(out, "    %s) COMPREPLY=($(compgen -W '", command_defs[k].name);
        if (strcmp(command_defs[k].name, "export") == 0)
            strbuf_add(out, STR("ledger "));
        if (strcmp(command_defs[k].name, "help") == 0) {
            add_commands(out);
            strbuf_add(out, STR(" keys figures flags "));
        }
        for (int i = 0; i < OPTION_COUNT; i++)
            if (help_option_shown(&command_defs[k], i))
                strbuf_addf(out, "--%s ", option_defs[i].name);
        strbuf_add(out, STR("' -- \"$cur\")) ;;\n"));
    }
    strbuf_add(out,
               STR("    esac\n}\ncomplete -o default -F _gputally gputally kubectl-gputally\n"));
}

/* Inside single quotes of zsh and fish. */
static void quoted(struct strbuf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            strbuf_add(out, STR("'\\''"));
        else if (*text == '[' || *text == ']' || *text == ':')
            strbuf_addf(out, "\\%c", *text);
        else
            strbuf_addc(out, *text);
}

static void zsh(struct strbuf *out)
{
    strbuf_add(out, STR("#compdef gputally kubectl-gputally\n_gputally() {\n"
                        "  if (( CURRENT == 2 )); then\n    _values command"));
    for (size_t k = 0; k < command_defs_n; k++)
        if (!command_defs[k].hidden) {
            strbuf_addf(out, " '%s[", command_defs[k].name);
            quoted(out, command_defs[k].summary);
            strbuf_add(out, STR("]'"));
        }
    strbuf_add(out, STR("\n    return\n  fi\n  local command=$words[2]\n  shift words\n"
                        "  (( CURRENT-- ))\n  case $command in\n"));
    for (size_t k = 0; k < command_defs_n; k++) {
        if (command_defs[k].hidden)
            continue;
        strbuf_addf(out, "  %s)\n    _arguments", command_defs[k].name);
        for (int i = 0; i < OPTION_COUNT; i++) {
            const struct option_def *def = &option_defs[i];
            struct strbuf words = {0};
            if (!help_option_shown(&command_defs[k], i))
                continue;
            strbuf_addf(out, " \\\n      '%s--%s[", def->kind == OPTION_SEVERAL ? "*" : "",
                        def->name);
            quoted(out, def->help);
            strbuf_addc(out, ']');
            if (values_of(&words, i))
                strbuf_addf(out, ":%s:(%s)", def->name, words.text);
            else if (def->argument)
                strbuf_addf(out, ":%s:%s", def->name, takes_file(def) ? "_files" : " ");
            strbuf_addc(out, '\'');
            strbuf_release(&words);
        }
        if (strcmp(command_defs[k].name, "export") == 0)
            strbuf_add(out, STR(" \\\n      ':what:(ledger)'"));
        strbuf_add(out, STR("\n    ;;\n"));
    }
    strbuf_add(out, STR("  esac\n}\n_gputally \"$@\"\n"));
}

static void fish(struct strbuf *out)
{
    strbuf_add(out, STR("# fish completion of gputally\ncomplete -c gputally -f\n"));
    for (size_t k = 0; k < command_defs_n; k++) {
        if (command_defs[k].hidden)
            continue;
        strbuf_addf(out, "complete -c gputally -n __fish_use_subcommand -a %s -d '",
                    command_defs[k].name);
        quoted(out, command_defs[k].summary);
        strbuf_add(out, STR("'\n"));
        for (int i = 0; i < OPTION_COUNT; i++) {
            const struct option_def *def = &option_defs[i];
            struct strbuf words = {0};
            if (!help_option_shown(&command_defs[k], i))
                continue;
            strbuf_addf(out, "complete -c gputally -n '__fish_seen_subcommand_from %s' -l %s",
                        command_defs[k].name, def->name);
            if (def->letter)
                strbuf_addf(out, " -s %c", def->letter);
            if (values_of(&words, i))
                strbuf_addf(out, " -x -a '%s'", words.text);
            else if (def->argument)
                strbuf_add(out, str_of(takes_file(def) ? " -r -F" : " -x"));
            strbuf_add(out, STR(" -d '"));
            quoted(out, def->help);
            strbuf_add(out, STR("'\n"));
            strbuf_release(&words);
        }
    }
}

int cmd_completion(const struct options *options)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    struct strbuf out = {0};
    const char *shell = options->positional_n ? options->positional[0] : "";
    if (strcmp(shell, "bash") == 0)
        bash(&out);
    else if (strcmp(shell, "zsh") == 0)
        zsh(&out);
    else if (strcmp(shell, "fish") == 0)
        fish(&out);
    else {
        struct error err = {0};
        const char *near = suggest(str_of(shell), shells, 3);
        error_set(&err, ERR_USAGE, "completion: '%s' is none of bash, zsh, fish%s%s%s", shell,
                  near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
        return fail(&err);
    }
    return print_text(&out);
}
