/* What the host of a node did in its hours: processors, network, and the pods on it beside those
 * with GPUs (row.h: struct machine_hour; semantics, section 10). */
#include "ledger/load_book.h"

#include <stdlib.h>

#define RATIO_ONE INT64_C(1000000000)
#define WORKLOADS_MAX 5 /* that are named */

/* ------------------------------------------------------------------ meters */

static void add_cpu(struct machine_hour *out, const struct load_book *book)
{
    const struct meter_list *list = load_list_of_node(book, out->cluster, out->node, LOAD_CPU);
    int64_t first = out->hour / LOAD_SLOT_MS;
    for (int64_t slot = first; list && slot < first + LOAD_SLOTS_AN_HOUR; slot++) {
        const struct load_bin *bin = load_list_bin(list, slot);
        if (!bin)
            continue;
        int64_t busy = (int64_t)((wide_t)(bin->sum - bin->idle) * RATIO_ONE / bin->sum);
        out->cpu += busy * LOAD_SLOT_MS;
        out->cpu_seen_ms += LOAD_SLOT_MS;
        out->cpu_max = busy > out->cpu_max ? busy : out->cpu_max;
        if (bin->cpus > 0 && bin->cpus > out->cpus)
            out->cpus = bin->cpus;
    }
}

static void add_network(struct machine_hour *out, const struct load_book *book)
{
    const struct meter_list *in = load_list_of_node(book, out->cluster, out->node, LOAD_NET_IN);
    const struct meter_list *away = load_list_of_node(book, out->cluster, out->node, LOAD_NET_OUT);
    int64_t first = out->hour / LOAD_SLOT_MS;
    for (int64_t slot = first; slot < first + LOAD_SLOTS_AN_HOUR; slot++) {
        const struct load_bin *received = load_list_bin(in, slot);
        const struct load_bin *sent = load_list_bin(away, slot);
        out->net_bytes += (received ? received->sum : 0) + (sent ? sent->sum : 0);
        out->net_seen_ms += received || sent ? LOAD_SLOT_MS : 0;
    }
}

/* ------------------------------------------------------------------ pods */

enum { LEVEL_MCPU, LEVEL_MEMORY, LEVEL_CPU_PODS, LEVEL_DAEMONS };

/* The hours of a node, one for each node_hour, in order. */
struct filling {
    const struct load_book *book;
    const struct watch *watch;
    struct machine_hour *at;
    size_t n;
};

static struct machine_hour *hour_of(const struct filling *filling, time_ms hour)
{
    size_t low = 0, high = filling->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (filling->at[mid].hour < hour)
            low = mid + 1;
        else
            high = mid;
    }
    return low < filling->n && filling->at[low].hour == hour ? &filling->at[low] : NULL;
}

static bool overlaps(const struct spans *spans, time_ms hour)
{
    size_t i = spans_after(spans, hour);
    return i < spans->n && spans->at[i].from < hour + HOUR_MS;
}

static void set_levels(void *context, time_ms hour, const int64_t most[SWEEP_LEVELS],
                       const wide_t level_ms[SWEEP_LEVELS])
{
    const struct filling *filling = context;
    struct machine_hour *out = hour_of(filling, hour);
    (void)level_ms;
    if (!out)
        return;
    if (watch_says(filling->watch, &filling->watch->requests_known, hour)) {
        out->requested_mcpu = most[LEVEL_MCPU];
        out->requested_memory_bytes = most[LEVEL_MEMORY];
    }
    if (overlaps(&filling->watch->known, hour)) {
        out->cpu_pods = (int32_t)most[LEVEL_CPU_PODS];
        out->daemon_pods = (int32_t)most[LEVEL_DAEMONS];
    }
}

/* The first few of the texts in order, each once. */
struct few {
    name_t at[WORKLOADS_MAX];
    size_t n;
};

static void add_to_few(struct few *few, const struct names *names, name_t name)
{
    size_t i = 0;
    while (i < few->n && str_cmp(names_text(names, few->at[i]), names_text(names, name)) < 0)
        i++;
    if (i == WORKLOADS_MAX || (i < few->n && few->at[i] == name))
        return;
    few->n += few->n < WORKLOADS_MAX;
    for (size_t k = few->n - 1; k > i; k--)
        few->at[k] = few->at[k - 1];
    few->at[i] = name;
}

static name_t join_few(struct names *names, const struct few *few)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < few->n; i++)
        strbuf_addf(&text, "%s%s", i ? ", " : "", names_text(names, few->at[i]).p);
    name_t joined = names_put(names, strbuf_str(&text));
    strbuf_release(&text);
    return joined;
}

static name_t full_workload(struct facts *facts, uint32_t index)
{
    const struct pod *pod = &facts->pods[index];
    struct strbuf text = {0};
    strbuf_addf(&text, "%s/%s", names_text(facts->names, pod->namespace).p,
                names_text(facts->names, facts_workload(facts, index, pod->name)).p);
    name_t name = names_put(facts->names, strbuf_str(&text));
    strbuf_release(&text);
    return name;
}

/* Static pods are a node's own, as DaemonSets' are. */
static bool is_daemon(const struct facts *facts, const struct pod *pod)
{
    struct str kind = names_text(facts->names, pod->owner_kind);
    return str_eq(kind, STR("DaemonSet")) || str_eq(kind, STR("Node"));
}

static void levels_of(const struct facts *facts, const struct pod *pod, int64_t ret[SWEEP_LEVELS])
{
    bool daemon = is_daemon(facts, pod);
    ret[LEVEL_MCPU] = ret[LEVEL_MEMORY] = 0;
    for (size_t i = 0; i < pod->host_n; i++) {
        ret[LEVEL_MCPU] += pod->host[i].mcpu > 0 ? pod->host[i].mcpu : 0;
        ret[LEVEL_MEMORY] += pod->host[i].memory_bytes > 0 ? pod->host[i].memory_bytes : 0;
    }
    ret[LEVEL_DAEMONS] = daemon;
    ret[LEVEL_CPU_PODS] = !daemon && !pod_wants_gpus(pod);
}

static void name_workload(const struct filling *filling, struct few *fews, uint32_t index,
                          struct span span)
{
    name_t name = full_workload(filling->book->facts, index);
    for (time_ms hour = hour_floor(span.from); hour < span.to; hour += HOUR_MS) {
        struct machine_hour *out = hour_of(filling, hour);
        if (out)
            add_to_few(&fews[out - filling->at], filling->book->facts->names, name);
    }
}

static void add_pods(const struct filling *filling, name_t cluster, name_t node)
{
    const struct load_book *book = filling->book;
    struct facts *facts = book->facts;
    uint32_t at = idmap_get(&book->pods_of_node, IDKEY(cluster, node));
    struct sweep sweep = {0};
    struct few *fews = mem_zalloc(filling->n + 1, sizeof *fews);
    for (size_t i = 0; at != IDMAP_NONE && i < book->on_node[at].n; i++) {
        uint32_t index = book->on_node[at].pods[i];
        const struct pod *pod = &facts->pods[index];
        int64_t levels[SWEEP_LEVELS];
        levels_of(facts, pod, levels);
        for (size_t k = 0; k < pod->counted.n; k++) {
            struct span span = pod->counted.at[k];
            span.from = span.from > book->hours.from ? span.from : book->hours.from;
            span.to = span.to < book->hours.to ? span.to : book->hours.to;
            sweep_add(&sweep, span, levels);
            if (levels[LEVEL_CPU_PODS] && span.from < span.to)
                name_workload(filling, fews, index, span);
        }
    }
    sweep_hours(&sweep, book->hours, set_levels, (void *)(uintptr_t)filling);
    for (size_t i = 0; i < filling->n; i++)
        if (filling->at[i].cpu_pods >= 0)
            filling->at[i].cpu_workloads = join_few(facts->names, &fews[i]);
    free(fews);
    sweep_release(&sweep);
}

/* ------------------------------------------------------------------ all of it */

static bool says_nothing(const struct machine_hour *hour)
{
    return !hour->cpu_seen_ms && !hour->net_seen_ms && hour->requested_mcpu < 0 &&
           hour->cpu_pods < 0 && hour->gpu_taint == MACHINE_TAINT_UNKNOWN;
}

void load_book_machine(const struct load_book *book, const struct node *node,
                       struct row_batch *batch)
{
    size_t first = batch->machine_hours_n;
    for (size_t i = 0; i < batch->node_hours_n; i++) {
        const struct node_hour *up = &batch->node_hours[i];
        if (up->cluster != node->cluster || up->node != node->name)
            continue;
        struct machine_hour out = {.hour = up->hour,
                                   .cluster = up->cluster,
                                   .node = up->node,
                                   .cpu_max = -1,
                                   .cpus = -1,
                                   .requested_mcpu = -1,
                                   .requested_memory_bytes = -1,
                                   .cpu_pods = -1,
                                   .daemon_pods = -1};
        add_cpu(&out, book);
        add_network(&out, book);
        if (overlaps(&node->tainted, out.hour))
            out.gpu_taint = MACHINE_TAINT_PRESENT;
        else if (node->watch && watch_says(node->watch, &node->watch->taints_known, out.hour))
            out.gpu_taint = MACHINE_TAINT_NONE;
        mem_push(batch->machine_hours, batch->machine_hours_n, batch->machine_hours_room, out);
    }
    if (batch->machine_hours_n == first)
        return;
    struct filling filling = {book, node->watch, batch->machine_hours + first,
                              batch->machine_hours_n - first};
    if (node->watch)
        add_pods(&filling, node->cluster, node->name);
    size_t kept = first;
    for (size_t i = first; i < batch->machine_hours_n; i++)
        if (!says_nothing(&batch->machine_hours[i]))
            batch->machine_hours[kept++] = batch->machine_hours[i];
    batch->machine_hours_n = kept;
}
