/* Requests in hand: whose they are, whether they may be taken, what they are given to work with.
 * push_store.c has what becomes of a body. */
#include "source/push_impl.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

#define TRAY_KEEP_BYTES ((size_t)8 << 20) /* decoded; after a larger request buffers are freed */

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
    push->trays = mem_zalloc(push->desks_n, sizeof *push->trays);
    push->idle = mem_zalloc(push->desks_n, sizeof(struct tray *));
    for (; push->idle_n < push->desks_n; push->idle_n++)
        push->idle[push->idle_n] = &push->trays[push->idle_n];
    pthread_mutex_init(&push->lock, NULL);
    return push;
}

static void tray_release(struct tray *tray)
{
    remote_write_release(&tray->request);
    free(tray->keys);
    free(tray->series);
    *tray = (struct tray){0};
}

void push_free(struct push *push)
{
    if (!push)
        return;
    for (size_t i = 0; i < push->desks_n; i++) {
        journal_batch_free(push->desks[i].batch);
        tray_release(&push->trays[i]);
    }
    for (size_t i = 0; i < push->routes_n; i++) {
        free(push->routes[i].tenant);
        arena_release(&push->routes[i].texts);
    }
    pthread_mutex_destroy(&push->lock);
    free(push->desks);
    free(push->trays);
    free(push->idle);
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

void push_reply(struct work *work, int status, int retry_after_s, const char *format, ...)
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
        push_reply(work, 415, 0, "Content-Encoding %.*s is not taken, only snappy\n",
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
        push_reply(work, 415, 0,
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

/* A desk that is free, best one that was used for this route, and a tray. NULL: all are taken. */
static struct desk *take_desk(struct push *push, const struct route *route, struct tray **ret_tray,
                              bool *ret_stopped)
{
    struct desk *best = NULL;
    pthread_mutex_lock(&push->lock);
    *ret_stopped = push->stopped;
    for (size_t i = 0; i < push->desks_n && !push->stopped; i++) {
        struct desk *desk = &push->desks[i];
        if (!desk->busy && (!best || (desk->route == route && best->route != route)))
            best = desk;
    }
    if (best) {
        best->busy = true;
        *ret_tray = push->idle[--push->idle_n];
    }
    pthread_mutex_unlock(&push->lock);
    return best;
}

void push_give_tray_back(struct work *work)
{
    struct push *push = work->push;
    struct tray *tray = work->tray;
    work->tray = NULL;
    if (tray->request.decoded.room > TRAY_KEEP_BYTES)
        tray_release(tray);
    pthread_mutex_lock(&push->lock);
    push->idle[push->idle_n++] = tray;
    pthread_mutex_unlock(&push->lock);
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
        push_reply(work, 404, 0, "no such tenant\n");
        return;
    }
    if (request->body.n > push->body_max) {
        push_reply(work, 413, 0, "a body of %zu bytes, the limit is %zu\n", request->body.n,
                   push->body_max);
        return;
    }
    work->desk = take_desk(push, work->route, &work->tray, &stopped);
    if (work->desk)
        push_store(work, request->body);
    else if (stopped)
        push_reply(work, 503, RETRY_DISK_S, "shutting down, send it again\n");
    else
        push_reply(work, 429, RETRY_BUSY_S, "%zu requests are in hand, send it again\n",
                   push->desks_n);
}

void push_write(struct push *push, const struct push_request *request, struct push_answer *ret)
{
    struct work work = {.push = push, .answer = ret};
    *ret = (struct push_answer){0};
    take_request(&work, request);
    if (work.tray)
        push_give_tray_back(&work);
    add_stats(&work);
}
