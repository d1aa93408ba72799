#include "serve/collector.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "serve/feed.h"

#define BACKOFF_FIRST_MS ((time_ms)2000)
#define STEP_TOLD_MS ((time_ms)5000) /* clock steps from here on are logged */
#define LATE_MS (2 * HOUR_MS)        /* a watermark that is more behind than it has to be */
#define RETAIN_EVERY_MS ((time_ms)HOUR_MS)

/* ---- a book ---- */

struct book_state {
    uint64_t rounds, failures, samples, bytes, rows;
    uint64_t failing;  /* failures in a row */
    time_ms watermark; /* TIME_MIN: not known, or nothing closed yet */
    time_ms booked_to; /* past the last hour that is booked; TIME_MIN */
    time_ms round_ms;  /* how long the last round took */
    bool settings_changed, suspicious;
    char why[256]; /* of the last round; "" it went well */
};

struct book {
    struct collector *collector;
    const char *name;    /* of the store's book */
    const char *cluster; /* for people */
    const char *label;   /* the cluster of series that do not say it; "" none */
    struct feed *feed;
    pthread_t thread;
    bool runs;
    /* its own thread's */
    time_ms wall, boot;    /* of the last look at the clock; 0: none */
    time_ms doubted_until; /* by the boot clock: the wall clock jumped forward */
    uint64_t dice;         /* jitter */
    pthread_mutex_t lock;  /* of what follows */
    struct book_state state;
};

struct collector {
    struct collector_options options;
    struct serve_config serve; /* options.serve points to it; the texts are the owner's */
    struct strbuf settings;    /* what rows are booked with */
    struct book *books;
    size_t books_n;
    volatile int stop; /* atomically */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    time_ms retain_at; /* monotonic; under lock */
};

static bool stopping(const struct collector *collector)
{
    return progress_stopped(&collector->stop);
}

/* Wait, or until the collector stops. ms of the fleet's time. */
static void rest(struct collector *collector, time_ms ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = (int64_t)((double)ms * 1e6 / clock_speed()) + until.tv_nsec;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&collector->lock);
    while (!stopping(collector) &&
           pthread_cond_timedwait(&collector->wake, &collector->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&collector->lock);
}

/* ---- the clock ---- */

/* Is the wall clock to be believed? */
static bool look_at_clock(struct book *book, time_ms *ret_now)
{
    struct log *log = book->collector->options.log;
    time_ms now = clock_now(), boot = clock_boot();
    time_ms step = 0;
    if (book->wall)
        step = now - book->wall - (time_ms)((double)(boot - book->boot) * clock_speed());
    book->wall = now;
    book->boot = boot;
    *ret_now = now;
    if (step > STEP_TOLD_MS || step < -STEP_TOLD_MS)
        log_line(log, LOG_WARN, "the clock was set", log_text("cluster", str_of(book->cluster)),
                 log_number("step_ms", step));
    if (step > COLLECTOR_STEP_MS)
        book->doubted_until = boot + COLLECTOR_STEP_MS;
    else if (step < -STEP_TOLD_MS)
        book->doubted_until = 0; /* set right again */
    return boot >= book->doubted_until;
}

/* ---- a round ---- */

static void told_failure(struct book *book, enum err code, const struct error *err, time_ms pause)
{
    struct log *log = book->collector->options.log;
    log_line(log, LOG_WARN,
             code == ERR_STORE || code == ERR_LOCKED ? "cannot write the database"
                                                     : "cannot read a source",
             log_text("cluster", str_of(book->cluster)), log_text("error", str_of(err->text)),
             log_number("again_in_s", pause / 1000));
}

static void told_success(struct book *book, const struct collect_report *report, time_ms took)
{
    struct log *log = book->collector->options.log;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX], closed[TIME_TEXT_MAX] = "none";
    if (report->booked.from >= report->booked.to)
        return;
    if (report->watermark != TIME_MIN)
        time_format(report->watermark, closed);
    time_format(report->booked.from, from);
    time_format(report->booked.to, to);
    bool news =
        report->booked.to > book->state.booked_to || report->watermark > book->state.watermark;
    log_line(log, news ? LOG_INFO : LOG_DEBUG, "booked", log_text("cluster", str_of(book->cluster)),
             log_text("from", str_of(from)), log_text("to", str_of(to)),
             log_text("watermark", str_of(closed)), log_number("rows", (int64_t)report->rows),
             log_number("samples", (int64_t)report->samples), log_number("took_ms", took));
}

/* Samples that came after their hours were closed: from when on they are booked again. */
static time_ms late_samples(void *context, struct str mark, time_ms watermark)
{
    struct book *book = context;
    const struct collector_options *options = &book->collector->options;
    char from[TIME_TEXT_MAX];
    time_ms late = feed_oldest_since(book->feed, mark);
    if (late != TIME_MAX)
        late -= options->config->settings.gap_ms; /* a sample covers back to there */
    if (late >= watermark)
        return TIME_MAX;
    if (late < watermark - FEED_LATE_MS) {
        log_line(options->log, LOG_WARN, "samples came too late to be booked",
                 log_text("cluster", str_of(book->cluster)),
                 log_text("from", str_of(time_format(late, from))));
        late = watermark - FEED_LATE_MS;
    }
    log_line(options->log, LOG_INFO, "late samples: hours are booked again",
             log_text("cluster", str_of(book->cluster)),
             log_text("from", str_of(time_format(hour_floor(late), from))));
    return late;
}

static enum err run_round(struct book *book, time_ms now, struct collect_report *ret,
                          struct error *err)
{
    struct collector *collector = book->collector;
    const struct collector_options *options = &collector->options;
    struct names *names = names_new();
    struct collect_options collect = {
        .lender = writer_lender(options->writer),
        .book = str_of(book->name),
        .cluster = str_of(book->label),
        .names = names,
        .engine = {.settings = &options->config->settings,
                   .prices = options->config->prices,
                   .owners = options->config->owners},
        .window = {hour_floor(now - options->serve->history_ms), hour_floor(now)},
        .budget_bytes = COLLECTOR_BUDGET_BYTES / collector->books_n,
        .progress = {.stop = &collector->stop, .done = (double)NAN},
        .now = now,
        .settings = strbuf_str(&collector->settings),
        .late = late_samples,
        .late_context = book,
    };
    struct strbuf mark = {0};
    enum err code = feed_open(book->feed, err);
    collect.sources = feed_sources(book->feed, &collect.sources_n);
    if (!code) {
        feed_mark(book->feed, &mark);
        collect.mark = strbuf_str(&mark);
        code = collect_run(&collect, ret, err);
    }
    names_free(names);
    strbuf_release(&mark);
    malloc_trim(0); /* the allocator would keep the room of a slice's samples to the next round */
    if (!code)
        feed_booked(book->feed, ret->watermark);
    if (code == ERR_OK || code == ERR_STORE || code == ERR_LOCKED)
        writer_told(options->writer, code, err);
    if (ret->booked.from < ret->booked.to && options->committed)
        options->committed(options->context);
    return code;
}

static void keep_state(struct book *book, enum err code, const struct error *err,
                       const struct collect_report *report, time_ms took)
{
    struct book_state *state = &book->state;
    pthread_mutex_lock(&book->lock);
    state->rounds++;
    state->samples += report->samples;
    state->bytes += report->bytes;
    state->rows += report->rows;
    state->round_ms = took;
    state->failures += code != ERR_OK;
    state->failing = code ? state->failing + 1 : 0;
    state->settings_changed |= report->settings_changed;
    if (report->watermark != TIME_MIN)
        state->watermark = report->watermark;
    if (report->booked.from < report->booked.to && report->booked.to > state->booked_to)
        state->booked_to = report->booked.to;
    snprintf(state->why, sizeof state->why, "%.250s", code ? err->text : "");
    pthread_mutex_unlock(&book->lock);
}

static void suspect(struct book *book, bool suspicious)
{
    pthread_mutex_lock(&book->lock);
    book->state.suspicious = suspicious;
    pthread_mutex_unlock(&book->lock);
}

/* 0.75 to 1.25 of it: books that fail together do not come again together. */
static time_ms jittered(struct book *book, time_ms ms)
{
    book->dice = book->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ms * 3 / 4 + (time_ms)((book->dice >> 33) % (uint64_t)(ms / 2 + 1));
}

static time_ms pause_after(struct book *book, enum err code, time_ms now, time_ms took)
{
    time_ms every = book->collector->options.serve->every_ms;
    if (code) {
        uint64_t doublings = book->state.failing < 16 ? book->state.failing - 1 : 15;
        time_ms pause = BACKOFF_FIRST_MS << doublings;
        return jittered(book, pause < COLLECTOR_BACKOFF_MAX_MS ? pause : COLLECTOR_BACKOFF_MAX_MS);
    }
    time_ms pause = took * COLLECTOR_REST > every ? took * COLLECTOR_REST : every;
    time_ms hour_ends = hour_floor(now) + HOUR_MS - now + every / 2;
    return pause < hour_ends ? pause : hour_ends;
}

static void retain_if_due(struct book *book)
{
    struct collector *collector = book->collector;
    time_ms keep = collector->options.serve->retain_ms, now = clock_monotonic();
    struct error err = {0};
    pthread_mutex_lock(&collector->lock);
    bool due = keep && now >= collector->retain_at;
    if (due)
        collector->retain_at = now + RETAIN_EVERY_MS;
    pthread_mutex_unlock(&collector->lock);
    if (due && writer_retain(collector->options.writer, keep, &err))
        log_line(collector->options.log, LOG_WARN, "cannot drop old hours",
                 log_text("error", str_of(err.text)));
}

static time_ms do_round(struct book *book)
{
    struct collector *collector = book->collector;
    struct collect_report report = {.watermark = TIME_MIN};
    struct error err = {0};
    time_ms now;
    bool believed = look_at_clock(book, &now);
    suspect(book, !believed);
    if (!believed)
        return collector->options.serve->every_ms;
    time_ms began = clock_monotonic();
    enum err code = run_round(book, now, &report, &err);
    time_ms took = clock_monotonic() - began;
    if (code == ERR_STOPPED)
        return 0;
    if (!code)
        told_success(book, &report, took);
    keep_state(book, code, &err, &report, took);
    time_ms pause = pause_after(book, code, now, took);
    if (code)
        told_failure(book, code, &err, pause);
    else
        retain_if_due(book);
    return pause;
}

static void *keep_book(void *context)
{
    struct book *book = context;
    struct collector *collector = book->collector;
    while (!stopping(collector)) {
        time_ms pause = do_round(book);
        if (!stopping(collector))
            rest(collector, pause);
    }
    return NULL;
}

/* ---- making it ---- */

static struct book *book_of(struct collector *collector, const struct source_config *config)
{
    for (size_t i = 0; i < collector->books_n; i++)
        if (strcmp(collector->books[i].name, config->book) == 0)
            return &collector->books[i];
    struct book *book = &collector->books[collector->books_n++];
    *book = (struct book){.collector = collector,
                          .name = config->book,
                          .cluster = *config->cluster ? config->cluster : config->book,
                          .label = config->cluster,
                          .dice = (uint64_t)clock_monotonic() * 2654435761u + collector->books_n,
                          .state = {.watermark = TIME_MIN, .booked_to = TIME_MIN}};
    pthread_mutex_init(&book->lock, NULL);
    return book;
}

static void collector_free(struct collector *collector)
{
    for (size_t i = 0; i < collector->books_n; i++) {
        struct book *book = &collector->books[i];
        feed_free(book->feed);
        pthread_mutex_destroy(&book->lock);
    }
    free(collector->books);
    pthread_mutex_destroy(&collector->lock);
    pthread_cond_destroy(&collector->wake);
    strbuf_release(&collector->settings);
    free(collector);
}

enum err collector_new(const struct collector_options *options, struct collector **ret,
                       struct error *err)
{
    struct collector *collector = mem_zalloc(1, sizeof *collector);
    const struct serve_config *serve = &collector->serve;
    pthread_condattr_t monotonic;
    collector->options = *options;
    collector->serve = *options->serve;
    collector->options.serve = serve;
    collector->books = mem_zalloc(serve->sources_n + 1, sizeof *collector->books);
    pthread_mutex_init(&collector->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&collector->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    config_describe(options->config, &collector->settings);
    enum err code = ERR_OK;
    for (size_t i = 0; i < serve->sources_n && !code; i++) {
        struct book *book = book_of(collector, &serve->sources[i]);
        struct feed_options feed = {.serve = serve,
                                    .book = book->name,
                                    .settings = &options->config->settings,
                                    .live = options->live,
                                    .log = options->log};
        if (!book->feed)
            code = feed_new(&feed, &book->feed, err);
    }
    if (code) {
        collector_free(collector);
        return code;
    }
    *ret = collector;
    return ERR_OK;
}

enum err collector_start(struct collector *collector, struct error *err)
{
    for (size_t i = 0; i < collector->books_n; i++) {
        struct book *book = &collector->books[i];
        int failed = pthread_create(&book->thread, NULL, keep_book, book);
        if (failed)
            return error_set(err, ERR_LIMIT, "starting a thread: %s", strerror(failed));
        book->runs = true;
    }
    return ERR_OK;
}

void collector_stop(struct collector *collector)
{
    if (!collector)
        return;
    pthread_mutex_lock(&collector->lock);
    __atomic_store_n(&collector->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&collector->wake);
    pthread_mutex_unlock(&collector->lock);
    for (size_t i = 0; i < collector->books_n; i++)
        if (collector->books[i].runs)
            pthread_join(collector->books[i].thread, NULL);
    collector_free(collector);
}

/* ---- what is shown ---- */

static struct book_state state_of(struct book *book)
{
    pthread_mutex_lock(&book->lock);
    struct book_state state = book->state;
    pthread_mutex_unlock(&book->lock);
    return state;
}

size_t collector_checks(struct collector *collector, struct health_check *ret, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < collector->books_n && n < room; i++) {
        struct book *book = &collector->books[i];
        struct book_state state = state_of(book);
        struct health_check *check = &ret[n++];
        *check = (struct health_check){.ok = true};
        snprintf(check->name, sizeof check->name, "collecting%s%s", *book->cluster ? " " : "",
                 book->cluster);
        if (state.suspicious)
            snprintf(check->why, sizeof check->why,
                     "the clock jumped forward: nothing is booked until it has stood for 10 min");
        else if (state.failing)
            snprintf(check->why, sizeof check->why, "%s", state.why);
        else if (state.watermark != TIME_MIN &&
                 clock_now() - state.watermark > LATE_MS + COLLECT_SETTLE_MS)
            snprintf(check->why, sizeof check->why, "catching up: booked up to %lld hours ago",
                     (long long)((clock_now() - state.watermark) / HOUR_MS));
        check->ok = !*check->why;
        n += feed_checks(book->feed, ret + n, room - n);
    }
    return n;
}

/* The booking of a book: what it reads, whatever from. */
static void add_source(struct book *book, const struct book_state *state, struct service_stats *ret)
{
    if (ret->sources_n == SOURCE_STATS_MAX)
        return;
    struct source_stat *stat = &ret->sources[ret->sources_n++];
    *stat = (struct source_stat){.up = state->rounds && !state->failing,
                                 .watermark = state->watermark,
                                 .samples_total = (int64_t)state->samples,
                                 .bytes_total = (int64_t)state->bytes,
                                 .failures_total = (int64_t)state->failures,
                                 .queue_depth = -1};
    snprintf(stat->name, sizeof stat->name, "%.120s", feed_name(book->feed));
    snprintf(stat->cluster, sizeof stat->cluster, "%.60s", book->cluster);
    snprintf(stat->kind, sizeof stat->kind, "%s", feed_kind(book->feed));
}

static void add_figure(struct service_stats *ret, const char *name, const char *help,
                       const char *cluster, double value)
{
    if (ret->figures_n == SERVICE_FIGURES_MAX)
        return;
    struct service_figure *figure = &ret->figures[ret->figures_n++];
    *figure =
        (struct service_figure){.name = name, .help = help, .label = "cluster", .value = value};
    snprintf(figure->label_value, sizeof figure->label_value, "%s", cluster);
}

/* X("name", "help", value of a book_state) */
#define BOOK_FIGURE_TABLE(X)                                                                       \
    X("gputally_collect_rounds_total", "Rounds of collecting.", (double)state.rounds)              \
    X("gputally_collect_rows_total", "Rows of the ledger that were written.", (double)state.rows)  \
    X("gputally_collect_round_seconds", "How long the last round took.",                           \
      (double)state.round_ms / 1000)

void collector_stats(struct collector *collector, struct service_stats *ret)
{
    for (size_t i = 0; i < collector->books_n; i++) {
        struct book_state state = state_of(&collector->books[i]);
        add_source(&collector->books[i], &state, ret);
        feed_stats(collector->books[i].feed, collector->books[i].cluster, ret);
    }
#define X(name, help, of_state)                                                                    \
    for (size_t i = 0; i < collector->books_n; i++) {                                              \
        struct book_state state = state_of(&collector->books[i]);                                  \
        add_figure(ret, name, help, collector->books[i].cluster, of_state);                        \
    }
    BOOK_FIGURE_TABLE(X)
#undef X
}

bool collector_settings_changed(struct collector *collector)
{
    bool changed = false;
    for (size_t i = 0; i < collector->books_n; i++)
        changed |= state_of(&collector->books[i]).settings_changed;
    return changed;
}

void collector_write(struct collector *collector, struct str tenant,
                     const struct push_request *request, struct push_answer *ret)
{
    for (int exact = 1; exact >= 0; exact--)
        for (size_t i = 0; i < collector->books_n; i++)
            if (feed_receives(collector->books[i].feed, exact ? tenant : STR_NONE)) {
                feed_write(collector->books[i].feed, request, ret);
                return;
            }
    *ret = (struct push_answer){.status = 404};
    snprintf(ret->text, sizeof ret->text,
             "nobody receives samples here: a source of kind remote-write is missing");
}

void collector_look(struct collector *collector, time_ms wait_ms)
{
    time_ms until = clock_monotonic() + wait_ms;
    for (size_t i = 0; i < collector->books_n; i++) /* all are asked at once */
        feed_look(collector->books[i].feed, 0);
    for (size_t i = 0; i < collector->books_n; i++) {
        time_ms left = until - clock_monotonic();
        feed_look(collector->books[i].feed, left > 0 ? left : 0);
    }
}

void collector_placed(struct collector *collector, struct live_claims *ret)
{
    for (size_t i = 0; i < collector->books_n; i++)
        feed_placed(collector->books[i].feed, ret);
}
