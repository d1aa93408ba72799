/* One resource, for ever:
 *
 *              ┌──────── 410, or no version ────────┐
 *     LIST ────┴──> WATCH ── ended ──> WATCH from the last version
 *      │ failed      │ failed: pause, WATCH again; failed too often: LIST
 *      pause         │
 *      403, 404: paused like a failure; where it stays so, told once and tried again every ten
 * minutes
 *
 * Before a watch that follows a broken one, or one that said nothing, the server's version is asked
 * for: kube_version.c.
 *
 * A list is a consistent picture of one moment however many pages it takes; where it takes so long
 * that the server forgets that moment (410), it begins anew. The version of the list is where the
 * watch begins, that of each event and bookmark is where it is resumed, so nothing is missed
 * between two connections. Once a day the list is asked anew all the same, between two
 * watches: kube_version.c says why. A bookmark, an event and the regular end of a watch say that
 * all before was told: that is written down as SEEN every now and then. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "source/kube_watch_impl.h"

#define DISCOVERY_MAX ((size_t)1 << 20) /* bytes of a group's description */
#define SHORT_WATCH_MS 1000             /* a watch that ends sooner and told nothing has failed */
#define WATCH_FAILURES_MAX 6            /* in a row; then the list is asked again */
#define DOUBTS_MAX 2                    /* … where the server may mean the version */
#define REFUSALS_MAX 6 /* in a row; then it is meant: a server that just started refuses all */

static struct str cluster_of(const struct kube_follower *f)
{
    return str_of(f->watch->cluster);
}

/* Now, but never before what was recorded already. */
static time_ms tick(struct kube_follower *f)
{
    time_ms now = clock_now();
    f->t = now > f->t ? now : f->t;
    return f->t;
}

static void tell(struct kube_follower *f, enum kube_act act)
{
    struct kube_record record = kube_record_of(act, f->resource->kind, f->t, cluster_of(f));
    kube_tell(f->watch, &record);
}

/* All up to f->t was told. */
static void seen(struct kube_follower *f, bool at_once)
{
    pthread_mutex_lock(&f->watch->lock);
    f->status.seen = f->t;
    pthread_mutex_unlock(&f->watch->lock);
    if (f->t <= f->seen_told || (!at_once && f->t - f->seen_told < f->watch->options.seen_ms))
        return;
    f->seen_told = f->t;
    tell(f, KUBE_ACT_SEEN);
}

/* ------------------------------------------------------------------ objects */

static void tell_object(struct kube_follower *f, struct strbuf *object)
{
    struct kube_record record = kube_record_of(f->act, f->resource->kind, f->t, cluster_of(f));
    record.object = strbuf_str(object);
    if (object->n)
        kube_tell(f->watch, &record);
    strbuf_release(object);
}

static void on_node(void *context, const struct kube_node *node)
{
    struct strbuf object = {0};
    kube_record_node(&object, node);
    tell_object(context, &object);
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    struct kube_follower *f = context;
    struct strbuf object = {0};
    kube_record_pod(&object, pod);
    tell_object(f, &object);
    pthread_mutex_lock(&f->watch->lock);
    kube_targets_pod(f->watch, pod, f->act == KUBE_ACT_DELETED);
    pthread_mutex_unlock(&f->watch->lock);
    if (f->act != KUBE_ACT_DELETED)
        kube_want_owner(f->watch, pod->namespace, pod->owner_api, pod->owner_kind, pod->owner_name,
                        pod->owner_uid);
}

static void on_owner(void *context, const struct kube_owner *owner)
{
    struct kube_follower *f = context;
    struct strbuf object = {0};
    kube_record_owner(&object, owner);
    tell_object(f, &object);
    if (f->act != KUBE_ACT_DELETED)
        kube_want_owner(f->watch, owner->namespace, owner->owner_api, owner->owner_kind,
                        owner->owner_name, owner->owner_uid);
}

static void on_namespace(void *context, const struct kube_namespace *ns)
{
    struct strbuf object = {0};
    kube_record_namespace(&object, ns);
    tell_object(context, &object);
}

static void on_slice(void *context, const struct kube_slice *slice)
{
    struct strbuf object = {0};
    kube_record_slice(&object, slice);
    tell_object(context, &object);
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    struct strbuf object = {0};
    kube_record_claim(&object, claim);
    tell_object(context, &object);
}

static void on_quota(void *context, const struct kube_quota *quota)
{
    struct strbuf object = {0};
    kube_record_quota(&object, quota);
    tell_object(context, &object);
}

static void on_priority(void *context, const struct kube_priority *priority)
{
    struct strbuf object = {0};
    kube_record_priority(&object, priority);
    tell_object(context, &object);
}

static void on_fault(void *context, const struct kube_fault *fault)
{
    struct kube_follower *f = context;
    pthread_mutex_lock(&f->watch->lock);
    f->status.faults++;
    uint64_t faults = f->status.faults;
    pthread_mutex_unlock(&f->watch->lock);
    if (faults == 1)
        kube_note(f->watch, "%s of the Kubernetes API: %.*s", f->resource->plural,
                  STR_ARG(fault->text));
}

static void on_list(void *context, struct str version, struct str more)
{
    struct kube_follower *f = context;
    f->list_ended = true;
    strbuf_clear(&f->more);
    if (more.n <= KUBE_CONTINUE_MAX)
        strbuf_add(&f->more, more);
    if (version.n < sizeof f->version)
        snprintf(f->version, sizeof f->version, "%.*s", STR_ARG(version));
}

static struct kube_sink sink_of(struct kube_follower *f)
{
    return (struct kube_sink){.context = f,
                              .node = on_node,
                              .pod = on_pod,
                              .owner = on_owner,
                              .namespace = on_namespace,
                              .slice = on_slice,
                              .claim = on_claim,
                              .fault = on_fault,
                              .quota = on_quota,
                              .priority = on_priority,
                              .list = on_list};
}

/* The kind of items that come as metadata alone. */
static struct str kind_of_items(const struct kube_follower *f)
{
    static const char *const kinds[] = {
#define X(name, text) text,
        KUBE_KIND_TABLE(X)
#undef X
    };
    return f->resource->metadata ? str_of(kinds[f->resource->kind]) : STR_NONE;
}

/* ------------------------------------------------------------------ requests */

/* Sites and the connection of watches, made again where the login changed. */
static enum err connect_to(struct kube_follower *f, struct error *err)
{
    const struct kube_watch_options *options = &f->watch->options;
    struct http_site *list = NULL, *watch = NULL;
    uint64_t generation = kube_access_generation(f->watch->access);
    if (f->list_site && generation == f->generation)
        return ERR_OK;
    enum err e =
        kube_access_site(f->watch->access, options->connect_ms, options->idle_ms, &list, err);
    if (e == ERR_OK) /* a watch may be silent until its end */
        e = kube_access_site(f->watch->access, options->connect_ms,
                             2 * options->watch_ms + options->idle_ms, &watch, err);
    if (e != ERR_OK) {
        http_site_free(list);
        return e;
    }
    http_client_free(f->watch_client);
    http_site_free(f->list_site);
    http_site_free(f->watch_site);
    f->list_site = list;
    f->watch_site = watch;
    f->watch_client = http_client_new(watch, &f->watch->stop);
    f->generation = kube_access_generation(f->watch->access);
    return ERR_OK;
}

static enum err gather(void *context, struct str bytes, struct error *err)
{
    struct strbuf *to = context;
    if (to->n + bytes.n > DISCOVERY_MAX)
        return error_set(err, ERR_LIMIT, "an answer of the Kubernetes API is too long");
    strbuf_add(to, bytes);
    return ERR_OK;
}

/* The path of a resource whose group's version differs from server to server. */
static enum err find_path(struct kube_follower *f, struct http_answer *answer, struct error *err)
{
    static const char *const versions[] = {"v1", "v1beta2", "v1beta1"};
    const struct kube_resource *resource = f->resource;
    if (!resource->group) {
        snprintf(f->path, sizeof f->path, "%s", resource->path);
        return ERR_OK;
    }
    struct strbuf body = {0};
    const char *version;
    char path[128];
    snprintf(path, sizeof path, "/apis/%s", resource->group);
    struct http_request request = {.path = path, .piece = gather, .context = &body};
    struct http_client *client = http_client_new(f->list_site, &f->watch->stop);
    enum err e = http_ask(client, &request, answer, err);
    if (e == ERR_OK)
        e = kube_version_find(strbuf_str(&body), versions, 3, &version, err);
    if (e == ERR_OK)
        snprintf(f->path, sizeof f->path, "/apis/%s/%s/%s", resource->group, version,
                 resource->path);
    http_client_free(client);
    strbuf_release(&body);
    return e;
}

/* ------------------------------------------------------------------ list */

static enum err page_begins(void *context, const struct http_answer *answer, struct error *err)
{
    struct kube_follower *f = context;
    (void)answer, (void)err;
    if (f->more.n)
        return ERR_OK;
    tick(f);
    f->in_list = true;
    tell(f, KUBE_ACT_LIST);
    if (f->resource->kind == KUBE_KIND_POD) {
        pthread_mutex_lock(&f->watch->lock);
        kube_targets_begin(f->watch);
        pthread_mutex_unlock(&f->watch->lock);
    }
    return ERR_OK;
}

static enum err page_piece(void *context, struct str bytes, struct error *err)
{
    struct kube_follower *f = context;
    f->page_bytes += bytes.n;
    if (f->page_bytes > KUBE_PAGE_BYTES_MAX)
        return error_set(err, ERR_LIMIT, "a page of %s is longer than 1 GiB", f->resource->plural);
    kube_reader_feed(f->reader, bytes.p, bytes.n);
    return ERR_OK;
}

static enum err page_ends(void *context, struct error *err)
{
    struct kube_follower *f = context;
    struct kube_counts counts;
    enum err e = kube_reader_end(f->reader, &counts, err);
    if (e != ERR_OK || !f->list_ended)
        return error_set(err, ERR_PROTOCOL, "the answer for %s is no list", f->resource->plural);
    return ERR_OK;
}

static enum err ask_page(struct kube_follower *f, struct http_client *client,
                         struct http_answer *answer, struct error *err)
{
    const char *headers[] = {f->resource->metadata ? KUBE_METADATA_LIST : KUBE_WHOLE};
    struct strbuf query = {0};
    struct kube_sink sink = sink_of(f);
    strbuf_addf(&query, "limit=%zu", f->watch->options.page);
    if (f->more.n) {
        strbuf_add(&query, STR("&continue="));
        http_encode(&query, strbuf_str(&f->more));
    }
    struct http_request request = {
        .path = f->path,
        .query = strbuf_str(&query),
        .headers = headers,
        .headers_n = 1,
        .begin = page_begins,
        .piece = page_piece,
        .finish = page_ends,
        .context = f,
    };
    f->reader = kube_reader_new(&sink);
    kube_reader_kind(f->reader, kind_of_items(f));
    f->list_ended = false;
    f->page_bytes = 0;
    f->act = KUBE_ACT_OBJECT;
    enum err e = http_ask(client, &request, answer, err);
    kube_reader_free(f->reader);
    f->reader = NULL;
    strbuf_release(&query);
    return e;
}

/* The list is complete. */
static void listed(struct kube_follower *f)
{
    tell(f, KUBE_ACT_LISTED);
    f->listed_at = clock_monotonic();
    f->seen_told = f->t;
    pthread_mutex_lock(&f->watch->lock);
    f->status.lists++;
    f->status.seen = f->t;
    f->status.text[0] = '\0';
    if (f->resource->kind == KUBE_KIND_POD) {
        kube_targets_end(f->watch);
        kube_targets_tell(f->watch);
    }
    bool synced = true;
    for (size_t i = 0; i < kube_resources_n; i++) {
        enum kube_kind kind = f->watch->followers[i].resource->kind;
        synced &= (kind != KUBE_KIND_NODE && kind != KUBE_KIND_POD) ||
                  f->watch->followers[i].status.lists > 0;
    }
    if (synced && f->watch->synced == TIME_MIN)
        f->watch->synced = f->t;
    pthread_mutex_unlock(&f->watch->lock);
}

static enum err list(struct kube_follower *f, struct http_answer *answer, struct error *err)
{
    struct http_client *client = http_client_new(f->list_site, &f->watch->stop);
    enum err e = ERR_OK;
    f->version[0] = '\0';
    f->in_list = f->doubt = f->quiet = false;
    strbuf_clear(&f->more);
    if (f->status.seen > f->seen_told) { /* how far the stretch that ends here was known */
        struct kube_record record =
            kube_record_of(KUBE_ACT_SEEN, f->resource->kind, f->status.seen, cluster_of(f));
        kube_tell(f->watch, &record);
    }
    do {
        e = ask_page(f, client, answer, err);
    } while (e == ERR_OK && f->more.n);
    if (e == ERR_OK && !f->version[0])
        e = error_set(err, ERR_PROTOCOL, "the list of %s has no version", f->resource->plural);
    if (e == ERR_OK) {
        listed(f);
    } else {
        f->version[0] = '\0';
        if (f->in_list)
            tell(f, KUBE_ACT_SEEN); /* the list is given up */
    }
    strbuf_clear(&f->more);
    http_client_free(client);
    return e;
}

/* ------------------------------------------------------------------ watch */

static void on_event(void *context, const struct kube_event *event)
{
    struct kube_follower *f = context;
    tick(f);
    f->events_now++;
    f->act = event->type == KUBE_EVENT_DELETED ? KUBE_ACT_DELETED : KUBE_ACT_OBJECT;
    if (event->type == KUBE_EVENT_ERROR) {
        f->event_error.is_one = true;
        f->event_error.code = event->code;
        snprintf(f->event_error.text, sizeof f->event_error.text, "%.*s", STR_ARG(event->message));
        return;
    }
    if (!event->version.n || event->version.n >= sizeof f->version)
        return;
    char version[KUBE_VERSION_TEXT_MAX];
    snprintf(version, sizeof version, "%.*s", STR_ARG(event->version));
    if (event->type != KUBE_EVENT_DELETED && kube_version_is_before(version, f->version))
        kube_version_went_back(f, version);
    else if (f->version[0])
        snprintf(f->version, sizeof f->version, "%s", version);
}

static enum err watch_begins(void *context, const struct http_answer *answer, struct error *err)
{
    struct kube_follower *f = context;
    (void)answer, (void)err;
    pthread_mutex_lock(&f->watch->lock);
    f->status.watches++;
    f->status.state = KUBE_WATCH_WATCHING;
    f->status.text[0] = '\0';
    pthread_mutex_unlock(&f->watch->lock);
    return ERR_OK;
}

static enum err watch_piece(void *context, struct str bytes, struct error *err)
{
    struct kube_follower *f = context;
    uint64_t before = f->events_now, whole, lost;
    kube_events_feed(f->events, bytes.p, bytes.n);
    kube_events_count(f->events, &whole, &lost);
    if (f->event_error.is_one)
        return error_set(err, ERR_PROTOCOL, "the watch of %s ended: %.150s", f->resource->plural,
                         f->event_error.text);
    if (!f->version[0])
        return error_set(err, ERR_PROTOCOL, "the versions of %s run back", f->resource->plural);
    if (f->events_now > before) {
        seen(f, false);
        f->failures = 0;
    }
    pthread_mutex_lock(&f->watch->lock);
    f->status.events += f->events_now - before;
    kube_targets_tell(f->watch);
    pthread_mutex_unlock(&f->watch->lock);
    if (lost > 0) { /* what it said only a list tells now */
        f->version[0] = '\0';
        return error_set(err, ERR_PROTOCOL, "an event of %s is not readable", f->resource->plural);
    }
    return ERR_OK;
}

static enum err watch(struct kube_follower *f, struct http_answer *answer, struct error *err)
{
    const struct kube_watch_options *options = &f->watch->options;
    const char *headers[] = {f->resource->metadata ? KUBE_METADATA_ONE : KUBE_WHOLE};
    struct strbuf query = {0};
    time_ms jitter = kube_backoff(options->watch_ms, 1, &f->random);
    strbuf_addf(&query, "watch=1&allowWatchBookmarks=true&timeoutSeconds=%lld&resourceVersion=",
                (long long)((options->watch_ms + jitter + 999) / 1000));
    http_encode(&query, str_of(f->version));
    struct http_request request = {
        .path = f->path,
        .query = strbuf_str(&query),
        .headers = headers,
        .headers_n = 1,
        .begin = watch_begins,
        .piece = watch_piece,
        .context = f,
    };
    struct kube_event_sink sink = {.event = on_event, .objects = sink_of(f)};
    time_ms began = clock_monotonic();
    f->events = kube_events_new(&sink, kind_of_items(f));
    f->event_error = (struct kube_event_error){0};
    f->events_now = 0;
    enum err e = http_ask(f->watch_client, &request, answer, err);
    kube_events_free(f->events);
    f->events = NULL;
    strbuf_release(&query);
    if (f->event_error.is_one)
        answer->status = f->event_error.code;
    if (e == ERR_OK && f->events_now == 0 && clock_monotonic() - began < SHORT_WATCH_MS)
        return error_set(err, ERR_PROTOCOL, "the watch of %s ends as soon as it begins",
                         f->resource->plural);
    if (e != ERR_OK)
        return e;
    f->failures = 0;
    tick(f);
    f->doubt = f->quiet = f->events_now == 0;
    if (!f->quiet)
        seen(f, true);
    return e;
}

/* Before a watch that goes on with one that broke, or that said nothing. */
static enum err settle_doubt(struct kube_follower *f, struct http_answer *answer, struct error *err)
{
    enum err e = kube_version_look(f, answer, err);
    if (e != ERR_OK)
        return e;
    if (f->quiet && f->version[0])
        seen(f, true);
    f->doubt = f->quiet = false;
    return ERR_OK;
}

/* ------------------------------------------------------------------ what to do when it fails */

static bool has_gone(const struct http_answer *answer)
{
    return answer->status == 410;
}

/* Not for this account, or not on this server: told once, and left for a while. */
static bool wait_out_refusal(struct kube_follower *f, const struct http_answer *answer)
{
    const char *plural = f->resource->plural;
    if (answer->status == 403) {
        kube_note(f->watch, "the Kubernetes API does not let us list and watch %s (403 %.200s)",
                  plural, answer->said);
        kube_set_state(f, KUBE_WATCH_REFUSED, answer->said);
    } else {
        if (f->resource->kind != KUBE_KIND_CLAIM && f->resource->kind != KUBE_KIND_SLICE)
            kube_note(f->watch, "the Kubernetes API has no %s (%d)", plural, answer->status);
        kube_set_state(f, KUBE_WATCH_ABSENT, "");
    }
    f->version[0] = f->path[0] = '\0'; /* it may come with another version */
    return kube_pause(f->watch, KUBE_REFUSED_PAUSE_MS);
}

static bool wait_out_failure(struct kube_follower *f, const struct http_answer *answer,
                             const struct error *err)
{
    f->failures++;
    if (answer->status == 401)
        kube_access_refused(f->watch->access);
    kube_set_state(f, KUBE_WATCH_WAITING, err->text);
    pthread_mutex_lock(&f->watch->lock);
    f->status.failures++;
    pthread_mutex_unlock(&f->watch->lock);
    time_ms pause = kube_backoff(f->watch->options.backoff_ms, f->failures, &f->random);
    if (answer->retry_after_ms > pause)
        pause = answer->retry_after_ms + pause / 4;
    bool doubtful = answer->status == 504 ||
                    (answer->status >= 400 && answer->status < 500 && answer->status != 429 &&
                     answer->status != 401 && answer->status != 403);
    if ((doubtful && f->failures >= DOUBTS_MAX) || f->failures >= WATCH_FAILURES_MAX)
        f->version[0] = '\0';
    f->doubt = f->version[0] != '\0';
    return kube_pause(f->watch, pause);
}

/* Is the next step a list? One that is only due waits until what the last watch left open is known.
 */
static bool is_to_list(const struct kube_follower *f)
{
    return !f->version[0] ||
           (!f->doubt && clock_monotonic() - f->listed_at >= f->watch->options.relist_ms);
}

/* One step; false: it is time to end. */
static bool step(struct kube_follower *f)
{
    struct http_answer answer = {.retry_after_ms = -1};
    struct error err = {0};
    enum err e = connect_to(f, &err);
    bool was_listing = is_to_list(f);
    if (e == ERR_OK && !f->path[0])
        e = find_path(f, &answer, &err);
    if (e == ERR_OK && was_listing) {
        kube_set_state(f, KUBE_WATCH_LISTING, NULL);
        e = list(f, &answer, &err);
    } else if (e == ERR_OK && f->doubt) {
        e = settle_doubt(f, &answer, &err);
    } else if (e == ERR_OK) {
        kube_set_state(f, KUBE_WATCH_WATCHING, NULL); /* it may be silent for long */
        e = watch(f, &answer, &err);
    }
    if (kube_stopped(f->watch) || e == ERR_STOPPED)
        return false;
    bool refused = answer.status == 403 || answer.status == 404 || e == ERR_NOT_FOUND;
    f->refusals = refused ? f->refusals + 1 : 0;
    if (e == ERR_OK)
        return true;
    if (f->refusals >= REFUSALS_MAX) {
        answer.status = answer.status == 403 ? 403 : 404;
        return wait_out_refusal(f, &answer);
    }
    if (has_gone(&answer) && !was_listing) {
        f->version[0] = '\0';
        return true; /* what happened meanwhile only a list tells */
    }
    return wait_out_failure(f, &answer, &err);
}

void *kube_follow(void *context)
{
    struct kube_follower *f = context;
    while (!kube_stopped(f->watch) && step(f))
        ;
    http_client_free(f->watch_client);
    http_site_free(f->list_site);
    http_site_free(f->watch_site);
    strbuf_release(&f->more);
    return NULL;
}
