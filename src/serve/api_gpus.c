/* /gpus: GPUs now. The service knows them; without it the last hour of the ledger stands for now.
 */
#include <stdlib.h>

#include "report/text.h"
#include "serve/api_impl.h"
#include "store/scan.h"

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
    strbuf_add(out, STR(", \"at\": "));
    api_put_time(out, gpu->at);
    strbuf_addc(out, '}');
    return true;
}

/* ---- from the last hour ---- */

struct last_gpu {
    struct row_key key;
    struct row_facts facts;
    struct figures figures; /* of all its rows */
    wide_t most_ns;         /* time of the row that the holder is of */
};
struct last_hour {
    struct last_gpu *gpus;
    size_t n, room;
};

/* Parts come node by node, in it device by device: the right GPU is one of the last. */
static struct last_gpu *gpu_of(struct last_hour *last, const struct row_key *key)
{
    for (size_t i = last->n; i-- > 0;) {
        struct last_gpu *gpu = &last->gpus[i];
        if (gpu->key.node != key->node || gpu->key.cluster != key->cluster)
            break;
        if (gpu->key.device == key->device)
            return gpu;
    }
    mem_push(last->gpus, last->n, last->room, ((struct last_gpu){.key = *key, .most_ns = -1}));
    return &last->gpus[last->n - 1];
}

static void take_part(void *context, const struct scan_part *part)
{
    struct last_gpu *gpu = gpu_of(context, part->key);
    figures_add(&gpu->figures, part->figures);
    wide_t held = part->figures->gpu_held_ns;
    if (held > gpu->most_ns) {
        gpu->most_ns = held;
        gpu->key = *part->key;
        gpu->facts = *part->facts;
    }
}

static void no_node(void *context, const struct scan_node *node)
{
    (void)context, (void)node;
}

static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

static int by_place(const void *a, const void *b, void *names)
{
    const struct last_gpu *left = a, *right = b;
    return row_key_cmp(names, &left->key, &right->key);
}

static int64_t mean(wide_t sum, wide_t over)
{
    return over ? (int64_t)(sum / over) : -1;
}

static struct gpu_now gpu_then(const struct names *names, const struct last_gpu *gpu, time_ms at)
{
    const struct figures *figures = &gpu->figures;
    return (struct gpu_now){
        .cluster = names_text(names, gpu->key.cluster),
        .node = names_text(names, gpu->key.node),
        .device = names_text(names, gpu->key.device),
        .model = names_text(names, gpu->facts.model),
        .namespace = names_text(names, gpu->key.namespace),
        .pod = names_text(names, gpu->key.pod),
        .workload = names_text(names, gpu->facts.workload),
        .team = names_text(names, gpu->facts.owner),
        .util = mean(figures->gpu_u_held, figures->u_seen_held_ns),
        .sm = -1,
        .memory_used = mean(figures->mem_byte_ms, figures->mem_seen_ms),
        .memory_total = -1,
        .power_mw = figures->energy_mj ? mean(figures->energy_mj * NANO, figures->gpu_ns) : -1,
        .price_hour = figures->gpu_ns
                          ? (money_t)((wide_t)figures->cost * HOUR_MS * 1000000 / figures->gpu_ns)
                          : 0,
        .idle_since = TIME_MIN,
        .at = at,
    };
}

static enum err from_ledger(struct api_call *call, struct writing *writing, struct error *err)
{
    struct last_hour last = {0};
    struct span recorded;
    struct names *names = store_names(call->store);
    struct scan scan = {.hours = {call->extent.to - HOUR_MS, call->extent.to},
                        .detail = SCAN_ROWS,
                        .texts = SCAN_TEXTS_ALL,
                        .context = &last,
                        .part = take_part,
                        .node = no_node,
                        .note = no_note};
    if (call->extent.from >= call->extent.to)
        return ERR_OK;
    enum err code = store_scan(call->store, &scan, &recorded, err);
    if (code == ERR_OK && last.n)
        qsort_r(last.gpus, last.n, sizeof *last.gpus, by_place, names);
    for (size_t i = 0; i < last.n && code == ERR_OK; i++) {
        struct gpu_now gpu = gpu_then(names, &last.gpus[i], call->extent.to);
        write_gpu(writing, &gpu);
    }
    free(last.gpus);
    return code;
}

enum err api_gpus(struct api_call *call, struct strbuf *out, struct error *err)
{
    const struct api_options *options = &call->api->options;
    struct writing writing = {.view = &call->request->access->view, .out = out};
    enum err code = ERR_OK;
    strbuf_addc(out, '[');
    if (options->gpus)
        options->gpus(options->context, write_gpu, &writing);
    else
        code = from_ledger(call, &writing, err);
    strbuf_add(out, STR("]\n"));
    return code;
}
