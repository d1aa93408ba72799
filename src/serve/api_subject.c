/* /workload, /node, /gpu: what is known of one of them: who held what when, its figures, and the
 * findings about it. One scan over its rows; a run is the hours that follow one another in which
 * one holder had one GPU. */
#include <stdlib.h>

#include "report/figure.h"
#include "serve/api_impl.h"
#include "store/scan.h"
#include "util/idmap.h"

#define RUNS_MAX 5000

struct run {
    struct row_key key; /* hour: the first */
    struct row_facts facts;
    time_ms to;
    money_t cost;
    wide_t gpu_ns;
};

struct subject {
    struct names *names;
    bool by_cluster;
    name_t cluster, node, device, namespace, workload; /* NAME_NONE: any */
    struct figures sum;
    struct row_facts last;
    name_t last_node;
    struct run *runs;
    size_t runs_n, runs_room;
    size_t *open; /* runs of the last hours, to be gone on with */
    size_t open_n, open_room;
    bool cut; /* there are more runs than RUNS_MAX */
};

static bool wants(void *context, name_t cluster, name_t node)
{
    const struct subject *subject = context;
    return (!subject->by_cluster || cluster == subject->cluster) &&
           (!subject->node || node == subject->node);
}

static bool is_of(const struct subject *subject, const struct scan_part *part)
{
    const struct row_key *key = part->key;
    return wants((void *)subject, key->cluster, key->node) &&
           (!subject->device || key->device == subject->device) &&
           (!subject->namespace || key->namespace == subject->namespace) &&
           (!subject->workload || part->facts->workload == subject->workload);
}

static bool same_holding(const struct row_key *a, const struct row_key *b)
{
    return a->node == b->node && a->device == b->device && a->instance == b->instance &&
           a->namespace == b->namespace && a->pod == b->pod && a->pod_uid == b->pod_uid &&
           a->cluster == b->cluster;
}

/* Parts come block by block (a day of a node), in it series by series: the hours of a holding come
 * together, and go on in a later block. */
static void take_part(void *context, const struct scan_part *part)
{
    struct subject *subject = context;
    if (!is_of(subject, part))
        return;
    figures_add(&subject->sum, part->figures);
    subject->last = *part->facts;
    subject->last_node = part->key->node;
    for (size_t i = subject->open_n; i-- > 0;) {
        struct run *run = &subject->runs[subject->open[i]];
        if (run->to >= part->key->hour && run->key.hour <= part->key->hour &&
            same_holding(&run->key, part->key)) {
            run->to = run->to > part->key->hour ? run->to : part->key->hour + HOUR_MS;
            run->cost += part->figures->cost;
            run->gpu_ns += part->figures->gpu_ns;
            return;
        }
        if (run->to < part->key->hour - 2 * DAY_MS) { /* nothing of it comes any more */
            memmove(&subject->open[i], &subject->open[i + 1],
                    (subject->open_n - i - 1) * sizeof *subject->open);
            subject->open_n--;
        }
    }
    if (subject->runs_n == RUNS_MAX) {
        subject->cut = true;
        return;
    }
    struct run run = {.key = *part->key,
                      .facts = *part->facts,
                      .to = part->key->hour + HOUR_MS,
                      .cost = part->figures->cost,
                      .gpu_ns = part->figures->gpu_ns};
    mem_push(subject->open, subject->open_n, subject->open_room, subject->runs_n);
    mem_push(subject->runs, subject->runs_n, subject->runs_room, run);
}

static void no_node(void *context, const struct scan_node *node)
{
    (void)context, (void)node;
}

static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

static int by_time(const void *a, const void *b, void *names)
{
    const struct run *left = a, *right = b;
    if (left->key.hour != right->key.hour)
        return left->key.hour < right->key.hour ? -1 : 1;
    return row_key_cmp(names, &left->key, &right->key);
}

/* A name that is asked for. False: the ledger has never heard of it, so that nothing is of it. */
static bool find_name(struct api_call *call, const char *parameter, name_t *ret)
{
    struct str text = api_text(call, parameter);
    return !text.n || names_find(store_names(call->store), text, ret);
}

static enum err read_subject(struct api_call *call, struct subject *subject, struct error *err)
{
    struct span recorded;
    struct scan scan = {.hours = call->window,
                        .detail = SCAN_ROWS,
                        .texts = SCAN_TEXTS_ALL,
                        .context = subject,
                        .part = take_part,
                        .node = no_node,
                        .note = no_note,
                        .wants_node = wants};
    subject->names = store_names(call->store);
    subject->by_cluster = http_has_parameter(call->request, "cluster");
    if (!find_name(call, "cluster", &subject->cluster) ||
        !find_name(call, "node", &subject->node) || !find_name(call, "device", &subject->device) ||
        !find_name(call, "namespace", &subject->namespace) ||
        !find_name(call, "workload", &subject->workload))
        return ERR_OK;
    enum err code = store_scan(call->store, &scan, &recorded, err);
    if (code == ERR_OK && subject->runs_n)
        qsort_r(subject->runs, subject->runs_n, sizeof *subject->runs, by_time, subject->names);
    return code;
}

static void write_name(const struct subject *subject, const char *field, name_t name,
                       struct strbuf *out)
{
    strbuf_addf(out, ", \"%s\": ", field);
    api_put_or_null(out, names_text(subject->names, name));
}

static void write_runs(const struct subject *subject, struct strbuf *out)
{
    strbuf_add(out, STR("  \"holders\": ["));
    for (size_t i = 0; i < subject->runs_n; i++) {
        const struct run *run = &subject->runs[i];
        strbuf_add(out, str_of(i ? ",\n    {\"from\": " : "\n    {\"from\": "));
        api_put_time(out, run->key.hour);
        strbuf_add(out, STR(", \"to\": "));
        api_put_time(out, run->to);
        write_name(subject, "cluster", run->key.cluster, out);
        write_name(subject, "node", run->key.node, out);
        write_name(subject, "device", run->key.device, out);
        write_name(subject, "instance", run->key.instance, out);
        write_name(subject, "namespace", run->key.namespace, out);
        write_name(subject, "pod", run->key.pod, out);
        write_name(subject, "workload", run->facts.workload, out);
        write_name(subject, "team", run->facts.owner, out);
        strbuf_add(out, STR(", \"cost\": "));
        api_put_money(out, run->cost);
        strbuf_addc(out, '}');
    }
    strbuf_addf(out, "],\n  \"holders_cut\": %s,\n", subject->cut ? "true" : "false");
}

static void write_figures(const struct subject *subject, struct strbuf *out)
{
    strbuf_add(out, STR("  \"figures\": {"));
    for (int id = 0; id < FIGURE_COUNT; id++) {
        const struct figure *figure = &figure_defs[id];
        wide_t value;
        strbuf_addf(out, "%s\"%s\": ", id ? ", " : "", figure->name);
        if (!figure_get(&subject->sum, (enum figure_id)id, &value))
            strbuf_add(out, STR("null"));
        else if (figure->unit == UNIT_MONEY)
            api_put_money(out, (money_t)value);
        else
            figure_machine(out, figure->unit, value);
    }
    strbuf_add(out, STR("},\n"));
}

/* Subjects are "workload svc/Deployment/tagger", "node prod/gpu-7", with the cluster where it has
 * a name. */
static bool is_about(struct str subject, const char *kind, struct str name)
{
    struct str head = str_of(kind);
    if (!str_starts(subject, head) || subject.n <= head.n + name.n)
        return false;
    struct str end = {subject.p + subject.n - name.n, name.n};
    char before = end.p[-1];
    return str_eq(end, name) && (before == ' ' || before == '/');
}

static enum err write_findings(struct api_call *call, const struct subject *subject,
                               struct strbuf *out, struct error *err)
{
    struct found found = {0};
    struct strbuf name = {0};
    bool workload = subject->workload != NAME_NONE;
    if (workload)
        strbuf_addf(&name, "%.*s/%.*s", STR_ARG(names_text(subject->names, subject->namespace)),
                    STR_ARG(names_text(subject->names, subject->workload)));
    else
        strbuf_add(&name,
                   names_text(subject->names, subject->node ? subject->node : subject->last_node));
    enum err code = found_read(call, call->window, &found, err);
    strbuf_add(out, STR("  \"findings\": ["));
    bool any = false;
    for (size_t i = 0; code == ERR_OK && i < found.findings->n; i++) {
        const struct finding *finding = &found.findings->items[i];
        if (!is_about(finding->subject, workload ? "workload " : "node ", strbuf_str(&name)))
            continue;
        strbuf_add(out, str_of(any ? ", " : ""));
        api_put_string(out, finding->id);
        any = true;
    }
    strbuf_add(out, STR("]\n}\n"));
    strbuf_release(&name);
    found_release(&found);
    return code;
}

static enum err write_subject(struct api_call *call, const char *const *needed, struct strbuf *out,
                              struct error *err)
{
    struct subject subject = {0};
    enum err code = ERR_OK;
    for (; *needed && code == ERR_OK; needed++) {
        struct str text;
        code = api_need(call, *needed, &text, err);
    }
    if (code == ERR_OK)
        code = read_subject(call, &subject, err);
    if (code == ERR_OK && !subject.sum.rows)
        code = error_set(err, ERR_NOT_FOUND, "the ledger has nothing of it in this window");
    if (code == ERR_OK) {
        strbuf_add(out, STR("{\n  \"schema\": \"gputally.subject/1\",\n  \"from\": "));
        api_put_time(out, call->window.from);
        strbuf_add(out, STR(", \"to\": "));
        api_put_time(out, call->window.to);
        write_name(&subject, "model", subject.last.model, out);
        write_name(&subject, "instance_type", subject.last.instance_type, out);
        write_name(&subject, "pool", subject.last.pool, out);
        strbuf_add(out, STR(",\n"));
        write_figures(&subject, out);
        write_runs(&subject, out);
        code = write_findings(call, &subject, out, err);
    }
    free(subject.runs);
    free(subject.open);
    return code;
}

enum err api_workload(struct api_call *call, struct strbuf *out, struct error *err)
{
    static const char *const needed[] = {"namespace", "workload", NULL};
    return write_subject(call, needed, out, err);
}

enum err api_node(struct api_call *call, struct strbuf *out, struct error *err)
{
    static const char *const needed[] = {"node", NULL};
    return write_subject(call, needed, out, err);
}

enum err api_gpu(struct api_call *call, struct strbuf *out, struct error *err)
{
    static const char *const needed[] = {"device", NULL};
    return write_subject(call, needed, out, err);
}
