/* The commands. Each takes what the command line said and returns the exit status of the program;
 * each prints its result on standard output and everything else on standard error. */
#ifndef GPUTALLY_CMD_CMD_H
#define GPUTALLY_CMD_CMD_H

#include "cmd/options.h"

int cmd_report(const struct options *options);
int cmd_idle(const struct options *options);
int cmd_recommend(const struct options *options);
int cmd_explain(const struct options *options);
int cmd_diff(const struct options *options);
int cmd_doctor(const struct options *options);
int cmd_export(const struct options *options);
int cmd_collect(const struct options *options);
int cmd_serve(const struct options *options);
int cmd_db(const struct options *options);
int cmd_config(const struct options *options);
int cmd_top(const struct options *options);
int cmd_alerts(const struct options *options);
int cmd_demo(const struct options *options);
int cmd_help(const struct options *options);
int cmd_version(const struct options *options);
int cmd_man(const struct options *options);
int cmd_completion(const struct options *options);

/* The database that the configuration names; NULL and an error where it names none. */
const char *config_database(const struct options *options, struct error *err);

/* Print "gputally: TEXT" on standard error, and the exit status that fits the error. */
int fail(const struct error *err);

#endif
