/* Private to serve/api*.c, allocation.c, metrics.c, openapi.c.
 *
 * An endpoint is a row of api_endpoints: its path, its parameters, and a function that writes an
 * answer from a call. A call is one request to an endpoint: the ledger as it is now through the
 * asker's lens, the settings, and the common parameters, read. */
#ifndef GPUTALLY_SERVE_API_IMPL_H
#define GPUTALLY_SERVE_API_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "insight/exempt.h"
#include "insight/recommend.h"
#include "query/query.h"
#include "serve/api.h"
#include "serve/cache.h"
#include "store/lens.h"
#include "store/store.h"

/* Names that handles share until they have grown too large. */
struct api_names {
    struct names *names;
    atomic_int owners;
};

#define API_ROUTES_MAX 64
#define API_STATUS_CLASSES 6
#define API_BUCKETS 12

/* Requests of a route, for /metrics. */
struct api_route_counts {
    const char *pattern;
    atomic_ullong by_class[API_STATUS_CLASSES]; /* 0: ended without an answer, 2xx at [2], … */
    atomic_ullong buckets[API_BUCKETS];
    atomic_ullong sum_us, bytes;
};

struct api {
    struct api_options options;
    char *db;
    pthread_rwlock_t settings_lock; /* calls hold it while they read the settings */
    struct api_settings settings;

    pthread_mutex_t watch_lock; /* of what follows */
    struct store *watch;        /* sees commits of others; NULL: no database yet */
    struct names *watch_names;
    struct api_names *names;
    uint64_t generation;

    struct cache *cache;
    pthread_mutex_t page_lock; /* of what follows */
    struct cached *page;       /* with the first answers inside; NULL: none yet */
    uint64_t page_generation;
    time_ms page_hour;
    void (*on_request)(void *context, const struct http_event *event);
    void *on_request_context;
    struct api_route_counts counts[API_ROUTES_MAX]; /* the last one: of no route */
    atomic_size_t counts_n;
    atomic_ullong refused; /* requests without access */
    void *bindings;
    struct metrics_ledger *metrics;
    struct api_ahead *_Atomic ahead; /* NULL: not started */
    struct gpu_books *gpu_books;
    struct strbuf openapi, openapi_gzip;
    time_ms began;
};

struct api_worker {
    struct api *api;
    struct store *store; /* NULL: not open yet */
    struct api_names *names;
    pthread_mutex_t lock; /* of store against interrupt */
    bool interrupted;
};

/* Common parameters that an endpoint takes. */
enum api_parameter_bit {
    TAKES_WINDOW = 1u << 0, /* window, tz */
    TAKES_BY = 1u << 1,
    TAKES_FILTER = 1u << 2,
    TAKES_SORT = 1u << 3,
    TAKES_LIMIT = 1u << 4,
    TAKES_ANY = 1u << 5, /* parameters that are not known are ignored */
};

struct api_parameter {
    const char *name;
    bool needed;
    const char *meaning;
};

struct api_call {
    struct api *api;
    const struct api_settings *settings;
    const struct http_request *request;
    struct store *store;
    struct span extent; /* of the ledger; empty: it has nothing */
    time_ms now;
    const char *tz;
    struct span window;
    bool window_widened;
    struct query query; /* window, tz, keys (team where none were given), filters */
    bool by_given;
    size_t limit; /* 0: all */
    struct str sort;
    struct http_answer *answer; /* for endpoints that are not JSON */
    uint64_t generation;
};

typedef enum err (*api_fn)(struct api_call *call, struct strbuf *out, struct error *err);

struct api_endpoint {
    const char *pattern, *summary, *schema; /* schema: name in openapi_schemas.json */
    unsigned takes;                         /* enum api_parameter_bit */
    const struct api_parameter *parameters; /* beside these; ends with a NULL name */
    bool cached;
    bool storeless; /* answers without a ledger too: call->store is NULL then */
    api_fn write;
    const char *content_type; /* NULL: application/json */
};
extern const struct api_endpoint api_endpoints[];
extern const size_t api_endpoints_n;

/* Parameters. */
enum err api_window(const struct api_call *call, struct str text, struct span *ret,
                    bool *ret_widened, struct error *err);
enum err api_number(const struct api_call *call, const char *name, int64_t least, int64_t most,
                    int64_t *ret, struct error *err);
struct str api_text(const struct api_call *call, const char *name);
enum err api_need(const struct api_call *call, const char *name, struct str *ret,
                  struct error *err);
bool api_is_view(const struct api_call *call);

/* What the parameter window stands for, now; NULL: not given. False: it is no window. */
bool api_asked_window(struct api *api, struct span extent, const char *text, struct span *ret);

/* JSON. */
void api_put_string(struct strbuf *out, struct str text);  /* quoted */
void api_put_or_null(struct strbuf *out, struct str text); /* empty: null */
void api_put_money(struct strbuf *out, money_t amount);    /* quoted decimal */
void api_put_time(struct strbuf *out, time_ms t);          /* quoted; TIME_MIN: null */

/* Findings of a window, through the lens; released also after an error. */
struct found {
    struct books *books;
    struct findings *findings;
    struct exemptions exemptions;
};
enum err found_read(struct api_call *call, struct span window, struct found *ret,
                    struct error *err);
void found_release(struct found *found);

/* api_measures.c: SM, tensor and DRAM activity by hour of the query's rows, as further series.
 * nodes: groups by cluster and node, of nodes that have such rows; no others are read. */
enum err api_write_measures(struct api_call *call, const struct query *query,
                            const struct result *nodes, struct strbuf *out, struct error *err);

/* Endpoints, by file. */
enum err api_meta(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_report(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_findings(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_explain(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_idle(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_idle_days(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_doctor(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_diff(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_fleet(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_fleet_cell(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_series(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_gpus(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_workload(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_node(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_gpu(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_allocation(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_allocation_configs(struct api_call *call, struct strbuf *out, struct error *err);
enum err api_metrics(struct api_call *call, struct strbuf *out, struct error *err);

/* Handlers that need no call. */
void api_healthz(void *context, const struct http_request *request, struct http_answer *answer);
void api_readyz(void *context, const struct http_request *request, struct http_answer *answer);
void api_openapi(void *context, const struct http_request *request, struct http_answer *answer);
void api_export(void *context, const struct http_request *request, struct http_answer *answer);

/* openapi.c */
void openapi_document(struct strbuf *out);
/* api_params.c: the common parameters that the endpoint takes, into the call. */
enum err api_read_parameters(struct api_call *call, const struct api_endpoint *endpoint,
                             struct error *err);
/* api_ahead.c: any thread; 0 where it was not started. */
struct api_ahead_counts {
    uint64_t made, dropped, spent_us;
};
void api_ahead_counts(const struct api *api, struct api_ahead_counts *ret);
/* api_page.c: a draft belongs to one thread. */
struct api_page_draft;
struct api_page_draft *api_page_draft_new(struct api *api);
void api_page_draft_free(struct api_page_draft *draft);
void api_page_begin(struct api_page_draft *draft); /* it is empty from here on */
/* What was asked, and the answer that who sees everything had, in JSON; copied. */
void api_page_add(struct api_page_draft *draft, const struct http_request *request,
                  struct str answer);
/* The page with these is that of the state; any thread may be given it. */
void api_page_show(const struct api_page_draft *draft, uint64_t generation, time_ms hour);
/* api_counts.c */
extern const int64_t api_bucket_us[API_BUCKETS - 1];
void api_count_request(void *api, const struct http_event *event);

/* api.c */
/* What endpoints are asked with beside a request: workers of the server, and of api_ahead.c. */
void *api_worker_new(void *api);
void api_worker_free(void *worker);
void api_worker_interrupt(void *worker); /* any thread; for good */
/* How many states of the ledger were noticed up to now. */
uint64_t api_generation(struct api *api);
/* The answer of the endpoint with that pattern; the request has a worker. */
void api_answer(struct api *api, const char *pattern, const struct http_request *request,
                struct http_answer *answer);
/* The answer is what is held; it is let go when it was sent. */
void api_give_cached(struct http_answer *answer, struct cached *cached);
enum err api_open_store(struct api *api, struct store **ret, struct api_names **ret_names,
                        struct error *err);
void api_names_release(struct api_names *names);
/* The lens of a view over a handle; *ret has arrays in the arena. */
void api_lens(const struct view_of *view, struct names *names, struct arena *arena,
              struct store_lens *ret);

#endif
