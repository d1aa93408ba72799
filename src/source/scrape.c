/* The thread that has the connections. A heap of targets by the time at which they are due; a
 * handful of transfers in hand; what has come whole is decoded at once.
 *
 * When a target is due follows from the wall clock and a hash of the target, so that a restart
 * changes nothing; waiting is by the monotonic clock, so that a step of the wall clock does not
 * stop the scrapes: it moves their stamps, and by at most one interval their place.
 *
 * Easy handles are few and go round; connections stay with the multi handle. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "source/scrape_impl.h"

#define LOOK_MS 1000                      /* at targets, at least this often */
#define BODY_KEEP_BYTES ((size_t)1 << 20) /* a longer body's buffer is not kept */
#define FILES_RESERVED 256                /* descriptors that connections leave to others */
#define RECEIVE_BYTES 65536L
#define ACCEPT "Accept: text/plain;version=0.0.4;q=1,*/*;q=0.1"

static time_ms system_now(void *context)
{
    (void)context;
    return clock_now();
}

/* ---- schedule */

static void heap_put(struct scraper *scraper, size_t at, struct place *place)
{
    scraper->heap[at] = place;
    place->heap_at = at;
}

static void heap_up(struct scraper *scraper, struct place *place)
{
    size_t at = place->heap_at;
    for (; at > 0 && scraper->heap[(at - 1) / 2]->due > place->due; at = (at - 1) / 2)
        heap_put(scraper, at, scraper->heap[(at - 1) / 2]);
    heap_put(scraper, at, place);
}

static void heap_down(struct scraper *scraper, struct place *place)
{
    size_t at = place->heap_at, n = scraper->places_n;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && scraper->heap[child + 1]->due < scraper->heap[child]->due)
            child++;
        if (scraper->heap[child]->due >= place->due)
            break;
        heap_put(scraper, at, scraper->heap[child]);
    }
    heap_put(scraper, at, place);
}

void heap_add(struct scraper *scraper, struct place *place, size_t n)
{
    heap_put(scraper, n, place);
    heap_up(scraper, place);
}

void place_schedule(const struct scraper *scraper, struct place *place, bool again)
{
    time_ms interval = (time_ms)llround((double)place->target->job->interval_ms / scraper->speed);
    interval = interval > 0 ? interval : 1;
    time_ms phase = (time_ms)(place->target->id % (uint64_t)interval);
    time_ms now = clock_now(), past = (now - phase) % interval;
    past = past < 0 ? past + interval : past;
    time_ms wait = interval - past;
    /* A clock that is a moment behind must not make two scrapes of one. */
    if (again && wait < interval / 2)
        wait += interval;
    place->due = clock_monotonic() + wait;
}

/* ---- transfers */

static size_t on_piece(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *transfer = context;
    n *= size;
    if (n > transfer->place->target->job->body_max - transfer->body.n) {
        transfer->too_long = true;
        return n + 1; /* anything but n ends the transfer */
    }
    strbuf_add(&transfer->body, (struct str){bytes, n});
    return n;
}

static void transfer_options(struct transfer *transfer)
{
    const struct target *target = transfer->place->target;
    CURL *curl = transfer->curl;
    curl_easy_reset(curl);
    http_prepare(curl, target->job->site);
    transfer->headers = curl_slist_append(NULL, ACCEPT);
    for (const struct curl_slist *own = target->job->site->headers; own; own = own->next)
        transfer->headers = curl_slist_append(transfer->headers, own->data);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(curl, CURLOPT_URL, target->url);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)target->job->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->text);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_piece);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, transfer);
}

static void transfer_end(struct scraper *scraper, struct transfer *transfer)
{
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    transfer->place->transfer = NULL;
    transfer->place = NULL;
    scraper->running--;
    if (transfer->body.room > BODY_KEEP_BYTES)
        strbuf_release(&transfer->body);
}

void transfer_give_up(struct scraper *scraper, struct transfer *transfer)
{
    curl_multi_remove_handle(scraper->multi, transfer->curl);
    transfer_end(scraper, transfer);
}

/* The scrape is over: error "" where its body is good. */
static void transfer_done(struct scraper *scraper, struct transfer *transfer, const char *error)
{
    struct place *place = transfer->place;
    bool good = *error == 0;
    place_take(scraper, place, good ? strbuf_str(&transfer->body) : STR_NONE, good,
               transfer->stamp);
    place_note(scraper, place, transfer, error, promtext_stats(scraper->text));
    transfer_end(scraper, transfer);
}

static void begin(struct scraper *scraper, struct place *place)
{
    struct transfer *transfer = scraper->transfers;
    struct error err = {0};
    while (transfer->place)
        transfer++;
    strbuf_clear(&transfer->body);
    transfer->place = place;
    place->transfer = transfer;
    transfer->stamp = scraper->now(scraper->context);
    transfer->begun = clock_monotonic();
    transfer->too_long = false;
    transfer->text[0] = 0;
    scraper->running++;
    transfer_options(transfer);
    if (http_login(transfer->curl, place->target->job->site, &err) != ERR_OK) {
        transfer_done(scraper, transfer, err.text);
        return;
    }
    curl_multi_add_handle(scraper->multi, transfer->curl);
}

static void begin_due(struct scraper *scraper)
{
    time_ms now = clock_monotonic();
    while (scraper->places_n && scraper->heap[0]->due <= now) {
        struct place *place = scraper->heap[0];
        if (!place->transfer && scraper->running == scraper->transfers_n)
            return; /* it begins as soon as one ends */
        place_schedule(scraper, place, true);
        heap_down(scraper, place);
        if (!place->transfer) {
            begin(scraper, place);
            continue;
        }
        pthread_mutex_lock(&scraper->lock);
        scraper->stats.skipped++;
        pthread_mutex_unlock(&scraper->lock);
    }
}

/* What is wrong with a transfer, as a sentence; "" nothing. */
static void transfer_error(const struct transfer *transfer, CURLcode code, char *ret, size_t room)
{
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    *ret = 0;
    if (transfer->too_long)
        snprintf(ret, room, "the text is longer than %zu bytes, the limit",
                 transfer->place->target->job->body_max);
    else if (code == CURLE_OPERATION_TIMEDOUT)
        snprintf(ret, room, "no whole answer within %lld ms",
                 (long long)transfer->place->target->job->timeout_ms);
    else if (code != CURLE_OK)
        snprintf(ret, room, "%s", *transfer->text ? transfer->text : curl_easy_strerror(code));
    else if (status != 200)
        snprintf(ret, room, "it answers with HTTP status %ld", status);
}

static void end_done(struct scraper *scraper)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(scraper->multi, &left))) {
        struct transfer *transfer = NULL;
        char error[CURL_ERROR_SIZE + 64];
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        transfer_error(transfer, code, error, sizeof error);
        curl_multi_remove_handle(scraper->multi, transfer->curl);
        transfer_done(scraper, transfer, error);
    }
}

/* ---- the thread */

/* How long nothing is to be done; curl has its own times. */
static int wait_ms(const struct scraper *scraper)
{
    if (scraper->places_n == 0 || scraper->running == scraper->transfers_n)
        return LOOK_MS;
    time_ms left = scraper->heap[0]->due - clock_monotonic();
    return left < 0 ? 0 : left > LOOK_MS ? LOOK_MS : (int)left;
}

/* Connections that may be kept: one a target, as far as descriptors go. */
static void keep_connections(struct scraper *scraper)
{
    struct rlimit limit = {FILES_RESERVED * 2, FILES_RESERVED * 2};
    getrlimit(RLIMIT_NOFILE, &limit);
    long room = limit.rlim_cur > (rlim_t)1 << 20 ? 1L << 20 : (long)limit.rlim_cur;
    room -= FILES_RESERVED;
    long want = (long)(scraper->places_n + scraper->transfers_n);
    curl_multi_setopt(scraper->multi, CURLMOPT_MAXCONNECTS,
                      want < room ? want
                      : room > 16 ? room
                                  : 16L);
}

static void *scrape(void *context)
{
    struct scraper *scraper = context;
    time_ms looked = 0;
    int running;
    pthread_setname_np(pthread_self(), "scrape");
    while (!atomic_load(&scraper->stop)) {
        time_ms now = clock_monotonic();
        if (looked == 0 || now - looked >= LOOK_MS) {
            looked = now;
            targets_refresh(scraper->targets);
            if (places_update(scraper))
                keep_connections(scraper);
        }
        begin_due(scraper);
        curl_multi_perform(scraper->multi, &running);
        end_done(scraper);
        writer_hand_over(scraper, false);
        curl_multi_poll(scraper->multi, NULL, 0, wait_ms(scraper), NULL);
    }
    writer_hand_over(scraper, true);
    return NULL;
}

static void scraper_free(struct scraper *scraper)
{
    for (size_t i = 0; i < scraper->transfers_n; i++) {
        struct transfer *transfer = &scraper->transfers[i];
        if (transfer->place)
            transfer_give_up(scraper, transfer);
        curl_easy_cleanup(transfer->curl);
        strbuf_release(&transfer->body);
    }
    free(scraper->transfers);
    curl_multi_cleanup(scraper->multi);
    places_free(scraper);
    promtext_free(scraper->text);
    target_list_release(scraper->list);
    arena_release(&scraper->texts);
    pthread_mutex_destroy(&scraper->lock);
    free(scraper);
}

static void take_options(struct scraper *scraper, const struct scrape_options *options)
{
    scraper->targets = options->targets;
    scraper->journal = options->journal;
    scraper->sync_ms = options->sync_ms ? options->sync_ms : SCRAPE_SYNC_MS;
    scraper->now = options->now ? options->now : system_now;
    scraper->context = options->context;
    scraper->speed = options->speed > 0 ? options->speed : 1;
    scraper->transfers_n = options->at_once > 0 ? (size_t)options->at_once : SCRAPE_AT_ONCE;
    scraper->labels_n = options->labels_n;
    scraper->labels =
        arena_zalloc(&scraper->texts, (options->labels_n + 1) * sizeof *scraper->labels);
    for (size_t i = 0; i < options->labels_n; i++)
        scraper->labels[i] = (struct label){str_keep(&scraper->texts, options->labels[i].name),
                                            str_keep(&scraper->texts, options->labels[i].value)};
}

enum err scraper_start(const struct scrape_options *options, struct scraper **ret,
                       struct error *err)
{
    struct scraper *scraper = mem_zalloc(1, sizeof *scraper);
    take_options(scraper, options);
    pthread_mutex_init(&scraper->lock, NULL);
    scraper->multi = curl_multi_init();
    invariant(scraper->multi);
    scraper->transfers = mem_zalloc(scraper->transfers_n, sizeof *scraper->transfers);
    for (size_t i = 0; i < scraper->transfers_n; i++) {
        scraper->transfers[i].curl = curl_easy_init();
        invariant(scraper->transfers[i].curl);
    }
    scraper->text = place_decoder_new(scraper);
    enum err e = writer_start(scraper, err);
    if (e == ERR_OK && pthread_create(&scraper->thread, NULL, scrape, scraper) != 0) {
        e = error_set(err, ERR_IO, "no thread can be started to scrape");
        writer_stop(scraper);
    }
    if (e != ERR_OK) {
        scraper_free(scraper);
        return e;
    }
    *ret = scraper;
    return ERR_OK;
}

void scraper_stop(struct scraper *scraper)
{
    if (!scraper)
        return;
    atomic_store(&scraper->stop, 1);
    curl_multi_wakeup(scraper->multi);
    pthread_join(scraper->thread, NULL);
    writer_stop(scraper);
    scraper_free(scraper);
}
