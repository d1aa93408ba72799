/* Answers that are made before somebody asks: those to what the page asks first.
 *
 * A first visitor would wait for them, and so would the first one after every commit, since a
 * commit makes what is kept old. One thread asks as anybody without a view does. What comes of it
 * stays in the cache, and goes into the page itself (api_page.c). It yields to whoever asks in
 * earnest: it has the lowest priority once the first sums are there, leaves off when the ledger has
 * changed meanwhile, and rests REST_TIMES as long as it took, so that a large fleet whose books
 * change every minute is not read all the time. Sums are made soon after a change, findings, which
 * take longer, rest for themselves.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "query/window.h"
#include "serve/api_impl.h"

#define NICE 10
#define REST_TIMES 20
#define REST_LEAST_MS 1000
#define REST_MOST_MS (10 * 60 * 1000)
/* Findings hold something for every GPU while they are made: about 60 bytes a row. Of more rows
 * they are made when they are asked for, so that a service that nobody looks at stays small. */
#define FINDINGS_ROWS_MOST 1000000

/* What the page's overview asks (web/src/data.ts): letter by letter, since answers are kept by what
 * was asked. Cheap ones first. */
static const struct question {
    const char *pattern, *window, *by; /* NULL: not said */
    bool before;                       /* of the time before that window that is as long */
    int findings_days;                 /* 0: none are needed */
} questions[] = {
    {"/api/v1/meta", NULL, NULL, false, 0},       {"/api/v1/report", NULL, "team", false, 0},
    {"/api/v1/report", NULL, "day", false, 0},    {"/api/v1/report", NULL, "team", true, 0},
    {"/api/v1/report", "30d", "team", false, 0},  {"/api/v1/report", "30d", "day", false, 0},
    {"/api/v1/report", "30d", "team", true, 0},   {"/api/v1/findings", NULL, NULL, false, 7},
    {"/api/v1/findings", "30d", NULL, false, 30},
};
#define QUESTIONS (sizeof questions / sizeof *questions)
#define SUMS 7 /* of them */

/* A state of the ledger, and what "now" is in questions. */
struct moment {
    uint64_t generation;
    time_ms hour;
};

/* Questions that are made together. */
struct round {
    size_t from, to;
    struct moment done;
    int64_t due_us; /* not before */
};

struct api_ahead {
    struct api *api;
    pthread_t thread;
    pthread_mutex_t lock; /* of stop */
    pthread_cond_t wake;
    bool stop;
    struct api_worker *worker;
    struct api_page_draft *draft;
    atomic_ullong made, dropped, spent_us;
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

/* "FROM,TO" of the time before the question's window. False: the ledger does not reach back. */
static bool time_before(struct api_ahead *ahead, const struct question *question,
                        struct arena *arena, struct str *ret)
{
    struct error none = {0};
    struct span extent, window, before;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    if (!ahead->worker->store || store_extent(ahead->worker->store, &extent, &none) != ERR_OK)
        return false;
    bool known = api_asked_window(ahead->api, extent, question->window, &window);
    before = (struct span){window.from - (window.to - window.from), window.from};
    if (!known || extent.from == extent.to || extent.from > before.from)
        return false;
    struct strbuf text = {0};
    strbuf_addf(&text, "%s,%s", time_format(before.from, from), time_format(before.to, to));
    *ret = str_keep(arena, strbuf_str(&text));
    strbuf_release(&text);
    return true;
}

/* What is asked, by name and value. */
static bool write_query(struct api_ahead *ahead, const struct question *question,
                        struct http_request *request)
{
    struct http_pair *pairs = arena_zalloc(request->arena, 2 * sizeof *pairs);
    struct str window = question->window ? str_of(question->window) : STR_NONE;
    if (question->before && !time_before(ahead, question, request->arena, &window))
        return false;
    request->query = pairs;
    if (window.n)
        pairs[request->query_n++] = (struct http_pair){STR("window"), window};
    if (question->by)
        pairs[request->query_n++] = (struct http_pair){STR("by"), str_of(question->by)};
    return true;
}

static void make(struct api_ahead *ahead, const struct question *question)
{
    static const struct access anybody = {.scopes = SCOPE_BIT(SCOPE_READ)};
    struct arena arena = {0};
    struct http_request request = {.method = HTTP_GET,
                                   .path = str_of(question->pattern),
                                   .access = &anybody,
                                   .arena = &arena,
                                   .worker = ahead->worker};
    struct http_answer answer = {0};
    if (write_query(ahead, question, &request)) {
        api_answer(ahead->api, question->pattern, &request, &answer);
        if (answer.status == 0 || answer.status == 200)
            api_page_add(ahead->draft, &request,
                         answer.fixed.n ? answer.fixed : strbuf_str(&answer.body));
        strbuf_release(&answer.body);
        if (answer.fixed_free)
            answer.fixed_free(answer.fixed_context);
    }
    arena_release(&arena);
    atomic_fetch_add(&ahead->made, 1);
}

/* False: the ledger changed meanwhile, and what is left is of no use any more. */
static bool make_all(struct api_ahead *ahead, const struct round *round, struct moment moment)
{
    if (round->from == 0)
        api_page_begin(ahead->draft);
    for (size_t i = round->from; i < round->to; i++) {
        if (stopped(ahead))
            return true;
        if (!same_moment(moment_now(ahead->api), moment)) {
            atomic_fetch_add(&ahead->dropped, 1);
            return false;
        }
        if (!questions[i].findings_days || are_few(ahead, questions[i].findings_days))
            make(ahead, &questions[i]);
    }
    api_page_show(ahead->draft, moment.generation, moment.hour);
    return true;
}

static void run_round(struct api_ahead *ahead, struct round *round, struct moment moment)
{
    int64_t begin = elapsed_us();
    if (same_moment(moment, round->done) || begin < round->due_us)
        return;
    if (make_all(ahead, round, moment))
        round->done = moment;
    int64_t end = elapsed_us(), most = REST_MOST_MS * INT64_C(1000);
    int64_t us = (end - begin) * REST_TIMES;
    round->due_us = end + (us > most ? most : us);
    atomic_fetch_add(&ahead->spent_us, (unsigned long long)(end - begin));
}

static void *run(void *context)
{
    struct api_ahead *ahead = context;
    struct round sums = {.from = 0, .to = SUMS, .done = {0, TIME_MIN}};
    struct round findings = {.from = SUMS, .to = QUESTIONS, .done = {0, TIME_MIN}};
    run_round(ahead, &sums, moment_now(ahead->api)); /* the first page should have them */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE); /* this thread; as it may */
    while (!stopped(ahead)) {
        struct moment moment = moment_now(ahead->api);
        run_round(ahead, &sums, moment);
        if (same_moment(sums.done, moment)) /* into the page that has these */
            run_round(ahead, &findings, moment);
        rest(ahead, REST_LEAST_MS);
    }
    return NULL;
}

static void ahead_free(struct api_ahead *ahead)
{
    api_worker_free(ahead->worker);
    api_page_draft_free(ahead->draft);
    pthread_cond_destroy(&ahead->wake);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

void api_ahead_start(struct api *api)
{
    struct api_ahead *ahead = mem_zalloc(1, sizeof *ahead);
    pthread_condattr_t monotonic;
    ahead->api = api;
    ahead->worker = api_worker_new(api);
    ahead->draft = api_page_draft_new(api);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&ahead->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&ahead->thread, NULL, run, ahead) == 0)
        api->ahead = ahead;
    else
        ahead_free(ahead); /* without a thread: answers are made when they are asked */
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
    api->ahead = NULL;
    ahead_free(ahead);
}

void api_ahead_counts(const struct api *api, struct api_ahead_counts *ret)
{
    const struct api_ahead *ahead = api->ahead;
    *ret = (struct api_ahead_counts){0};
    if (ahead)
        *ret = (struct api_ahead_counts){atomic_load(&ahead->made), atomic_load(&ahead->dropped),
                                         atomic_load(&ahead->spent_us)};
}
