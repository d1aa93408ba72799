/* OpenCost's Allocation API over the ledger (docs/api.md: allocation), for clients that know it:
 * {"code": 200, "data": [{NAME: allocation, …} a step, …]}.
 *
 * All money of the ledger is that of GPU nodes, so all of it is gpuCost; CPU, memory, disks and
 * networks are 0. What nobody holds is __idle__, so that allocations with idle add up to what the
 * nodes cost. What a holder leaves idle stays his, as it does in OpenCost: gpuEfficiency shows it.
 */
#include <stdlib.h>
#include <xxhash.h>

#include "report/figure.h"
#include "report/text.h"
#include "serve/allocation_impl.h"

#define IDLE "__idle__"
#define UNALLOCATED "__unallocated__"

struct allocation {
    struct str name;
    uint64_t hash; /* of name and idle */
    struct str values[PROPERTIES_MAX];
    struct figures figures;
    money_t shared_idle;
    bool idle;
};

struct set {
    const struct allocation_request *request;
    struct arena arena;
    struct span window;
    struct allocation *items;
    size_t n, room;
};

/* ---- from groups to allocations ---- */

static struct str lower(struct arena *arena, struct str text)
{
    char *kept = arena_alloc(arena, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        kept[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] + 32) : text.p[i];
    kept[text.n] = 0;
    return (struct str){kept, text.n};
}

/* "Deployment/rank" -> "deployment", "rank" */
static bool split_workload(struct str workload, struct str *ret_kind, struct str *ret_name)
{
    const char *slash = memchr(workload.p, '/', workload.n);
    if (!slash)
        return false;
    *ret_kind = (struct str){workload.p, (size_t)(slash - workload.p)};
    *ret_name = (struct str){slash + 1, workload.n - ret_kind->n - 1};
    return true;
}

static struct str property_text(struct arena *arena, const struct property *property,
                                struct str key)
{
    struct str kind, name;
    struct strbuf text = {0};
    if (property->kind == PROPERTY_UNKNOWN || str_eq(key, STR("-")))
        return STR(UNALLOCATED);
    if (property->kind == PROPERTY_KEY)
        return property->key == KEY_KIND ? lower(arena, key) : key;
    if (!split_workload(key, &kind, &name))
        return property->kind == PROPERTY_OF_KIND ? STR(UNALLOCATED) : key;
    if (property->kind == PROPERTY_OF_KIND)
        return str_eq(kind, str_of(property->of_kind)) ? name : STR(UNALLOCATED);
    strbuf_add(&text, lower(arena, kind));
    strbuf_addc(&text, ':');
    strbuf_add(&text, name);
    struct str kept = str_keep(arena, strbuf_str(&text));
    strbuf_release(&text);
    return kept;
}

static struct allocation *find(struct set *set, struct str name, bool idle)
{
    uint64_t hash = XXH3_64bits_withSeed(name.p, name.n, idle);
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i].hash == hash && set->items[i].idle == idle &&
            str_eq(set->items[i].name, name))
            return &set->items[i];
    mem_push(set->items, set->n, set->room,
             ((struct allocation){.name = name, .hash = hash, .idle = idle}));
    return &set->items[set->n - 1];
}

/* The keys of a query: those of the properties, then namespace (who holds?), and node where idle is
 * told apart by it. */
static void make_keys(struct allocation_request *request)
{
    struct query *query = &request->query;
    query->keys_n = 0;
    for (size_t i = 0; i < request->properties_n; i++)
        if (request->properties[i].kind != PROPERTY_UNKNOWN)
            query->keys[query->keys_n++] = request->properties[i].key;
    query->keys[query->keys_n++] = KEY_NAMESPACE;
    if (request->idle_by_node && query->keys_n < QUERY_KEYS_MAX)
        query->keys[query->keys_n++] = KEY_NODE;
}

static void add_idle(struct set *set, const struct group *group)
{
    struct strbuf name = {0};
    const struct query *query = &set->request->query;
    if (set->request->idle_by_node && query->keys[query->keys_n - 1] == KEY_NODE)
        strbuf_addf(&name, "%.*s/", STR_ARG(group->keys[query->keys_n - 1]));
    strbuf_add(&name, STR(IDLE));
    figures_add(&find(set, str_keep(&set->arena, strbuf_str(&name)), true)->figures,
                &group->figures);
    strbuf_release(&name);
}

static void add_group(struct set *set, const struct group *group)
{
    const struct allocation_request *request = set->request;
    struct strbuf name = {0};
    struct str values[PROPERTIES_MAX];
    size_t key = 0;
    for (size_t i = 0; i < request->properties_n; i++) {
        const struct property *property = &request->properties[i];
        struct str text = property->kind == PROPERTY_UNKNOWN ? STR("-") : group->keys[key++];
        bool no_cluster = property->key == KEY_CLUSTER && str_eq(text, STR("-"));
        values[i] = no_cluster ? STR_NONE : property_text(&set->arena, property, text);
        strbuf_addf(&name, "%s%.*s", i ? "/" : "", STR_ARG(values[i]));
    }
    if (!request->properties_n)
        strbuf_add(&name, STR("total"));
    struct allocation *to = find(set, strbuf_str(&name), false);
    if (!to->figures.rows && !to->figures.cost) { /* a new one */
        to->name = str_keep(&set->arena, strbuf_str(&name));
        for (size_t i = 0; i < request->properties_n; i++)
            to->values[i] = str_keep(&set->arena, values[i]);
    }
    strbuf_release(&name);
    figures_add(&to->figures, &group->figures);
}

/* Shares out what is idle, to the nano: by cost, or evenly. */
static void share_idle(struct set *set)
{
    money_t idle = 0;
    size_t n = 0;
    wide_t total = 0;
    wide_t *weights = mem_zalloc(set->n + 1, sizeof *weights);
    money_t *parts = mem_zalloc(set->n + 1, sizeof *parts);
    for (size_t i = 0; i < set->n; i++) {
        struct allocation item = set->items[i];
        if (item.idle) {
            idle += item.figures.cost;
            continue;
        }
        weights[n] = set->request->share == SHARE_IDLE_EVEN ? 1 : item.figures.cost;
        total += weights[n];
        set->items[n++] = item;
    }
    set->n = n;
    if (total > 0 && idle > 0) {
        for (size_t i = 0; i < n; i++)
            weights[i] *= idle;
        money_apportion(idle, weights, total, n, parts);
        for (size_t i = 0; i < n; i++)
            set->items[i].shared_idle = parts[i];
    }
    free(weights);
    free(parts);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct allocation *)a)->name, ((const struct allocation *)b)->name);
}

static enum err read_set(struct api_call *call, struct set *set, struct error *err)
{
    const struct allocation_request *request = set->request;
    struct query query = request->query;
    struct result *result = NULL;
    size_t holder = 0;
    for (size_t i = 0; i < request->properties_n; i++)
        holder += request->properties[i].kind != PROPERTY_UNKNOWN;
    query.window = set->window;
    enum err code = query_run(call->store, &query, &result, err);
    if (code == ERR_OK)
        code = result_sort(result, STR("name"), err);
    for (size_t g = 0; code == ERR_OK && g < result->groups_n; g++) {
        const struct group *group = &result->groups[g];
        bool unheld = str_eq(group->keys[holder], STR("-"));
        if (!unheld)
            add_group(set, group);
        else if (request->idle || request->share)
            add_idle(set, group);
    }
    /* what group names point to lives in the result */
    result_free(result);
    if (request->share)
        share_idle(set);
    if (set->n)
        qsort(set->items, set->n, sizeof *set->items, by_name);
    return code;
}

/* ---- writing ---- */

/* Fields that are 0 for everybody: what is not GPUs. */
static const char *const zeros[] = {
    "cpuCores",
    "cpuCoreRequestAverage",
    "cpuCoreLimitAverage",
    "cpuCoreUsageAverage",
    "cpuCoreHours",
    "cpuCost",
    "cpuCostAdjustment",
    "cpuCostIdle",
    "cpuEfficiency",
    "gpuCostAdjustment",
    "networkTransferBytes",
    "networkReceiveBytes",
    "networkCost",
    "networkCrossZoneCost",
    "networkCrossRegionCost",
    "networkInternetCost",
    "networkCostAdjustment",
    "loadBalancerCost",
    "loadBalancerCostAdjustment",
    "pvBytes",
    "pvByteHours",
    "pvCost",
    "pvCostAdjustment",
    "ramBytes",
    "ramByteRequestAverage",
    "ramByteLimitAverage",
    "ramByteUsageAverage",
    "ramByteHours",
    "ramCost",
    "ramCostAdjustment",
    "ramCostIdle",
    "ramEfficiency",
    "externalCost",
    "sharedCost",
};

static void add_nano(struct strbuf *out, const char *name, wide_t nano)
{
    strbuf_addf(out, "\"%s\": ", name);
    text_nano_plain(out, nano);
    strbuf_add(out, STR(", "));
}

static wide_t figure_or_0(const struct figures *figures, enum figure_id id)
{
    wide_t value;
    return figure_get(figures, id, &value) ? value : 0;
}

static void add_properties(const struct set *set, const struct allocation *item, struct strbuf *out)
{
    const struct allocation_request *request = set->request;
    bool any = false;
    strbuf_add(out, STR("\"properties\": {"));
    for (size_t i = 0; i < request->properties_n && !item->idle; i++) {
        const struct property *property = &request->properties[i];
        struct str value = item->values[i];
        if (!property->name || !value.n || str_eq(value, STR(UNALLOCATED)))
            continue;
        const char *colon =
            property->kind == PROPERTY_CONTROLLER ? memchr(value.p, ':', value.n) : NULL;
        strbuf_add(out, str_of(any ? ", " : ""));
        if (colon) {
            strbuf_add(out, STR("\"controllerKind\": "));
            api_put_string(out, (struct str){value.p, (size_t)(colon - value.p)});
            strbuf_add(out, STR(", "));
            value = (struct str){colon + 1, value.n - (size_t)(colon - value.p) - 1};
        }
        strbuf_addf(out, "\"%s\": ", property->name);
        api_put_string(out, value);
        any = true;
    }
    strbuf_add(out, STR("}, "));
}

static void add_times(const struct set *set, struct strbuf *out)
{
    strbuf_add(out, STR("\"window\": {\"start\": "));
    api_put_time(out, set->window.from);
    strbuf_add(out, STR(", \"end\": "));
    api_put_time(out, set->window.to);
    strbuf_add(out, STR("}, \"start\": "));
    api_put_time(out, set->window.from);
    strbuf_add(out, STR(", \"end\": "));
    api_put_time(out, set->window.to);
    strbuf_addf(out, ", \"minutes\": %lld, ",
                (long long)((set->window.to - set->window.from) / 60000));
}

static void add_allocation(const struct set *set, const struct allocation *item, struct strbuf *out)
{
    const struct figures *figures = &item->figures;
    wide_t hours = (set->window.to - set->window.from) / HOUR_MS;
    wide_t gpu_hours = figure_or_0(figures, FIGURE_GPU_HOURS), gpus = hours ? gpu_hours / hours : 0;
    wide_t efficiency = item->idle ? 0 : figure_or_0(figures, FIGURE_EFFICIENCY);
    api_put_string(out, item->name);
    strbuf_add(out, STR(": {\"name\": "));
    api_put_string(out, item->name);
    strbuf_add(out, STR(", "));
    add_properties(set, item, out);
    add_times(set, out);
    wide_t utilisation = item->idle ? 0 : figure_or_0(figures, FIGURE_UTILISATION);
    add_nano(out, "gpuCount", gpus);
    add_nano(out, "gpuHours", gpu_hours);
    add_nano(out, "gpuCost", (wide_t)figures->cost + item->shared_idle);
    add_nano(out, "gpuCostIdle", item->shared_idle);
    add_nano(out, "gpuEfficiency", efficiency);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        strbuf_addf(out, "\"%s\": 0, ", zeros[i]);
    strbuf_add(out, STR("\"pvs\": null, \"lbAllocations\": null, \"rawAllocationOnly\": null, "));
    add_nano(out, "totalCost", (wide_t)figures->cost + item->shared_idle);
    add_nano(out, "totalEfficiency", efficiency);
    strbuf_add(out, STR("\"gpuAllocation\": {\"gpuDevice\": \"\", \"gpuModel\": \"\", "
                        "\"gpuUUID\": \"\", \"isGPUShared\": false, "));
    add_nano(out, "gpuRequestAverage", gpus);
    strbuf_add(out, STR("\"gpuUsageAverage\": ")); /* clients divide it by the request */
    text_nano_plain(out, utilisation * gpus / NANO);
    strbuf_add(out, STR("}}"));
}

static void add_set(const struct set *set, struct strbuf *out)
{
    strbuf_addc(out, '{');
    for (size_t i = 0; i < set->n; i++) {
        strbuf_add(out, str_of(i ? ",\n" : "\n"));
        add_allocation(set, &set->items[i], out);
    }
    strbuf_addc(out, '}');
}

/* OpenCost's clients read {"code", "message"} of an error. */
static enum err refuse(struct api_call *call, struct strbuf *out, const struct error *err)
{
    strbuf_clear(out);
    call->answer->status = 400;
    strbuf_add(out, STR("{\"code\": 400, \"message\": "));
    api_put_string(out, str_of(err->text));
    strbuf_add(out, STR(", \"data\": null}\n"));
    return ERR_OK;
}

/* kubectl-cost asks for the currency before it asks for costs. */
enum err api_allocation_configs(struct api_call *call, struct strbuf *out, struct error *err)
{
    (void)err;
    strbuf_add(out, STR("{\"code\": 200, \"data\": {\"currencyCode\": "));
    api_put_string(out, str_of(call->settings->currency));
    strbuf_add(out, STR("}}\n"));
    return ERR_OK;
}

enum err api_allocation(struct api_call *call, struct strbuf *out, struct error *err)
{
    struct allocation_request request;
    enum err code = allocation_read(call, &request, err);
    if (code != ERR_OK)
        return refuse(call, out, err);
    make_keys(&request);
    strbuf_add(out, STR("{\"code\": 200, \"status\": \"success\", \"data\": ["));
    for (time_ms from = request.window.from, to; from < request.window.to && code == ERR_OK;
         from = to) {
        to = allocation_set_end(&request, from);
        struct set set = {.request = &request, .window = {from, to}};
        code = read_set(call, &set, err);
        strbuf_add(out, str_of(from > request.window.from ? ",\n" : ""));
        if (code == ERR_OK)
            add_set(&set, out);
        arena_release(&set.arena);
        free(set.items);
    }
    strbuf_add(out, STR("]}\n"));
    return code;
}
