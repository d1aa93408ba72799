/* The parts of the service and who may touch them. Seen by src/serve/service*.c only.
 *
 *     service.c         the main thread: start, signals, end
 *     service_parts.c   making the parts from a configuration
 *     service_reload.c  another configuration
 *     service_ask.c     what the API asks the service; any thread */
#ifndef GPUTALLY_SERVE_SERVICE_IMPL_H
#define GPUTALLY_SERVE_SERVICE_IMPL_H

#include <pthread.h>

#include "serve/alerter.h"
#include "serve/api.h"
#include "serve/collector.h"
#include "serve/service.h"
#include "serve/writer.h"

#define HTTP_GRACE_MS 1000

struct service {
    const struct service_options *options;
    struct service_setup setup;
    struct log log;
    struct writer *writer;
    struct live *live;
    struct api *api;
    struct http_server *server;
    pthread_rwlock_t lock; /* of what follows: callbacks read it */
    struct collector *collector;
    struct alerter *alerter; /* NULL: no alerts are configured */
    uint64_t reloads, failed_reloads;
    bool told_changed;               /* main's: what the API knows of the settings */
    char reload_why[ERROR_TEXT_MAX]; /* of the last reload; "" it went well */
};

/* ---- service_parts.c, the main thread */

struct api_settings service_api_settings(const struct service_setup *setup,
                                         struct collector *collector);
enum err service_make_auth(const struct service_setup *setup, struct auth **ret, struct error *err);
enum err service_make_collector(struct service *service, const struct service_setup *setup,
                                struct collector **ret, struct error *err);
enum err service_make_api(struct service *service, struct error *err);
/* A server that answers. beside: one that listens already and whose socket is used too; NULL. Takes
 * *auth over, also where it fails. */
enum err service_make_server(struct service *service, const struct service_setup *setup,
                             struct auth **auth, const struct http_server *beside,
                             struct http_server **ret, struct error *err);
void service_set_log(struct service *service);
void service_start_alerter(struct service *service);
void service_stop_alerter(struct service *service);
/* Where to look at it. Appends. */
void service_url(const struct service *service, struct strbuf *ret);

/* ---- service_reload.c, the main thread */

void service_reload(struct service *service);

/* ---- service_ask.c, any thread; context: the service */

size_t service_checks(void *context, struct health_check *ret, size_t room);
void service_stats_now(void *context, struct service_stats *ret);
void service_look(void *context);
void service_placed(void *context, struct live_claims *ret);
void service_receive(void *context, const struct http_request *request, struct http_answer *answer);
void service_on_request(void *context, const struct http_event *event);
void service_committed(void *context);

#endif
