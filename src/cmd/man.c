/* The man page, in roff, out of the tables of options and commands. */
#include "cmd/cmd.h"
#include "cmd/help.h"

/* Text that roff shows as it is. */
static void roff(struct strbuf *out, struct str text)
{
    bool line_start = true;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (line_start && (c == '.' || c == '\''))
            strbuf_add(out, STR("\\&"));
        if (c == '\\')
            strbuf_add(out, STR("\\e"));
        else if (c == '-')
            strbuf_add(out, STR("\\-"));
        else if (c == '\n' && i + 1 < text.n && text.p[i + 1] == '\n')
            strbuf_add(out, STR("\n.PP"));
        else
            strbuf_addc(out, c);
        line_start = c == '\n';
    }
}

static void add_command(struct strbuf *out, const struct command_def *command)
{
    struct strbuf usage = {0};
    help_usage(&usage, "gputally", command);
    strbuf_add(out, STR(".SS \""));
    roff(out, strbuf_str(&usage));
    strbuf_add(out, STR("\"\n"));
    strbuf_release(&usage);
    roff(out, str_of(*command->details ? command->details : command->summary));
    strbuf_add(out, STR("\n"));
    if (*command->examples) {
        strbuf_add(out, STR(".PP\n.nf\n"));
        roff(out, str_of(command->examples));
        strbuf_add(out, STR(".fi\n"));
    }
}

static void add_options(struct strbuf *out)
{
    const char *group = "";
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_def *def = &option_defs[i];
        if (def->hidden)
            continue;
        if (strcmp(group, def->group) != 0) {
            group = def->group;
            strbuf_addf(out, ".SS \"%s\"\n", group);
        }
        struct strbuf spelling = {0};
        help_option_spelling(&spelling, def);
        strbuf_add(out, STR(".TP\n.B "));
        roff(out, strbuf_str(&spelling));
        strbuf_addc(out, '\n');
        roff(out, str_of(def->help));
        if (!(def->commands & IN_ALL)) {
            strbuf_add(out, STR(".\nCommands:"));
            for (size_t k = 0; k < command_defs_n; k++)
                if (command_defs[k].bit & IN_CONFIGURED & def->commands)
                    strbuf_addf(out, " %s", command_defs[k].name);
        }
        strbuf_add(out, STR(".\n"));
        strbuf_release(&spelling);
    }
}

int cmd_man(const struct options *options)
{
    (void)options;
    struct strbuf out = {0};
    strbuf_add(&out, STR(".TH GPUTALLY 1 \"\" \"gputally " GPUTALLY_VERSION "\"\n"
                         ".SH NAME\ngputally \\- where every GPU dollar went\n"
                         ".SH SYNOPSIS\n.B gputally\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
                         ".SH DESCRIPTION\n"));
    roff(&out, STR("gputally reads the telemetry that a fleet of GPUs already has and keeps a "
                   "ledger that balances: what each hour of each GPU cost, who held it, and "
                   "whether it was used, slack, held idle, idle on its node, or not known.\n"));
    strbuf_add(&out, STR(".SH COMMANDS\n"));
    for (size_t i = 0; i < command_defs_n; i++)
        if (!command_defs[i].hidden)
            add_command(&out, &command_defs[i]);
    strbuf_add(&out, STR(".SH OPTIONS\n"));
    add_options(&out);
    strbuf_add(&out, STR(".SH \"EXIT STATUS\"\n"));
    roff(&out, STR("0 done, 1 failed, 2 used wrongly, 3 done but the data is incomplete (with "
                   "--strict).\n"));
    strbuf_add(&out, STR(".SH ENVIRONMENT\n"));
    roff(&out, STR("Every option can be given by a variable: GPUTALLY_ and its name in capitals, "
                   "with _ for -. The command line goes first. Options that may be given several "
                   "times take one value a line; switches take 1, true, yes or on. NO_COLOR turns "
                   "colour off.\n"));
    return print_text(&out);
}
