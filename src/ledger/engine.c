/* The engine: facts, a review of all strips, a plan; then for each group of the plan its devices on
 * all threads, and its nodes on all threads. Nodes are handed out in order of (cluster, name) and
 * emitted in that order, whoever books them, so that the output depends neither on the number of
 * threads nor on the groups. */
#include "ledger/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fleet/exempt.h"
#include "ledger/carry.h"
#include "ledger/holders.h"
#include "ledger/load_book.h"
#include "ledger/node_book.h"
#include "ledger/plan.h"
#include "ledger/review.h"
#include "ledger/work.h"

/* Samples before and after a slice: start-up and the labels of new pods, gap and frozen text. */
#define REACH_GPU_MS (20 * 60000)
#define REACH_GPU_AFTER_MS (30 * 60000)
#define THREADS_MAX 64

void engine_reach(const struct settings *settings, struct span hours, struct span *ret_kube,
                  struct span *ret_gpu)
{
    time_ms gap = settings->gap_ms + settings->frozen_ms;
    time_ms before = gap > REACH_GPU_MS ? gap : REACH_GPU_MS;
    time_ms after = gap > REACH_GPU_AFTER_MS ? gap : REACH_GPU_AFTER_MS;
    time_ms record = settings->node_break_ms;
    *ret_gpu = (struct span){hours.from - before, hours.to + after};
    *ret_kube = (struct span){hours.from - (record > before ? record : before),
                              hours.to + (record > after ? record : after)};
}

enum err intake_restore(struct intake *intake, struct str carry, struct error *err)
{
    enum err code = carry_read(NULL, carry, err);
    if (code == ERR_OK)
        intake->carry = str_keep(&intake->arena, carry);
    return code;
}

void intake_stats(const struct intake *intake, struct engine_stats *ret)
{
    *ret = (struct engine_stats){.series = intake->series_n};
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (strip->column[s]) {
                ret->samples += strip->filled[s];
                ret->peak_bytes += strip->room * sizeof(int64_t);
            }
        ret->samples += strip->packed_samples;
        ret->peak_bytes += strip->room * sizeof(time_ms);
    }
    for (size_t i = 0; i < intake->records_n; i++) {
        for (size_t k = 0; k < intake->records[i]->n; k++)
            ret->samples += intake->records[i]->runs[k].n;
        ret->peak_bytes += intake->records[i]->room * sizeof(struct run);
    }
    for (size_t i = 0; i < intake->loads_n; i++) {
        ret->samples += intake->loads[i]->taken;
        ret->peak_bytes += intake->loads[i]->room * sizeof(struct load_sample);
    }
    for (size_t i = 0; i < intake->meters_n; i++)
        ret->peak_bytes += intake->meters[i]->bins_room * sizeof(struct load_bin) +
                           intake->meters[i]->readings_room * sizeof(struct load_reading);
}

/* ------------------------------------------------------------------ threads */

/* A GPU whose exporter served an old text, and where. */
struct frozen {
    uint32_t device; /* of the plan */
    name_t node;
    int64_t ms;
};

struct engine {
    struct facts *facts;
    struct plan plan;
    struct devices devices; /* of the group in hand */
    struct sightings sightings;
    struct load_book loads;
    struct work_book work;
    struct span hours;
    const struct engine_options *options;
    engine_emit_fn emit;
    void *context;
    size_t next_device, next_node, nodes_end; /* the first two atomic */
    pthread_mutex_t lock;
    pthread_cond_t turn_came;
    size_t turn;      /* the node that may be emitted */
    enum err failed;  /* atomic: some strip could not be read back … */
    struct error why; /* … under the lock */
    struct late_time *late;
    size_t late_n, late_room;
    int64_t shared_ms;
    uint64_t rejected, guessed; /* of devices */
    struct frozen *frozen;
    size_t frozen_n, frozen_room;
};

static bool stopped(const struct engine *engine)
{
    const volatile int *stop = engine->options->stop;
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

static bool is_over(const struct engine *engine)
{
    return stopped(engine) || __atomic_load_n(&engine->failed, __ATOMIC_RELAXED) != ERR_OK;
}

/* The rows of a device's strips. */
static bool fetch_strips(struct engine *engine, struct device *device)
{
    struct error err = {0};
    for (size_t i = 0; i < device->strips_n; i++) {
        enum err code = strip_fetch(device->strips[i], &err);
        if (code == ERR_OK)
            continue;
        pthread_mutex_lock(&engine->lock);
        engine->why = err;
        __atomic_store_n(&engine->failed, code, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&engine->lock);
        return false;
    }
    return true;
}

static void *build_devices(void *context)
{
    struct engine *engine = context;
    while (!is_over(engine)) {
        size_t i = __atomic_fetch_add(&engine->next_device, 1, __ATOMIC_RELAXED);
        if (i >= engine->devices.n)
            return NULL;
        if (fetch_strips(engine, engine->devices.at[i]))
            device_build(engine->devices.at[i], engine->facts);
    }
    return NULL;
}

/* Who has a node books it to its turn, so that all before the first that nobody took are emitted.
 */
static void *book_nodes(void *context)
{
    struct engine *engine = context;
    while (!stopped(engine)) {
        size_t i = __atomic_fetch_add(&engine->next_node, 1, __ATOMIC_RELAXED);
        if (i >= engine->nodes_end)
            return NULL;
        const struct node *node = engine->plan.nodes[i];
        struct node_book_result result = {0};
        node_book(engine->facts, &engine->sightings, node, engine->hours, engine->options, &result);
        load_book_machine(&engine->loads, node, &result.batch);
        pthread_mutex_lock(&engine->lock);
        while (engine->turn != i)
            pthread_cond_wait(&engine->turn_came, &engine->lock);
        if (result.batch.rows_n) {
            work_place(&engine->work, &result.batch);
            load_book_holders(&engine->loads, &result.batch);
            engine->emit(engine->context, &result.batch);
        }
        for (size_t k = 0; k < result.late_n; k++)
            mem_push(engine->late, engine->late_n, engine->late_room, result.late[k]);
        engine->shared_ms += result.shared_ms;
        engine->turn++;
        pthread_cond_broadcast(&engine->turn_came);
        pthread_mutex_unlock(&engine->lock);
        node_book_result_release(&result);
    }
    return NULL;
}

static void on_all_threads(struct engine *engine, void *(*work)(void *))
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long want = engine->options->threads > 0 ? engine->options->threads : cores;
    long threads = want < 1 ? 1 : want > THREADS_MAX ? THREADS_MAX : want;
    pthread_t ids[THREADS_MAX];
    long started = 0;
    for (long i = 1; i < threads; i++)
        if (pthread_create(&ids[started], NULL, work, engine) == 0)
            started++;
    work(engine);
    for (long i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}

/* ------------------------------------------------------------------ notes */

static void put_note(struct row_batch *batch, struct names *names, enum note_kind kind,
                     name_t subject, int64_t count, const char *text)
{
    struct note note = {.kind = (int)kind,
                        .subject = subject,
                        .text = names_put(names, str_of(text)),
                        .count = count,
                        .from = batch->hours.from,
                        .to = batch->hours.to};
    mem_push(batch->notes, batch->notes_n, batch->notes_room, note);
}

/* Who wants no findings, to be asked when findings are made. */
static void note_exempt(struct engine *engine, const struct intake *intake, struct row_batch *batch)
{
    struct names *names = engine->facts->names;
    struct exempt_wish *wishes;
    size_t left;
    size_t n = exempt_gather(engine->facts, intake, engine->hours, &wishes, &left);
    for (size_t i = 0; i < n; i++)
        put_note(batch, names, NOTE_EXEMPT, wishes[i].subject, 1,
                 names_text(names, wishes[i].text).p);
    if (left)
        put_note(batch, names, NOTE_PARTIAL, names_put(names, STR(EXEMPT_ANNOTATION)),
                 (int64_t)left, "annotations more than are kept: their bearers are not left alone");
    free(wishes);
}

static int by_device(const void *a, const void *b)
{
    const struct frozen *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

/* By node: its GPUs have one exporter. */
static void note_frozen(struct engine *engine, struct row_batch *batch)
{
    if (engine->frozen_n)
        qsort(engine->frozen, engine->frozen_n, sizeof *engine->frozen, by_device);
    for (size_t i = 0; i < engine->frozen_n; i++)
        put_note(batch, engine->facts->names, NOTE_FROZEN, engine->frozen[i].node,
                 engine->frozen[i].ms / 1000,
                 "seconds of a GPU in which its exporter served an old text (the energy counter "
                 "stands still while power is drawn)");
}

/* What is of no node: notes, workloads, namespaces. */
static void emit_rest(struct engine *engine, const struct intake *intake)
{
    struct names *names = engine->facts->names;
    struct row_batch batch = {.names = names, .hours = engine->hours};
    for (size_t i = 0; i < intake->notes_n; i++) {
        const struct intake_note_entry *note = &intake->notes[i];
        put_note(&batch, names, note->kind, note->subject, note->count,
                 names_text(names, note->text).p);
    }
    note_frozen(engine, &batch);
    if (engine->rejected)
        put_note(&batch, names, NOTE_REJECTED, NAME_NONE, (int64_t)engine->rejected,
                 "values that are no measurements (blanks, NaN, out of range)");
    if (engine->guessed)
        put_note(&batch, names, NOTE_GUESS, names_put(names, STR("GPU_UTIL")),
                 (int64_t)engine->guessed,
                 "GPUs whose exporter sends GPU_UTIL in a unit that its name does not say");
    for (size_t i = 0; i < engine->late_n; i++) {
        if (engine->late[i].ms <= engine->facts->settings->gap_ms)
            continue; /* a scrape or two late is how telemetry is */
        struct strbuf subject = {0};
        strbuf_addf(&subject, "%s/%s", names_text(names, engine->late[i].namespace).p,
                    names_text(names, engine->late[i].pod).p);
        put_note(&batch, names, NOTE_LATE_LABELS, names_put(names, strbuf_str(&subject)),
                 engine->late[i].ms / 1000, "seconds for which telemetry named a finished pod");
        strbuf_release(&subject);
    }
    if (engine->shared_ms)
        put_note(&batch, names, NOTE_GUESS, names_put(names, STR("shared GPUs")),
                 (engine->shared_ms + HOUR_MS - 1) / HOUR_MS,
                 "hours of a GPU that several pods shared: what each of them used is an estimate, "
                 "the whole card's activity laid on its share");
    int64_t unplaced[WORK_COUNT];
    work_unplaced(&engine->work, unplaced);
    for (int w = 0; w < WORK_COUNT; w++)
        if (unplaced[w])
            put_note(&batch, names, NOTE_UNPLACED, names_put(names, str_of(work_columns[w])),
                     unplaced[w], "counted in hours in which the pod held no GPU");
    if (intake->refused)
        put_note(&batch, names, NOTE_PARTIAL, NAME_NONE, (int64_t)intake->refused,
                 "series over the limits of a slice were left out");
    note_exempt(engine, intake, &batch);
    load_book_workloads(&engine->loads, &batch);
    load_book_namespaces(&engine->loads, &batch);
    if (batch.notes_n || batch.workload_hours_n || batch.namespace_hours_n)
        engine->emit(engine->context, &batch);
    row_batch_release(&batch);
}

/* ------------------------------------------------------------------ all of it */

/* A device that never said anything is none. */
static void drop_silent(struct devices *devices)
{
    size_t kept = 0;
    struct devices silent = {0};
    for (size_t i = 0; i < devices->n; i++) {
        struct device *device = devices->at[i];
        if (device->samples_n)
            devices->at[kept++] = device;
        else
            mem_push(silent.at, silent.n, silent.room, device);
    }
    devices->n = kept;
    devices_release(&silent);
}

/* What is told of devices, each once, although several groups may need it. */
static void count_devices(struct engine *engine)
{
    for (size_t i = 0; i < engine->devices.n; i++) {
        const struct device *device = engine->devices.at[i];
        bool *counted = &engine->plan.devices[device->number].counted;
        if (*counted)
            continue;
        *counted = true;
        engine->rejected += device->rejected;
        engine->guessed += device->guessed;
        if (!device->frozen_ms || !device->places_n)
            continue;
        struct frozen frozen = {device->number, device->places[device->places_n - 1].node,
                                device->frozen_ms};
        mem_push(engine->frozen, engine->frozen_n, engine->frozen_room, frozen);
    }
}

static void take_in_hand(const struct engine *engine, const struct plan_group *group)
{
    for (size_t i = group->from; i < group->to; i++)
        engine->plan.nodes[i]->in_hand = true;
}

/* Of the group's nodes: the devices in their lives, which are dropped. */
static void put_down(const struct engine *engine, const struct plan_group *group)
{
    for (size_t i = group->from; i < group->to; i++) {
        struct node *node = engine->plan.nodes[i];
        node->in_hand = false;
        for (size_t k = 0; k < node->lives_n; k++) {
            free(node->lives[k].mounts);
            node->lives[k].mounts = NULL;
            node->lives[k].mounts_n = 0;
        }
    }
}

static void book_group(struct engine *engine, const struct plan_group *group)
{
    plan_devices(&engine->plan, group, &engine->devices);
    engine->next_device = 0;
    on_all_threads(engine, build_devices);
    if (!is_over(engine)) {
        drop_silent(&engine->devices);
        count_devices(engine);
        take_in_hand(engine, group);
        holders_prepare(engine->facts, &engine->devices, &engine->sightings);
        engine->next_node = group->from;
        engine->nodes_end = group->to;
        on_all_threads(engine, book_nodes);
        put_down(engine, group);
    }
    sightings_release(&engine->sightings);
    devices_release(&engine->devices);
}

static enum err book_all(struct engine *engine, struct intake *intake, struct strbuf *ret_carry,
                         struct error *err)
{
    struct facts *facts = engine->facts;
    enum err code = strips_review(intake, facts, engine->hours.to, err);
    if (code != ERR_OK)
        return code;
    if (ret_carry)
        carry_write(intake, facts, engine->hours.to, ret_carry);
    plan_make(&engine->plan, facts, intake);
    work_gather(&engine->work, &engine->loads);
    for (size_t i = 0; i < engine->plan.groups_n && !is_over(engine); i++)
        book_group(engine, &engine->plan.groups[i]);
    if (stopped(engine))
        return error_set(err, ERR_STOPPED, "stopped");
    if (engine->failed != ERR_OK) {
        if (err)
            *err = engine->why;
        return engine->failed;
    }
    emit_rest(engine, intake);
    return ERR_OK;
}

enum err engine_book(struct intake *intake, struct span hours, const struct engine_options *options,
                     engine_emit_fn emit, void *context, struct strbuf *ret_carry,
                     struct error *err)
{
    enum err code = carry_read(intake, intake->carry, err);
    if (code != ERR_OK)
        return code;
    struct engine engine = {.facts = facts_new(intake, hours),
                            .hours = hours,
                            .options = options,
                            .emit = emit,
                            .context = context};
    pthread_mutex_init(&engine.lock, NULL);
    pthread_cond_init(&engine.turn_came, NULL);
    load_book_init(&engine.loads, engine.facts, intake, hours);
    code = book_all(&engine, intake, ret_carry, err);
    free(engine.late);
    free(engine.frozen);
    work_release(&engine.work);
    load_book_release(&engine.loads);
    plan_release(&engine.plan);
    facts_free(engine.facts);
    pthread_cond_destroy(&engine.turn_came);
    pthread_mutex_destroy(&engine.lock);
    return code;
}
