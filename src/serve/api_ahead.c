/* Answers that are made before somebody asks: those to what the page asks first.
 *
 * A first visitor would wait for them, and so would the first one after every commit, since a
 * commit makes what is kept old. One thread asks as anybody without a view does, and what comes of
 * it stays in the cache. It yields to whoever asks in earnest: it has the lowest priority, begins
 * again with the cheapest question when the ledger has changed meanwhile, and rests REST_TIMES as
 * long as it took, so that a large fleet whose books change every minute is not read all the time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "serve/api_impl.h"

#define NICE 10
#define REST_TIMES 20
#define REST_LEAST_MS 2000
#define REST_MOST_MS (10 * 60 * 1000)
#define QUERY_MOST 2
/* Findings hold something for every GPU while they are made: about 60 bytes a row. Of more rows
 * they are made when they are asked for, so that a service that nobody looks at stays small. */
#define FINDINGS_ROWS_MOST 1000000

/* What the page's overview asks (web/src/data.ts): letter by letter, since answers are kept by what
 * was asked. Cheap ones first. */
static const struct question {
    const char *pattern;
    struct http_pair query[QUERY_MOST];
    size_t query_n;
    int findings_days; /* 0: none are needed */
} questions[] = {
#define PAIR(name, value)                                                                          \
    {                                                                                              \
        {name, sizeof name - 1},                                                                   \
        {                                                                                          \
            value, sizeof value - 1                                                                \
        }                                                                                          \
    }
    {"/api/v1/meta", {{{0}, {0}}}, 0, 0},
    {"/api/v1/report", {PAIR("by", "team")}, 1, 0},
    {"/api/v1/report", {PAIR("by", "day")}, 1, 0},
    {"/api/v1/report", {PAIR("window", "30d"), PAIR("by", "team")}, 2, 0},
    {"/api/v1/report", {PAIR("window", "30d"), PAIR("by", "day")}, 2, 0},
    {"/api/v1/findings", {{{0}, {0}}}, 0, 7},
    {"/api/v1/findings", {PAIR("window", "30d")}, 1, 30},
#undef PAIR
};

struct api_ahead {
    struct api *api;
    pthread_t thread;
    pthread_mutex_t lock; /* of stop */
    pthread_cond_t wake;
    bool stop;
    struct api_worker *worker;
    atomic_ullong made, dropped, spent_us;
};

/* A state of the ledger, and what "now" is in questions. */
struct moment {
    uint64_t generation;
    time_ms hour;
};

static struct moment moment_now(struct api *api)
{
    return (struct moment){api_generation(api), hour_floor(clock_now())};
}

static bool same_moment(struct moment a, struct moment b)
{
    return a.generation == b.generation && a.hour == b.hour;
}

static int64_t elapsed_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool stopped(struct api_ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    bool stop = ahead->stop;
    pthread_mutex_unlock(&ahead->lock);
    return stop;
}

static void rest(struct api_ahead *ahead, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stop && pthread_cond_timedwait(&ahead->wake, &ahead->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&ahead->lock);
}

/* Have the last days few enough rows? */
static bool are_few(struct api_ahead *ahead, int days)
{
    struct error none = {0};
    struct result *result = NULL;
    time_ms now = hour_floor(clock_now());
    struct query query = {.window = {now - days * DAY_MS, now}};
    if (!ahead->worker->store || query_run(ahead->worker->store, &query, &result, &none) != ERR_OK)
        return false;
    bool few = result->total.rows <= FINDINGS_ROWS_MOST;
    result_free(result);
    return few;
}

static void make(struct api_ahead *ahead, const struct question *question)
{
    static const struct access anybody = {.scopes = SCOPE_BIT(SCOPE_READ)};
    struct arena arena = {0};
    struct http_request request = {.method = HTTP_GET,
                                   .path = str_of(question->pattern),
                                   .query = question->query,
                                   .query_n = question->query_n,
                                   .access = &anybody,
                                   .arena = &arena,
                                   .worker = ahead->worker};
    struct http_answer answer = {0};
    api_answer(ahead->api, question->pattern, &request, &answer);
    strbuf_release(&answer.body);
    if (answer.fixed_free)
        answer.fixed_free(answer.fixed_context);
    arena_release(&arena);
    atomic_fetch_add(&ahead->made, 1);
}

/* False: the ledger changed meanwhile, and what is left is of no use any more. */
static bool make_all(struct api_ahead *ahead, struct moment moment)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if (stopped(ahead))
            return true;
        if (!same_moment(moment_now(ahead->api), moment)) {
            atomic_fetch_add(&ahead->dropped, 1);
            return false;
        }
        if (!questions[i].findings_days || are_few(ahead, questions[i].findings_days))
            make(ahead, &questions[i]);
    }
    return true;
}

static void *run(void *context)
{
    struct api_ahead *ahead = context;
    struct moment done = {0, TIME_MIN};
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE); /* this thread; as it may */
    while (!stopped(ahead)) {
        int64_t begin = elapsed_us(), ms = 0;
        struct moment moment = moment_now(ahead->api);
        if (!same_moment(moment, done)) {
            if (make_all(ahead, moment))
                done = moment;
            int64_t us = elapsed_us() - begin;
            atomic_fetch_add(&ahead->spent_us, (unsigned long long)us);
            ms = us / 1000 * REST_TIMES;
        }
        rest(ahead, ms < REST_LEAST_MS ? REST_LEAST_MS : ms > REST_MOST_MS ? REST_MOST_MS : ms);
    }
    return NULL;
}

void api_ahead_start(struct api *api)
{
    struct api_ahead *ahead = mem_zalloc(1, sizeof *ahead);
    pthread_condattr_t monotonic;
    ahead->api = api;
    ahead->worker = api_worker_new(api);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&ahead->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&ahead->thread, NULL, run, ahead) == 0) {
        api->ahead = ahead;
        return;
    }
    api_worker_free(ahead->worker); /* without a thread: answers are made when they are asked */
    free(ahead);
}

void api_ahead_stop(struct api *api)
{
    struct api_ahead *ahead = api->ahead;
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    pthread_cond_signal(&ahead->wake);
    pthread_mutex_unlock(&ahead->lock);
    api_worker_interrupt(ahead->worker);
    pthread_join(ahead->thread, NULL);
    api_worker_free(ahead->worker);
    pthread_cond_destroy(&ahead->wake);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
    api->ahead = NULL;
}

void api_ahead_counts(const struct api *api, struct api_ahead_counts *ret)
{
    const struct api_ahead *ahead = api->ahead;
    *ret = (struct api_ahead_counts){0};
    if (ahead)
        *ret = (struct api_ahead_counts){atomic_load(&ahead->made), atomic_load(&ahead->dropped),
                                         atomic_load(&ahead->spent_us)};
}
