/* What a target's text says, into the journal's batch.
 *
 * Numbers of series are good in one segment of the journal. When a new one begins, what is known of
 * the target's heads is forgotten, and the next text names its series again; so a series that
 * vanishes in just that text gets no stale marker. The ledger needs none: it goes by what is there.
 */
#include <math.h>
#include <stdlib.h>

#include "source/scrape_impl.h"

#define LABELS_MAX (PROMTEXT_LABELS_MAX + TARGETS_LABELS_MAX)
#define STALE_BITS UINT64_C(0x7ff0000000000002)

static double stale_marker(void)
{
    uint64_t bits = STALE_BITS;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

struct place *place_new(const struct target *target)
{
    struct place *place = mem_zalloc(1, sizeof *place);
    place->target = target;
    place->layout = promtext_layout_new();
    place->state.error = str_dup(STR_NONE);
    return place;
}

void place_free(struct place *place)
{
    if (!place)
        return;
    promtext_layout_free(place->layout);
    free(place->series);
    free(place->state.error);
    free(place);
}

/* ---- naming */

/* Add labels where there is none of the name. */
static size_t add_labels(struct label *to, size_t n, const struct label *more, size_t more_n)
{
    for (size_t i = 0; i < more_n && n < LABELS_MAX; i++)
        if (labels_get(to, n, more[i].name).n == 0)
            to[n++] = more[i];
    return n;
}

/* job and instance are the target's, as the ledger joins by them; where the text has its own, it is
 * kept as exported_job, as Prometheus does. */
static struct label text_label(struct label label)
{
    if (str_eq(label.name, STR("job")))
        label.name = STR("exported_job");
    else if (str_eq(label.name, STR("instance")))
        label.name = STR("exported_instance");
    return label;
}

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct scraper *scraper = context;
    struct place *place = scraper->reading;
    struct label all[LABELS_MAX];
    struct journal_series series;
    const char *why;
    size_t all_n = 0;
    if (promtext_remembered(scraper->text) == 0)
        place->series_n = 0;
    if (!intake_wants_metric(labels_get(labels, n, STR("__name__"))))
        return PROMTEXT_SKIP;
    for (size_t i = 0; i < n; i++)
        all[all_n++] = text_label(labels[i]);
    all_n = add_labels(all, all_n, place->target->labels, place->target->labels_n);
    all_n = add_labels(all, all_n, scraper->labels, scraper->labels_n);
    if (!journal_define(scraper->batch, (struct journal_key){0, 0}, all, all_n, &series, &why)) {
        scraper->refused++;
        return PROMTEXT_SKIP;
    }
    mem_push(place->series, place->series_n, place->series_room, series);
    return (uint32_t)place->series_n - 1;
}

static void name_up(struct scraper *scraper, struct place *place)
{
    struct label labels[LABELS_MAX] = {{STR("__name__"), STR("up")}};
    const char *why;
    size_t n = add_labels(labels, 1, place->target->labels, place->target->labels_n);
    n = add_labels(labels, n, place->target->own, place->target->own_n);
    n = add_labels(labels, n, scraper->labels, scraper->labels_n);
    place->has_up =
        journal_define(scraper->batch, (struct journal_key){0, 0}, labels, n, &place->up, &why);
}

/* ---- samples */

static void on_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                       size_t n)
{
    struct scraper *scraper = context;
    const struct place *place = scraper->reading;
    struct journal_series series[PROMTEXT_BATCH];
    for (size_t i = 0; i < n; i++)
        series[i] = place->series[id[i]];
    journal_add_each(scraper->batch, series, t, v, n);
    scraper->samples += (uint32_t)n;
}

static void on_vanished(void *context, uint32_t id)
{
    struct scraper *scraper = context;
    double v = stale_marker();
    journal_add(scraper->batch, scraper->reading->series[id], &scraper->stamp, &v, 1);
}

struct promtext *place_decoder_new(struct scraper *scraper)
{
    struct promtext_sink sink = {.context = scraper, .series = on_series, .samples = on_samples};
    return promtext_new(PROMTEXT_AUTO, &sink);
}

static void read_text(struct scraper *scraper, struct place *place, struct str body, time_ms stamp)
{
    struct promtext *text = scraper->text;
    scraper->reading = place;
    scraper->stamp = stamp;
    scraper->samples = scraper->refused = 0;
    promtext_use(text, place->layout);
    if (place->segment != scraper->segment) {
        promtext_forget(text);
        place->series_n = 0;
        place->has_up = false;
        place->segment = scraper->segment;
    }
    promtext_begin(text, stamp);
    promtext_feed(text, body);
    promtext_finish(text);
    promtext_vanished(text, on_vanished, scraper);
    promtext_use(text, NULL);
    scraper->reading = NULL;
}

void place_take(struct scraper *scraper, struct place *place, struct str body, bool up,
                time_ms stamp)
{
    double v = up ? 1 : 0;
    if (!writer_batch(scraper)) {
        pthread_mutex_lock(&scraper->lock);
        scraper->stats.dropped_samples += place->state.samples; /* it has as many as last time */
        pthread_mutex_unlock(&scraper->lock);
        scraper->samples = scraper->refused = 0;
        return;
    }
    read_text(scraper, place, body, stamp);
    if (!place->has_up)
        name_up(scraper, place);
    if (place->has_up)
        journal_add(scraper->batch, place->up, &stamp, &v, 1);
    writer_hand_over(scraper, false);
}

void place_end(struct scraper *scraper, struct place *place, time_ms stamp)
{
    double v = stale_marker();
    if (!writer_batch(scraper) || place->segment != scraper->segment)
        return;
    read_text(scraper, place, STR_NONE, stamp);
    if (place->has_up)
        journal_add(scraper->batch, place->up, &stamp, &v, 1);
}
