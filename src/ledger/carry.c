/* Layout: the magic, then entries, each a byte that says what it is, then little-endian numbers and
 * texts by length.
 *
 *   'S' strip:  labels, n signals of {metric, n samples of {t, value as cleaned}}
 *   'R' record: metric, labels, n samples of {t, value}
 *   'J' job that renames pod labels: cluster, job
 *   'W' observation: t
 */
#include "ledger/carry.h"

#include <stdlib.h>

#include "ledger/engine.h"

#define MAGIC "gputally-carry-1\n"
#define CARRY_LABELS_MAX INTAKE_LABELS_MAX
#define SILENT_MAX_MS (30 * DAY_MS) /* a device that said nothing for so long is forgotten */

/* ------------------------------------------------------------------ writing */

static void put_u32(struct strbuf *out, uint32_t v)
{
    strbuf_add(out, (struct str){(const char *)&v, sizeof v});
}

static void put_i64(struct strbuf *out, int64_t v)
{
    strbuf_add(out, (struct str){(const char *)&v, sizeof v});
}

static void put_text(struct strbuf *out, struct str text)
{
    put_u32(out, (uint32_t)text.n);
    strbuf_add(out, text);
}

static void put_labels(struct strbuf *out, const struct names *names, const struct pair *labels,
                       uint32_t n)
{
    put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        put_text(out, names_text(names, labels[i].name));
        put_text(out, names_text(names, labels[i].value));
    }
}

/* The last sample of a signal, and, where the same value stood before it, the first of that stand:
 * what a lost XID and a frozen counter are told by. */
static void put_signal(struct strbuf *out, struct str metric, const struct strip_end *end)
{
    bool stands = end->t != TIME_MIN && end->since != end->t;
    put_text(out, metric);
    put_u32(out, end->t == TIME_MIN ? 0 : stands ? 2 : 1);
    if (stands) {
        put_i64(out, end->since);
        put_i64(out, end->v);
    }
    if (end->t != TIME_MIN) {
        put_i64(out, end->t);
        put_i64(out, end->v);
    }
}

static void put_strip(struct strbuf *out, const struct names *names, const struct strip *strip)
{
    const struct strip_end *end = strip->ends;
    strbuf_addc(out, 'S');
    put_labels(out, names, strip->labels, strip->labels_n);
    put_u32(out, (uint32_t)__builtin_popcount(strip->signals));
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->signals & 1u << s)
            put_signal(out, names_text(names, strip->metric[s]), end++);
}

/* Does the strip name a pod that lives at `at`? */
static bool names_living_pod(const struct facts *facts, const struct strip *strip, time_ms at)
{
    uint32_t pod;
    return strip->holder.pod != NAME_NONE &&
           facts_incarnation(facts, strip->label[GPU_LABEL_CLUSTER], strip->holder.namespace,
                             strip->holder.pod, at, &pod) &&
           pod != POD_NONE;
}

/* Was it sent, at its last stamp, from a node that has lived since and lives at `at`, and that the
 * strip's own labels name? */
static bool is_of_living_node(const struct facts *facts, const struct strip *strip, time_ms at)
{
    name_t name = strip->node;
    if (name == NAME_NONE ||
        (name != strip->label[GPU_LABEL_NODE] && name != strip->label[GPU_LABEL_HOSTNAME]))
        return false;
    const struct node *node =
        facts_find_node((struct facts *)facts, strip->label[GPU_LABEL_CLUSTER], name);
    for (size_t i = 0; node && node->recorded && i < node->lives_n; i++)
        if (node->lives[i].up <= strip->last && at < node->lives[i].down)
            return true;
    return false;
}

/* When the devices last said anything, and when they did on each node that they were on: by
 * strip, which number of both it has. */
struct last_stamps {
    struct last_of {
        uint32_t device, place;
    } * by_strip;
    time_ms *of_device, *of_place;
};

/* Number of the key; last[number] becomes the latest t of it. */
static uint32_t number_of(struct idmap *map, struct idkey key, time_ms *last, time_ms t)
{
    bool fresh;
    uint32_t at = idmap_add(map, key, map->count, &fresh);
    if (fresh || t > last[at])
        last[at] = t;
    return at;
}

static void find_last(const struct intake *intake, struct last_stamps *ret)
{
    struct idmap devices = {0}, places = {0};
    ret->by_strip = mem_alloc((intake->strips_n + 1) * sizeof *ret->by_strip);
    ret->of_device = mem_alloc((intake->strips_n + 1) * sizeof *ret->of_device);
    ret->of_place = mem_alloc((intake->strips_n + 1) * sizeof *ret->of_place);
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        struct last_of *of = &ret->by_strip[i];
        if (strip->last == TIME_MIN)
            continue;
        of->device = number_of(&devices,
                               IDKEY(strip->label[GPU_LABEL_CLUSTER], strip->label[GPU_LABEL_UUID],
                                     strip->label[GPU_LABEL_PCI], strip->label[GPU_LABEL_INDEX]),
                               ret->of_device, strip->last);
        of->place = number_of(&places, IDKEY(of->device, strip->node), ret->of_place, strip->last);
    }
    idmap_release(&devices);
    idmap_release(&places);
}

static bool is_carried(const struct facts *facts, const struct strip *strip,
                       const struct last_stamps *stamps, size_t i, time_ms at)
{
    if (strip->last == TIME_MIN || at - strip->last > SILENT_MAX_MS)
        return false;
    const struct last_of *of = &stamps->by_strip[i];
    return strip->last == stamps->of_device[of->device] ||
           (strip->last == stamps->of_place[of->place] && is_of_living_node(facts, strip, at)) ||
           names_living_pod(facts, strip, at);
}

/* Carried are: the last strips of each device; the last ones on each node that it has left and
 * that lives on, since who comes after it there begins with its first sample only; and those of
 * pods that live. */
static void write_strips(const struct intake *intake, const struct facts *facts, time_ms at,
                         struct strbuf *out)
{
    struct last_stamps stamps;
    find_last(intake, &stamps);
    for (size_t i = 0; i < intake->strips_n; i++)
        if (is_carried(facts, intake->strips[i], &stamps, i, at))
            put_strip(out, facts->names, intake->strips[i]);
    free(stamps.by_strip);
    free(stamps.of_device);
    free(stamps.of_place);
}

static const char *const record_names[RECORD_COUNT] = {
#define X(name, metric, match, group) [RECORD_##name] = metric,
    RECORD_TABLE(X)
#undef X
};

/* First and last sample of a record up to `at`; false where it has none. */
static bool ends_until(const struct record *record, time_ms at, time_ms t[2], double v[2])
{
    if (!record->n || record->runs[0].t0 > at)
        return false;
    t[0] = record->runs[0].t0;
    v[0] = record->runs[0].v;
    for (size_t i = record->n; i-- > 0;) {
        const struct run *run = &record->runs[i];
        if (run->t0 > at)
            continue;
        time_ms last = run_last(run);
        if (last > at)
            last = run->n == 1 ? run->t0 : run->t0 + (at - run->t0) / run->dt * run->dt;
        t[1] = last;
        v[1] = run->v;
        return true;
    }
    return false;
}

/* Is the record one that the next slice would not find by itself? Lives of unknown start. */
static bool record_is_carried(const struct facts *facts, const struct record *record, time_ms at)
{
    switch (record->metric) {
    case RECORD_NODE_INFO: {
        struct node *node =
            facts_find_node((struct facts *)facts, facts_label(facts, record, "cluster"),
                            facts_label(facts, record, "node"));
        for (size_t i = 0; node && i < node->lives_n; i++)
            if (node->lives[i].up <= at && at < node->lives[i].down)
                return node->lives[i].created == TIME_MIN;
        return false;
    }
    case RECORD_POD_INFO: {
        uint32_t index = idmap_get(
            &facts->pod_by_key,
            IDKEY(facts_label(facts, record, "cluster"), facts_label(facts, record, "namespace"),
                  facts_label(facts, record, "pod"), facts_label(facts, record, "uid")));
        if (index == IDMAP_NONE)
            return false;
        const struct pod *pod = &facts->pods[index];
        return pod->scheduled == TIME_MIN && pod->start == TIME_MIN && pod->since <= at &&
               at < pod->until;
    }
    case RECORD_UP:
    case RECORD_GPU_INFO:
        return true;
    default:
        return false;
    }
}

/* An observation, once. */
static void put_stamp(struct strbuf *out, struct idmap *written, time_ms t)
{
    bool fresh;
    idmap_add(written, IDKEY((uint32_t)(t >> 32), (uint32_t)t), 0, &fresh);
    if (!fresh)
        return;
    strbuf_addc(out, 'W');
    put_i64(out, t);
}

static void write_records(const struct intake *intake, const struct facts *facts, time_ms at,
                          struct strbuf *out)
{
    struct idmap written = {0};
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        time_ms t[2];
        double v[2];
        if (!record_is_carried(facts, record, at) || !ends_until(record, at, t, v) ||
            at - t[1] > SILENT_MAX_MS)
            continue;
        bool life = record->metric == RECORD_NODE_INFO || record->metric == RECORD_POD_INFO;
        bool two = life && t[0] < t[1];
        strbuf_addc(out, 'R');
        put_text(out, str_of(record_names[record->metric]));
        put_labels(out, facts->names, record->labels, record->labels_n);
        put_u32(out, two ? 2 : 1);
        for (int k = two ? 0 : 1; k < 2; k++) {
            put_i64(out, t[k]);
            strbuf_add(out, (struct str){(const char *)&v[k], sizeof v[k]});
        }
        if (life) {
            const struct watch *watch =
                facts_watch((struct facts *)facts, facts_label(facts, record, "cluster"));
            put_stamp(out, &written, watch_start(watch, facts->settings, t[0]));
        }
    }
    idmap_release(&written);
}

/* The next increase of a counter reaches back to its last sample. Hosts have hundreds of series,
 * and what the next slice reads of the time before it has their last samples, but where the target
 * fell silent: only such are carried. */
static void write_loads(const struct intake *intake, const struct facts *facts, time_ms at,
                        time_ms reach, struct strbuf *out)
{
    for (size_t i = 0; i < intake->loads_n; i++) {
        const struct load_series *series = intake->loads[i];
        time_ms t;
        double v;
        bool many = series->meter->name->group != LOAD_GROUP_SERVING;
        if (!load_last(series, at, &t, &v) || at - t > SILENT_MAX_MS || (many && t >= at - reach))
            continue;
        strbuf_addc(out, 'R');
        put_text(out, names_text(facts->names, series->metric));
        put_labels(out, facts->names, series->labels, series->labels_n);
        put_u32(out, 1);
        put_i64(out, t);
        strbuf_add(out, (struct str){(const char *)&v, sizeof v});
    }
}

void carry_write(const struct intake *intake, const struct facts *facts, time_ms at,
                 struct strbuf *out)
{
    strbuf_add(out, STR(MAGIC));
    for (size_t i = 0; i < intake->renamed_jobs_n; i++) {
        strbuf_addc(out, 'J');
        put_text(out, names_text(facts->names, intake->renamed_jobs[i].name));
        put_text(out, names_text(facts->names, intake->renamed_jobs[i].value));
    }
    write_strips(intake, facts, at, out);
    write_records(intake, facts, at, out);
    struct span kube, gpu;
    engine_reach(facts->settings, (struct span){at, at}, &kube, &gpu);
    write_loads(intake, facts, at, at - gpu.from, out);
}

/* ------------------------------------------------------------------ reading */

struct reader {
    const char *p, *end;
    bool bad;
};

static uint32_t get_u32(struct reader *reader)
{
    uint32_t v = 0;
    if ((size_t)(reader->end - reader->p) < sizeof v) {
        reader->bad = true;
        return 0;
    }
    memcpy(&v, reader->p, sizeof v);
    reader->p += sizeof v;
    return v;
}

static int64_t get_i64(struct reader *reader)
{
    int64_t v = 0;
    if ((size_t)(reader->end - reader->p) < sizeof v) {
        reader->bad = true;
        return 0;
    }
    memcpy(&v, reader->p, sizeof v);
    reader->p += sizeof v;
    return v;
}

static struct str get_text(struct reader *reader)
{
    uint32_t n = get_u32(reader);
    if (reader->bad || (size_t)(reader->end - reader->p) < n) {
        reader->bad = true;
        return STR_NONE;
    }
    struct str text = {reader->p, n};
    reader->p += n;
    return text;
}

static size_t get_labels(struct reader *reader, struct label *labels)
{
    uint32_t n = get_u32(reader);
    if (n >= CARRY_LABELS_MAX) {
        reader->bad = true;
        return 0;
    }
    for (uint32_t i = 0; i < n && !reader->bad; i++) {
        labels[i].name = get_text(reader);
        labels[i].value = get_text(reader);
    }
    return n;
}

/* The series of these labels; unwanted where the carry is only checked, or bad. */
static series_id named(struct intake *intake, const struct reader *reader,
                       const struct label *labels, size_t n)
{
    return reader->bad || !intake ? SERIES_UNWANTED : intake_series(intake, labels, n);
}

static void read_job(struct intake *intake, struct reader *reader)
{
    struct str cluster = get_text(reader), job = get_text(reader);
    if (reader->bad || !intake)
        return;
    struct pair pair = {names_put(intake->names, cluster), names_put(intake->names, job)};
    mem_push(intake->renamed_jobs, intake->renamed_jobs_n, intake->renamed_jobs_room, pair);
}

static void read_strip(struct intake *intake, struct reader *reader)
{
    struct label labels[CARRY_LABELS_MAX + 1];
    size_t n = get_labels(reader, labels);
    uint32_t signals = get_u32(reader);
    for (uint32_t i = 0; i < signals && !reader->bad; i++) {
        labels[n] = (struct label){STR("__name__"), get_text(reader)};
        series_id id = named(intake, reader, labels, n + 1);
        uint32_t samples = get_u32(reader);
        for (uint32_t k = 0; k < samples && !reader->bad; k++) {
            time_ms t = get_i64(reader);
            int64_t v = get_i64(reader);
            const struct series *series = id == SERIES_UNWANTED ? NULL : &intake->series[id];
            if (series && series->strip && !reader->bad)
                strip_put(series->strip, series->signal, series->unit, t, v);
        }
    }
}

static void read_record(struct intake *intake, struct reader *reader)
{
    struct label labels[CARRY_LABELS_MAX + 1];
    struct str metric = get_text(reader);
    size_t n = get_labels(reader, labels);
    labels[n] = (struct label){STR("__name__"), metric};
    series_id id = named(intake, reader, labels, n + 1);
    uint32_t samples = get_u32(reader);
    for (uint32_t k = 0; k < samples && !reader->bad; k++) {
        time_ms t = get_i64(reader);
        int64_t bits = get_i64(reader);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!reader->bad && id != SERIES_UNWANTED)
            intake_append(intake, id, &t, &v, 1);
    }
}

enum err carry_read(struct intake *intake, struct str carry, struct error *err)
{
    struct str magic = STR(MAGIC);
    if (carry.n == 0)
        return ERR_OK;
    if (!str_starts(carry, magic))
        return error_set(err, ERR_PARSE, "the carry is of another version");
    struct reader reader = {carry.p + magic.n, carry.p + carry.n, false};
    while (reader.p < reader.end && !reader.bad) {
        char kind = *reader.p++;
        if (kind == 'S') {
            read_strip(intake, &reader);
        } else if (kind == 'R') {
            read_record(intake, &reader);
        } else if (kind == 'W') {
            time_ms t = get_i64(&reader);
            if (intake && time_is_sane(t))
                mem_push(intake->carried_stamps, intake->carried_stamps_n,
                         intake->carried_stamps_room, t);
        } else if (kind == 'J') {
            read_job(intake, &reader);
        } else {
            reader.bad = true;
        }
    }
    return reader.bad ? error_set(err, ERR_PARSE, "the carry is damaged at byte %zu",
                                  (size_t)(reader.p - carry.p))
                      : ERR_OK;
}
