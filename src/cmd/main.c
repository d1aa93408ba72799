/* gputally: where every GPU dollar went.
 *
 * Reads the command line, the environment and the configuration, runs one command, and turns what
 * came of it into an exit status. */
#include <malloc.h>
#include <signal.h>

#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/progress.h"
#include "fleet/config.h"

static int run(struct options *options)
{
    struct strbuf text = {0};
    if (options_switch(options, OPTION_VERSION))
        return cmd_version(options);
    if (options_switch(options, OPTION_HELP)) {
        if (options->command)
            help_command(&text, options->program, options->command);
        else
            help_program(&text, options->program);
        return print_text(&text);
    }
    if (!options->command) {
        help_program(&text, options->program);
        fputs(text.text, stderr);
        strbuf_release(&text);
        return EXIT_USAGE;
    }
    struct error err = {0};
    if (options->command->bit & IN_CONFIGURED &&
        !(options->command->bit & (IN_SERVE | IN_CONFIG | IN_ALERTS)) &&
        options_read_config(options, NULL, &err) != ERR_OK)
        return fail(&err);
    return options->command->run(options);
}

#define ARENAS 2 /* of the allocator: one a thread would keep what each of them once needed */

int main(int argc, char **argv)
{
    mallopt(M_ARENA_MAX, ARENAS);
    struct options options;
    struct error err = {0};
    signals_catch();
    int status = options_parse(argc, argv, &options, &err) == ERR_OK ? run(&options) : fail(&err);
    config_free(options.config);
    options_release(&options);
    if (status == EXIT_FAILED && signals_caught()) { /* end as the signal would have ended us */
        signal(signals_caught(), SIG_DFL);
        raise(signals_caught());
    }
    return status;
}
