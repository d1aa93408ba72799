#include "serve/alerter.h"

#include <pthread.h>
#include <stdlib.h>

#include "insight/recommend.h"
#include "query/query.h"
#include "query/window.h"
#include "serve/alert_rules.h"
#include "source/source.h"
#include "store/store.h"

#define WINDOW_MS (7 * DAY_MS)        /* of findings, and the pace of budgets */
#define FIRST_MS ((time_ms)30 * 1000) /* after the start: let the service collect first */

struct alerter {
    struct alerter_options options;
    struct alert_book book;
    struct strbuf state_path;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    volatile int stop;
    _Atomic int64_t firing, sent, failed;
    _Atomic int64_t looked; /* when the ledger was last read; until then, when this one began */
    _Atomic int64_t blind;  /* rounds since, in which it could not be */
    _Atomic int64_t blind_total;
};

/* ---- looking ---- */

struct looking {
    const struct alerter_options *options;
    struct store *store;
    struct books *books;
    struct findings *findings;
    struct exemptions exemptions;
    struct alert_list *list;
    struct span window;
    time_ms now;
};

static enum err look_at_findings(struct looking *look, struct error *err)
{
    const struct alerter_options *options = look->options;
    struct thresholds thresholds;
    enum err code = thresholds_read(options->config, &thresholds, err);
    if (!code)
        code = books_read(look->store, look->window, &thresholds, &look->books, err);
    if (!code)
        code = exemptions_add_config(&look->exemptions, options->config, err);
    if (code)
        return code;
    look->books->prices = options->config->prices;
    exemptions_add_annotations(&look->exemptions, look->books);
    look->findings = recommend_except(look->books, options->currency, &look->exemptions);
    alerts_of_findings(options->alerts, look->findings, look->list);
    alerts_of_idle(options->alerts, look->books, options->currency, look->list);
    return ERR_OK;
}

static enum err spent_in(struct looking *look, const struct alert_budget *budget, struct span span,
                         money_t *ret, struct error *err)
{
    struct query query = {.window = span, .tz = look->options->tz};
    struct result *result = NULL;
    enum err code = ERR_OK;
    *ret = 0;
    if (span.from >= span.to)
        return ERR_OK;
    if (budget->filter.n)
        code = query_parse_filter(budget->filter, &query, err);
    if (!code)
        code = query_run(look->store, &query, &result, err);
    if (!code)
        *ret = result->total.cost;
    result_free(result);
    return code;
}

static enum err look_at_budgets(struct looking *look, struct error *err)
{
    const struct alert_config *alerts = look->options->alerts;
    struct span month;
    bool widened;
    char day[16];
    if (!alerts->budgets_n)
        return ERR_OK;
    enum err code = window_parse(STR("month"), look->options->tz, look->now, &month, &widened, err);
    if (code)
        return code;
    day_name(month.from, look->options->tz, day);
    day[7] = 0; /* "2026-12" */
    time_ms next = day_start(month.from + 32 * DAY_MS, look->options->tz);
    while (strncmp(day_name(next - 1, look->options->tz, (char[16]){0}), day, 7) != 0)
        next = day_start(next - 1, look->options->tz);
    struct span recent = {look->window.to - WINDOW_MS, look->window.to};
    for (size_t i = 0; !code && i < alerts->budgets_n; i++) {
        struct budget_state state = {.month = day,
                                     .days = {month.from, next},
                                     .now = look->window.to,
                                     .pace_ms = recent.to - recent.from};
        struct span spent = {month.from, look->window.to};
        code = spent_in(look, &alerts->budgets[i], spent, &state.spent, err);
        if (!code)
            code = spent_in(look, &alerts->budgets[i], recent, &state.pace, err);
        if (!code)
            alerts_of_budget(&alerts->budgets[i], &state, look->options->currency, look->list);
    }
    return code;
}

/* The recorded part of the window and of the budgets' pace. */
static enum err look_at(struct looking *look, struct error *err)
{
    struct span extent;
    enum err code = store_extent(look->store, &extent, err);
    if (code)
        return code;
    time_ms to = hour_floor(look->now) < extent.to ? hour_floor(look->now) : extent.to;
    look->window = (struct span){to - WINDOW_MS > extent.from ? to - WINDOW_MS : extent.from, to};
    if (look->window.from >= look->window.to)
        return ERR_OK;
    code = look_at_findings(look, err);
    return code ? code : look_at_budgets(look, err);
}

enum err alerter_look(const struct alerter_options *options, time_ms now, struct alert_list *list,
                      struct error *err)
{
    struct looking look = {.options = options, .list = list, .now = now};
    struct names *names = names_new();
    enum err code = store_open(options->db, STORE_READ, names, &look.store, err);
    if (!code)
        code = look_at(&look, err);
    if (code == ERR_NOT_FOUND)
        code = ERR_OK; /* an empty ledger: nothing is the matter yet */
    if (!code && options->stats) {
        struct service_stats *stats = mem_zalloc(1, sizeof *stats);
        options->stats(options->context, stats);
        alerts_of_lag(options->alerts, stats, now, list);
        free(stats);
    }
    alerts_cap(list);
    findings_free(look.findings);
    exemptions_release(&look.exemptions);
    books_free(look.books);
    store_close(look.store);
    names_free(names);
    return code;
}

/* ---- telling ---- */

/* What a receiver is to be told: what fires and it does not know, and what is over and it knows. To
 * Alertmanager everything that fires is said again, since it takes silence for the end; in quiet
 * hours, and where the ledger cannot be read, what it knows, so that no end is told that is none.
 */
static bool is_news(const struct alert_entry *entry, const struct alert_receiver *receiver,
                    uint32_t bit, bool known_only)
{
    bool again = receiver->kind == RECEIVER_ALERTMANAGER;
    if (known_only)
        return again && !alert_is_over(entry) && (entry->told & bit);
    if (alert_is_over(entry))
        return entry->told & bit;
    if (!(entry->wanted & bit))
        return false;
    if (entry->gone) /* not seen, and not over yet */
        return again && (entry->told & bit);
    return again || !(entry->told & bit);
}

/* True: who was told what has changed. */
static bool tell(struct alerter *alerter, size_t at, time_ms now, bool known_only)
{
    const struct alert_config *config = alerter->options.alerts;
    const struct alert_receiver *receiver = &config->receivers[at];
    struct alert_book *book = &alerter->book;
    const struct alert_entry **news = mem_zalloc(book->n + 1, sizeof *news);
    uint32_t bit = 1u << at;
    struct error err = {0};
    bool changed = false;
    size_t n = 0;
    for (size_t i = 0; i < book->n; i++)
        if (is_news(&book->items[i], receiver, bit, known_only))
            news[n++] = &book->items[i];
    enum err code = n ? alert_send(config, receiver, news, n, now, &alerter->stop, &err) : ERR_OK;
    if (code) {
        alerter->failed++;
        log_line(alerter->options.log, LOG_WARN, "alerts were not delivered",
                 log_text("receiver", str_of(receiver->name)), log_text("why", str_of(err.text)),
                 log_number("alerts", (int64_t)n));
    } else if (n) {
        alerter->sent += (int64_t)n;
        for (size_t i = 0; i < book->n; i++)
            if (is_news(&book->items[i], receiver, bit, known_only)) {
                struct alert_entry *entry = &book->items[i];
                uint32_t told = alert_is_over(entry) ? entry->told & ~bit : entry->told | bit;
                changed |= told != entry->told;
                entry->told = told;
            }
    }
    free(news);
    return changed;
}

static void save(struct alerter *alerter)
{
    struct error err = {0};
    if (alert_book_save(&alerter->book, alerter->state_path.text, alerter->options.alerts, &err))
        log_line(alerter->options.log, LOG_WARN, "the list of alerts was not saved",
                 log_text("why", str_of(err.text)));
}

static void tell_all(struct alerter *alerter, time_ms now, bool known_only)
{
    size_t n = alerter->options.alerts->receivers_n;
    for (size_t at = 0; at < n && !progress_stopped(&alerter->stop); at++)
        if (tell(alerter, at, now, known_only)) /* at once: the next receiver may be slow */
            save(alerter);
}

/* Nothing is over because nobody can look; and nothing goes on for ever for that. */
static void go_on_blind(struct alerter *alerter, time_ms now, const struct error *err)
{
    bool known = now - alerter->looked < ALERT_BLIND_MS;
    alerter->blind++;
    alerter->blind_total++;
    log_line(alerter->options.log, LOG_WARN, "alerts: the ledger could not be read",
             log_text("why", str_of(err->text)),
             log_text("goes_on", known ? STR("what fired") : STR("nothing")));
    if (known)
        tell_all(alerter, now, true);
}

static void round_of(struct alerter *alerter)
{
    const struct alert_config *config = alerter->options.alerts;
    struct alert_list list = {0};
    struct error err = {0};
    time_ms now = clock_now();
    int64_t firing = 0;
    if (alerter_look(&alerter->options, now, &list, &err)) {
        alert_list_release(&list);
        go_on_blind(alerter, now, &err);
        return;
    }
    alerter->looked = now;
    alerter->blind = 0;
    alert_book_update(&alerter->book, config, &list, now);
    for (size_t i = 0; i < alerter->book.n; i++)
        firing += !alert_is_over(&alerter->book.items[i]);
    alerter->firing = firing;
    tell_all(alerter, now, alert_quiet_at(&config->quiet, now));
    alert_book_forget(&alerter->book);
    save(alerter);
    alert_list_release(&list);
}

/* ---- the thread ---- */

static void rest(struct alerter *alerter, time_ms ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&alerter->lock);
    while (!progress_stopped(&alerter->stop) &&
           pthread_cond_timedwait(&alerter->wake, &alerter->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&alerter->lock);
}

static void *run(void *context)
{
    struct alerter *alerter = context;
    time_ms every = alerter->options.alerts->every_ms;
    rest(alerter, every < FIRST_MS ? every : FIRST_MS);
    while (!progress_stopped(&alerter->stop)) {
        round_of(alerter);
        rest(alerter, every);
    }
    return NULL;
}

static void alerter_free(struct alerter *alerter)
{
    alert_book_release(&alerter->book);
    strbuf_release(&alerter->state_path);
    pthread_mutex_destroy(&alerter->lock);
    pthread_cond_destroy(&alerter->wake);
    free(alerter);
}

enum err alerter_start(const struct alerter_options *options, struct alerter **ret,
                       struct error *err)
{
    struct alerter *alerter = mem_zalloc(1, sizeof *alerter);
    pthread_condattr_t monotonic;
    struct error damaged = {0};
    alerter->options = *options;
    alerter->looked = clock_now();
    if (options->alerts->state_path)
        strbuf_add(&alerter->state_path, str_of(options->alerts->state_path));
    else
        strbuf_addf(&alerter->state_path, "%s.alerts.json", options->db);
    pthread_mutex_init(&alerter->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&alerter->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (alert_book_load(&alerter->book, alerter->state_path.text, options->alerts, &damaged)) {
        alert_book_release(&alerter->book);
        log_line(options->log, LOG_WARN, "the list of alerts could not be read",
                 log_text("why", str_of(damaged.text)));
    }
    int rc = pthread_create(&alerter->thread, NULL, run, alerter);
    if (rc) {
        alerter_free(alerter);
        return error_set(err, ERR_LIMIT, "no thread for alerts: %s", strerror(rc));
    }
    *ret = alerter;
    return ERR_OK;
}

void alerter_stop(struct alerter *alerter)
{
    if (!alerter)
        return;
    pthread_mutex_lock(&alerter->lock);
    __atomic_store_n(&alerter->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&alerter->wake);
    pthread_mutex_unlock(&alerter->lock);
    pthread_join(alerter->thread, NULL);
    alerter_free(alerter);
}

void alerter_stats(struct alerter *alerter, struct service_stats *ret)
{
    const struct service_figure figures[] = {
        {"gputally_alerts_firing", "Alerts that fire.", NULL, "", (double)alerter->firing},
        {"gputally_alerts_sent_total", "Alerts that receivers took.", NULL, "",
         (double)alerter->sent},
        {"gputally_alert_failures_total", "Messages that a receiver did not take.", NULL, "",
         (double)alerter->failed},
        {"gputally_alerts_blind_rounds_total", "Rounds in which the ledger could not be read.",
         NULL, "", (double)alerter->blind_total},
        {"gputally_alerts_last_look_timestamp_seconds",
         "When the ledger was last read for alerts, or the service began.", NULL, "",
         (double)alerter->looked / 1000},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (ret->figures_n < SERVICE_FIGURES_MAX)
            ret->figures[ret->figures_n++] = figures[i];
}

bool alerter_check(struct alerter *alerter, struct health_check *ret)
{
    time_ms looked = alerter->looked;
    char since[TIME_TEXT_MAX], until[TIME_TEXT_MAX];
    *ret = (struct health_check){.name = "alerts", .ok = alerter->blind == 0};
    if (!ret->ok)
        snprintf(ret->why, sizeof ret->why,
                 "the ledger has not been read since %s, the log says why; what fired then goes on "
                 "being told to Alertmanager until %s",
                 time_format(looked, since), time_format(looked + ALERT_BLIND_MS, until));
    return ret->ok;
}
