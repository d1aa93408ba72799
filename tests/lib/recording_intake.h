/* An intake that writes down what sources deliver: stands in for fleet/intake.c, whose functions it
 * defines, in tests of sources. Include it in one file of a program and link no other intake.
 *
 * Metrics are wanted by recorder.wanted; every series of them is. Like the real one it drops stale
 * markers and takes a stamp of a series once. It checks what the header promises of sources: stamps
 * ascend inside a call, and no series is appended to by two threads at once. */
#ifndef GPUTALLY_TESTS_RECORDING_INTAKE_H
#define GPUTALLY_TESTS_RECORDING_INTAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/intake.h"

struct recorded_sample {
    time_ms t;
    double v;
    size_t order;
};
struct recorded_series {
    char *text; /* name{label="value",…}, labels in order of name */
    struct recorded_sample *samples;
    size_t n, room;
    atomic_int appending;
};
struct recorded_note {
    enum note_kind kind;
    char *subject, *text;
    int64_t count;
};
static struct recorder {
    pthread_mutex_t lock;
    struct wanted_metric wanted[64];
    size_t wanted_n;
    struct recorded_series **series;
    size_t n, room;
    struct recorded_note notes[64];
    size_t notes_n;
    size_t calls, naming_calls;
    size_t broken_promises;
    struct strbuf failures;
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The intake to hand to sources. */
#define RECORDER ((struct intake *)(void *)&recorder)

static void recorder_want(const char *name, const char *match, enum metric_group group)
{
    recorder.wanted[recorder.wanted_n++] = (struct wanted_metric){name, match, group};
}

static void recorder_clear(void)
{
    for (size_t i = 0; i < recorder.n; i++) {
        free(recorder.series[i]->text);
        free(recorder.series[i]->samples);
        free(recorder.series[i]);
    }
    free(recorder.series);
    for (size_t i = 0; i < recorder.notes_n; i++) {
        free(recorder.notes[i].subject);
        free(recorder.notes[i].text);
    }
    strbuf_release(&recorder.failures);
    recorder.series = NULL;
    recorder.n = recorder.room = recorder.wanted_n = recorder.notes_n = 0;
    recorder.calls = recorder.naming_calls = recorder.broken_promises = 0;
}

const struct wanted_metric *wanted_metrics(size_t *ret_n)
{
    *ret_n = recorder.wanted_n;
    return recorder.wanted;
}

bool intake_wants_metric(struct str name)
{
    for (size_t i = 0; i < recorder.wanted_n; i++)
        if (str_eq(name, str_of(recorder.wanted[i].name)))
            return true;
    return false;
}

static int recorder_by_name(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static void recorder_text(const struct label *labels, size_t n, struct strbuf *ret)
{
    struct label sorted[256];
    memcpy(sorted, labels, n * sizeof *labels);
    qsort(sorted, n, sizeof *sorted, recorder_by_name);
    struct str name = labels_get(labels, n, STR("__name__"));
    strbuf_addf(ret, "%.*s{", STR_ARG(name));
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (str_eq(sorted[i].name, STR("__name__")) || sorted[i].value.n == 0)
            continue;
        strbuf_addf(ret, "%s%.*s=\"%.*s\"", first ? "" : ",", STR_ARG(sorted[i].name),
                    STR_ARG(sorted[i].value));
        first = false;
    }
    strbuf_addc(ret, '}');
}

series_id intake_series(struct intake *intake, const struct label *labels, size_t n)
{
    (void)intake;
    if (!intake_wants_metric(labels_get(labels, n, STR("__name__"))))
        return SERIES_UNWANTED;
    struct strbuf text = {0};
    recorder_text(labels, n, &text);
    pthread_mutex_lock(&recorder.lock);
    recorder.naming_calls++;
    size_t i = 0;
    while (i < recorder.n && strcmp(recorder.series[i]->text, text.text) != 0)
        i++;
    if (i == recorder.n) {
        struct recorded_series *series = mem_zalloc(1, sizeof *series);
        series->text = str_dup(strbuf_str(&text));
        mem_push(recorder.series, recorder.n, recorder.room, series);
    }
    pthread_mutex_unlock(&recorder.lock);
    strbuf_release(&text);
    return (series_id)i;
}

void intake_append(struct intake *intake, series_id id, const time_ms *t, const double *v, size_t n)
{
    (void)intake;
    pthread_mutex_lock(&recorder.lock);
    struct recorded_series *series = recorder.series[id];
    recorder.calls++;
    pthread_mutex_unlock(&recorder.lock);
    bool alone = atomic_fetch_add(&series->appending, 1) == 0, ascending = true;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        ascending &= i == 0 || t[i] > t[i - 1];
        if (bits == 0x7ff0000000000002ull)
            continue;
        struct recorded_sample sample = {t[i], v[i], series->n};
        mem_push(series->samples, series->n, series->room, sample);
    }
    atomic_fetch_sub(&series->appending, 1);
    if (!alone || !ascending) {
        pthread_mutex_lock(&recorder.lock);
        recorder.broken_promises++;
        strbuf_addf(&recorder.failures, "%s: %s\n", series->text,
                    alone ? "stamps do not ascend" : "two threads append");
        pthread_mutex_unlock(&recorder.lock);
    }
}

void intake_note(struct intake *intake, enum note_kind kind, struct str subject, int64_t count,
                 struct str text)
{
    (void)intake;
    pthread_mutex_lock(&recorder.lock);
    if (recorder.notes_n < 64)
        recorder.notes[recorder.notes_n++] =
            (struct recorded_note){kind, str_dup(subject), str_dup(text), count};
    pthread_mutex_unlock(&recorder.lock);
}

/* How stamps come is a promise to the one that folds meters; here all of them are kept. */
void intake_in_order(struct intake *intake, struct span hours)
{
    (void)intake, (void)hours;
}

void intake_in_any_order(struct intake *intake)
{
    (void)intake;
}

void intake_by_time(struct intake *intake, const char *folder)
{
    (void)intake, (void)folder;
}

void intake_by_series(struct intake *intake)
{
    (void)intake;
}

static int recorder_by_stamp(const void *a, const void *b)
{
    const struct recorded_sample *x = a, *y = b;
    if (x->t != y->t)
        return (x->t > y->t) - (x->t < y->t);
    return (x->order > y->order) - (x->order < y->order);
}

static int recorder_by_text(const void *a, const void *b)
{
    return strcmp((*(struct recorded_series *const *)a)->text,
                  (*(struct recorded_series *const *)b)->text);
}

/* Each stamp once, in order; series in order of text. Ids are void after. */
static inline void recorder_settle(void)
{
    for (size_t i = 0; i < recorder.n; i++) {
        struct recorded_series *series = recorder.series[i];
        if (series->n)
            qsort(series->samples, series->n, sizeof *series->samples, recorder_by_stamp);
        size_t kept = 0;
        for (size_t k = 0; k < series->n; k++)
            if (kept == 0 || series->samples[k].t != series->samples[kept - 1].t)
                series->samples[kept++] = series->samples[k];
        series->n = kept;
    }
    if (recorder.n)
        qsort(recorder.series, recorder.n, sizeof *recorder.series, recorder_by_text);
}

static inline const struct recorded_series *recorder_find(const char *text)
{
    for (size_t i = 0; i < recorder.n; i++)
        if (strcmp(recorder.series[i]->text, text) == 0)
            return recorder.series[i];
    return NULL;
}

#endif
