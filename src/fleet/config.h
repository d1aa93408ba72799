/* Everything that is configured, in one place: the settings of the figures, the price book, the
 * owner rules, and what else a configuration file may set. docs/configuration.md has every key.
 *
 *     config_new -> config_read (a file) -> config_add_prices, config_set_owners and settings from
 *                the command line -> config_finish -> read-only, shared by all threads
 *
 * config_read takes YAML or JSON; fleetsim's config.json is one spelling of it. Paths in a file are
 * relative to its folder. */
#ifndef GPUTALLY_FLEET_CONFIG_H
#define GPUTALLY_FLEET_CONFIG_H

#include "fleet/owners.h"
#include "fleet/prices.h"
#include "fleet/settings.h"
#include "util/config_file.h"
#include "util/error.h"

/* Thresholds of the idle scan (semantics, section 10). */
struct idle_settings {
    int days;            /* 7 */
    int floor_samples;   /* 100: least samples from which a model's idle power is learned */
    bool power_auto;     /* true: the larger of 15 % and the learned floor + 5 points */
    int64_t power_below; /* 1e-9 of the limit, unless power_auto: 0.15 */
};

/* Power limit of a GPU model where no series says it. */
struct power_limit {
    struct str model;
    int32_t mw;
};

/* A command line option that the file sets under `options:`; cmd/ knows which there are. */
struct config_option {
    struct str name, value; /* a list gives one of these an item */
    int line, column;
};

/* Sections that are read by those whom they are for, with the places of what is wrong in them.
 * X(NAME, "key") */
#define CONFIG_SECTION_TABLE(X)                                                                    \
    X(SERVE, "serve")     /* serve/serve_config.h */                                               \
    X(SOURCES, "sources") /* likewise */                                                           \
    X(ACCESS, "access")   /* serve/auth.h */                                                       \
    X(ALERTS, "alerts")                                                                            \
    X(RULES, "rules")     /* insight/threshold.h */                                                \
    X(TARGETS, "targets") /* likewise */                                                           \
    X(IGNORE, "ignore")   /* insight/exempt.h */
enum config_section {
#define X(name, key) CONFIG_##name##_SECTION,
    CONFIG_SECTION_TABLE(X)
#undef X
        CONFIG_SECTIONS
};

struct config {
    struct settings settings;
    struct idle_settings idle;
    struct prices *prices;    /* never NULL */
    struct owners *owners;    /* never NULL after config_finish */
    time_ms from, to;         /* the window; TIME_MIN and TIME_MAX where not set */
    struct str tz;            /* empty where not set */
    struct str currency;      /* "USD" unless set */
    struct str cluster;       /* name of the cluster where no label says it; empty where not set */
    struct str path;          /* the file that was read; empty: none */
    struct config_file *file; /* where a section of these stands: it */
    struct config_node sections[CONFIG_SECTIONS]; /* nothing where it is not there */
    struct config_option *options;
    size_t options_n, options_room;
    struct power_limit *power_limits;
    size_t power_limits_n, power_limits_room;
    struct price_policy price_policy;
    struct arena arena; /* what the texts above lie in */
};

struct config *config_new(void);         /* the defaults */
void config_free(struct config *config); /* NULL is fine */
/* At most one file. Errors: "config.yaml:4:3: unknown key 'pricess': did you mean 'prices'?". On an
 * error the configuration is to be thrown away. */
enum err config_read(struct config *config, const char *path, struct error *err);
enum err config_read_text(struct config *config, const char *name, struct str text,
                          struct error *err);
/* --prices FILE: goes before the files that the configuration names. */
enum err config_add_prices(struct config *config, const char *path, struct error *err);
/* --owners FILE: replaces the rules of the configuration. */
enum err config_set_owners(struct config *config, const char *path, struct error *err);
/* Checks that the settings fit together (gap >= step, idle below busy), readies the price book. */
enum err config_finish(struct config *config, struct error *err);

/* Append one line of text that changes whenever anything changes that the ledger's rows depend on:
 * settings, price files and rules, owner rules (those inside the configuration count with its whole
 * text), the built-in catalogue. The window, the time zone, options and the thresholds of the idle
 * scan leave it alone. After config_finish. */
void config_describe(const struct config *config, struct strbuf *ret);

/* The file that is read where --config names none: $XDG_CONFIG_HOME/gputally/config.yaml (else
 * ~/.config/…), then /etc/gputally/config.yaml. False: neither is there. */
bool config_default_path(struct config *config, struct str *ret);

#endif
