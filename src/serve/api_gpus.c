/* /gpus: GPUs now. */
#include "report/text.h"
#include "serve/live_view.h"

static bool is_in(const struct str *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

static bool view_has(const struct view_of *view, const struct gpu_now *gpu)
{
    return !view->limited ||
           (gpu->namespace.n && (is_in(view->teams, view->teams_n, gpu->team) ||
                                 is_in(view->namespaces, view->namespaces_n, gpu->namespace)));
}

struct writing {
    const struct view_of *view;
    struct strbuf *out;
    size_t n;
};

static void add_text(struct strbuf *out, const char *name, struct str text)
{
    strbuf_addf(out, "\"%s\": ", name);
    api_put_or_null(out, text);
    strbuf_add(out, STR(", "));
}

static void add_nano(struct strbuf *out, const char *name, int64_t nano)
{
    strbuf_addf(out, "\"%s\": ", name);
    if (nano < 0)
        strbuf_add(out, STR("null"));
    else
        text_nano_plain(out, nano);
    strbuf_add(out, STR(", "));
}

static void add_whole(struct strbuf *out, const char *name, int64_t value)
{
    strbuf_addf(out, "\"%s\": ", name);
    if (value < 0)
        strbuf_add(out, STR("null, "));
    else
        strbuf_addf(out, "%lld, ", (long long)value);
}

static bool write_gpu(void *context, const struct gpu_now *gpu)
{
    struct writing *writing = context;
    struct strbuf *out = writing->out;
    if (!view_has(writing->view, gpu))
        return true;
    strbuf_add(out, str_of(writing->n++ ? ",\n{" : "\n{"));
    add_text(out, "cluster", gpu->cluster);
    add_text(out, "node", gpu->node);
    add_text(out, "device", gpu->device);
    add_text(out, "instance", gpu->instance);
    add_text(out, "model", gpu->model);
    strbuf_add(out, STR("\"holder\": "));
    if (gpu->namespace.n || gpu->pod.n) {
        strbuf_addc(out, '{');
        add_text(out, "namespace", gpu->namespace);
        add_text(out, "pod", gpu->pod);
        add_text(out, "workload", gpu->workload);
        add_text(out, "team", gpu->team);
        out->n -= 2; /* the last comma */
        strbuf_add(out, STR("}, "));
    } else {
        strbuf_add(out, STR("null, "));
    }
    add_nano(out, "util", gpu->util);
    add_nano(out, "sm", gpu->sm);
    add_whole(out, "memory_used", gpu->memory_used);
    add_whole(out, "memory_total", gpu->memory_total);
    add_nano(out, "power_w", gpu->power_mw < 0 ? -1 : gpu->power_mw * 1000000);
    strbuf_add(out, STR("\"price_hour\": "));
    if (gpu->price_hour > 0)
        api_put_money(out, gpu->price_hour);
    else
        strbuf_add(out, STR("null"));
    strbuf_add(out, STR(", \"idle_since\": "));
    api_put_time(out, gpu->idle_since);
    strbuf_addf(out, ", \"basis\": \"%s\", \"at\": ", gpu->of_hour ? "hour" : "sample");
    api_put_time(out, gpu->at);
    strbuf_addc(out, '}');
    return true;
}

enum err api_gpus(struct api_call *call, struct strbuf *out, struct error *err)
{
    const struct api_options *options = &call->api->options;
    struct writing writing = {.view = &call->request->access->view, .out = out};
    const struct gpu_book *book = NULL;
    struct live_claims claims = {0};
    if (options->look)
        options->look(options->context);
    enum err code = gpu_books_take(call->api->gpu_books, call, &book, err);
    if (code)
        return code;
    if (options->placed)
        options->placed(options->context, &claims);
    strbuf_addc(out, '[');
    live_view(options->live,
              &(struct live_view_of){call->settings->config->settings.idle_below, book, &claims},
              write_gpu, &writing);
    strbuf_add(out, STR("]\n"));
    live_claims_release(&claims);
    gpu_book_release(book);
    return ERR_OK;
}
