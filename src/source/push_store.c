/* A request goes through in three steps: the body is decoded whole (wire/remote_write), its series
 * are looked up by a hash of their label bytes, all at once, and what is new is named; then samples
 * go into a batch, which is committed. Label bytes are taken on trust where they are known, and
 * looked at before anything is kept where they are not. */
#include <inttypes.h>
#include <stdlib.h>

#include "source/push_impl.h"

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
    struct tray *tray = work->tray;
    const struct remote_write_series *series = &tray->request.series[i];
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
        good =
            journal_define(work->desk->batch, tray->keys[i], kept, kept_n, &tray->series[i], &why);
    if (good)
        return;
    tray->series[i].number = JOURNAL_UNWANTED;
    work->add.bad_series++;
    complain(work, why, labels, n);
}

static void look_up(struct work *work)
{
    struct tray *tray = work->tray;
    const struct remote_write *request = &tray->request;
    size_t n = request->series_n;
    if (n > tray->room) {
        tray->keys = mem_realloc(tray->keys, n, sizeof *tray->keys);
        tray->series = mem_realloc(tray->series, n, sizeof *tray->series);
        tray->room = n;
    }
    for (size_t i = 0; i < n; i++) {
        const struct remote_write_series *series = &request->series[i];
        tray->keys[i] = series->scattered ? (struct journal_key){0, 0}
                                          : (struct journal_key){series->hash, series->labels.n};
    }
    journal_find(work->desk->batch, tray->keys, n, tray->series);
}

/* Is what was taken for labels, and is not known, nothing but labels? */
static bool is_to_be_trusted(const struct tray *tray)
{
    const struct remote_write *request = &tray->request;
    for (size_t i = 0; i < request->series_n; i++)
        if (tray->series[i].number == JOURNAL_UNKNOWN && request->series[i].trusted &&
            !remote_write_are_labels(request->series[i].labels))
            return false;
    return true;
}

/* Name what is not known from series i on. One request names at a time: the numbers of a request's
 * series follow each other, whoever else comes with new ones meanwhile. */
static void define_from(struct work *work, size_t i)
{
    struct tray *tray = work->tray;
    struct journal_batch *batch = work->desk->batch;
    journal_naming_begin(batch);
    for (; i < tray->request.series_n; i++) {
        /* The same new series may come twice in one request, or have come in another one. */
        if (tray->series[i].number == JOURNAL_UNKNOWN)
            journal_find(batch, &tray->keys[i], 1, &tray->series[i]);
        if (tray->series[i].number == JOURNAL_UNKNOWN)
            define(work, i);
    }
    journal_naming_end(batch);
}

/* Nothing of the request is used before all of it is known to be good. */
static enum err find_series(struct work *work, struct error *err)
{
    struct tray *tray = work->tray;
    look_up(work);
    if (!is_to_be_trusted(tray)) {
        enum err e = remote_write_read_over(&tray->request, err);
        if (e != ERR_OK)
            return e;
        look_up(work);
    }
    size_t known = 0;
    while (known < tray->request.series_n && tray->series[known].number != JOURNAL_UNKNOWN)
        known++;
    if (known < tray->request.series_n)
        define_from(work, known);
    return ERR_OK;
}

/* Keep the samples of a series whose time can be. */
static void add_in_time(struct work *work, size_t i)
{
    const struct tray *tray = work->tray;
    const struct remote_write_series *series = &tray->request.series[i];
    for (uint32_t s = series->first; s < series->first + series->n; s++) {
        time_ms t = tray->request.t[s];
        if (t < work->oldest)
            work->add.too_old++;
        else if (t > work->newest)
            work->add.in_future++;
        else
            journal_add(work->desk->batch, tray->series[i], &t, &tray->request.v[s], 1);
    }
}

/* The samples of one series. */
static void add_series(struct work *work, size_t i)
{
    const struct tray *tray = work->tray;
    const struct remote_write *request = &tray->request;
    const struct remote_write_series *series = &request->series[i];
    bool in_time = true;
    for (uint32_t s = series->first; s < series->first + series->n; s++)
        in_time &= request->t[s] >= work->oldest && request->t[s] <= work->newest;
    if (tray->series[i].number == JOURNAL_UNWANTED)
        work->add.ignored_samples += series->n;
    else if (in_time)
        journal_add(work->desk->batch, tray->series[i], request->t + series->first,
                    request->v + series->first, series->n);
    else
        add_in_time(work, i);
}

/* How many series from i on have one sample each, whose time can be. */
static size_t singles(const struct work *work, size_t i)
{
    const struct remote_write *request = &work->tray->request;
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
    struct journal_batch *batch = work->desk->batch;
    const struct tray *tray = work->tray;
    const struct remote_write *request = &tray->request;
    for (size_t i = 0, n; i < request->series_n; i += n ? n : 1) {
        n = singles(work, i);
        if (n == 0) {
            add_series(work, i);
            continue;
        }
        size_t before = journal_batch_samples(batch), first = request->series[i].first;
        journal_add_each(batch, &tray->series[i], &request->t[first], &request->v[first], n);
        work->add.ignored_samples += n - (journal_batch_samples(batch) - before);
    }
    work->add.samples = journal_batch_samples(batch);
    work->add.series = request->series_n;
    work->add.histograms = request->histograms;
    work->add.exemplars = request->exemplars;
}

/* What of a request that is stored was left out, for ever. */
static void answer_stored(struct work *work)
{
    const struct push_stats *add = &work->add;
    if (!add->too_old && !add->in_future && !add->bad_series) {
        push_reply(work, 204, 0, "%s", "");
        return;
    }
    push_reply(work, 400, 0,
               "%" PRIu64 " samples are stored; refused for good: %" PRIu64 " too old, %" PRIu64
               " more than %" PRId64 " min in the future, %" PRIu64 " series%s%s\n",
               add->samples, add->too_old, add->in_future, work->push->future_ms / 60000,
               add->bad_series, *work->complaint ? ": " : "", work->complaint);
}

static void answer_unread(struct work *work, enum err e, const struct error *err)
{
    push_reply(work, e == ERR_LIMIT ? 413 : 400, 0, "%s\n", err->text);
}

/* The request into the batch of its desk. */
static enum err fill(struct work *work, struct str body, struct error *err)
{
    struct push *push = work->push;
    struct remote_write *request = &work->tray->request;
    request->secret = journal_secret(work->route->journal);
    enum err e = remote_write_read_on_trust(request, body, push->decoded_max, err);
    if (e != ERR_OK)
        return e;
    work->add.bytes = body.n;
    time_ms now = push->now(push->context);
    work->oldest = now - push->oldest_ms;
    work->newest = now + push->future_ms;
    journal_begin(work->desk->batch);
    e = find_series(work, err);
    if (e == ERR_OK)
        add_samples(work);
    return e;
}

void push_store(struct work *work, struct str body)
{
    struct desk *desk = work->desk;
    struct error err = {0};
    if (desk->route != work->route) {
        journal_batch_free(desk->batch);
        desk->batch = journal_batch_new(work->route->journal);
        desk->route = work->route;
    }
    journal_announce(desk->batch);
    enum err e = fill(work, body, &err);
    if (e != ERR_OK) {
        journal_abandon(desk->batch);
        answer_unread(work, e, &err);
        return;
    }
    push_give_tray_back(work);
    if (journal_commit(desk->batch, true, &err) == ERR_OK) {
        answer_stored(work);
        return;
    }
    work->add.samples = 0;
    push_reply(work, 503, RETRY_DISK_S, "not stored, send it again: %s\n", err.text);
}
