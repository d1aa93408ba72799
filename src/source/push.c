/* A request goes through in three steps: the body is decoded whole (wire/remote_write), its series
 * are looked up by a hash of their label bytes, all at once, and what is new is named; then samples
 * go into a batch, which is committed. Label bytes are taken on trust where they are known, and
 * looked at before anything is kept where they are not.
 *
 * A desk is what one request needs of buffers; there are as many as requests may be in hand, made
 * when they are needed, and kept. */
#include "source/push.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

#include "wire/remote_write.h"

#define DESK_KEEP_BYTES ((size_t)8 << 20) /* decoded; after a larger request buffers are freed */
#define RETRY_BUSY_S 1
#define RETRY_DISK_S 5

struct route {
    char *tenant;
    struct journal *journal;
    struct label *labels;
    size_t labels_n;
    struct str *drop;
    size_t drop_n;
    struct arena texts;
};

/* Buffers of one request. */
struct desk {
    struct remote_write request;
    struct journal_batch *batch; /* of `route`; NULL: none yet */
    const struct route *route;
    struct journal_key *keys;
    struct journal_series *series;
    size_t room;
    bool busy;
};

struct push {
    struct route *routes;
    size_t routes_n;
    size_t body_max, decoded_max;
    time_ms oldest_ms, future_ms;
    time_ms (*now)(void *context);
    void *context;
    pthread_mutex_t lock; /* what follows */
    struct desk *desks;
    size_t desks_n;
    bool stopped;
    struct push_stats stats;
};

static time_ms system_now(void *context)
{
    (void)context;
    return clock_now();
}

static const struct str replica_labels[] = {
    {"prometheus_replica", 18}, {"__replica__", 11}, {"replica", 7}, {"prometheus", 10}};

static void make_route(struct route *to, const struct push_route *from)
{
    const struct str *drop = from->drop ? from->drop : replica_labels;
    *to = (struct route){.journal = from->journal, .labels_n = from->labels_n};
    to->tenant = str_dup(from->tenant);
    to->drop_n = from->drop ? from->drop_n : sizeof replica_labels / sizeof *replica_labels;
    to->labels = arena_zalloc(&to->texts, (to->labels_n + 1) * sizeof *to->labels);
    to->drop = arena_zalloc(&to->texts, (to->drop_n + 1) * sizeof *to->drop);
    for (size_t i = 0; i < to->labels_n; i++)
        to->labels[i] = (struct label){str_keep(&to->texts, from->labels[i].name),
                                       str_keep(&to->texts, from->labels[i].value)};
    for (size_t i = 0; i < to->drop_n; i++)
        to->drop[i] = str_keep(&to->texts, drop[i]);
}

struct push *push_new(const struct push_options *options)
{
    struct push *push = mem_zalloc(1, sizeof *push);
    push->routes = mem_zalloc(options->routes_n + 1, sizeof *push->routes);
    for (; push->routes_n < options->routes_n; push->routes_n++)
        make_route(&push->routes[push->routes_n], &options->routes[push->routes_n]);
    push->body_max = options->body_max ? options->body_max : PUSH_BODY_MAX;
    push->decoded_max = options->decoded_max ? options->decoded_max : PUSH_DECODED_MAX;
    push->oldest_ms = options->oldest_ms ? options->oldest_ms : PUSH_OLDEST_MS;
    push->future_ms = options->future_ms ? options->future_ms : PUSH_FUTURE_MS;
    push->now = options->now ? options->now : system_now;
    push->context = options->context;
    push->desks_n = options->at_once > 0 ? (size_t)options->at_once : PUSH_AT_ONCE;
    push->desks = mem_zalloc(push->desks_n, sizeof *push->desks);
    pthread_mutex_init(&push->lock, NULL);
    return push;
}

static void desk_release(struct desk *desk)
{
    remote_write_release(&desk->request);
    journal_batch_free(desk->batch);
    free(desk->keys);
    free(desk->series);
    desk->batch = NULL;
    desk->route = NULL;
    desk->keys = NULL;
    desk->series = NULL;
    desk->room = 0;
}

void push_free(struct push *push)
{
    if (!push)
        return;
    for (size_t i = 0; i < push->desks_n; i++)
        desk_release(&push->desks[i]);
    for (size_t i = 0; i < push->routes_n; i++) {
        free(push->routes[i].tenant);
        arena_release(&push->routes[i].texts);
    }
    pthread_mutex_destroy(&push->lock);
    free(push->desks);
    free(push->routes);
    free(push);
}

void push_stop(struct push *push)
{
    pthread_mutex_lock(&push->lock);
    push->stopped = true;
    pthread_mutex_unlock(&push->lock);
}

void push_stats(struct push *push, struct push_stats *ret)
{
    pthread_mutex_lock(&push->lock);
    *ret = push->stats;
    pthread_mutex_unlock(&push->lock);
}

/* A request in hand. */
struct work {
    struct push *push;
    struct desk *desk;
    const struct route *route;
    struct push_answer *answer;
    struct push_stats add; /* what it adds to the sums */
    char complaint[200];   /* about the first sample or series that can never be kept */
    time_ms oldest, newest;
};

static void answer(struct work *work, int status, int retry_after_s, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void answer(struct work *work, int status, int retry_after_s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(work->answer->text, sizeof work->answer->text, format, args);
    va_end(args);
    work->answer->status = status;
    work->answer->retry_after_s = retry_after_s;
}

/* ---- what is asked */

static bool begins_nocase(struct str text, const char *begin)
{
    size_t n = strlen(begin);
    return text.n >= n && str_eq_nocase((struct str){text.p, n}, str_of(begin));
}

/* Headers of 1.0, or none: some senders leave them out. 2.0 says so in the content type. */
static bool headers_fit(struct work *work, const struct push_request *request)
{
    struct str encoding = request->content_encoding, type = request->content_type;
    if (encoding.n && !str_eq_nocase(encoding, STR("snappy"))) {
        answer(work, 415, 0, "Content-Encoding %.*s is not taken, only snappy\n",
               (int)(encoding.n < 40 ? encoding.n : 40), encoding.p);
        return false;
    }
    const char *proto = type.n ? memmem(type.p, type.n, "proto=", 6) : NULL;
    struct str message = STR_NONE;
    if (proto)
        message = (struct str){proto + 6, type.n - (size_t)(proto + 6 - type.p)};
    if ((type.n && !begins_nocase(type, REMOTE_WRITE_CONTENT_TYPE)) ||
        (message.n && !str_starts(message, STR("prometheus.WriteRequest"))) ||
        str_starts(request->version, STR("2."))) {
        answer(work, 415, 0,
               "only remote write 1.0 is taken: " REMOTE_WRITE_CONTENT_TYPE
               ", protobuf_message prometheus.WriteRequest\n");
        return false;
    }
    return true;
}

static const struct route *route_of(const struct push *push, struct str tenant)
{
    for (size_t i = 0; i < push->routes_n; i++)
        if (str_eq(str_of(push->routes[i].tenant), tenant))
            return &push->routes[i];
    return NULL;
}

/* A desk that is free, best one that was used for this route. NULL: all are taken. */
static struct desk *take_desk(struct push *push, const struct route *route, bool *ret_stopped)
{
    struct desk *best = NULL;
    pthread_mutex_lock(&push->lock);
    *ret_stopped = push->stopped;
    for (size_t i = 0; i < push->desks_n && !push->stopped; i++) {
        struct desk *desk = &push->desks[i];
        if (!desk->busy && (!best || (desk->route == route && best->route != route)))
            best = desk;
    }
    if (best)
        best->busy = true;
    pthread_mutex_unlock(&push->lock);
    return best;
}

/* ---- what is stored */

static void complain(struct work *work, const char *what, const struct label *labels, size_t n)
{
    struct str name = labels_get(labels, n, STR("__name__"));
    if (*work->complaint)
        return;
    snprintf(work->complaint, sizeof work->complaint, "%s: series %.*s", what,
             (int)(name.n < 100 ? name.n : 100), name.p);
    for (char *p = work->complaint; *p; p++)
        if ((unsigned char)*p < 0x20)
            *p = '?';
}

static bool is_dropped(const struct route *route, struct str name)
{
    for (size_t i = 0; i < route->drop_n; i++)
        if (str_eq(route->drop[i], name))
            return true;
    return false;
}

/* Name a series that is not known. */
static void define(struct work *work, size_t i)
{
    struct desk *desk = work->desk;
    const struct remote_write_series *series = &desk->request.series[i];
    const struct route *route = work->route;
    struct label labels[REMOTE_WRITE_LABELS_MAX], kept[2 * REMOTE_WRITE_LABELS_MAX];
    size_t n, kept_n = 0;
    const char *why;
    bool good = remote_write_labels(series->labels, labels, &n, &why);
    for (size_t l = 0; good && l < n; l++)
        if (!is_dropped(route, labels[l].name))
            kept[kept_n++] = labels[l];
    for (size_t l = 0; good && l < route->labels_n && kept_n < 2 * REMOTE_WRITE_LABELS_MAX; l++)
        if (labels_get(labels, n, route->labels[l].name).n == 0)
            kept[kept_n++] = route->labels[l];
    if (good)
        good = journal_define(desk->batch, desk->keys[i], kept, kept_n, &desk->series[i], &why);
    if (good)
        return;
    desk->series[i].number = JOURNAL_UNWANTED;
    work->add.bad_series++;
    complain(work, why, labels, n);
}

static void look_up(struct work *work)
{
    struct desk *desk = work->desk;
    const struct remote_write *request = &desk->request;
    size_t n = request->series_n;
    if (n > desk->room) {
        desk->keys = mem_realloc(desk->keys, n, sizeof *desk->keys);
        desk->series = mem_realloc(desk->series, n, sizeof *desk->series);
        desk->room = n;
    }
    for (size_t i = 0; i < n; i++) {
        const struct remote_write_series *series = &request->series[i];
        desk->keys[i] = series->scattered ? (struct journal_key){0, 0}
                                          : (struct journal_key){series->hash, series->labels.n};
    }
    journal_find(desk->batch, desk->keys, n, desk->series);
}

/* Is what was taken for labels, and is not known, nothing but labels? */
static bool is_to_be_trusted(const struct desk *desk)
{
    const struct remote_write *request = &desk->request;
    for (size_t i = 0; i < request->series_n; i++)
        if (desk->series[i].number == JOURNAL_UNKNOWN && request->series[i].trusted &&
            !remote_write_are_labels(request->series[i].labels))
            return false;
    return true;
}

/* Nothing of the request is used before all of it is known to be good. */
static enum err find_series(struct work *work, struct error *err)
{
    struct desk *desk = work->desk;
    look_up(work);
    if (!is_to_be_trusted(desk)) {
        enum err e = remote_write_read_over(&desk->request, err);
        if (e != ERR_OK)
            return e;
        look_up(work);
    }
    for (size_t i = 0; i < desk->request.series_n; i++) {
        /* The same new series may come twice in one request. */
        if (desk->series[i].number == JOURNAL_UNKNOWN)
            journal_find(desk->batch, &desk->keys[i], 1, &desk->series[i]);
        if (desk->series[i].number == JOURNAL_UNKNOWN)
            define(work, i);
    }
    return ERR_OK;
}

/* Keep the samples of a series whose time can be. */
static void add_in_time(struct work *work, size_t i)
{
    struct desk *desk = work->desk;
    const struct remote_write_series *series = &desk->request.series[i];
    for (uint32_t s = series->first; s < series->first + series->n; s++) {
        time_ms t = desk->request.t[s];
        if (t < work->oldest)
            work->add.too_old++;
        else if (t > work->newest)
            work->add.in_future++;
        else
            journal_add(desk->batch, desk->series[i], &t, &desk->request.v[s], 1);
    }
}

/* The samples of one series. */
static void add_series(struct work *work, size_t i)
{
    struct desk *desk = work->desk;
    const struct remote_write *request = &desk->request;
    const struct remote_write_series *series = &request->series[i];
    bool in_time = true;
    for (uint32_t s = series->first; s < series->first + series->n; s++)
        in_time &= request->t[s] >= work->oldest && request->t[s] <= work->newest;
    if (desk->series[i].number == JOURNAL_UNWANTED)
        work->add.ignored_samples += series->n;
    else if (in_time)
        journal_add(desk->batch, desk->series[i], request->t + series->first,
                    request->v + series->first, series->n);
    else
        add_in_time(work, i);
}

/* How many series from i on have one sample each, whose time can be. */
static size_t singles(const struct work *work, size_t i)
{
    const struct remote_write *request = &work->desk->request;
    size_t end = i;
    for (; end < request->series_n && request->series[end].n == 1; end++) {
        time_ms t = request->t[request->series[end].first];
        if (t < work->oldest || t > work->newest)
            break;
    }
    return end - i;
}

static void add_samples(struct work *work)
{
    struct desk *desk = work->desk;
    const struct remote_write *request = &desk->request;
    for (size_t i = 0, n; i < request->series_n; i += n ? n : 1) {
        n = singles(work, i);
        if (n == 0) {
            add_series(work, i);
            continue;
        }
        size_t before = journal_batch_samples(desk->batch), first = request->series[i].first;
        journal_add_each(desk->batch, &desk->series[i], &request->t[first], &request->v[first], n);
        work->add.ignored_samples += n - (journal_batch_samples(desk->batch) - before);
    }
    work->add.samples = journal_batch_samples(desk->batch);
}

/* What of a request that is stored was left out, for ever. */
static void answer_stored(struct work *work)
{
    const struct push_stats *add = &work->add;
    if (!add->too_old && !add->in_future && !add->bad_series) {
        answer(work, 204, 0, "%s", "");
        return;
    }
    answer(work, 400, 0,
           "%" PRIu64 " samples are stored; refused for good: %" PRIu64 " too old, %" PRIu64
           " more than %" PRId64 " min in the future, %" PRIu64 " series%s%s\n",
           add->samples, add->too_old, add->in_future, work->push->future_ms / 60000,
           add->bad_series, *work->complaint ? ": " : "", work->complaint);
}

static void answer_unread(struct work *work, enum err e, const struct error *err)
{
    answer(work, e == ERR_LIMIT ? 413 : 400, 0, "%s\n", err->text);
}

static void store(struct work *work)
{
    struct push *push = work->push;
    struct desk *desk = work->desk;
    struct error err = {0};
    time_ms now = push->now(push->context);
    work->oldest = now - push->oldest_ms;
    work->newest = now + push->future_ms;
    if (desk->route != work->route) {
        journal_batch_free(desk->batch);
        desk->batch = journal_batch_new(work->route->journal);
        desk->route = work->route;
    }
    journal_begin(desk->batch);
    enum err e = find_series(work, &err);
    if (e != ERR_OK) {
        journal_abandon(desk->batch);
        answer_unread(work, e, &err);
        return;
    }
    add_samples(work);
    if (journal_commit(desk->batch, true, &err) == ERR_OK) {
        answer_stored(work);
        return;
    }
    work->add.samples = 0;
    answer(work, 503, RETRY_DISK_S, "not stored, send it again: %s\n", err.text);
}

static void decode_and_store(struct work *work, struct str body)
{
    struct error err = {0};
    struct remote_write *request = &work->desk->request;
    request->secret = journal_secret(work->route->journal);
    enum err e = remote_write_read_on_trust(request, body, work->push->decoded_max, &err);
    if (e != ERR_OK) {
        answer_unread(work, e, &err);
        return;
    }
    work->add.bytes = body.n;
    store(work);
    work->add.series = request->series_n;
    work->add.histograms = request->histograms;
    work->add.exemplars = request->exemplars;
}

static void add_stats(struct work *work)
{
    struct push *push = work->push;
    struct push_stats *sum = &push->stats;
    const struct push_stats *add = &work->add;
    int status = work->answer->status;
    pthread_mutex_lock(&push->lock);
    sum->requests++;
    sum->answers_2xx += status < 300;
    sum->answers_429 += status == 429;
    sum->answers_4xx += status >= 400 && status < 500 && status != 429;
    sum->answers_5xx += status >= 500;
    sum->bytes += add->bytes;
    sum->series += add->series;
    sum->samples += add->samples;
    sum->ignored_samples += add->ignored_samples;
    sum->too_old += add->too_old;
    sum->in_future += add->in_future;
    sum->bad_series += add->bad_series;
    sum->histograms += add->histograms;
    sum->exemplars += add->exemplars;
    if (status < 300)
        sum->last_ok = push->now(push->context);
    if (work->desk)
        work->desk->busy = false;
    pthread_mutex_unlock(&push->lock);
}

static void take_request(struct work *work, const struct push_request *request)
{
    struct push *push = work->push;
    bool stopped;
    work->route = route_of(push, request->tenant);
    if (!headers_fit(work, request))
        return;
    if (!work->route) {
        answer(work, 404, 0, "no such tenant\n");
        return;
    }
    if (request->body.n > push->body_max) {
        answer(work, 413, 0, "a body of %zu bytes, the limit is %zu\n", request->body.n,
               push->body_max);
        return;
    }
    work->desk = take_desk(push, work->route, &stopped);
    if (work->desk)
        decode_and_store(work, request->body);
    else if (stopped)
        answer(work, 503, RETRY_DISK_S, "shutting down, send it again\n");
    else
        answer(work, 429, RETRY_BUSY_S, "%zu requests are in hand, send it again\n", push->desks_n);
}

void push_write(struct push *push, const struct push_request *request, struct push_answer *ret)
{
    struct work work = {.push = push, .answer = ret};
    *ret = (struct push_answer){0};
    take_request(&work, request);
    if (work.desk && work.desk->request.decoded.room > DESK_KEEP_BYTES)
        desk_release(work.desk);
    add_stats(&work);
}
