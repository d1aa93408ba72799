/* The intake: series are told apart by a hash of their labels, GPU signals go to strips, the rest
 * to records (fleet/intake_data.h draws both). Naming a series takes the intake's lock; appending
 * takes only the strip's, since the signals of a strip may come on several threads. */
#include "fleet/intake_data.h"

#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "fleet/resources.h"

/* Names that are left for what is made of series and objects: workloads, owners, devices. */
#define NAMES_RESERVE (NAMES_MAX / 4)

static const struct {
    struct str metric;
    const char *match;
    enum metric_group group;
} record_metrics[RECORD_COUNT] = {
#define X(name, metric, match, group) {STR(metric), match, group},
    RECORD_TABLE(X)
#undef X
};

/* ------------------------------------------------------------------ what is wanted */

static bool record_of_metric(struct str name, enum record_metric *ret)
{
    for (int i = 0; i < RECORD_COUNT; i++)
        if (str_eq(name, record_metrics[i].metric)) {
            *ret = (enum record_metric)i;
            return true;
        }
    return false;
}

bool intake_wants_metric(struct str name)
{
    enum record_metric metric;
    return signal_of_metric(name) != NULL || record_of_metric(name, &metric) ||
           load_of_metric(name) != NULL;
}

static struct wanted_metric *wanted;
static size_t wanted_n;
static pthread_once_t wanted_once = PTHREAD_ONCE_INIT;

/* A load's name, and with '_' for a colon, as collectors in between write it; once each. */
static void add_load(const struct load_name *name)
{
    static struct arena kept; /* for ever */
    if (name->group == LOAD_GROUP_SUM ||
        (name > load_names && strcmp(name[-1].metric, name->metric) == 0))
        return;
    enum metric_group group =
        name->group == LOAD_GROUP_SERVING ? METRIC_GROUP_WORK : METRIC_GROUP_LOADS;
    wanted[wanted_n++] = (struct wanted_metric){name->metric, "", group};
    if (!strchr(name->metric, ':'))
        return;
    struct str other = str_keep(&kept, str_of(name->metric));
    char *colon = memchr((char *)(uintptr_t)other.p, ':', other.n);
    *colon = '_';
    wanted[wanted_n++] = (struct wanted_metric){other.p, "", group};
}

static void make_wanted(void)
{
    wanted = mem_zalloc(RECORD_COUNT + signal_names_n + 2 * load_names_n, sizeof *wanted);
    for (int i = 0; i < RECORD_COUNT; i++)
        wanted[wanted_n++] = (struct wanted_metric){
            record_metrics[i].metric.p, record_metrics[i].match, record_metrics[i].group};
    for (size_t i = 0; i < signal_names_n; i++)
        wanted[wanted_n++] = (struct wanted_metric){signal_names[i].metric, "", METRIC_GROUP_GPU};
    for (size_t i = 0; i < load_names_n; i++)
        add_load(&load_names[i]);
}

const struct wanted_metric *wanted_metrics(size_t *ret_n)
{
    pthread_once(&wanted_once, make_wanted);
    *ret_n = wanted_n;
    return wanted;
}

static bool is_of_host(struct str resource)
{
    return str_eq(resource, STR("cpu")) || str_eq(resource, STR("memory"));
}

/* Is this series of a record's metric one that is read? Servers are asked for these only; files
 * bring the others too. */
static bool record_is_read(enum record_metric metric, const struct label *labels, size_t n)
{
    struct str resource = labels_get(labels, n, STR("resource"));
    struct frac fraction;
    switch (metric) {
    case RECORD_NODE_CAPACITY:
    case RECORD_NODE_ALLOCATABLE:
        return resource_is_gpu(resource);
    case RECORD_POD_REQUESTS:
    case RECORD_POD_INIT_REQUESTS:
        return resource_is_gpu(resource) || resource_fraction(resource, 1, &fraction) ||
               resource_fraction(resource, 100, &fraction) ||
               (metric == RECORD_POD_REQUESTS && is_of_host(resource));
    case RECORD_POD_LIMITS:
        return str_eq(resource, STR("cpu"));
    case RECORD_QUOTA:
        return str_eq(labels_get(labels, n, STR("type")), STR("hard"));
    case RECORD_POD_PHASE:
        return str_eq(labels_get(labels, n, STR("phase")), STR("Succeeded")) ||
               str_eq(labels_get(labels, n, STR("phase")), STR("Failed"));
    case RECORD_POD_INIT_INFO:
        return str_eq(labels_get(labels, n, STR("restart_policy")), STR("Always"));
    case RECORD_UP:
        return labels_get(labels, n, STR("pod")).n > 0;
    default:
        return true;
    }
}

/* ------------------------------------------------------------------ packing */

#define PACK_ABOVE ((size_t)64 << 20) /* bytes of plain rows */

/* For tests only: GPUTALLY_TEST_PACK_BYTES=N is how many bytes of rows stay plain, whatever the
 * source, and half of it is what is booked together. */
static void pack_for_tests(struct intake *intake)
{
    const char *text = getenv("GPUTALLY_TEST_PACK_BYTES"), *folder = getenv("TMPDIR");
    intake->packing.budget_bytes = text ? strtoull(text, NULL, 10) : PACK_ABOVE;
    if (text)
        intake_by_time(intake, folder ? folder : "/tmp");
    intake->always_by_time = text != NULL;
}

void intake_by_time(struct intake *intake, const char *folder)
{
    if (!intake->packing.spill)
        intake->packing.spill = spill_new(folder);
    intake->by_time = true;
}

void intake_by_series(struct intake *intake)
{
    intake->by_time = intake->always_by_time;
}

/* ------------------------------------------------------------------ life of an intake */

struct intake *intake_new(const struct settings *settings, struct names *names)
{
    struct intake *intake = mem_zalloc(1, sizeof *intake);
    intake->settings = settings;
    intake->names = names;
    pthread_mutex_init(&intake->lock, NULL);
    intake->table_mask = intake->strip_mask = 1023;
    intake->table = mem_zalloc(1024, sizeof *intake->table);
    intake->strip_table = mem_zalloc(1024, sizeof *intake->strip_table);
    if (getrandom(&intake->seed, sizeof intake->seed, GRND_NONBLOCK) < 0)
        intake->seed = (uint64_t)(uintptr_t)intake;
    pack_for_tests(intake);
    return intake;
}

void intake_free(struct intake *intake)
{
    if (!intake)
        return;
    for (size_t i = 0; i < intake->strips_n; i++) {
        strip_clear(intake->strips[i]);
        pthread_mutex_destroy(&intake->strips[i]->lock);
    }
    for (size_t i = 0; i < intake->records_n; i++)
        free(intake->records[i]->runs);
    for (size_t i = 0; i < intake->loads_n; i++)
        load_series_release(intake->loads[i]);
    for (size_t i = 0; i < intake->meters_n; i++)
        meter_release(intake->meters[i]);
    free(intake->loads);
    free(intake->meters);
    idmap_release(&intake->meter_of);
    free(intake->strips);
    free(intake->strip_table);
    free(intake->strip_hash);
    free(intake->records);
    free(intake->series);
    free(intake->table);
    free(intake->pods);
    free(intake->nodes);
    free(intake->owners);
    free(intake->namespaces);
    free(intake->quotas);
    free(intake->observed);
    free(intake->notes);
    free(intake->renamed_jobs);
    free(intake->carried_stamps);
    spill_free(intake->packing.spill);
    arena_release(&intake->arena);
    pthread_mutex_destroy(&intake->lock);
    free(intake);
}

/* ------------------------------------------------------------------ naming series */

/* Labels in order of name, without empty ones; insertion sort, since they mostly come sorted. */
static size_t sorted_labels(const struct label *labels, size_t n, struct label *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value.n == 0)
            continue;
        size_t at = kept++;
        for (; at > 0 && str_cmp(labels[i].name, out[at - 1].name) < 0; at--)
            out[at] = out[at - 1];
        out[at] = labels[i];
    }
    return kept;
}

/* Hash of the labels but for the metric's name. 64 bits with a random seed: two series that meet in
 * all of them would be taken for one, which is not going to happen. */
static uint64_t hash_labels(const struct intake *intake, const struct label *labels, size_t n)
{
    uint64_t hash = intake->seed;
    for (size_t i = 0; i < n; i++) {
        if (str_eq(labels[i].name, STR("__name__")))
            continue;
        hash = XXH3_64bits_withSeed(labels[i].name.p, labels[i].name.n, hash + labels[i].name.n);
        hash = XXH3_64bits_withSeed(labels[i].value.p, labels[i].value.n, hash);
    }
    return hash;
}

bool intake_has_room(const struct intake *intake, size_t labels_n)
{
    return 2 * labels_n + NAMES_RESERVE < NAMES_MAX - names_count(intake->names);
}

static struct pair *keep_labels(struct intake *intake, const struct label *labels, size_t n,
                                uint32_t *ret_n)
{
    struct pair *pairs = arena_alloc(&intake->arena, n * sizeof *pairs);
    uint32_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!str_eq(labels[i].name, STR("__name__")))
            pairs[kept++] = (struct pair){names_put(intake->names, labels[i].name),
                                          names_put(intake->names, labels[i].value)};
    *ret_n = kept;
    return pairs;
}

static void grow_table(uint32_t **table, uint32_t *mask, size_t n, const uint64_t *hash_of,
                       size_t stride)
{
    uint32_t wide = *mask * 2 + 1;
    uint32_t *next = mem_zalloc((size_t)wide + 1, sizeof *next);
    for (size_t i = 0; i < n; i++) {
        uint64_t hash;
        memcpy(&hash, (const char *)hash_of + i * stride, sizeof hash);
        uint32_t at = (uint32_t)hash & wide;
        while (next[at])
            at = (at + 1) & wide;
        next[at] = (uint32_t)i + 1;
    }
    free(*table);
    *table = next;
    *mask = wide;
}

/* The strip of these labels, made where it is not there; their hash. Lock held. */
static struct strip *strip_of(struct intake *intake, const struct label *labels, size_t n,
                              uint64_t hash)
{
    uint32_t at = (uint32_t)hash & intake->strip_mask;
    for (; intake->strip_table[at]; at = (at + 1) & intake->strip_mask)
        if (intake->strip_hash[intake->strip_table[at] - 1] == hash)
            return intake->strips[intake->strip_table[at] - 1];
    struct strip *strip = arena_zalloc(&intake->arena, sizeof *strip);
    pthread_mutex_init(&strip->lock, NULL);
    strip->labels = keep_labels(intake, labels, n, &strip->labels_n);
    gpu_labels_read(labels, n, intake->names, strip->label);
    strip->packing = intake->by_time ? &intake->packing : NULL;
    mem_reserve(intake->strip_hash, intake->strips_n, intake->strip_hash_room, 1);
    intake->strip_hash[intake->strips_n] = hash;
    mem_push(intake->strips, intake->strips_n, intake->strips_room, strip);
    intake->strip_table[at] = (uint32_t)intake->strips_n;
    if (intake->strips_n * 2 > intake->strip_mask)
        grow_table(&intake->strip_table, &intake->strip_mask, intake->strips_n, intake->strip_hash,
                   sizeof *intake->strip_hash);
    return strip;
}

static struct record *new_record(struct intake *intake, enum record_metric metric,
                                 const struct label *labels, size_t n)
{
    struct record *record = arena_zalloc(&intake->arena, sizeof *record);
    record->metric = metric;
    record->labels = keep_labels(intake, labels, n, &record->labels_n);
    mem_push(intake->records, intake->records_n, intake->records_room, record);
    return record;
}

/* Labels that a target has whatever it exports; the others are a series' own. */
static bool is_of_target(struct str label)
{
    static const char *const known[] = {"__replica__",
                                        "cluster",
                                        "container",
                                        "endpoint",
                                        "exported_container",
                                        "exported_instance",
                                        "exported_job",
                                        "exported_namespace",
                                        "exported_node",
                                        "exported_pod",
                                        "instance",
                                        "job",
                                        "kubernetes_namespace",
                                        "kubernetes_node",
                                        "kubernetes_pod_name",
                                        "metrics_path",
                                        "monitor",
                                        "namespace",
                                        "node",
                                        "nodename",
                                        "pod",
                                        "prometheus",
                                        "prometheus_replica",
                                        "receive",
                                        "replica",
                                        "scrape_pool",
                                        "service",
                                        "tenant_id"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_eq(label, str_of(known[i])))
            return true;
    return false;
}

/* Is the label among the words of `own`? */
static bool is_own(const char *own, struct str label)
{
    for (const char *at = own; *at;) {
        size_t n = strcspn(at, " ");
        if (str_eq(label, (struct str){at, n}))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* The meter of a series, made where it is not there. Lock held. */
static struct meter *meter_of(struct intake *intake, const struct load_name *name,
                              const struct label *labels, size_t n)
{
    struct label target[INTAKE_LABELS_MAX];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!str_eq(labels[i].name, STR("__name__")) &&
            (name->own ? !is_own(name->own, labels[i].name) : is_of_target(labels[i].name)))
            target[kept++] = labels[i];
    uint64_t hash = hash_labels(intake, target, kept);
    bool fresh;
    uint32_t at =
        idmap_add(&intake->meter_of, meter_key(name, hash), (uint32_t)intake->meters_n, &fresh);
    if (!fresh)
        return intake->meters[at];
    struct meter *meter = arena_zalloc(&intake->arena, sizeof *meter);
    pthread_mutex_init(&meter->lock, NULL);
    meter->name = name;
    meter->hash = hash;
    meter->labels = keep_labels(intake, target, kept, &meter->labels_n);
    mem_push(intake->meters, intake->meters_n, intake->meters_room, meter);
    return meter;
}

static struct load_series *new_load(struct intake *intake, const struct load_name *name,
                                    const struct label *labels, size_t n)
{
    struct load_series *load = arena_zalloc(&intake->arena, sizeof *load);
    struct str mode = labels_get(labels, n, STR("mode"));
    load->meter = meter_of(intake, name, labels, n);
    load->metric = names_put(intake->names, labels_get(labels, n, STR("__name__")));
    load->labels = keep_labels(intake, labels, n, &load->labels_n);
    load->idle = str_eq(mode, STR("idle")) || str_eq(mode, STR("iowait"));
    load->counts_cpu = str_eq(mode, STR("idle"));
    mem_push(intake->loads, intake->loads_n, intake->loads_room, load);
    return load;
}

/* What the intake wants of a series: one of these. */
struct meaning {
    const struct signal_name *signal;
    const struct load_name *load;
    enum record_metric record;
};

static series_id name_series(struct intake *intake, const struct label *labels, size_t n,
                             const struct meaning *meaning)
{
    const struct signal_name *signal = meaning->signal;
    struct str metric = labels_get(labels, n, STR("__name__"));
    uint64_t of_strip = hash_labels(intake, labels, n);
    uint64_t hash = XXH3_64bits_withSeed(metric.p, metric.n, of_strip + metric.n);
    uint32_t at = (uint32_t)hash & intake->table_mask;
    for (; intake->table[at]; at = (at + 1) & intake->table_mask)
        if (intake->series[intake->table[at] - 1].hash == hash)
            return intake->table[at] - 1;
    if (intake->series_n >= INTAKE_SERIES_MAX || !intake_has_room(intake, n)) {
        intake->refused++;
        return SERIES_UNWANTED;
    }
    struct series series = {.hash = hash};
    if (signal) {
        series.strip = strip_of(intake, labels, n, of_strip);
        series.signal = signal->signal;
        series.unit = signal->unit;
        series.strip->family = signal->exporter;
        series.strip->metric[signal->signal] = names_put(intake->names, str_of(signal->metric));
        if (signal->unit == UNIT_PERCENT_OR_RATIO)
            series.strip->ratio_metric |= 1u << signal->signal;
    } else if (meaning->load) {
        series.load = new_load(intake, meaning->load, labels, n);
    } else {
        series.record = new_record(intake, meaning->record, labels, n);
    }
    mem_push(intake->series, intake->series_n, intake->series_room, series);
    intake->table[at] = (uint32_t)intake->series_n;
    if (intake->series_n * 2 > intake->table_mask)
        grow_table(&intake->table, &intake->table_mask, intake->series_n, &intake->series->hash,
                   sizeof *intake->series);
    return (series_id)intake->series_n - 1;
}

void intake_default_cluster(struct intake *intake, struct str cluster)
{
    intake->cluster = cluster;
}

series_id intake_series(struct intake *intake, const struct label *labels, size_t n)
{
    struct str name = labels_get(labels, n, STR("__name__"));
    struct meaning meaning = {.signal = signal_of_metric(name), .record = RECORD_COUNT};
    if (!meaning.signal)
        meaning.load = load_of_series(labels, n);
    if (!meaning.signal && !meaning.load &&
        (!record_of_metric(name, &meaning.record) || !record_is_read(meaning.record, labels, n)))
        return SERIES_UNWANTED;
    struct label sorted[INTAKE_LABELS_MAX], more[INTAKE_LABELS_MAX];
    if (intake->cluster.n && n < INTAKE_LABELS_MAX && !labels_get(labels, n, STR("cluster")).n) {
        memcpy(more, labels, n * sizeof *labels);
        more[n++] = (struct label){STR("cluster"), intake->cluster};
        labels = more;
    }
    if (n > INTAKE_LABELS_MAX) {
        __atomic_fetch_add(&intake->refused, 1, __ATOMIC_RELAXED);
        return SERIES_UNWANTED;
    }
    size_t kept = sorted_labels(labels, n, sorted);
    pthread_mutex_lock(&intake->lock);
    series_id id = name_series(intake, sorted, kept, &meaning);
    pthread_mutex_unlock(&intake->lock);
    return id;
}

/* ------------------------------------------------------------------ appending */

static struct series series_at(struct intake *intake, series_id id)
{
    /* The array may move while another thread names a series. */
    pthread_mutex_lock(&intake->lock);
    struct series series = intake->series[id];
    pthread_mutex_unlock(&intake->lock);
    return series;
}

/* Stale markers are no samples, nor is what has a stamp outside of the calendar. */
static bool is_sample(time_ms t, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits != 0x7ff0000000000002ull && time_is_sane(t);
}

#define PIECE 512

void intake_append(struct intake *intake, series_id id, const time_ms *t, const double *v, size_t n)
{
    if (id == SERIES_UNWANTED || n == 0)
        return;
    struct series series = series_at(intake, id);
    if (series.load) {
        load_append(series.load, intake->in_order, intake->until, t, v, n);
        return;
    }
    if (series.record) {
        for (size_t i = 0; i < n; i++)
            if (is_sample(t[i], v[i]))
                record_add(series.record, t[i], v[i]);
        return;
    }
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole &= is_sample(t[i], v[i]);
    pthread_mutex_lock(&series.strip->lock);
    if (whole) {
        strip_append(series.strip, series.signal, series.unit, t, v, n);
        n = 0;
    }
    while (n) {
        size_t part = n < PIECE ? n : PIECE;
        time_ms kept_t[PIECE];
        double kept_v[PIECE];
        size_t kept = 0;
        for (size_t i = 0; i < part; i++) {
            kept_t[kept] = t[i];
            kept_v[kept] = v[i];
            kept += is_sample(t[i], v[i]);
        }
        strip_append(series.strip, series.signal, series.unit, kept_t, kept_v, kept);
        t += part;
        v += part;
        n -= part;
    }
    pthread_mutex_unlock(&series.strip->lock);
}

void intake_in_order(struct intake *intake, struct span hours)
{
    intake->in_order = true;
    intake->until = hours.to;
}

void intake_in_any_order(struct intake *intake)
{
    intake->in_order = false;
}

void intake_note(struct intake *intake, enum note_kind kind, struct str subject, int64_t count,
                 struct str text)
{
    struct intake_note_entry note = {kind, names_put(intake->names, subject),
                                     names_put(intake->names, text), count};
    pthread_mutex_lock(&intake->lock);
    for (size_t i = 0; i < intake->notes_n; i++) {
        struct intake_note_entry *old = &intake->notes[i];
        if (old->kind == kind && old->subject == note.subject && old->text == note.text) {
            old->count += count;
            pthread_mutex_unlock(&intake->lock);
            return;
        }
    }
    if (intake->notes_n < INTAKE_NOTES_MAX)
        mem_push(intake->notes, intake->notes_n, intake->notes_room, note);
    pthread_mutex_unlock(&intake->lock);
}
