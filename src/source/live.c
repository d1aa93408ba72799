/* Devices by a hash of what identifies them; each has a list of the holders that its series named,
 * and the latest values. What a series is told with is a holder's place and the metric's place in
 * the table of signals, so that a sample costs two look-ups by index.
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

#include "fleet/labels.h"
#include "util/error.h"

#define NOWHERE UINT32_MAX
#define STALE_BITS UINT64_C(0x7ff0000000000002)
#define SWEEP_MS ((time_ms)60 * 1000)
#define EPOCH_MASK 0xffffu

enum identity {
    ID_CLUSTER,
    ID_NODE,
    ID_UUID,
    ID_INSTANCE,
    ID_INDEX,
    ID_MODEL,
    ID_PROFILE,
    ID_COUNT
};
enum holding { HELD_NAMESPACE, HELD_POD, HELD_CONTAINER, HELD_COUNT };

struct holder {
    char *text[HELD_COUNT]; /* one allocation, from text[0] on */
    uint32_t device;        /* NOWHERE: a free place */
    uint32_t epoch;
    uint32_t next; /* holder of the same device; of free places, the next free one */
    time_ms last;  /* stamp; TIME_MIN: no sample yet */
};

struct device {
    char *text[ID_COUNT]; /* one allocation; NULL: a free place */
    uint64_t hash;
    uint32_t holders, holder; /* the first of the list; the one that was told of last */
    bool percent;             /* its UNIT_PERCENT_OR_RATIO metrics are percent */
    time_ms newest;
    int64_t value[SIGNAL_COUNT];
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
    return live;
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

#define SPELLINGS_MAX 6
static const char *const spellings[GPU_LABEL_COUNT][SPELLINGS_MAX] = {
#define X(name, ...) [GPU_LABEL_##name] = {__VA_ARGS__},
    GPU_LABEL_TABLE(X)
#undef X
};

static struct str first_of(const struct label *labels, size_t n, enum gpu_label role)
{
    for (size_t i = 0; i < SPELLINGS_MAX && spellings[role][i]; i++) {
        struct str value = labels_get(labels, n, str_of(spellings[role][i]));
        if (value.n)
            return value;
    }
    return STR_NONE;
}

static void read_identity(const struct label *labels, size_t n, struct str id[ID_COUNT])
{
    id[ID_CLUSTER] = first_of(labels, n, GPU_LABEL_CLUSTER);
    id[ID_NODE] = first_of(labels, n, GPU_LABEL_NODE);
    if (id[ID_NODE].n == 0)
        id[ID_NODE] = first_of(labels, n, GPU_LABEL_HOSTNAME);
    if (id[ID_NODE].n == 0)
        id[ID_NODE] = first_of(labels, n, GPU_LABEL_INSTANCE);
    id[ID_UUID] = first_of(labels, n, GPU_LABEL_UUID);
    id[ID_INSTANCE] = first_of(labels, n, GPU_LABEL_GPU_INSTANCE);
    id[ID_INDEX] = first_of(labels, n, GPU_LABEL_INDEX);
    id[ID_MODEL] = first_of(labels, n, GPU_LABEL_MODEL);
    id[ID_PROFILE] = first_of(labels, n, GPU_LABEL_PROFILE);
}

/* Exporters' pods stand under `pod` where the workload's stands under `exported_pod`. */
static void read_holding(const struct label *labels, size_t n, struct str held[HELD_COUNT])
{
    held[HELD_POD] = first_of(labels, n, GPU_LABEL_EXPORTED_POD);
    if (held[HELD_POD].n) {
        held[HELD_NAMESPACE] = first_of(labels, n, GPU_LABEL_EXPORTED_NAMESPACE);
        held[HELD_CONTAINER] = first_of(labels, n, GPU_LABEL_EXPORTED_CONTAINER);
        return;
    }
    held[HELD_POD] = first_of(labels, n, GPU_LABEL_POD);
    held[HELD_NAMESPACE] = first_of(labels, n, GPU_LABEL_NAMESPACE);
    held[HELD_CONTAINER] = first_of(labels, n, GPU_LABEL_CONTAINER);
}

/* A device is its UUID and instance, or its place in a node where it has none. */
static uint64_t identity_hash(const struct live *live, const struct str id[ID_COUNT])
{
    static const enum identity by_uuid[] = {ID_CLUSTER, ID_UUID, ID_INSTANCE};
    static const enum identity by_place[] = {ID_CLUSTER, ID_NODE, ID_INDEX, ID_INSTANCE};
    const enum identity *parts = id[ID_UUID].n ? by_uuid : by_place;
    size_t n = id[ID_UUID].n ? 3 : 4;
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

static uint32_t new_device(struct live *live, const struct str id[ID_COUNT], uint64_t hash)
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
    keep_texts(id, ID_COUNT, device->text);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        device->value[i] = SIGNAL_ABSENT;
        device->at[i] = TIME_MIN;
    }
    if (live->devices_n * 2 > live->mask)
        make_table(live, live->mask * 2 + 1);
    else
        enter(live, at);
    return at;
}

static uint32_t device_of(struct live *live, const struct str id[ID_COUNT])
{
    uint64_t hash = identity_hash(live, id);
    uint32_t at = (uint32_t)hash & live->mask;
    for (; live->table[at]; at = (at + 1) & live->mask)
        if (live->devices[live->table[at] - 1].hash == hash)
            return live->table[at] - 1;
    return new_device(live, id, hash);
}

static uint32_t holder_of(struct live *live, uint32_t device, const struct str held[HELD_COUNT])
{
    uint32_t at = live->devices[device].holders;
    for (; at != NOWHERE; at = live->holders[at].next) {
        const struct holder *holder = &live->holders[at];
        bool same = true;
        for (size_t i = 0; i < HELD_COUNT; i++)
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
    keep_texts(held, HELD_COUNT, holder->text);
    holder->device = device;
    holder->next = live->devices[device].holders;
    holder->last = TIME_MIN;
    live->devices[device].holders = at;
    return at;
}

live_ref live_series(struct live *live, const struct label *labels, size_t n)
{
    const struct signal_name *signal = signal_of_metric(labels_get(labels, n, STR("__name__")));
    struct str id[ID_COUNT], held[HELD_COUNT];
    live_ref ref = LIVE_NONE;
    if (!signal)
        return LIVE_NONE;
    read_identity(labels, n, id);
    read_holding(labels, n, held);
    pthread_mutex_lock(&live->lock);
    uint32_t device = device_of(live, id);
    uint32_t holder = device == NOWHERE ? NOWHERE : holder_of(live, device, held);
    if (holder != NOWHERE)
        ref = (uint64_t)holder << 32 | (live->holders[holder].epoch & EPOCH_MASK) << 16 |
              (uint64_t)(signal - signal_names);
    pthread_mutex_unlock(&live->lock);
    return ref;
}

/* ---- samples */

/* What a metric of UNIT_PERCENT_OR_RATIO counts in shows once it is above what a ratio can be. */
static int64_t clean(struct device *device, const struct signal_name *name, double v)
{
    enum signal_unit unit = name->unit;
    if (unit == UNIT_PERCENT_OR_RATIO) {
        device->percent |= v > 1.5;
        unit = device->percent ? UNIT_PERCENT : UNIT_RATIO;
    }
    return signal_clean(name->signal, unit, v);
}

static void take(struct live *live, live_ref ref, time_ms t, double v)
{
    uint32_t at = (uint32_t)(ref >> 32);
    const struct signal_name *name = &signal_names[ref & 0xffff];
    struct holder *holder = at < live->holders_n ? &live->holders[at] : NULL;
    if (!holder || holder->device == NOWHERE ||
        (holder->epoch & EPOCH_MASK) != (ref >> 16 & EPOCH_MASK))
        return;
    struct device *device = &live->devices[holder->device];
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bool stale = bits == STALE_BITS;
    if (t < device->at[name->signal] || (stale && t == device->at[name->signal]))
        return;
    device->at[name->signal] = t;
    device->value[name->signal] = stale ? SIGNAL_ABSENT : clean(device, name, v);
    if (stale)
        return;
    holder->last = t > holder->last ? t : holder->last;
    if (t >= device->newest) {
        device->newest = t;
        device->holder = at;
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
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < n; i++)
        if (ref[i] != LIVE_NONE && time_is_sane(t[i]))
            take(live, ref[i], t[i], v[i]);
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

static void put_gpu(const struct live *live, const struct device *device, struct live_gpu *gpu,
                    char **p)
{
    const struct holder *holder = device->holder == NOWHERE ? NULL : &live->holders[device->holder];
    gpu->cluster = put_text(p, device->text[ID_CLUSTER]);
    gpu->node = put_text(p, device->text[ID_NODE]);
    gpu->uuid = put_text(p, device->text[ID_UUID]);
    gpu->instance = put_text(p, device->text[ID_INSTANCE]);
    gpu->index = put_text(p, device->text[ID_INDEX]);
    gpu->model = put_text(p, device->text[ID_MODEL]);
    gpu->profile = put_text(p, device->text[ID_PROFILE]);
    gpu->namespace = put_text(p, holder ? holder->text[HELD_NAMESPACE] : "");
    gpu->pod = put_text(p, holder ? holder->text[HELD_POD] : "");
    gpu->container = put_text(p, holder ? holder->text[HELD_CONTAINER] : "");
    gpu->at = device->newest;
    memcpy(gpu->value, device->value, sizeof gpu->value);
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
        bytes += text_bytes(device->text, ID_COUNT) + HELD_COUNT;
        if (device->holder != NOWHERE)
            bytes += text_bytes(live->holders[device->holder].text, HELD_COUNT);
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
