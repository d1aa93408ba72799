/* Controllers above pods, up to the top one: Deployment above ReplicaSet, RayJob above RayCluster,
 * whatever a cluster has. Which kinds there are nobody knows beforehand, so each controller that a
 * pod, a replica set or a job names is asked for once, as metadata, and then the one above it.
 *
 * The kind's name in paths comes from the API's own list of resources, by group and version. What
 * is not there (404) or may not be read (403) ends the chain: the workload is then the last that is
 * known.  */
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "source/kube_watch_impl.h"

#define ASK_PAUSE_MS 5 /* between two questions: a start with thousands is gentle */
#define IDLE_MS 1000   /* where nothing is to be asked */
#define ANSWER_MAX ((size_t)4 << 20)
#define KINDS_MAX 4096    /* that are remembered */
#define OWNER_TRIES_MAX 5 /* of one question, where the API cannot be reached or refuses */

/* A kind of a group and version: how it is asked for. */
struct owner_kind {
    char *api, *kind, *plural;
    bool namespaced, refused;
    time_ms asked; /* of one that is refused or not there */
};

struct keeper {
    struct kube_watch *watch;
    struct http_site *site;
    struct http_client *client;
    uint64_t generation, random;
    struct owner_kind *kinds;
    size_t kinds_n, kinds_room;
    bool unreachable; /* the last question had no answer */
};

static struct idkey hash_of(const struct kube_watch *watch, const struct str *parts, size_t n)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < n; i++) {
        strbuf_add(&text, parts[i]);
        strbuf_addc(&text, '\n');
    }
    XXH128_hash_t hash = XXH3_128bits_withSeed(text.text, text.n, watch->seed);
    strbuf_release(&text);
    return IDKEY((uint32_t)hash.low64, (uint32_t)(hash.low64 >> 32), (uint32_t)hash.high64,
                 (uint32_t)(hash.high64 >> 32));
}

/* Replica sets and jobs come by list; a node, which "controls" static pods, has nobody above it. */
static bool is_listed(struct str api, struct str kind)
{
    if (str_eq(kind, STR("Node")) && str_eq(api, STR("v1")))
        return true;
    return (str_eq(kind, STR("ReplicaSet")) && str_eq(api, STR("apps/v1"))) ||
           (str_eq(kind, STR("Job")) && str_eq(api, STR("batch/v1")));
}

/* Can it stand in a path? */
static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '.' || c == '_' || c == ':'))
            return false;
    }
    return text.n > 0 && text.n <= 253 && text.p[0] != '.';
}

static bool is_api(struct str api)
{
    const char *slash = memchr(api.p, '/', api.n);
    if (!slash)
        return is_plain(api);
    size_t group = (size_t)(slash - api.p);
    return is_plain((struct str){api.p, group}) &&
           is_plain((struct str){slash + 1, api.n - group - 1});
}

void kube_want_owner(struct kube_watch *watch, struct str namespace, struct str api,
                     struct str kind, struct str name, struct str uid)
{
    if (!kind.n || is_listed(api, kind) || !is_api(api) || !is_plain(kind) || !is_plain(name) ||
        (namespace.n && !is_plain(namespace)))
        return;
    if (kube_history_has_owner(watch->options.history, str_of(watch->cluster), namespace, kind,
                               name, uid))
        return;
    const struct str parts[] = {namespace, api, kind, name, uid};
    pthread_mutex_lock(&watch->lock);
    time_ms now = clock_monotonic();
    if (now - watch->asked_since > KUBE_REFUSED_PAUSE_MS) { /* what failed may be asked again */
        idmap_release(&watch->asked);
        watch->asked_since = now;
    }
    bool fresh = false;
    if (watch->wishes_n - watch->wishes_at < KUBE_OWNER_QUEUE_MAX)
        idmap_add(&watch->asked, hash_of(watch, parts, 5), 1, &fresh);
    if (fresh) {
        struct kube_owner_wish wish = {str_dup(namespace), str_dup(api), str_dup(kind),
                                       str_dup(name), str_dup(uid)};
        mem_push(watch->wishes, watch->wishes_n, watch->wishes_room, wish);
    }
    pthread_mutex_unlock(&watch->lock);
}

static void release_wish(struct kube_owner_wish *wish)
{
    free(wish->namespace);
    free(wish->api);
    free(wish->kind);
    free(wish->name);
    free(wish->uid);
}

static void want(void *context, const struct kube_controller *c)
{
    kube_want_owner(context, c->namespace, c->api, c->kind, c->name, c->uid);
}

void kube_owners_resume(struct kube_watch *watch)
{
    kube_history_controllers(watch->options.history, str_of(watch->cluster), want, watch);
}

void kube_owners_release(struct kube_watch *watch)
{
    for (size_t i = watch->wishes_at; i < watch->wishes_n; i++)
        release_wish(&watch->wishes[i]);
    free(watch->wishes);
    idmap_release(&watch->asked);
}

static bool next_wish(struct kube_watch *watch, struct kube_owner_wish *ret)
{
    pthread_mutex_lock(&watch->lock);
    bool any = watch->wishes_at < watch->wishes_n;
    if (any) {
        *ret = watch->wishes[watch->wishes_at++];
        watch->owners_asked++;
    }
    if (watch->wishes_at == watch->wishes_n)
        watch->wishes_at = watch->wishes_n = 0;
    pthread_mutex_unlock(&watch->lock);
    return any;
}

/* A wish that the API did not answer: again, after the others. Taken from the caller. */
static void put_back(struct kube_watch *watch, struct kube_owner_wish *wish)
{
    pthread_mutex_lock(&watch->lock);
    watch->owners_asked--;
    bool room = watch->wishes_n - watch->wishes_at < KUBE_OWNER_QUEUE_MAX;
    if (room)
        mem_push(watch->wishes, watch->wishes_n, watch->wishes_room, *wish);
    pthread_mutex_unlock(&watch->lock);
    if (!room)
        release_wish(wish);
}

/* ------------------------------------------------------------------ asking */

static enum err gather(void *context, struct str bytes, struct error *err)
{
    struct strbuf *to = context;
    if (to->n + bytes.n > ANSWER_MAX)
        return error_set(err, ERR_LIMIT, "an answer of the Kubernetes API is too long");
    strbuf_add(to, bytes);
    return ERR_OK;
}

static enum err begin(void *context, const struct http_answer *answer, struct error *err)
{
    (void)answer, (void)err;
    strbuf_clear(context);
    return ERR_OK;
}

static enum err connect_keeper(struct keeper *k, struct error *err)
{
    const struct kube_watch_options *options = &k->watch->options;
    if (k->site && k->generation == kube_access_generation(k->watch->access))
        return ERR_OK;
    struct http_site *site = NULL;
    enum err e =
        kube_access_site(k->watch->access, options->connect_ms, options->idle_ms, &site, err);
    if (e != ERR_OK)
        return e;
    http_client_free(k->client);
    http_site_free(k->site);
    k->site = site;
    k->client = http_client_new(site, &k->watch->stop);
    k->generation = kube_access_generation(k->watch->access);
    return ERR_OK;
}

struct question {
    const char *path, *accept;
    bool may_come; /* 404 is no answer yet: a server that has just started lacks groups */
};

/* A document of the API; tried again where the API cannot be reached, or refuses. */
static enum err ask(struct keeper *k, const struct question *question, struct strbuf *body,
                    struct http_answer *answer, struct error *err)
{
    const char *headers[] = {question->accept};
    struct http_request request = {.path = question->path,
                                   .headers = headers,
                                   .headers_n = 1,
                                   .begin = begin,
                                   .piece = gather,
                                   .context = body};
    enum err e = ERR_OK;
    for (int tries = 1;; tries++) {
        *answer = (struct http_answer){.retry_after_ms = -1};
        e = connect_keeper(k, err);
        if (e == ERR_OK)
            e = http_ask(k->client, &request, answer, err);
        k->unreachable = e != ERR_OK && answer->status != 403 && answer->status != 404;
        if (e == ERR_OK || (answer->status == 404 && !question->may_come) ||
            tries == OWNER_TRIES_MAX || kube_stopped(k->watch))
            return e;
        if (answer->status == 401)
            kube_access_refused(k->watch->access);
        time_ms pause = kube_backoff(k->watch->options.backoff_ms, tries, &k->random);
        if (answer->retry_after_ms > pause)
            pause = answer->retry_after_ms;
        if (!kube_pause(k->watch, pause))
            return error_set(err, ERR_STOPPED, "stopped");
    }
}

/* /api/v1, /apis/ray.io/v1 */
static void add_api_path(struct strbuf *path, const char *api)
{
    strbuf_addf(path, "%s/%s", strchr(api, '/') ? "/apis" : "/api", api);
}

static struct owner_kind *known_kind(struct keeper *k, const struct kube_owner_wish *wish)
{
    for (size_t i = 0; i < k->kinds_n; i++)
        if (strcmp(k->kinds[i].api, wish->api) == 0 && strcmp(k->kinds[i].kind, wish->kind) == 0)
            return &k->kinds[i];
    if (k->kinds_n == KINDS_MAX)
        return NULL;
    struct owner_kind kind = {
        .api = str_dup(str_of(wish->api)), .kind = str_dup(str_of(wish->kind)), .asked = TIME_MIN};
    mem_push(k->kinds, k->kinds_n, k->kinds_room, kind);
    return &k->kinds[k->kinds_n - 1];
}

static void refuse(struct keeper *k, struct owner_kind *kind, const struct http_answer *answer)
{
    kind->refused = true;
    kind->asked = clock_monotonic();
    if (answer->status == 403)
        kube_note(k->watch,
                  "the Kubernetes API does not let us get %s of %s (403): workloads below a %s are "
                  "booked under what it controls",
                  kind->plural ? kind->plural : kind->kind, kind->api, kind->kind);
}

/* How the kind is asked for; NULL: it cannot be. */
static struct owner_kind *find_kind(struct keeper *k, const struct kube_owner_wish *wish)
{
    struct owner_kind *kind = known_kind(k, wish);
    if (!kind || (kind->refused && clock_monotonic() - kind->asked < KUBE_REFUSED_PAUSE_MS))
        return NULL;
    kind->refused = false;
    if (kind->plural)
        return kind;
    struct strbuf path = {0}, body = {0}, plural = {0};
    struct http_answer answer;
    struct error err;
    add_api_path(&path, kind->api);
    const struct question question = {path.text, KUBE_WHOLE, true};
    enum err e = ask(k, &question, &body, &answer, &err);
    if (e == ERR_OK)
        e = kube_resource_find(strbuf_str(&body), str_of(kind->kind), &plural, &kind->namespaced,
                               &err);
    if (e == ERR_OK && is_plain(strbuf_str(&plural)))
        kind->plural = str_dup(strbuf_str(&plural));
    else if (!k->unreachable)
        refuse(k, kind, &answer);
    strbuf_release(&path);
    strbuf_release(&body);
    strbuf_release(&plural);
    return kind->plural ? kind : NULL;
}

/* ------------------------------------------------------------------ answers */

struct found {
    struct keeper *keeper;
    const struct kube_owner_wish *wish;
};

static void on_owner(void *context, const struct kube_owner *owner)
{
    struct found *found = context;
    struct kube_watch *watch = found->keeper->watch;
    struct strbuf object = {0};
    if (*found->wish->uid && !str_eq(owner->uid, str_of(found->wish->uid)))
        return; /* another one has the name by now */
    kube_record_owner(&object, owner);
    struct kube_record record =
        kube_record_of(KUBE_ACT_OBJECT, KUBE_KIND_OWNER, clock_now(), str_of(watch->cluster));
    record.object = strbuf_str(&object);
    kube_tell(watch, &record);
    strbuf_release(&object);
    pthread_mutex_lock(&watch->lock);
    watch->owners_known++;
    pthread_mutex_unlock(&watch->lock);
    kube_want_owner(watch, owner->namespace, owner->owner_api, owner->owner_kind, owner->owner_name,
                    owner->owner_uid);
}

static void read_answer(struct keeper *k, const struct kube_owner_wish *wish, struct str body)
{
    struct found found = {k, wish};
    struct kube_counts counts;
    struct kube_sink sink = {.context = &found, .owner = on_owner};
    struct kube_reader *reader = kube_reader_new(&sink);
    kube_reader_kind(reader, str_of(wish->kind));
    kube_reader_feed(reader, body.p, body.n);
    kube_reader_end(reader, &counts, NULL);
    kube_reader_free(reader);
}

static void fulfil(struct keeper *k, const struct kube_owner_wish *wish)
{
    struct owner_kind *kind = find_kind(k, wish);
    if (!kind)
        return;
    struct strbuf path = {0}, body = {0};
    struct http_answer answer;
    struct error err;
    add_api_path(&path, wish->api);
    if (kind->namespaced)
        strbuf_addf(&path, "/namespaces/%s", wish->namespace);
    strbuf_addf(&path, "/%s/%s", kind->plural, wish->name);
    const struct question question = {path.text, KUBE_METADATA_ONE, false};
    enum err e = ask(k, &question, &body, &answer, &err);
    if (e == ERR_OK)
        read_answer(k, wish, strbuf_str(&body));
    else if (answer.status == 403)
        refuse(k, kind, &answer);
    strbuf_release(&path);
    strbuf_release(&body);
}

void *kube_keep(void *context)
{
    struct kube_watch *watch = context;
    struct keeper k = {.watch = watch, .random = watch->seed};
    while (!kube_stopped(watch)) {
        struct kube_owner_wish wish;
        bool any = next_wish(watch, &wish);
        if (any) {
            k.unreachable = false;
            fulfil(&k, &wish);
            if (k.unreachable)
                put_back(watch, &wish);
            else
                release_wish(&wish);
        }
        kube_pause(watch, any ? ASK_PAUSE_MS : IDLE_MS);
    }
    for (size_t i = 0; i < k.kinds_n; i++) {
        free(k.kinds[i].api);
        free(k.kinds[i].kind);
        free(k.kinds[i].plural);
    }
    free(k.kinds);
    http_client_free(k.client);
    http_site_free(k.site);
    return NULL;
}
