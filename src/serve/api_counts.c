/* Requests by route, status and time, for /metrics. Counters are atomic: any thread. */
#include "serve/api_impl.h"

const int64_t api_bucket_us[API_BUCKETS - 1] = {1000,   2500,   5000,    10000,   25000,   50000,
                                                100000, 250000, 1000000, 5000000, 30000000};

static struct api_route_counts *counts_of(struct api *api, const char *route)
{
    size_t n = atomic_load(&api->counts_n);
    for (size_t i = 0; i < n; i++)
        if (api->counts[i].pattern == route)
            return &api->counts[i];
    return &api->counts[API_ROUTES_MAX - 1];
}

void api_count_routes(struct api *api, const struct http_server *server)
{
    const struct http_route *routes;
    size_t n = http_routes(server, &routes), at = 0;
    if (atomic_load(&api->counts_n)) /* another server has the same */
        return;
    for (size_t i = 0; i < n && at < API_ROUTES_MAX - 1; i++) {
        size_t known = 0;
        while (known < at && api->counts[known].pattern != routes[i].pattern)
            known++;
        if (known == at)
            api->counts[at++].pattern = routes[i].pattern;
    }
    atomic_store(&api->counts_n, at);
}

void api_count_request(void *context, const struct http_event *event)
{
    struct api *api = context;
    struct api_route_counts *counts = counts_of(api, event->route);
    int class = event->status / 100;
    size_t bucket = 0;
    while (bucket < API_BUCKETS - 1 && event->duration_us > api_bucket_us[bucket])
        bucket++;
    atomic_fetch_add(&counts->by_class[class >= 0 && class < API_STATUS_CLASSES ? class : 0], 1);
    atomic_fetch_add(&counts->buckets[bucket], 1);
    atomic_fetch_add(&counts->sum_us, (unsigned long long)event->duration_us);
    atomic_fetch_add(&counts->bytes, event->bytes);
    if (event->refused)
        atomic_fetch_add(&api->refused, 1);
    if (api->on_request)
        api->on_request(api->on_request_context, event);
}
