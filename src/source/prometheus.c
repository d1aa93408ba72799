/* The Prometheus source's options and life; the rest is in prometheus_*.c (prometheus_impl.h). */
#include "source/prometheus_impl.h"

#include <stdlib.h>

#define IN_FLIGHT_LIMIT 64

void prometheus_options_defaults(struct prometheus_options *ret)
{
    *ret = (struct prometheus_options){.connect_timeout_ms = 10 * 1000,
                                       .idle_timeout_ms = 120 * 1000,
                                       .retries = 5,
                                       .backoff_ms = 500,
                                       .in_flight = 4,
                                       .narrow_from = 2000};
}

static void prometheus_free(struct source *source)
{
    struct prometheus *prometheus = (struct prometheus *)source;
    http_site_free(prometheus->site);
    arena_release(&prometheus->arena);
    free(prometheus->source.id);
    free(prometheus->matcher);
    free(prometheus->present);
    free(prometheus->series);
    seen_free(prometheus->observers);
    seen_free(prometheus->exporters);
    seen_free(prometheus->namespaces);
    seen_free(prometheus->exported_namespaces);
    seen_free(prometheus->renamed_requests);
    seen_free(prometheus->gpu_nodes);
    seen_free(prometheus->clusters);
    seen_free(prometheus->renamed_nodes);
    free(prometheus);
}

static const struct source_ops prometheus_ops = {.kind = "prometheus",
                                                 .survey = prometheus_survey,
                                                 .fetch = prometheus_fetch,
                                                 .examine = prometheus_examine,
                                                 .free = prometheus_free};

static struct http_site_options site_options(const struct prometheus_options *options)
{
    return (struct http_site_options){.url = options->url,
                                      .bearer_token_file = options->bearer_token_file,
                                      .user = options->user,
                                      .password_file = options->password_file,
                                      .client_cert = options->client_cert,
                                      .client_key = options->client_key,
                                      .ca_file = options->ca_file,
                                      .insecure = options->insecure,
                                      .headers = options->headers,
                                      .headers_n = options->headers_n,
                                      .proxy = options->proxy,
                                      .connect_timeout_ms = options->connect_timeout_ms,
                                      .idle_timeout_ms = options->idle_timeout_ms,
                                      .retries = options->retries,
                                      .backoff_ms = options->backoff_ms};
}

enum err prometheus_source_new(const struct prometheus_options *options, struct source **ret,
                               struct error *err)
{
    struct prometheus *prometheus = mem_zalloc(1, sizeof *prometheus);
    prometheus->source.ops = &prometheus_ops;
    prometheus->api = options->api;
    prometheus->has_gpus = true;
    size_t wanted_n;
    wanted_metrics(&wanted_n);
    prometheus->series = mem_zalloc(wanted_n, sizeof *prometheus->series);
    prometheus->observers = seen_new(STR("instance"));
    prometheus->exporters = seen_new(STR("instance"));
    prometheus->namespaces = seen_new(STR("namespace"));
    prometheus->exported_namespaces = seen_new(STR("exported_namespace"));
    prometheus->renamed_requests = seen_new(STR("exported_namespace"));
    prometheus->gpu_nodes = seen_new(STR("node"));
    prometheus->clusters = seen_new(STR("cluster"));
    prometheus->renamed_nodes = seen_new(STR("exported_node"));
    prometheus->narrow_from = options->narrow_from;
    prometheus->in_flight = options->in_flight < 1                 ? 1
                            : options->in_flight > IN_FLIGHT_LIMIT ? IN_FLIGHT_LIMIT
                                                                   : options->in_flight;
    prometheus->matcher = str_dup(str_of(options->matcher ? options->matcher : ""));
    struct http_site_options site = site_options(options);
    enum err e =
        selector_parse(str_of(prometheus->matcher), &prometheus->arena, &prometheus->common, err);
    if (e == ERR_OK)
        e = http_site_new(&site, &prometheus->site, err);
    if (e != ERR_OK) {
        prometheus_free(&prometheus->source);
        return e;
    }
    struct strbuf id = {0};
    strbuf_addf(&id, "%s%s%s%s", http_site_url(prometheus->site), *prometheus->matcher ? "{" : "",
                prometheus->matcher, *prometheus->matcher ? "}" : "");
    prometheus->source.id = id.text;
    *ret = &prometheus->source;
    return ERR_OK;
}
