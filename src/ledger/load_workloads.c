/* What workloads with GPUs did beside them, and what is known of their namespaces (row.h: struct
 * workload_hour, namespace_hour). */
#include <stdlib.h>

#include "ledger/load_book.h"

/* Garbage of many pods may add up to more than there are numbers. */
static void add_capped(int64_t *sum, wide_t more)
{
    more += *sum;
    *sum = more > INT64_MAX ? INT64_MAX : (int64_t)more;
}

/* ------------------------------------------------------------------ gauges */

/* A gauge over one slot. */
struct level {
    wide_t sum; /* value x ms */
    int64_t seen_ms, most;
};

/* A reading covers the time since the one before it, at most the gap, else a step: as samples of
 * GPUs do. */
static void add_readings(const struct settings *settings, const struct meter *meter, time_ms from,
                         struct level levels[LOAD_SLOTS_AN_HOUR])
{
    size_t low = 0, high = meter->readings_n;
    while (low < high) { /* the first that may cover something */
        size_t mid = (low + high) / 2;
        if (meter->readings[mid].t <= from)
            low = mid + 1;
        else
            high = mid;
    }
    bool mean = meter->name->load == LOAD_KV;
    for (size_t i = low; i < meter->readings_n; i++) {
        const struct load_reading *reading = &meter->readings[i];
        time_ms since = i ? meter->readings[i - 1].t : TIME_MIN;
        if (since < reading->t - settings->gap_ms)
            since = reading->t - settings->step_ms;
        if (since >= from + HOUR_MS)
            break;
        int64_t value = mean ? reading->sum / reading->series : reading->sum;
        for (int s = 0; s < LOAD_SLOTS_AN_HOUR; s++) {
            time_ms a = from + s * LOAD_SLOT_MS, b = a + LOAD_SLOT_MS;
            a = since > a ? since : a;
            b = reading->t < b ? reading->t : b;
            if (a >= b)
                continue;
            levels[s].sum += (wide_t)value * (b - a);
            levels[s].seen_ms += b - a;
            levels[s].most = value > levels[s].most ? value : levels[s].most;
        }
    }
}

/* Of each slot of an hour, from the first meter that has it. */
static void level_of(const struct load_book *book, const struct load_holder *holder, enum load load,
                     struct level ret[LOAD_SLOTS_AN_HOUR])
{
    const struct meter_list *list =
        load_list_of_pod(book, holder->cluster, holder->namespace, holder->pod, load);
    memset(ret, 0, LOAD_SLOTS_AN_HOUR * sizeof *ret);
    for (size_t i = 0; list && i < list->n; i++) {
        struct level of_meter[LOAD_SLOTS_AN_HOUR] = {0};
        add_readings(book->facts->settings, list->at[i], holder->hour, of_meter);
        for (int s = 0; s < LOAD_SLOTS_AN_HOUR; s++)
            if (!ret[s].seen_ms)
                ret[s] = of_meter[s];
    }
}

static void add_level(const struct level levels[LOAD_SLOTS_AN_HOUR], int64_t *ret_sum,
                      int64_t *ret_most, int64_t *ret_seen, int64_t seen[LOAD_SLOTS_AN_HOUR])
{
    for (int s = 0; s < LOAD_SLOTS_AN_HOUR; s++) {
        if (!levels[s].seen_ms)
            continue;
        add_capped(ret_sum, levels[s].sum);
        *ret_most = levels[s].most > *ret_most ? levels[s].most : *ret_most;
        if (ret_seen)
            *ret_seen += levels[s].seen_ms;
        seen[s] = levels[s].seen_ms > seen[s] ? levels[s].seen_ms : seen[s];
    }
}

/* ------------------------------------------------------------------ a pod's hour */

static void add_serving(const struct load_book *book, const struct load_holder *holder,
                        struct workload_hour *out)
{
    static const enum load counters[] = {LOAD_GENERATION_TOKENS, LOAD_PROMPT_TOKENS, LOAD_REQUESTS};
    struct level levels[LOAD_SLOTS_AN_HOUR];
    int64_t seen[LOAD_SLOTS_AN_HOUR] = {0}, first = holder->hour / LOAD_SLOT_MS;
    level_of(book, holder, LOAD_RUNNING, levels);
    add_level(levels, &out->running_ms, &out->running_max, NULL, seen);
    level_of(book, holder, LOAD_WAITING, levels);
    add_level(levels, &out->waiting_ms, &out->waiting_max, NULL, seen);
    level_of(book, holder, LOAD_KV, levels);
    add_level(levels, &out->kv, &out->kv_max, &out->kv_seen_ms, seen);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        const struct meter_list *list =
            load_list_of_pod(book, holder->cluster, holder->namespace, holder->pod, counters[i]);
        int64_t *sum = counters[i] == LOAD_REQUESTS ? &out->requests : &out->tokens;
        for (int s = 0; list && s < LOAD_SLOTS_AN_HOUR; s++) {
            const struct load_bin *bin = load_list_bin(list, first + s);
            if (!bin)
                continue;
            *sum = *sum < 0 ? 0 : *sum;
            add_capped(sum, bin->sum);
            seen[s] = LOAD_SLOT_MS;
        }
    }
    for (int s = 0; s < LOAD_SLOTS_AN_HOUR; s++)
        out->serving_seen_ms += seen[s];
}

static void add_cpu(const struct load_book *book, const struct load_holder *holder,
                    struct workload_hour *out)
{
    const struct meter_list *list =
        load_list_of_pod(book, holder->cluster, holder->namespace, holder->pod, LOAD_CONTAINER_CPU);
    int64_t first = holder->hour / LOAD_SLOT_MS;
    for (int64_t slot = first; list && slot < first + LOAD_SLOTS_AN_HOUR; slot++) {
        const struct load_bin *bin = load_list_bin(list, slot);
        if (!bin)
            continue;
        add_capped(&out->cpu_mcpu_ms, bin->sum); /* 1 us of a CPU is 1/1000 CPU for 1 ms */
        out->cpu_seen_ms += LOAD_SLOT_MS;
        int64_t mean = bin->sum / LOAD_SLOT_MS;
        out->cpu_max_mcpu = mean > out->cpu_max_mcpu ? mean : out->cpu_max_mcpu;
    }
}

/* The CPU limit of a pod, containers added up, else what it requests; of several pods the most. */
static void add_limit(const struct pod *pod, struct workload_hour *out)
{
    int64_t sum = -1;
    for (size_t k = 0; k < pod->host_n; k++) {
        const struct pod_host_request *host = &pod->host[k];
        int64_t mcpu = host->limit_mcpu >= 0 ? host->limit_mcpu : host->mcpu;
        if (mcpu >= 0)
            sum = (sum < 0 ? 0 : sum) + mcpu;
    }
    out->cpu_limit_mcpu = sum > out->cpu_limit_mcpu ? sum : out->cpu_limit_mcpu;
}

/* Of several people in one hour the first, by pods in order. */
static void add_user(struct facts *facts, const struct load_holder *holder, uint32_t pod,
                     struct workload_hour *out)
{
    struct owner_query query;
    if (out->user != NAME_NONE || holder->type != WORKLOAD_INTERACTIVE)
        return;
    facts_owner_query(facts, pod, holder->cluster, holder->namespace, holder->workload, &query);
    struct str user = owners_user(&query);
    out->user = user.n ? names_put(facts->names, user) : NAME_NONE;
}

/* What Kubernetes says of the pods that had the holder's name in the hour. */
static void add_pods(const struct load_book *book, const struct load_holder *holder,
                     struct workload_hour *out)
{
    struct facts *facts = book->facts;
    uint32_t at =
        idmap_get(&facts->pods_named, IDKEY(holder->cluster, holder->namespace, holder->pod));
    for (size_t i = 0; at != IDMAP_NONE && i < facts->by_name[at].n; i++) {
        uint32_t index = facts->by_name[at].pods[i];
        const struct pod *pod = &facts->pods[index];
        if (pod->since >= holder->hour + HOUR_MS || pod->until <= holder->hour)
            continue;
        add_limit(pod, out);
        add_user(facts, holder, index, out);
    }
}

/* ------------------------------------------------------------------ workloads */

static int by_workload(const void *a, const void *b, void *names)
{
    const struct load_holder *x = a, *y = b;
    if (x->hour != y->hour)
        return x->hour < y->hour ? -1 : 1;
    const name_t left[] = {x->cluster, x->namespace, x->workload, x->pod};
    const name_t right[] = {y->cluster, y->namespace, y->workload, y->pod};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        int order = left[i] == right[i]
                        ? 0
                        : str_cmp(names_text(names, left[i]), names_text(names, right[i]));
        if (order)
            return order;
    }
    return 0;
}

static bool same_workload(const struct workload_hour *out, const struct load_holder *holder)
{
    return out->hour == holder->hour && out->cluster == holder->cluster &&
           out->namespace == holder->namespace && out->workload == holder->workload;
}

static bool says_nothing(const struct workload_hour *hour)
{
    return !hour->cpu_seen_ms && !hour->serving_seen_ms && hour->cpu_limit_mcpu < 0 &&
           hour->user == NAME_NONE;
}

void load_book_workloads(struct load_book *book, struct row_batch *batch)
{
    if (book->holders_n)
        qsort_r(book->holders, book->holders_n, sizeof *book->holders, by_workload,
                book->facts->names);
    for (size_t i = 0; i < book->holders_n;) {
        const struct load_holder *first = &book->holders[i];
        struct workload_hour out = {.hour = first->hour,
                                    .cluster = first->cluster,
                                    .namespace = first->namespace,
                                    .workload = first->workload,
                                    .cpu_max_mcpu = -1,
                                    .cpu_limit_mcpu = -1,
                                    .running_max = -1,
                                    .waiting_max = -1,
                                    .kv_max = -1,
                                    .requests = -1,
                                    .tokens = -1};
        for (; i < book->holders_n && same_workload(&out, &book->holders[i]); i++) {
            add_cpu(book, &book->holders[i], &out);
            add_pods(book, &book->holders[i], &out);
            add_serving(book, &book->holders[i], &out);
        }
        if (!says_nothing(&out))
            mem_push(batch->workload_hours, batch->workload_hours_n, batch->workload_hours_room,
                     out);
    }
}

/* ------------------------------------------------------------------ namespaces */

enum { LEVEL_GPU_PODS, LEVEL_WITHOUT_PRIORITY, LEVEL_PENDING_PODS, LEVEL_PENDING_GPUS };

struct space {
    name_t cluster, namespace;
    struct sweep sweep;
    int64_t *largest; /* that waits, by hour of the book */
};

struct spaces {
    const struct load_book *book;
    struct idmap by_name;
    struct space *at;
    size_t n, room;
};

static struct space *space_of(struct spaces *spaces, name_t cluster, name_t namespace)
{
    bool fresh;
    uint32_t at =
        idmap_add(&spaces->by_name, IDKEY(cluster, namespace), (uint32_t)spaces->n, &fresh);
    if (fresh) {
        struct span hours = spaces->book->hours;
        struct space space = {.cluster = cluster, .namespace = namespace};
        space.largest =
            mem_zalloc((size_t)((hours.to - hours.from) / HOUR_MS) + 1, sizeof *space.largest);
        mem_push(spaces->at, spaces->n, spaces->room, space);
    }
    return &spaces->at[at];
}

static struct span clipped(struct span span, struct span hours)
{
    span.from = span.from > hours.from ? span.from : hours.from;
    span.to = span.to < hours.to ? span.to : hours.to;
    return span;
}

static void add_pod(struct spaces *spaces, const struct pod *pod)
{
    struct span hours = spaces->book->hours;
    struct space *space = space_of(spaces, pod->cluster, pod->namespace);
    int64_t holds[SWEEP_LEVELS] = {0}, waits[SWEEP_LEVELS] = {0};
    holds[LEVEL_GPU_PODS] = 1;
    holds[LEVEL_WITHOUT_PRIORITY] = pod->priority == NAME_NONE;
    waits[LEVEL_PENDING_PODS] = 1;
    waits[LEVEL_PENDING_GPUS] = pod->requested;
    for (size_t i = 0; pod->node != NAME_NONE && i < pod->counted.n; i++)
        sweep_add(&space->sweep, clipped(pod->counted.at[i], hours), holds);
    for (size_t i = 0; i < pod->pending.n; i++) {
        struct spans waiting = {0};
        struct span part = clipped(pod->pending.at[i], hours);
        if (part.from < part.to)
            spans_without(part, &pod->not_holding, &waiting);
        for (size_t k = 0; k < waiting.n; k++) {
            struct span span = waiting.at[k];
            sweep_add(&space->sweep, span, waits);
            for (time_ms hour = hour_floor(span.from); hour < span.to; hour += HOUR_MS) {
                int64_t *largest = &space->largest[(hour - hours.from) / HOUR_MS];
                *largest = pod->requested > *largest ? pod->requested : *largest;
            }
        }
        spans_release(&waiting);
    }
}

struct filling {
    const struct load_book *book;
    const struct space *space;
    const struct watch *watch;
    struct row_batch *batch;
};

static void put_hour(void *context, time_ms hour, const int64_t most[SWEEP_LEVELS],
                     const wide_t level_ms[SWEEP_LEVELS])
{
    const struct filling *filling = context;
    const struct space *space = filling->space;
    struct span hours = {hour, hour + HOUR_MS};
    struct namespace_hour out = {
        .hour = hour,
        .cluster = space->cluster,
        .namespace = space->namespace,
        .quotas_known = watch_says(filling->watch, &filling->watch->quotas_known, hour),
        .gpu_quota = facts_gpu_quota(filling->book->facts, space->cluster, space->namespace, hours),
        .priorities_known = watch_says(filling->watch, &filling->watch->priorities_known, hour),
        .gpu_pods = (int32_t)most[LEVEL_GPU_PODS],
        .gpu_pods_without_priority = (int32_t)most[LEVEL_WITHOUT_PRIORITY],
        .pending_pods = (int32_t)most[LEVEL_PENDING_PODS],
        .pending_gpus = most[LEVEL_PENDING_GPUS],
        .pending_largest = space->largest[(hour - filling->book->hours.from) / HOUR_MS],
        .pending_gpu_ms = (int64_t)level_ms[LEVEL_PENDING_GPUS],
    };
    if (out.gpu_pods || out.pending_pods || out.gpu_quota >= 0)
        mem_push(filling->batch->namespace_hours, filling->batch->namespace_hours_n,
                 filling->batch->namespace_hours_room, out);
}

static int by_hour_and_name(const void *a, const void *b, void *names)
{
    const struct namespace_hour *x = a, *y = b;
    if (x->hour != y->hour)
        return x->hour < y->hour ? -1 : 1;
    int order = x->cluster == y->cluster
                    ? 0
                    : str_cmp(names_text(names, x->cluster), names_text(names, y->cluster));
    return order ? order
                 : str_cmp(names_text(names, x->namespace), names_text(names, y->namespace));
}

void load_book_namespaces(const struct load_book *book, struct row_batch *batch)
{
    struct facts *facts = book->facts;
    struct spaces spaces = {.book = book};
    for (size_t i = 0; i < facts->pods_n; i++)
        if (pod_wants_gpus(&facts->pods[i]))
            add_pod(&spaces, &facts->pods[i]);
    for (size_t i = 0; i < facts->quotas_n; i++)
        space_of(&spaces, facts->quotas[i].cluster, facts->quotas[i].namespace);
    for (size_t i = 0; i < spaces.n; i++) {
        struct space *space = &spaces.at[i];
        struct filling filling = {book, space, facts_watch(facts, space->cluster), batch};
        sweep_hours(&space->sweep, book->hours, put_hour, &filling);
        sweep_release(&space->sweep);
        free(space->largest);
    }
    if (batch->namespace_hours_n)
        qsort_r(batch->namespace_hours, batch->namespace_hours_n, sizeof *batch->namespace_hours,
                by_hour_and_name, facts->names);
    free(spaces.at);
    idmap_release(&spaces.by_name);
}
