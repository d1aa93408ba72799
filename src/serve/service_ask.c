/* What the API asks the service while it runs. The main thread swaps the parts under service->lock.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "serve/service_impl.h"

#define LOOK_MS 2000 /* whoever looks first waits so long for the newest samples */

size_t service_checks(void *context, struct health_check *ret, size_t room)
{
    struct service *service = context;
    struct writer_state writer;
    size_t n = 0;
    writer_state(service->writer, &writer);
    if (n < room) {
        struct health_check *check = &ret[n++];
        *check = (struct health_check){.name = "writing", .ok = writer.code == ERR_OK};
        snprintf(check->why, sizeof check->why, "%s", writer.why);
    }
    pthread_rwlock_rdlock(&service->lock);
    if (n < room && *service->reload_why) {
        struct health_check *check = &ret[n++];
        *check = (struct health_check){.name = "configuration"};
        snprintf(check->why, sizeof check->why, "the last reload was refused: %.200s",
                 service->reload_why);
    }
    if (service->collector)
        n += collector_checks(service->collector, ret + n, room - n);
    if (service->alerter && n < room)
        alerter_check(service->alerter, &ret[n++]);
    pthread_rwlock_unlock(&service->lock);
    return n;
}

static int64_t file_bytes(const char *path, const char *end)
{
    struct strbuf whole = {0};
    struct stat stat_of;
    strbuf_addf(&whole, "%s%s", path, end);
    int64_t bytes = stat(whole.text, &stat_of) == 0 ? stat_of.st_size : 0;
    strbuf_release(&whole);
    return bytes;
}

static void add_figure(struct service_stats *ret, const char *name, const char *help, double value)
{
    if (ret->figures_n < SERVICE_FIGURES_MAX)
        ret->figures[ret->figures_n++] =
            (struct service_figure){.name = name, .help = help, .value = value};
}

static int by_name(const void *a, const void *b)
{
    const struct service_figure *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : strcmp(left->label_value, right->label_value);
}

/* Alike names stand together. */
void service_stats_now(void *context, struct service_stats *ret)
{
    struct service *service = context;
    struct writer_state writer;
    writer_state(service->writer, &writer);
    pthread_rwlock_rdlock(&service->lock);
    const char *db = service->setup.serve.db;
    int64_t bytes = file_bytes(db, "") + file_bytes(db, "-wal");
    if (service->collector)
        collector_stats(service->collector, ret);
    if (service->alerter)
        alerter_stats(service->alerter, ret);
    uint64_t reloads = service->reloads, failed = service->failed_reloads;
    bool refused = *service->reload_why;
    pthread_rwlock_unlock(&service->lock);
    add_figure(ret, "gputally_store_bytes", "Size of the database on disk, its log included.",
               (double)bytes);
    add_figure(ret, "gputally_store_writable", "1 where the last write of the database went well.",
               writer.code == ERR_OK);
    add_figure(ret, "gputally_store_turns_total", "How often the database was taken to write.",
               (double)writer.turns);
    add_figure(ret, "gputally_config_reloads_total",
               "Reloads of the configuration that took effect.", (double)reloads);
    add_figure(ret, "gputally_config_reload_failures_total", "Reloads that were refused.",
               (double)failed);
    add_figure(ret, "gputally_config_last_reload_successful", "0 where the last one was refused.",
               !refused);
    if (ret->figures_n)
        qsort(ret->figures, ret->figures_n, sizeof *ret->figures, by_name);
}

/* Somebody looks at the GPUs now. */
void service_look(void *context)
{
    struct service *service = context;
    pthread_rwlock_rdlock(&service->lock);
    if (service->collector)
        collector_look(service->collector, LOOK_MS);
    pthread_rwlock_unlock(&service->lock);
}

void service_placed(void *context, struct live_claims *ret)
{
    struct service *service = context;
    pthread_rwlock_rdlock(&service->lock);
    if (service->collector)
        collector_placed(service->collector, ret);
    pthread_rwlock_unlock(&service->lock);
}

/* POST /api/v1/write: remote write. */
void service_receive(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct service *service = context;
    struct push_request push = {.tenant = request->access->identity,
                                .content_encoding = http_header(request, "Content-Encoding"),
                                .content_type = http_header(request, "Content-Type"),
                                .version =
                                    http_header(request, "X-Prometheus-Remote-Write-Version"),
                                .body = request->body};
    struct push_answer got = {
        .status = 503, .retry_after_s = 5, .text = "reading its configuration"};
    pthread_rwlock_rdlock(&service->lock);
    if (service->collector)
        collector_write(service->collector, push.tenant, &push, &got);
    pthread_rwlock_unlock(&service->lock);
    answer->status = got.status;
    answer->content_type = "text/plain; charset=utf-8";
    strbuf_add(&answer->body, str_of(got.text));
    if (got.retry_after_s) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", got.retry_after_s);
        http_answer_header(answer, "Retry-After", str_keep(request->arena, str_of(seconds)));
    }
}

void service_on_request(void *context, const struct http_event *event)
{
    struct service *service = context;
    if (event->refused)
        log_line(&service->log, LOG_WARN, "refused", log_text("peer", event->peer),
                 log_text("method", event->method), log_text("path", event->path),
                 log_number("status", event->status), log_text("why", str_of(event->refused)));
    else
        log_line(&service->log, LOG_DEBUG, "request", log_text("peer", event->peer),
                 log_text("identity", event->identity), log_text("method", event->method),
                 log_text("path", event->path), log_number("status", event->status),
                 log_number("us", event->duration_us), log_number("bytes", (int64_t)event->bytes));
}

void service_committed(void *context)
{
    struct service *service = context;
    api_touch(service->api);
}
