/* Devices by a hash of what identifies them; each has a list of the holders that its series named,
 * and the latest values. What a series is told with is a holder's place and the metric's place in
 * the table of signals, so that a sample costs two look-ups by index. Values are kept as they came,
 * and brought to their unit when somebody looks.
 *
 * Texts are each device's and holder's own, not interned: pods come and go for years, and what was
 * silent for LIVE_SILENT_MS is forgotten with its texts. A place that is used again has another
 * epoch, so that an old reference does not write to a new holder. */
#include "source/live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "source/live_labels.h"
#include "util/error.h"

#define NOWHERE UINT32_MAX
#define NO_METRIC UINT16_MAX
#define METRIC_MASK ((live_ref)0xffff) /* of a reference */
#define STALE_BITS UINT64_C(0x7ff0000000000002)
#define SWEEP_MS ((time_ms)60 * 1000)
#define EPOCH_MASK 0xffffu
#define LIVE_JOBS_MAX 1024 /* renamed ones that are remembered */

struct holder {
    char *text[LIVE_HELD_COUNT]; /* one allocation, from text[0] on */
    uint32_t device;             /* NOWHERE: a free place */
    uint32_t epoch;
    uint32_t next; /* holder of the same device; of free places, the next free one */
    uint64_t bare; /* its job, where it is of labels that may be the exporter's own; 0: it is not */
    time_ms last;  /* stamp; TIME_MIN: no sample yet */
};

struct device {
    char *text[LIVE_ID_COUNT]; /* one allocation; NULL: a free place */
    uint64_t hash;
    uint32_t holders, holder; /* the first of the list; the one that was told of last */
    bool percent;             /* its UNIT_PERCENT_OR_RATIO metrics are percent */
    time_ms newest, first, worked;
    double value[SIGNAL_COUNT];    /* as it came … */
    uint16_t metric[SIGNAL_COUNT]; /* … under this one of signal_names; NO_METRIC: none is there */
    time_ms at[SIGNAL_COUNT];
};

struct snapshot {
    struct live_snapshot public;
    atomic_int refs;
};

struct live {
    pthread_mutex_t lock;
    uint64_t seed;
    struct device *devices;
    size_t devices_n, devices_room;
    uint32_t *table; /* device + 1 by hash */
    uint32_t mask;
    uint32_t free_device; /* by way of `holders` */
    struct holder *holders;
    size_t holders_n, holders_room;
    uint32_t free_holder;
    time_ms newest, swept;
    int64_t idle_below;
    char *exporters[SETTINGS_LIST_MAX]; /* containers */
    size_t exporters_n;
    uint64_t renamed[LIVE_JOBS_MAX]; /* jobs in which Prometheus has renamed labels */
    size_t renamed_n;
    struct snapshot *snapshot;
    time_ms snapshot_at; /* monotonic */
    bool changed;        /* since the snapshot */
};

struct live *live_new(void)
{
    struct live *live = mem_zalloc(1, sizeof *live);
    pthread_mutex_init(&live->lock, NULL);
    live->mask = 63;
    live->table = mem_zalloc(64, sizeof *live->table);
    live->free_device = live->free_holder = NOWHERE;
    live->newest = live->swept = TIME_MIN;
    if (getrandom(&live->seed, sizeof live->seed, GRND_NONBLOCK) < 0)
        live->seed = (uint64_t)(uintptr_t)live;
    struct settings settings;
    settings_defaults(&settings);
    live_configure(live, &settings);
    return live;
}

void live_configure(struct live *live, const struct settings *settings)
{
    pthread_mutex_lock(&live->lock);
    live->idle_below = settings->idle_below;
    for (size_t i = 0; i < live->exporters_n; i++)
        free(live->exporters[i]);
    live->exporters_n = settings->exporter_containers_n;
    for (size_t i = 0; i < live->exporters_n; i++)
        live->exporters[i] = str_dup(settings->exporter_containers[i]);
    pthread_mutex_unlock(&live->lock);
}

void live_free(struct live *live)
{
    if (!live)
        return;
    for (size_t i = 0; i < live->devices_n; i++)
        free(live->devices[i].text[0]);
    for (size_t i = 0; i < live->holders_n; i++)
        free(live->holders[i].text[0]);
    if (live->snapshot)
        live_snapshot_release(&live->snapshot->public);
    for (size_t i = 0; i < live->exporters_n; i++)
        free(live->exporters[i]);
    free(live->devices);
    free(live->holders);
    free(live->table);
    pthread_mutex_destroy(&live->lock);
    free(live);
}

/* Copies of n texts in one allocation, each ended by NUL. */
static void keep_texts(const struct str *from, size_t n, char **to)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += from[i].n + 1;
    char *p = mem_alloc(bytes);
    for (size_t i = 0; i < n; i++) {
        memcpy(p, from[i].p, from[i].n);
        p[from[i].n] = 0;
        to[i] = p;
        p += from[i].n + 1;
    }
}

/* ---- series */

/* A device is its UUID and instance, or its place in a node where it has none. */
static uint64_t identity_hash(const struct live *live, const struct str id[LIVE_ID_COUNT])
{
    static const enum live_identity by_uuid[] = {LIVE_ID_CLUSTER, LIVE_ID_UUID, LIVE_ID_INSTANCE};
    static const enum live_identity by_place[] = {LIVE_ID_CLUSTER, LIVE_ID_NODE, LIVE_ID_INDEX,
                                                  LIVE_ID_INSTANCE};
    const enum live_identity *parts = id[LIVE_ID_UUID].n ? by_uuid : by_place;
    size_t n = id[LIVE_ID_UUID].n ? 3 : 4;
    uint64_t hash = live->seed + n;
    for (size_t i = 0; i < n; i++)
        hash = XXH3_64bits_withSeed(id[parts[i]].p, id[parts[i]].n, hash + id[parts[i]].n);
    return hash;
}

static void enter(struct live *live, uint32_t device)
{
    uint32_t at = (uint32_t)live->devices[device].hash & live->mask;
    while (live->table[at])
        at = (at + 1) & live->mask;
    live->table[at] = device + 1;
}

/* The table anew, with room. */
static void make_table(struct live *live, uint32_t mask)
{
    free(live->table);
    live->mask = mask;
    live->table = mem_zalloc((size_t)mask + 1, sizeof *live->table);
    for (size_t i = 0; i < live->devices_n; i++)
        if (live->devices[i].text[0])
            enter(live, (uint32_t)i);
}

static uint32_t new_device(struct live *live, const struct str id[LIVE_ID_COUNT], uint64_t hash)
{
    uint32_t at = live->free_device;
    if (at != NOWHERE) {
        live->free_device = live->devices[at].holders;
    } else {
        if (live->devices_n == LIVE_DEVICES_MAX)
            return NOWHERE;
        mem_reserve(live->devices, live->devices_n, live->devices_room, 1);
        at = (uint32_t)live->devices_n++;
    }
    struct device *device = &live->devices[at];
    *device = (struct device){.hash = hash, .holders = NOWHERE, .holder = NOWHERE};
    device->newest = live->newest;
    device->first = device->worked = TIME_MIN;
    keep_texts(id, LIVE_ID_COUNT, device->text);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        device->metric[i] = NO_METRIC;
        device->at[i] = TIME_MIN;
    }
    if (live->devices_n * 2 > live->mask)
        make_table(live, live->mask * 2 + 1);
    else
        enter(live, at);
    return at;
}

static uint32_t device_of(struct live *live, const struct str id[LIVE_ID_COUNT])
{
    uint64_t hash = identity_hash(live, id);
    uint32_t at = (uint32_t)hash & live->mask;
    for (; live->table[at]; at = (at + 1) & live->mask)
        if (live->devices[live->table[at] - 1].hash == hash)
            return live->table[at] - 1;
    return new_device(live, id, hash);
}

static uint32_t holder_of(struct live *live, uint32_t device,
                          const struct str held[LIVE_HELD_COUNT], uint64_t bare)
{
    uint32_t at = live->devices[device].holders;
    for (; at != NOWHERE; at = live->holders[at].next) {
        const struct holder *holder = &live->holders[at];
        bool same = holder->bare == bare;
        for (size_t i = 0; i < LIVE_HELD_COUNT; i++)
            same &= str_eq(str_of(holder->text[i]), held[i]);
        if (same)
            return at;
    }
    at = live->free_holder;
    if (at != NOWHERE) {
        live->free_holder = live->holders[at].next;
    } else {
        if (live->holders_n == LIVE_HOLDERS_MAX)
            return NOWHERE;
        mem_reserve(live->holders, live->holders_n, live->holders_room, 1);
        at = (uint32_t)live->holders_n++;
        live->holders[at].epoch = 0;
    }
    struct holder *holder = &live->holders[at];
    keep_texts(held, LIVE_HELD_COUNT, holder->text);
    holder->device = device;
    holder->next = live->devices[device].holders;
    holder->bare = bare;
    holder->last = TIME_MIN;
    live->devices[device].holders = at;
    return at;
}

/* A container that is an exporter's says that the holder is the exporter itself. */
static bool is_exporter(const struct live *live, struct str container)
{
    for (size_t i = 0; i < live->exporters_n; i++)
        if (str_eq(container, str_of(live->exporters[i])))
            return true;
    return false;
}

static bool is_renamed(const struct live *live, uint64_t job)
{
    for (size_t i = 0; i < live->renamed_n; i++)
        if (live->renamed[i] == job)
            return true;
    return false;
}

/* The job of bare labels, never 0; 0 where the labels are the holder's for certain. */
static uint64_t bare_job(struct live *live, const struct live_labels *labels)
{
    uint64_t job = XXH3_64bits_withSeed(labels->job.p, labels->job.n, live->seed);
    job = XXH3_64bits_withSeed(labels->id[LIVE_ID_CLUSTER].p, labels->id[LIVE_ID_CLUSTER].n, job);
    job |= 1;
    if (labels->bare)
        return job;
    if (labels->held[LIVE_HELD_POD].n && labels->renamed && !is_renamed(live, job) &&
        live->renamed_n < LIVE_JOBS_MAX)
        live->renamed[live->renamed_n++] = job;
    return 0;
}

live_ref live_series(struct live *live, const struct label *labels, size_t n)
{
    const struct signal_name *signal = signal_of_metric(labels_get(labels, n, STR("__name__")));
    struct live_labels read;
    live_ref ref = LIVE_NONE;
    if (!signal)
        return LIVE_NONE;
    struct strbuf room = {0};
    live_labels_read(labels, n, signal->exporter, &room, &read);
    pthread_mutex_lock(&live->lock);
    uint64_t bare = bare_job(live, &read);
    if (bare && is_exporter(live, read.held[LIVE_HELD_CONTAINER]))
        for (size_t i = 0; i < LIVE_HELD_COUNT; i++)
            read.held[i] = STR_NONE;
    uint32_t device = device_of(live, read.id);
    uint32_t holder = device == NOWHERE ? NOWHERE : holder_of(live, device, read.held, bare);
    if (holder != NOWHERE)
        ref = (uint64_t)holder << 32 | (live->holders[holder].epoch & EPOCH_MASK) << 16 |
              (uint64_t)(signal - signal_names);
    pthread_mutex_unlock(&live->lock);
    strbuf_release(&room);
    return ref;
}

/* ---- samples */

/* What a metric of UNIT_PERCENT_OR_RATIO counts in shows once it is above what a ratio can be. */
static int64_t clean(const struct device *device, const struct signal_name *name, double v)
{
    enum signal_unit unit = name->unit;
    if (unit == UNIT_PERCENT_OR_RATIO)
        unit = device->percent ? UNIT_PERCENT : UNIT_RATIO;
    return signal_clean(name->signal, unit, v);
}

/* Does the sample say that the device works? */
static void look_at_activity(const struct live *live, struct device *device,
                             const struct signal_name *name, time_ms t, double v)
{
    int64_t value = clean(device, name, v);
    if (value == SIGNAL_ABSENT)
        return;
    if (device->first == TIME_MIN)
        device->first = t;
    if (value >= live->idle_below && t > device->worked)
        device->worked = t;
}

/* NULL: it was forgotten. */
static struct holder *holder_at(const struct live *live, live_ref ref)
{
    uint32_t at = (uint32_t)(ref >> 32);
    struct holder *holder = at < live->holders_n ? &live->holders[at] : NULL;
    bool there = holder && holder->device != NOWHERE &&
                 (holder->epoch & EPOCH_MASK) == (ref >> 16 & EPOCH_MASK);
    return there ? holder : NULL;
}

static void take(struct live *live, struct holder *holder, uint16_t metric, time_ms t, double v)
{
    const struct signal_name *name = &signal_names[metric];
    struct device *device = &live->devices[holder->device];
    enum signal signal = name->signal;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bool stale = bits == STALE_BITS;
    if (t < device->at[signal] || (stale && t == device->at[signal]))
        return;
    device->at[signal] = t;
    device->value[signal] = v;
    device->metric[signal] = stale ? NO_METRIC : metric;
    if (stale)
        return;
    device->percent |= name->unit == UNIT_PERCENT_OR_RATIO && v > 1.5;
    if (signal == SIGNAL_UTIL || signal == SIGNAL_GR || signal == SIGNAL_SM)
        look_at_activity(live, device, name, t, v);
    holder->last = t > holder->last ? t : holder->last;
    if (t >= device->newest) {
        device->newest = t;
        device->holder = (uint32_t)(holder - live->holders);
    }
    live->newest = t > live->newest ? t : live->newest;
}

/* ---- forgetting */

static void forget_holder(struct live *live, uint32_t at)
{
    struct holder *holder = &live->holders[at];
    free(holder->text[0]);
    *holder =
        (struct holder){.device = NOWHERE, .epoch = holder->epoch + 1, .next = live->free_holder};
    live->free_holder = at;
}

/* Drop the silent holders of a device; the device too where none is left. */
static void sweep_device(struct live *live, uint32_t at, time_ms since)
{
    struct device *device = &live->devices[at];
    uint32_t *link = &device->holders;
    while (*link != NOWHERE) {
        uint32_t holder = *link;
        if (live->holders[holder].last == TIME_MIN) /* named, and not heard of yet */
            live->holders[holder].last = live->newest;
        if (live->holders[holder].last >= since) {
            link = &live->holders[holder].next;
            continue;
        }
        *link = live->holders[holder].next;
        if (device->holder == holder)
            device->holder = NOWHERE;
        forget_holder(live, holder);
    }
    if (device->holders != NOWHERE)
        return;
    free(device->text[0]);
    *device = (struct device){.holders = live->free_device};
    live->free_device = at;
}

static void sweep(struct live *live)
{
    if (live->newest - live->swept < SWEEP_MS)
        return;
    live->swept = live->newest;
    for (size_t i = 0; i < live->devices_n; i++)
        if (live->devices[i].text[0])
            sweep_device(live, (uint32_t)i, live->newest - LIVE_SILENT_MS);
    make_table(live, live->mask);
}

void live_samples(struct live *live, const live_ref *ref, const time_ms *t, const double *v,
                  size_t n)
{
    live_ref of = LIVE_NONE; /* whose holder is at hand: a device's series follow each other */
    struct holder *holder = NULL;
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < n; i++) {
        if (ref[i] == LIVE_NONE || !time_is_sane(t[i]))
            continue;
        if ((ref[i] ^ of) > METRIC_MASK)
            holder = holder_at(live, ref[i]);
        of = ref[i];
        if (holder)
            take(live, holder, (uint16_t)(ref[i] & METRIC_MASK), t[i], v[i]);
    }
    live->changed = true;
    sweep(live);
    pthread_mutex_unlock(&live->lock);
}

/* ---- snapshots */

static int gpu_order(const void *a, const void *b)
{
    const struct live_gpu *x = a, *y = b;
    int order = strcmp(x->cluster, y->cluster);
    if (order == 0)
        order = strcmp(x->node, y->node);
    if (order == 0) /* "10" after "9" */
        order = (strlen(x->index) > strlen(y->index)) - (strlen(x->index) < strlen(y->index));
    if (order == 0)
        order = strcmp(x->index, y->index);
    if (order == 0)
        order = strcmp(x->uuid, y->uuid);
    return order ? order : strcmp(x->instance, y->instance);
}

static const char *put_text(char **p, const char *text)
{
    size_t n = strlen(text) + 1;
    const char *to = memcpy(*p, text, n);
    *p += n;
    return to;
}

/* NULL: nobody, or an exporter whose labels stand where no holder's do. */
static const struct holder *holder_now(const struct live *live, const struct device *device)
{
    const struct holder *holder = device->holder == NOWHERE ? NULL : &live->holders[device->holder];
    return holder && holder->bare && is_renamed(live, holder->bare) ? NULL : holder;
}

static void put_gpu(const struct live *live, const struct device *device, struct live_gpu *gpu,
                    char **p)
{
    const struct holder *holder = holder_now(live, device);
    gpu->cluster = put_text(p, device->text[LIVE_ID_CLUSTER]);
    gpu->node = put_text(p, device->text[LIVE_ID_NODE]);
    gpu->uuid = put_text(p, device->text[LIVE_ID_UUID]);
    gpu->instance = put_text(p, device->text[LIVE_ID_INSTANCE]);
    gpu->index = put_text(p, device->text[LIVE_ID_INDEX]);
    gpu->model = put_text(p, device->text[LIVE_ID_MODEL]);
    gpu->profile = put_text(p, device->text[LIVE_ID_PROFILE]);
    gpu->namespace = put_text(p, holder ? holder->text[LIVE_HELD_NAMESPACE] : "");
    gpu->pod = put_text(p, holder ? holder->text[LIVE_HELD_POD] : "");
    gpu->container = put_text(p, holder ? holder->text[LIVE_HELD_CONTAINER] : "");
    gpu->at = device->newest;
    gpu->first = device->first;
    gpu->worked = device->worked;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        gpu->value[i] = device->metric[i] == NO_METRIC
                            ? SIGNAL_ABSENT
                            : clean(device, &signal_names[device->metric[i]], device->value[i]);
    memcpy(gpu->value_at, device->at, sizeof gpu->value_at);
}

static size_t text_bytes(char *const *text, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(text[i]) + 1;
    return bytes;
}

static struct snapshot *make_snapshot(const struct live *live)
{
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < live->devices_n; i++) {
        const struct device *device = &live->devices[i];
        if (!device->text[0])
            continue;
        n++;
        bytes += text_bytes(device->text, LIVE_ID_COUNT) + LIVE_HELD_COUNT;
        if (device->holder != NOWHERE)
            bytes += text_bytes(live->holders[device->holder].text, LIVE_HELD_COUNT);
    }
    struct snapshot *snapshot = mem_alloc(sizeof *snapshot + n * sizeof(struct live_gpu) + bytes);
    struct live_gpu *gpus = (struct live_gpu *)(snapshot + 1);
    char *p = (char *)(gpus + n);
    size_t at = 0;
    for (size_t i = 0; i < live->devices_n; i++)
        if (live->devices[i].text[0])
            put_gpu(live, &live->devices[i], &gpus[at++], &p);
    snapshot->public = (struct live_snapshot){gpus, n, live->newest};
    atomic_init(&snapshot->refs, 1);
    if (n)
        qsort(gpus, n, sizeof *gpus, gpu_order);
    return snapshot;
}

const struct live_snapshot *live_snapshot(struct live *live, time_ms max_age_ms)
{
    pthread_mutex_lock(&live->lock);
    time_ms now = clock_monotonic();
    bool old = live->changed && now - live->snapshot_at >= max_age_ms;
    if (!live->snapshot || old) {
        if (live->snapshot)
            live_snapshot_release(&live->snapshot->public);
        live->snapshot = make_snapshot(live);
        live->snapshot_at = now;
        live->changed = false;
    }
    struct snapshot *snapshot = live->snapshot;
    atomic_fetch_add(&snapshot->refs, 1);
    pthread_mutex_unlock(&live->lock);
    return &snapshot->public;
}

void live_snapshot_release(const struct live_snapshot *public)
{
    struct snapshot *snapshot = (struct snapshot *)(uintptr_t) public;
    if (snapshot && atomic_fetch_sub(&snapshot->refs, 1) == 1)
        free(snapshot);
}
