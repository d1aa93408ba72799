/* Reading the view: one pass over what GPUs did, one over what their hosts did, one over what nodes
 * cost.
 *
 * Hours before the last one in which a GPU worked are of no use to "idle since" and are dropped at
 * once: what stays in memory are the tails of those that stand still. */
#include "insight/view.h"

#include <stdlib.h>

#include "fleet/catalogue.h"

const char *const view_signal_words[VIEW_SIGNALS] = {"util", "memory", "power"};

struct reading {
    struct view *view;
    const struct view_options *options;
    uint32_t *table; /* device + 1; 0 free */
    size_t mask;
};

static size_t slot_of(const struct reading *reading, name_t cluster, name_t device)
{
    uint64_t hash = ((uint64_t)cluster << 32 | device) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 24) & reading->mask;
    for (;; at = (at + 1) & reading->mask) {
        if (!reading->table[at])
            return at;
        const struct view_device *found = &reading->view->devices[reading->table[at] - 1];
        if (found->cluster == cluster && found->device == device)
            return at;
    }
}

static int64_t default_limit(const struct reading *reading, name_t model)
{
    struct str text = names_text(reading->view->names, model);
    for (size_t i = 0; i < reading->options->limits_n; i++)
        if (str_eq(reading->options->limits[i].model, text))
            return reading->options->limits[i].mw;
    const struct gpu_model *gpu = text.n ? catalogue_gpu(text) : NULL;
    return gpu ? gpu->power_limit_mw : 0;
}

static struct view_device *device_of(struct reading *reading, const struct device_hour *hour)
{
    struct view *view = reading->view;
    if (view->devices_n * 2 >= reading->mask) {
        free(reading->table);
        reading->mask = reading->mask ? reading->mask * 2 + 1 : 255;
        reading->table = mem_zalloc(reading->mask + 1, sizeof *reading->table);
        for (size_t i = 0; i < view->devices_n; i++)
            reading->table[slot_of(reading, view->devices[i].cluster, view->devices[i].device)] =
                (uint32_t)i + 1;
    }
    size_t at = slot_of(reading, hour->cluster, hour->device);
    if (!reading->table[at]) {
        struct view_device device = {.cluster = hour->cluster,
                                     .device = hour->device,
                                     .days = mem_zalloc(view->days_n, sizeof *device.days),
                                     .still =
                                         mem_zalloc(view_still_words(view), sizeof *device.still)};
        mem_push(view->devices, view->devices_n, view->devices_room, device);
        reading->table[at] = (uint32_t)view->devices_n;
    }
    struct view_device *device = &view->devices[reading->table[at] - 1];
    if (device->node != hour->node) {
        device->tail_n = 0;
        device->recent = (struct view_recent){0};
        memset(device->still, 0, view_still_words(view) * sizeof *device->still);
    }
    if (device->model != hour->model)
        device->limit_mw = default_limit(reading, hour->model);
    device->node = hour->node;
    device->model = hour->model;
    return device;
}

static int64_t limit_of(const struct view_device *device, const struct device_hour *hour)
{
    return hour->power_limit_mw ? hour->power_limit_mw : device->limit_mw;
}

static void add_to_day(struct view_sum *day, const struct device_hour *hour, int64_t limit_mw)
{
    day->up_ms += hour->up_ms;
    day->covered_ms += hour->covered_ms;
    day->held_ms += hour->held_ms;
    day->sum[VIEW_UTIL] += hour->util;
    day->seen_ms[VIEW_UTIL] += hour->util_seen_ms;
    day->sum[VIEW_MEMORY] += hour->mem;
    day->seen_ms[VIEW_MEMORY] += hour->mem_seen_ms;
    if (limit_mw > 0) {
        day->sum[VIEW_POWER] += (wide_t)hour->power_mw_ms * NANO / limit_mw;
        day->seen_ms[VIEW_POWER] += hour->power_seen_ms;
    }
}

/* A GPU that left its node and came back within the hour has it in two parts. */
static void join_hour(struct view_hour *known, const struct view_hour *more)
{
    known->up_ms += more->up_ms;
    known->observed_ms += more->observed_ms;
    if (more->worked_until != TIME_MIN) {
        *known = (struct view_hour){known->hour,  more->worked_until, more->idle_from,
                                    known->up_ms, known->observed_ms, more->idle_after_ms};
        return;
    }
    known->idle_after_ms += more->idle_after_ms;
    if (known->idle_from == TIME_MIN)
        known->idle_from = more->idle_from;
}

static void add_to_tail(struct view_device *device, const struct device_hour *hour)
{
    struct view_hour each = {hour->hour,  hour->worked_until, hour->idle_from,
                             hour->up_ms, hour->observed_ms,  hour->idle_after_ms};
    if (device->tail_n && device->tail[device->tail_n - 1].hour == hour->hour) {
        join_hour(&device->tail[device->tail_n - 1], &each);
        return;
    }
    if (hour->worked_until != TIME_MIN)
        device->tail_n = 0;
    mem_push(device->tail, device->tail_n, device->tail_room, each);
}

/* A GPU that came back within the hour stands still in it if it does in both parts. */
static void add_still(const struct view *view, struct view_device *device,
                      const struct device_hour *hour)
{
    bool worked = hour->worked_until != TIME_MIN;
    if (hour->hour >= view->still.from) {
        size_t at = (size_t)((hour->hour - view->still.from) / HOUR_MS);
        uint64_t bit = UINT64_C(1) << (at % 64);
        if (!worked && hour->up_ms > 0 && 2 * hour->idle_after_ms >= hour->up_ms)
            device->still[at / 64] |= bit;
        else if (worked)
            device->still[at / 64] &= ~bit;
    }
    if (hour->hour >= view->window.to - VIEW_RECENT_MS) {
        device->recent.up_ms += hour->up_ms;
        device->recent.observed_ms += hour->observed_ms;
        device->recent.worked |= worked;
    }
}

static void add_floor(struct view *view, name_t model, int64_t ratio, int64_t samples)
{
    size_t at = 0;
    while (at < view->floors_n && view->floors[at].model != model)
        at++;
    if (at == view->floors_n)
        mem_push(view->floors, view->floors_n, view->floors_room,
                 ((struct view_floor){.model = model}));
    struct view_floor *floor = &view->floors[at];
    mem_push(floor->hours, floor->n, floor->room, ((struct view_floor_hour){ratio, samples}));
}

/* Hours of a device come in a run. */
static bool take_hours(void *context, const struct device_hour *hours, size_t n)
{
    struct reading *reading = context;
    struct view *view = reading->view;
    struct view_device *device = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct device_hour *hour = &hours[i];
        if (!device || hour->device != hours[i - 1].device || hour->model != hours[i - 1].model)
            device = device_of(reading, hour);
        int64_t limit_mw = limit_of(device, hour);
        for (size_t d = 0; d < view->days_n && hour->hour >= view->days[0].from; d++)
            if (hour->hour >= view->days[d].from && hour->hour < view->days[d].to)
                add_to_day(&device->days[d], hour, limit_mw);
        if (hour->hour >= view->window.from) {
            add_to_tail(device, hour);
            add_still(view, device, hour);
        }
        if (hour->floor_samples > 0 && limit_mw > 0) {
            wide_t ratio = (wide_t)hour->floor_mw * NANO / hour->floor_samples / limit_mw;
            add_floor(view, hour->model, (int64_t)ratio, hour->floor_samples);
        }
    }
    return true;
}

static int by_place(const void *a, const void *b, void *names)
{
    const struct view_device *left = a, *right = b;
    int order = str_cmp(names_text(names, left->cluster), names_text(names, right->cluster));
    if (!order)
        order = str_cmp(names_text(names, left->node), names_text(names, right->node));
    return order ? order
                 : str_cmp(names_text(names, left->device), names_text(names, right->device));
}

static void find_nodes(struct view *view)
{
    for (size_t i = 0; i < view->devices_n; i++) {
        const struct view_device *device = &view->devices[i];
        struct view_node *last = view->nodes_n ? &view->nodes[view->nodes_n - 1] : NULL;
        if (!last || last->cluster != device->cluster || last->node != device->node) {
            struct view_node node = {.cluster = device->cluster,
                                     .node = device->node,
                                     .first = i,
                                     .days = mem_alloc((view->days_n + 1) * sizeof *node.days),
                                     .requested_mcpu = -1,
                                     .requested_memory_bytes = -1,
                                     .cpus = -1};
            for (size_t d = 0; d < view->days_n; d++)
                node.days[d] = (struct view_host){-1, -1};
            mem_push(view->nodes, view->nodes_n, view->nodes_room, node);
            last = &view->nodes[view->nodes_n - 1];
        }
        last->n++;
    }
}

static struct view_node *node_of(struct view *view, name_t cluster, name_t node)
{
    struct view_device wanted = {.cluster = cluster, .node = node};
    size_t low = 0, high = view->nodes_n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        struct view_device each = {.cluster = view->nodes[middle].cluster,
                                   .node = view->nodes[middle].node};
        int order = by_place(&each, &wanted, view->names);
        if (order == 0)
            return &view->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool take_node_hours(void *context, const struct node_hour *hours, size_t n)
{
    struct view *view = context;
    struct view_node *node = node_of(view, hours->cluster, hours->node);
    for (size_t i = 0; node && i < n; i++) {
        struct view_price price = {hours[i].hour, hours[i].price, hours[i].gpus, hours[i].up_ms,
                                   hours[i].flags};
        mem_push(node->hours, node->hours_n, node->hours_room, price);
        node->instance_type = hours[i].instance_type;
        node->pool = hours[i].pool;
        node->region = hours[i].region;
        node->cloud = hours[i].cloud;
        node->capacity = hours[i].capacity;
    }
    return true;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_machine_hour(struct view *view, struct view_node *node,
                             const struct machine_hour *hour)
{
    for (size_t d = 0; d < view->days_n; d++) {
        struct view_host *day = &node->days[d];
        if (hour->hour < view->days[d].from || hour->hour >= view->days[d].to)
            continue;
        day->cpu_max = largest(day->cpu_max, hour->cpu_max);
        if (hour->net_seen_ms > 0)
            day->net_bytes = largest(day->net_bytes, 0) + hour->net_bytes;
        node->requested_mcpu = largest(node->requested_mcpu, hour->requested_mcpu);
        node->requested_memory_bytes =
            largest(node->requested_memory_bytes, hour->requested_memory_bytes);
        node->cpus = hour->cpus >= 0 ? hour->cpus : node->cpus;
    }
}

/* Hours of one node come together or with those of all nodes; either way the last is often right.
 */
static bool take_machine_hours(void *context, const struct machine_hour *hours, size_t n)
{
    struct view *view = context;
    struct view_node *node = NULL;
    for (size_t i = 0; i < n; i++) {
        bool next = node && node + 1 < view->nodes + view->nodes_n &&
                    node[1].cluster == hours[i].cluster && node[1].node == hours[i].node;
        if (next)
            node++;
        else if (!node || node->cluster != hours[i].cluster || node->node != hours[i].node)
            node = node_of(view, hours[i].cluster, hours[i].node);
        if (node)
            add_machine_hour(view, node, &hours[i]);
    }
    return true;
}

static enum err read_machine_hours(struct store *store, struct view *view, struct error *err)
{
    if (!view->days_n || !view->nodes_n)
        return ERR_OK;
    struct span span = {view->days[0].from, view->days[view->days_n - 1].to};
    span.from = hour_floor(span.from);
    return query_machine_hours(store, span, take_machine_hours, view, err);
}

/* From when on what nodes cost is wanted: the earliest tail that lasts to the end. */
static time_ms prices_from(const struct view *view)
{
    time_ms from = view->window.to;
    for (size_t i = 0; i < view->devices_n; i++) {
        const struct view_device *device = &view->devices[i];
        if (device->tail_n && device->tail[device->tail_n - 1].hour + HOUR_MS >= view->window.to &&
            device->tail[0].hour < from)
            from = device->tail[0].hour;
    }
    return from;
}

/* Before the days of the scan only streaks are of use. */
static enum err read_device_hours(struct store *store, struct reading *reading, struct error *err)
{
    const struct view *view = reading->view;
    time_ms days = view->days_n ? hour_floor(view->days[0].from) : view->window.from;
    struct span before = {view->window.from, days}, span = {days, view->window.to};
    enum err code =
        query_device_hours(store, before, DEVICE_HOURS_STREAK, take_hours, reading, err);
    return code ? code
                : query_device_hours(store, span, DEVICE_HOURS_ALL, take_hours, reading, err);
}

static enum err read_all(struct store *store, struct reading *reading, struct error *err)
{
    struct view *view = reading->view;
    const struct view_options *options = reading->options;
    enum err code =
        query_complete_days(options->window.to, options->tz, options->days, view->days, err);
    if (code)
        return code;
    code = read_device_hours(store, reading, err);
    if (code)
        return code;
    if (view->devices_n)
        qsort_r(view->devices, view->devices_n, sizeof *view->devices, by_place, view->names);
    find_nodes(view);
    code = read_machine_hours(store, view, err);
    if (code)
        return code;
    struct span span = {prices_from(view), view->window.to};
    if (span.from > view->window.to - HOUR_MS)
        span.from = view->window.to - HOUR_MS;
    return query_node_hours(store, span, take_node_hours, view, err);
}

enum err view_read(struct store *store, const struct view_options *options, struct view **ret,
                   struct error *err)
{
    struct view *view = mem_zalloc(1, sizeof *view);
    view->names = store_names(store);
    view->window = options->window;
    view->days_n = (size_t)options->days;
    view->days = mem_zalloc(view->days_n, sizeof *view->days);
    view->prices = options->prices;
    view->still = view->window;
    if (view->still.to - view->still.from > VIEW_STILL_HOURS_MAX * HOUR_MS)
        view->still.from = view->still.to - VIEW_STILL_HOURS_MAX * HOUR_MS;
    struct reading reading = {.view = view, .options = options};
    enum err code = read_all(store, &reading, err);
    free(reading.table);
    if (code) {
        view_free(view);
        return code;
    }
    *ret = view;
    return ERR_OK;
}

void view_free(struct view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->devices_n; i++) {
        free(view->devices[i].days);
        free(view->devices[i].still);
        free(view->devices[i].tail);
    }
    for (size_t i = 0; i < view->nodes_n; i++) {
        free(view->nodes[i].days);
        free(view->nodes[i].hours);
    }
    free(view->devices);
    free(view->nodes);
    for (size_t i = 0; i < view->floors_n; i++)
        free(view->floors[i].hours);
    free(view->floors);
    free(view->days);
    free(view);
}
