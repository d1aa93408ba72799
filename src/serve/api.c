/* What endpoints share: handles of the ledger, the generation of what is in it, the cache.
 *
 * The generation is a count of the states of the ledger that were noticed. It is read before a
 * state is, so that an answer may be newer than the generation that it is kept under, and never
 * older: an answer that is taken from the cache is of the current state or a later one. */
#include <stdlib.h>

#include "serve/gpu_books.h"
#include "serve/metrics_impl.h"

#define CACHE_BYTES ((size_t)64 << 20)
/* Names of pods come and go; from here on the handles begin a fresh set. */
#define NAMES_BYTES_MAX ((size_t)128 << 20)

/* ---- names and handles ---- */

static struct api_names *names_hold(struct api_names *names)
{
    atomic_fetch_add(&names->owners, 1);
    return names;
}

static struct api_names *api_names_new(void)
{
    struct api_names *names = mem_zalloc(1, sizeof *names);
    names->names = names_new();
    atomic_init(&names->owners, 1);
    return names;
}

void api_names_release(struct api_names *names)
{
    if (!names || atomic_fetch_sub(&names->owners, 1) > 1)
        return;
    names_free(names->names);
    free(names);
}

/* The current names, held. */
static struct api_names *current_names(struct api *api)
{
    pthread_mutex_lock(&api->watch_lock);
    if (names_bytes(api->names->names) > NAMES_BYTES_MAX) {
        api_names_release(api->names);
        api->names = api_names_new();
    }
    struct api_names *names = names_hold(api->names);
    pthread_mutex_unlock(&api->watch_lock);
    return names;
}

enum err api_open_store(struct api *api, struct store **ret, struct api_names **ret_names,
                        struct error *err)
{
    struct api_names *names = current_names(api);
    enum err code = store_open(api->db, STORE_READ, names->names, ret, err);
    if (code == ERR_OK)
        *ret_names = names;
    else
        api_names_release(names);
    return code;
}

/* Opens the handle where it is not open, and gives it fresh names where there are such. */
static enum err ready_store(struct api_worker *worker, struct error *err)
{
    struct store *store = NULL;
    struct api_names *names = NULL;
    if (worker->store) {
        names = current_names(worker->api);
        if (names == worker->names) {
            api_names_release(names);
            return ERR_OK;
        }
        enum err code = store_use_names(worker->store, names->names, err);
        if (code != ERR_OK) {
            api_names_release(names);
            return code;
        }
        api_names_release(worker->names);
        worker->names = names;
        return ERR_OK;
    }
    enum err code = api_open_store(worker->api, &store, &names, err);
    if (code != ERR_OK)
        return code;
    pthread_mutex_lock(&worker->lock);
    worker->store = store;
    worker->names = names;
    pthread_mutex_unlock(&worker->lock);
    return ERR_OK;
}

static void close_store(struct api_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    store_close(worker->store);
    worker->store = NULL;
    pthread_mutex_unlock(&worker->lock);
    api_names_release(worker->names);
    worker->names = NULL;
}

void *api_worker_new(void *context)
{
    struct api_worker *worker = mem_zalloc(1, sizeof *worker);
    worker->api = context;
    pthread_mutex_init(&worker->lock, NULL);
    return worker;
}

void api_worker_free(void *context)
{
    struct api_worker *worker = context;
    close_store(worker);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

void api_worker_interrupt(void *context)
{
    struct api_worker *worker = context;
    pthread_mutex_lock(&worker->lock);
    worker->interrupted = true;
    if (worker->store)
        store_interrupt(worker->store);
    pthread_mutex_unlock(&worker->lock);
}

/* ---- generations ---- */

void api_touch(struct api *api)
{
    pthread_mutex_lock(&api->watch_lock);
    api->generation++;
    pthread_mutex_unlock(&api->watch_lock);
}

uint64_t api_generation(struct api *api)
{
    struct error none = {0};
    pthread_mutex_lock(&api->watch_lock);
    if (!api->watch && store_open(api->db, STORE_READ, api->watch_names, &api->watch, &none))
        api->watch = NULL;
    if (api->watch && store_has_changed(api->watch))
        api->generation++;
    if (api->watch && store_is_frozen(api->watch)) {
        store_close(api->watch);
        api->watch = NULL;
    }
    uint64_t generation = api->generation;
    pthread_mutex_unlock(&api->watch_lock);
    return generation;
}

/* ---- calls ---- */

void api_lens(const struct view_of *view, struct names *names, struct arena *arena,
              struct store_lens *ret)
{
    name_t *teams = arena_alloc(arena, (view->teams_n + 1) * sizeof *teams);
    name_t *namespaces = arena_alloc(arena, (view->namespaces_n + 1) * sizeof *namespaces);
    for (size_t i = 0; i < view->teams_n; i++)
        teams[i] = names_put(names, view->teams[i]);
    for (size_t i = 0; i < view->namespaces_n; i++)
        namespaces[i] = names_put(names, view->namespaces[i]);
    *ret = (struct store_lens){.teams = teams,
                               .teams_n = view->teams_n,
                               .namespaces = namespaces,
                               .namespaces_n = view->namespaces_n};
}

/* Everything that an answer depends on beside the code: "now" counts by the hour, since windows
 * do. */
static void write_key(const struct api_call *call, const struct api_endpoint *endpoint,
                      struct strbuf *out)
{
    const struct http_request *request = call->request;
    strbuf_addf(out, "%llu %llx %lld %s", (unsigned long long)call->generation,
                (unsigned long long)request->access->view.digest, (long long)hour_floor(call->now),
                endpoint->pattern);
    for (size_t i = 0; i < request->query_n; i++) {
        const struct http_pair *pair = &request->query[i];
        strbuf_addf(out, "&%zu:%.*s=%zu:%.*s", pair->name.n, STR_ARG(pair->name), pair->value.n,
                    STR_ARG(pair->value));
    }
}

void api_give_cached(struct http_answer *answer, struct cached *cached)
{
    answer->fixed = cached->plain;
    answer->fixed_gzip = cached->gzip;
    answer->fixed_size = cached->plain.n;
    answer->fixed_free = cached_release;
    answer->fixed_context = cached;
    answer->digest[0] = cached->digest[0];
    answer->digest[1] = cached->digest[1];
}

/* Through the lens, in one state of the ledger. */
static enum err look(struct api_call *call, const struct api_endpoint *endpoint, struct strbuf *out,
                     struct error *err)
{
    struct store_lens lens;
    const struct view_of *view = &call->request->access->view;
    if (view->limited) {
        api_lens(view, store_names(call->store), call->request->arena, &lens);
        store_set_lens(call->store, &lens);
    }
    enum err code = store_read_begin(call->store, err);
    if (code == ERR_OK) {
        struct error none = {0};
        if (store_extent(call->store, &call->extent, &none) != ERR_OK)
            call->extent = (struct span){0};
        code = api_read_parameters(call, endpoint, err);
        if (code == ERR_OK)
            code = endpoint->write(call, out, err);
        store_read_end(call->store);
    }
    if (view->limited) {
        store_set_lens(call->store, NULL);
        store_lens_release(&lens);
    }
    return code;
}

/* With the worker's handle. One that failed is opened afresh by the next call, since the file may
 * be replaced or mended by then; one that is frozen must not stay. */
static enum err try_ledger(struct api_call *call, const struct api_endpoint *endpoint,
                           struct strbuf *out, struct error *err)
{
    struct api_worker *worker = call->request->worker;
    enum err code = ready_store(worker, err);
    if (code == ERR_OK) {
        call->store = worker->store;
        code = look(call, endpoint, out, err);
    }
    if (worker->store && (code == ERR_STORE || store_is_frozen(worker->store)))
        close_store(worker);
    return code;
}

static void compute(struct api_call *call, const struct api_endpoint *endpoint, struct str key)
{
    struct api_worker *worker = call->request->worker;
    struct http_answer *answer = call->answer;
    struct strbuf out = {0}, packed = {0};
    struct error err = {0};
    enum err code = try_ledger(call, endpoint, &out, &err);
    bool missing = code == ERR_NOT_FOUND && !call->store;
    if (endpoint->storeless && (missing || code == ERR_STORE)) {
        call->store = NULL;
        strbuf_clear(&out);
        code = endpoint->write(call, &out, &err);
        missing = false;
    }
    if (missing) { /* the text names a file of this machine */
        http_answer_error(answer, 503, "unavailable", "nothing is collected yet",
                          "/readyz says when there is something");
        return;
    }
    if (code != ERR_OK) {
        strbuf_release(&out);
        err.code = worker->interrupted ? ERR_STOPPED : err.code;
        http_answer_failed(answer, &err);
        return;
    }
    if (!endpoint->cached || answer->status) {
        answer->body = out;
        return;
    }
    const char *type = endpoint->content_type ? endpoint->content_type : "application/json";
    if (http_is_worth_packing(type, out.n))
        http_pack(strbuf_str(&out), &packed);
    api_give_cached(answer, cache_put(call->api->cache, key, &out, &packed));
}

static void answer_with(struct api *api, const struct api_endpoint *endpoint,
                        const struct http_request *request, struct http_answer *answer)
{
    struct api_call call = {.api = api, .request = request, .answer = answer, .now = clock_now()};
    if (endpoint->content_type)
        answer->content_type = endpoint->content_type;
    call.generation = api_generation(api);
    struct strbuf key = {0};
    struct cached *cached = NULL;
    if (endpoint->cached) {
        write_key(&call, endpoint, &key);
        cached = cache_get(api->cache, strbuf_str(&key));
    }
    if (cached) {
        api_give_cached(answer, cached);
    } else {
        pthread_rwlock_rdlock(&api->settings_lock);
        call.settings = &api->settings;
        compute(&call, endpoint, strbuf_str(&key));
        pthread_rwlock_unlock(&api->settings_lock);
    }
    strbuf_release(&key);
}

/* The handler of every endpoint. */
struct binding {
    struct api *api;
    const struct api_endpoint *endpoint;
};

static void handle(void *context, const struct http_request *request, struct http_answer *answer)
{
    const struct binding *binding = context;
    answer_with(binding->api, binding->endpoint, request, answer);
}

void api_answer(struct api *api, const char *pattern, const struct http_request *request,
                struct http_answer *answer)
{
    size_t i = 0;
    while (i < api_endpoints_n && strcmp(api_endpoints[i].pattern, pattern) != 0)
        i++;
    invariant(i < api_endpoints_n);
    answer_with(api, &api_endpoints[i], request, answer);
}

/* ---- life ---- */

enum err api_new(const struct api_options *options, bool missing_ok, struct api **ret,
                 struct error *err)
{
    struct api *api = mem_zalloc(1, sizeof *api);
    api->options = *options;
    api->settings = options->settings;
    api->db = str_dup(str_of(options->db));
    api->began = clock_now();
    pthread_rwlock_init(&api->settings_lock, NULL);
    pthread_mutex_init(&api->watch_lock, NULL);
    pthread_mutex_init(&api->page_lock, NULL);
    api->watch_names = names_new();
    api->names = api_names_new();
    struct strbuf counters = {0};
    strbuf_addf(&counters, "%s.counters.json", options->db);
    api->metrics = metrics_ledger_new(strcmp(options->db, ":memory:") ? counters.text : NULL);
    strbuf_release(&counters);
    api->gpu_books = gpu_books_new();
    openapi_document(&api->openapi);
    http_pack(strbuf_str(&api->openapi), &api->openapi_gzip);
    api->cache = cache_new(options->cache_bytes ? options->cache_bytes : CACHE_BYTES);
    enum err code = store_open(api->db, STORE_READ, api->watch_names, &api->watch, err);
    struct binding *bindings = mem_zalloc(api_endpoints_n, sizeof *bindings);
    for (size_t i = 0; i < api_endpoints_n; i++)
        bindings[i] = (struct binding){api, &api_endpoints[i]};
    api->bindings = bindings;
    if (code == ERR_OK || missing_ok) { /* damaged ones may be mended while it runs */
        *ret = api;
        return ERR_OK;
    }
    api_free(api);
    return code;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    api_ahead_stop(api);
    cache_free(api->cache);
    cached_release(api->page);
    metrics_ledger_free(api->metrics);
    gpu_books_free(api->gpu_books);
    strbuf_release(&api->openapi);
    strbuf_release(&api->openapi_gzip);
    store_close(api->watch);
    names_free(api->watch_names);
    api_names_release(api->names);
    pthread_rwlock_destroy(&api->settings_lock);
    pthread_mutex_destroy(&api->watch_lock);
    pthread_mutex_destroy(&api->page_lock);
    free(api->bindings);
    free(api->db);
    free(api);
}

void api_configure(struct api *api, const struct api_settings *settings)
{
    pthread_rwlock_wrlock(&api->settings_lock);
    api->settings = *settings;
    pthread_rwlock_unlock(&api->settings_lock);
    api_touch(api);
}

void api_prepare(struct api *api, struct http_options *options)
{
    if (!api->on_request) { /* of the first server; others have the same */
        api->on_request = options->on_request;
        api->on_request_context = options->context;
    }
    options->worker_new = api_worker_new;
    options->worker_free = api_worker_free;
    options->worker_interrupt = api_worker_interrupt;
    options->on_request = api_count_request;
    options->context = api;
}

void api_routes(struct api *api, struct http_server *server)
{
    static const struct {
        const char *pattern;
        enum scope scope;
        enum http_where where;
        http_handler handle;
    } plain[] = {
        {"/healthz", SCOPE_NONE, HTTP_AT_ONCE, api_healthz},
        {"/readyz", SCOPE_NONE, HTTP_BY_WORKER, api_readyz},
        {"/api/v1/openapi.json", SCOPE_NONE, HTTP_AT_ONCE, api_openapi},
        {"/api/v1/export/ledger", SCOPE_READ, HTTP_BY_WORKER, api_export},
    };
    struct binding *bindings = api->bindings;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        http_route_add(server, &(struct http_route){.pattern = plain[i].pattern,
                                                    .methods = HTTP_BIT(HTTP_GET),
                                                    .scope = plain[i].scope,
                                                    .where = plain[i].where,
                                                    .handle = plain[i].handle,
                                                    .context = api});
    for (size_t i = 0; i < api_endpoints_n; i++) {
        bool metrics = strcmp(api_endpoints[i].pattern, "/metrics") == 0;
        http_route_add(server, &(struct http_route){.pattern = api_endpoints[i].pattern,
                                                    .methods = HTTP_BIT(HTTP_GET),
                                                    .scope = metrics ? SCOPE_METRICS : SCOPE_READ,
                                                    .handle = handle,
                                                    .context = &bindings[i]});
    }
}
