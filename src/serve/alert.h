/* Alerts: what somebody should hear of without looking (docs/alerts.md).
 *
 *     alert_rules.c   what is the matter now: a list of alerts, from findings, GPUs, sources,
 * budgets alert_book.c    what was the matter before: which are new, which are over, who was told
 *     alert_send.c    telling a receiver: webhook, Slack, Alertmanager
 *     alert_config.c  the section `alerts:`
 *     alerter.c       the thread that does it all every few minutes
 *
 * An alert has a key that stays the same while the matter lasts. It *fires* once for every receiver
 * that its route names, and is *resolved* once it was absent for ALERT_GONE_ROUNDS rounds in a row,
 * so that a figure that wavers around its threshold does not ring twice. A round whose figures
 * could not be read neither fires nor resolves. */
#ifndef GPUTALLY_SERVE_ALERT_H
#define GPUTALLY_SERVE_ALERT_H

#include "fleet/config.h"
#include "util/clock.h"
#include "util/memory.h"
#include "util/money.h"

#define ALERT_GONE_ROUNDS 3
#define ALERT_BLIND_MS DAY_MS /* what fires goes on for so long where nobody can look */
#define ALERTS_MAX 1000       /* of a round; the dearest are kept */
#define ALERT_RECEIVERS_MAX 32
#define ALERT_ROUTES_MAX 64
#define ALERT_BUDGETS_MAX 256

/* X(ID, "word") */
#define ALERT_KIND_TABLE(X)                                                                        \
    X(FINDING, "finding")                                                                          \
    X(IDLE, "idle")                                                                                \
    X(LAG, "lag")                                                                                  \
    X(BUDGET, "budget")                                                                            \
    X(TEST, "test")
enum alert_kind {
#define X(id, word) ALERT_##id,
    ALERT_KIND_TABLE(X)
#undef X
        ALERT_KINDS
};
extern const char *const alert_kind_words[ALERT_KINDS];

/* Texts live in the list's arena. */
struct alert {
    enum alert_kind kind;
    struct str key;   /* "finding:idle-workload-1f3a9c02", "budget:search:2026-12:passed" */
    struct str owner; /* team, "platform", "finance": what routes go by */
    struct str title; /* a line */
    struct str text;  /* sentences: evidence and what to do */
    money_t month;    /* a month, 0 where it is not about money */
    time_ms since;    /* TIME_MIN: not known */
    bool critical;
};
struct alert_list {
    struct alert *items;
    size_t n, room;
    struct arena arena;
};
void alert_list_release(struct alert_list *list);

/* ---- configuration ---- */

/* X(ID, "word") */
#define RECEIVER_KIND_TABLE(X)                                                                     \
    X(WEBHOOK, "webhook")                                                                          \
    X(SLACK, "slack")                                                                              \
    X(ALERTMANAGER, "alertmanager")
enum receiver_kind {
#define X(id, word) RECEIVER_##id,
    RECEIVER_KIND_TABLE(X)
#undef X
        RECEIVER_KINDS
};
extern const char *const receiver_kind_words[RECEIVER_KINDS];

struct alert_receiver {
    const char *name;
    enum receiver_kind kind;
    const char *url;         /* or … */
    const char *url_file;    /* … a file that has it: the URL of Slack is a secret */
    const char *secret_file; /* webhook: what bodies are signed with; NULL: not signed */
    const char *ca_file;
    const char *bearer_token_file;
    struct config_node at; /* for errors */
};
struct alert_route {
    struct str owner;     /* glob; "*" unless given */
    enum alert_kind kind; /* ALERT_KINDS: any */
    uint32_t receivers;   /* bits of the receivers' places */
};
struct alert_budget {
    struct str name, filter; /* filter: "team=search", a key and a glob; empty: all */
    money_t month;
    int64_t warn; /* 1e-9 of it; 0.8 */
};
/* Hours in which nobody is to be woken: what fires then is told when they are over. */
struct alert_quiet {
    bool on;
    int from_min, to_min; /* of the day, [from, to); over midnight where to <= from */
    uint32_t days;        /* bit 0 Monday … 6 Sunday: quiet all day */
    const char *tz;       /* NULL: UTC */
};

struct alert_config {
    bool on; /* there is a section with a receiver */
    time_ms every_ms;
    const char *state_path; /* NULL: beside the database */
    money_t finding_month;  /* tell of findings that save so much or more; -1: never */
    time_ms idle_ms;        /* tell of GPUs that are held and idle for so long; 0: never */
    time_ms lag_ms;         /* tell of books that are so far behind; 0: never */
    const char *link;       /* address of the dashboard, for messages; NULL: none */
    struct alert_quiet quiet;
    struct alert_receiver receivers[ALERT_RECEIVERS_MAX];
    size_t receivers_n;
    struct alert_route routes[ALERT_ROUTES_MAX];
    size_t routes_n;
    struct alert_budget budgets[ALERT_BUDGETS_MAX];
    size_t budgets_n;
    struct arena arena;
};
/* Everything that can be checked without a connection, with file, line and column. ret is to be
 * released also after an error. */
enum err alert_config_read(const struct config *config, struct alert_config *ret,
                           struct error *err);
void alert_config_release(struct alert_config *config);
/* Who is told of an alert: bits of the receivers' places. The first route that matches. */
uint32_t alert_config_receivers(const struct alert_config *config, const struct alert *alert);
/* Is `now` in the quiet hours? */
bool alert_quiet_at(const struct alert_quiet *quiet, time_ms now);

/* ---- what was told ---- */

/* Alerts that fire, and who was told. Kept in a file, so that a restart neither tells again nor
 * forgets to say that something is over. One thread. */
struct alert_entry {
    char *key, *owner, *title, *text;
    enum alert_kind kind;
    money_t month;
    time_ms since, fired; /* fired: when it was first seen */
    bool critical;
    uint32_t told;   /* receivers that know that it fires */
    uint32_t wanted; /* receivers that are to be told, by the routes of now */
    int gone;        /* rounds in which it was absent; ALERT_GONE_ROUNDS: over */
};
struct alert_book {
    struct alert_entry *items;
    size_t n, room;
};
void alert_book_release(struct alert_book *book);
/* Take a round's list in: new ones are added, known ones brought up to date, absent ones age. */
void alert_book_update(struct alert_book *book, const struct alert_config *config,
                       const struct alert_list *now_firing, time_ms now);
static inline bool alert_is_over(const struct alert_entry *entry)
{
    return entry->gone >= ALERT_GONE_ROUNDS;
}
/* Forget what is over and of which everybody who knew it has heard. */
void alert_book_forget(struct alert_book *book);
/* receivers are kept by name, since their places change with the configuration. ERR_IO,
 * ERR_PARSE (the file is damaged: begin with an empty book, and say so). A file that is not there
 * is an empty book. Written to a new file that replaces the old one. */
enum err alert_book_load(struct alert_book *book, const char *path,
                         const struct alert_config *config, struct error *err);
enum err alert_book_save(const struct alert_book *book, const char *path,
                         const struct alert_config *config, struct error *err);

/* ---- telling ---- */

/* One message with all entries, some of which may be over. now: for the signature and the end of
 * what Alertmanager shows. ERR_NETWORK and the like: try again later. */
enum err alert_send(const struct alert_config *config, const struct alert_receiver *receiver,
                    const struct alert_entry *const *entries, size_t n, time_ms now,
                    const volatile int *stop, struct error *err);
/* Could each receiver be asked, its files read now? Opens no connection. ERR_CONFIG with its place.
 */
enum err alert_check(const struct alert_config *config, struct error *err);
/* The body of such a message, and for a webhook its signature's value. */
void alert_body(const struct alert_config *config, const struct alert_receiver *receiver,
                const struct alert_entry *const *entries, size_t n, time_ms now,
                struct strbuf *ret);
/* "t=UNIX,v1=HEX": HMAC-SHA256 of "UNIX.BODY". */
void alert_signature(struct str secret, time_ms now, struct str body, struct strbuf *ret);

#endif
