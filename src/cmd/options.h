/* The command line. One table of options and one of commands make parsing, help, the man page and
 * the shell completions, so that these cannot say different things.
 *
 * Every long option can also be given by the environment (GPUTALLY_ and its name in capitals, '-'
 * as
 * '_'); the command line wins. An option that may be given several times takes one value a line of
 * its variable; a switch is on for 1, true, yes and on. */
#ifndef GPUTALLY_CMD_OPTIONS_H
#define GPUTALLY_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"
#include "util/memory.h"
#include "util/str.h"

enum command_bit {
    IN_REPORT = 1u << 0,
    IN_EXPORT = 1u << 1,
    IN_COLLECT = 1u << 2,
    IN_DEMO = 1u << 3,
    IN_ALL = 1u << 4, /* every command, help and version included */
    IN_IDLE = 1u << 5,
    IN_RECOMMEND = 1u << 6,
    IN_EXPLAIN = 1u << 7,
    IN_DOCTOR = 1u << 8,
    IN_DIFF = 1u << 9,
    IN_SERVE = 1u << 10,
    IN_DB = 1u << 11,
    IN_CONFIG = 1u << 12,
    IN_ALERTS = 1u << 13,
    IN_TOP = 1u << 14,
    IN_SOURCES = IN_REPORT | IN_EXPORT | IN_COLLECT | IN_IDLE | IN_RECOMMEND | IN_EXPLAIN |
                 IN_DOCTOR | IN_DIFF,
    IN_RUNS = IN_SOURCES | IN_DEMO,
    IN_READS = IN_SOURCES | IN_SERVE, /* commands that read servers */
    IN_BOOKS = IN_RUNS | IN_SERVE,    /* that fill a ledger, or would */
    IN_CONFIGURED =
        IN_BOOKS | IN_DB | IN_CONFIG | IN_ALERTS, /* that look at environment and configuration */
    IN_PRINTS = IN_REPORT | IN_DEMO,
    IN_FINDS = IN_IDLE | IN_RECOMMEND | IN_DOCTOR, /* commands that give findings */
};

/* How an option takes its value. */
enum option_kind { OPTION_SWITCH, OPTION_VALUE, OPTION_SEVERAL };

/* X(ID, "long", short or 0, kind, "ARGUMENT", commands, hidden, group, "what it does") */
#define OPTION_TABLE(X)                                                                            \
    X(PROMETHEUS, "prometheus", 0, OPTION_VALUE, "URL", IN_READS, false, "Where the telemetry is", \
      "a Prometheus-compatible server: Prometheus, Thanos, Mimir, VictoriaMetrics, managed ones")  \
    X(SERVER, "server", 0, OPTION_VALUE, "URL", IN_TOP, false, "Where the telemetry is",           \
      "a gputally serve; http://127.0.0.1:9475")                                                   \
    X(OPENMETRICS, "openmetrics", 0, OPTION_SEVERAL, "FILE", IN_SOURCES, false,                    \
      "Where the telemetry is",                                                                    \
      "a file of exposition or OpenMetrics text with time stamps, .gz and .zst too; - is "         \
      "standard "                                                                                  \
      "input; may be given several times")                                                         \
    X(KUBE_JSON, "kube-json", 0, OPTION_SEVERAL, "FILE", IN_READS, false,                          \
      "Where the telemetry is",                                                                    \
      "a file that kubectl get nodes,pods -A -o json printed, beside either of the above; may be " \
      "given several times")                                                                       \
    X(DB, "db", 0, OPTION_VALUE, "FILE", IN_BOOKS | IN_DB | IN_ALERTS, false,                      \
      "Where the telemetry is",                                                                    \
      "the database that keeps the ledger; without any other source it is reported from as it is") \
    X(BEARER_TOKEN_FILE, "bearer-token-file", 0, OPTION_VALUE, "FILE", IN_READS | IN_TOP, false,   \
      "Access to the server", "send the token in this file")                                       \
    X(BASIC_AUTH_USER, "basic-auth-user", 0, OPTION_VALUE, "NAME", IN_READS, false,                \
      "Access to the server", "log in with this name")                                             \
    X(BASIC_AUTH_PASSWORD_FILE, "basic-auth-password-file", 0, OPTION_VALUE, "FILE", IN_READS,     \
      false, "Access to the server", "and the password in this file")                              \
    X(CLIENT_CERT, "client-cert", 0, OPTION_VALUE, "FILE", IN_READS | IN_TOP, false,               \
      "Access to the server", "client certificate, PEM")                                           \
    X(CLIENT_KEY, "client-key", 0, OPTION_VALUE, "FILE", IN_READS | IN_TOP, false,                 \
      "Access to the server", "its private key, PEM")                                              \
    X(CA_FILE, "ca-file", 0, OPTION_VALUE, "FILE", IN_READS | IN_TOP, false,                       \
      "Access to the server", "trust the authorities in this file, PEM")                           \
    X(HEADER, "header", 0, OPTION_SEVERAL, "'NAME: VALUE'", IN_READS, false,                       \
      "Access to the server",                                                                      \
      "send this header, for example 'X-Scope-OrgID: a'; may be given several times")              \
    X(PROXY, "proxy", 0, OPTION_VALUE, "URL", IN_READS, false, "Access to the server",             \
      "go through this proxy (otherwise as http_proxy, https_proxy and no_proxy say)")             \
    X(MATCHER, "matcher", 0, OPTION_VALUE, "SELECTOR", IN_READS, false, "Access to the server",    \
      "read only series that match, for example 'cluster=\"prod\"'")                               \
    X(PROMETHEUS_API, "prometheus-api", 0, OPTION_VALUE, "WAY", IN_READS, true,                    \
      "Access to the server", "auto, remote-read or query")                                        \
    X(PRICES, "prices", 0, OPTION_VALUE, "FILE", IN_BOOKS, false, "What the figures rest on",      \
      "prices of nodes, CSV; without it the built-in catalogue's")                                 \
    X(OWNERS, "owners", 0, OPTION_VALUE, "FILE", IN_BOOKS, false, "What the figures rest on",      \
      "rules that give teams and workload types, YAML or JSON")                                    \
    X(CONFIG, "config", 0, OPTION_VALUE, "FILE", IN_CONFIGURED, false, "What the figures rest on", \
      "settings, prices and owners in one file, YAML or JSON")                                     \
    X(CURRENCY, "currency", 0, OPTION_VALUE, "CODE", IN_BOOKS, false, "What the figures rest on",  \
      "the currency that the prices are in, for example EUR (names it, converts nothing)")         \
    X(STEP, "step", 0, OPTION_VALUE, "DURATION", IN_BOOKS, false, "What the figures rest on",      \
      "what a sample without a close predecessor covers; 30s")                                     \
    X(GAP, "gap", 0, OPTION_VALUE, "DURATION", IN_BOOKS, false, "What the figures rest on",        \
      "up to here a sample reaches back to the one before; 300s")                                  \
    X(WINDOW, "window", 'w', OPTION_VALUE, "WINDOW", IN_RUNS, false, "What is shown",              \
      "7d, 24h, today, yesterday, week, lastweek, month, lastmonth, or FROM,TO in RFC 3339; 7d, "  \
      "for files the time that they have")                                                         \
    X(TZ, "tz", 0, OPTION_VALUE, "ZONE", IN_BOOKS, false, "What is shown",                         \
      "time zone in which days begin, for example Europe/Berlin; UTC")                             \
    X(DAYS, "days", 0, OPTION_VALUE, "N", IN_DEMO | IN_IDLE, false, "What is shown",               \
      "days; 7 (idle: the last complete ones of the window)")                                      \
    X(POWER, "power", 0, OPTION_VALUE, "PERCENT", IN_IDLE, false, "What is shown",                 \
      "idle is power below this share of the limit, for example 15%; auto: 15%, or 5 points "      \
      "above what the GPU model draws when idle, if that is more; auto")                           \
    X(BY, "by", 'b', OPTION_VALUE, "KEYS", IN_PRINTS | IN_DIFF | IN_RECOMMEND, false,              \
      "What is shown",                                                                             \
      "group by these keys, comma-joined (gputally help keys lists them); team. Findings: by "     \
      "owner or by user")                                                                          \
    X(FILTER, "filter", 'f', OPTION_SEVERAL, "KEY=VALUE", IN_PRINTS | IN_DIFF, false,              \
      "What is shown",                                                                             \
      "only rows whose key matches, * and ? allowed; KEY!=VALUE leaves them out; may be given "    \
      "several times: on one key any of them, on several all")                                     \
    X(SORT, "sort", 0, OPTION_VALUE, "FIGURE", IN_PRINTS | IN_TOP, false, "What is shown",         \
      "order by this figure, largest first (gputally help figures lists them), or by name; cost")  \
    X(LIMIT, "limit", 0, OPTION_VALUE, "N", IN_PRINTS | IN_DIFF | IN_RECOMMEND, false,             \
      "What is shown", "show the first N rows")                                                    \
    X(IGNORE, "ignore", 0, OPTION_SEVERAL, "ID[,until=DATE][,reason=TEXT]",                        \
      IN_RECOMMEND | IN_EXPLAIN, false, "What is shown",                                           \
      "a finding that is accepted: listed, and not counted; may be given several times")           \
    X(PATCH, "patch", 0, OPTION_VALUE, "DIR", IN_RECOMMEND, false, "What is shown",                \
      "write the changes too, as YAML to review: a file for each owner in this folder")            \
    X(OUTPUT, "output", 'o', OPTION_VALUE, "FORMAT",                                               \
      IN_PRINTS | IN_DIFF | IN_EXPORT | IN_FINDS | IN_EXPLAIN, false, "What is shown",             \
      "table, wide, csv, json or markdown; report: html too; export ledger: csv or json")          \
    X(GPUS, "gpus", 0, OPTION_VALUE, "N", IN_DEMO, false, "The simulated fleet", "GPUs; 64")       \
    X(SEED, "seed", 0, OPTION_VALUE, "N", IN_DEMO, false, "The simulated fleet",                   \
      "the same seed gives the same fleet; 1")                                                     \
    X(END, "end", 0, OPTION_VALUE, "TIME", IN_DEMO, false, "The simulated fleet",                  \
      "when it ends, RFC 3339, a whole hour; the last one")                                        \
    X(WRITE, "write", 0, OPTION_VALUE, "FILE", IN_DEMO, false, "The simulated fleet",              \
      "keep its telemetry, as OpenMetrics text")                                                   \
    X(STRICT, "strict", 0, OPTION_SWITCH, NULL, IN_RUNS & ~(IN_IDLE | IN_RECOMMEND | IN_EXPLAIN),  \
      false, "How it runs", "exit with status 3 where the data is incomplete")                     \
    X(EXIT_CODE, "exit-code", 0, OPTION_SWITCH, NULL, IN_FINDS, false, "How it runs",              \
      "exit with status 4 where there are findings (doctor: errors or warnings)")                  \
    X(QUIET, "quiet", 'q', OPTION_SWITCH, NULL, IN_RUNS, false, "How it runs",                     \
      "nothing on standard error but errors")                                                      \
    X(VERBOSE, "verbose", 'v', OPTION_SWITCH, NULL, IN_RUNS, false, "How it runs",                 \
      "say on standard error what is done")                                                        \
    X(THREADS, "threads", 0, OPTION_VALUE, "N", IN_RUNS, false, "How it runs",                     \
      "threads that book; as many as cores")                                                       \
    X(SLICE, "slice", 0, OPTION_VALUE, "DURATION", IN_RUNS, true, "How it runs",                   \
      "book in slices of whole hours of this length")                                              \
    X(REBOOK, "rebook", 0, OPTION_SWITCH, NULL, IN_SOURCES, false, "How it runs",                  \
      "book hours again that the database has already")                                            \
    X(BOOK, "book", 0, OPTION_VALUE, "NAME", IN_SOURCES, false, "How it runs",                     \
      "keep what is booked under this name in the database, beside those of other clusters")       \
    X(RETAIN, "retain", 0, OPTION_VALUE, "DURATION", IN_COLLECT | IN_SERVE, false, "How it runs",  \
      "drop hours that are this much older than the newest, for example 400d")                     \
    X(SERVE, "serve", 0, OPTION_SWITCH, NULL, IN_DEMO, false, "How it runs",                       \
      "then serve the simulated fleet's ledger: dashboard and API")                                \
    X(LISTEN, "listen", 0, OPTION_VALUE, "ADDRESS", IN_SERVE | IN_DEMO, false, "How it runs",      \
      "answer at this address and port; 127.0.0.1:9475")                                           \
    X(EVERY, "every", 0, OPTION_VALUE, "DURATION", IN_SERVE, false, "How it runs",                 \
      "ask the sources this often; 1m")                                                            \
    X(HISTORY, "history", 0, OPTION_VALUE, "DURATION", IN_SERVE, false, "How it runs",             \
      "how far back the first booking reaches; 7d")                                                \
    X(LOG_LEVEL, "log-level", 0, OPTION_VALUE, "LEVEL", IN_SERVE, false, "How it runs",            \
      "error, warn, info or debug; info")                                                          \
    X(LOG_FORMAT, "log-format", 0, OPTION_VALUE, "FORMAT", IN_SERVE, false, "How it runs",         \
      "logfmt or json; logfmt")                                                                    \
    X(HELP, "help", 'h', OPTION_SWITCH, NULL, IN_ALL, false, "How it runs", "this text")           \
    X(VERSION, "version", 'V', OPTION_SWITCH, NULL, IN_ALL, false, "How it runs",                  \
      "name and version")

enum option_id {
#define X(id, name, letter, kind, argument, commands, hidden, group, help) OPTION_##id,
    OPTION_TABLE(X)
#undef X
        OPTION_COUNT
};

struct option_def {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    const char *argument;
    unsigned commands; /* enum command_bit */
    bool hidden;
    const char *group, *help;
};
extern const struct option_def option_defs[OPTION_COUNT];

struct config;
struct options;
struct command_def {
    const char *name;       /* "report" */
    const char *positional; /* "ledger" for export; NULL: none; shown in the usage line */
    unsigned bit;
    bool hidden;
    const char *summary;  /* a line */
    const char *details;  /* paragraphs for help and man */
    const char *examples; /* lines, each a command after two spaces or a comment of it */
    int (*run)(const struct options *options);
};
extern const struct command_def command_defs[];
extern const size_t command_defs_n;

/* What was given. Texts are the command line's, the environment's or the configuration's. */
struct options {
    const char *program; /* "gputally" or "kubectl gputally" */
    int argc;            /* what was parsed: a service reads it again with its configuration */
    char **argv;
    const struct command_def *command;
    struct option_values {
        const char **items;
        size_t n, room;
        const char *origin; /* NULL: the command line; else "GPUTALLY_DB", "config.yaml:4:3" */
    } values[OPTION_COUNT];
    struct config *config;   /* read by main for the commands that run; NULL for others */
    const char **positional; /* after the command's name */
    size_t positional_n, positional_room;
    struct arena arena; /* of texts that were put together */
};

/* Exit status of the program. */
enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INCOMPLETE = 3,
    EXIT_FINDINGS = 4
};

/* Parse argv (argv[0] included) and then the environment. ERR_USAGE names the nearest known option
 * or command. ret must be released also after an error. */
enum err options_parse(int argc, char **argv, struct options *ret, struct error *err);
/* Take what the configuration sets under `options:` and neither of the two has. Its texts must
 * outlive the options. */
enum err options_add_config(struct options *options, const struct config *config,
                            struct error *err);
/* Read a configuration and take what it sets under `options:`. path NULL: the one that --config
 * names, or that of the default places. Fills options->config, also after an error. */
enum err options_read_config(struct options *options, const char *path, struct error *err);
void options_release(struct options *options);

/* Fill err with "--NAME: TEXT" (or the variable or line that the value came from); ERR_USAGE. */
enum err options_refuse(const struct options *options, enum option_id id, struct error *err,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The value of an option (the last one), NULL where it was not given; switches give "1". */
const char *options_text(const struct options *options, enum option_id id);
bool options_switch(const struct options *options, enum option_id id);
/* A whole number >= least; *ret stays where the option was not given. ERR_USAGE names the option.
 */
enum err options_number(const struct options *options, enum option_id id, long long least,
                        long long *ret, struct error *err);
/* "30s", "5m", "300", "1h", "1500ms" -> ms; *ret stays where it was not given. */
enum err options_duration(const struct options *options, enum option_id id, long long *ret,
                          struct error *err);

/* The known long options and commands, for suggestions: NULL where hidden or of other commands. */
void options_known(unsigned commands, const char **ret);

#endif
