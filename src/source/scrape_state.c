/* Targets that come and go, and what others may know of them. */
#include <stdlib.h>

#include "source/scrape_impl.h"

void places_free(struct scraper *scraper)
{
    for (size_t i = 0; i < scraper->places_n; i++)
        place_free(scraper->places[i]);
    free(scraper->places);
    free(scraper->heap);
    scraper->places = scraper->heap = NULL;
    scraper->places_n = 0;
}

/* A target that is not in the list any more. Not under the lock. */
static void place_gone(struct scraper *scraper, struct place *place)
{
    if (place->transfer)
        transfer_give_up(scraper, place->transfer);
    place_end(scraper, place, scraper->now(scraper->context));
    place_free(place);
}

/* The places of a list: those that were there before, and new ones. Both are in order of id. */
static struct place **merge(struct scraper *scraper, const struct target_list *list,
                            struct place **gone, size_t *ret_gone_n)
{
    struct place **places = mem_zalloc(list->n + 1, sizeof(struct place *));
    size_t old = 0, gone_n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct target *target = &list->targets[i];
        while (old < scraper->places_n && scraper->places[old]->target->id < target->id)
            gone[gone_n++] = scraper->places[old++];
        if (old < scraper->places_n && scraper->places[old]->target->id == target->id) {
            places[i] = scraper->places[old++];
            places[i]->target = target;
        } else {
            places[i] = place_new(target);
            place_schedule(scraper, places[i], false);
        }
    }
    while (old < scraper->places_n)
        gone[gone_n++] = scraper->places[old++];
    *ret_gone_n = gone_n;
    return places;
}

bool places_update(struct scraper *scraper)
{
    const struct target_list *list = targets_list(scraper->targets);
    if (scraper->list && list->version == scraper->list->version) {
        target_list_release(list);
        return false;
    }
    struct place **gone = mem_zalloc(scraper->places_n + 1, sizeof(struct place *));
    size_t gone_n;
    pthread_mutex_lock(&scraper->lock);
    struct place **places = merge(scraper, list, gone, &gone_n);
    free(scraper->places);
    free(scraper->heap);
    scraper->places = places;
    scraper->places_n = list->n;
    scraper->heap = mem_zalloc(list->n + 1, sizeof(struct place *));
    for (size_t i = 0; i < list->n; i++)
        heap_add(scraper, places[i], i);
    pthread_mutex_unlock(&scraper->lock);
    for (size_t i = 0; i < gone_n; i++)
        place_gone(scraper, gone[i]);
    free(gone);
    target_list_release(scraper->list);
    scraper->list = list;
    return true;
}

void place_note(struct scraper *scraper, struct place *place, const struct transfer *transfer,
                const char *error, const struct promtext_stats *text)
{
    struct scrape_state *state = &place->state;
    struct scrape_stats *stats = &scraper->stats;
    bool good = *error == 0;
    pthread_mutex_lock(&scraper->lock);
    place->bytes = sizeof *place + promtext_layout_bytes(place->layout) +
                   place->series_room * sizeof *place->series;
    state->up = good;
    state->last_try = transfer->stamp;
    state->last_ok = good ? transfer->stamp : state->last_ok;
    state->failures = good ? 0 : state->failures + 1;
    state->duration_ms = (uint32_t)(clock_monotonic() - transfer->begun);
    state->samples = good ? scraper->samples : 0;
    state->series = (uint32_t)place->series_n;
    state->bytes = (uint32_t)transfer->body.n;
    state->bad_lines = good ? (uint32_t)text->bad_lines + scraper->refused : 0;
    if (strcmp(state->error, error) != 0) {
        free(state->error);
        state->error = str_dup(str_of(error));
    }
    stats->scrapes++;
    stats->failures += !good;
    stats->bytes += transfer->body.n;
    stats->samples += state->samples;
    stats->ignored += good ? text->skipped : 0;
    stats->bad_lines += state->bad_lines;
    pthread_mutex_unlock(&scraper->lock);
}

void scraper_stats(struct scraper *scraper, struct scrape_stats *ret)
{
    pthread_mutex_lock(&scraper->lock);
    struct scrape_stats stats = scraper->stats;
    stats.targets = scraper->places_n;
    for (size_t i = 0; i < scraper->places_n; i++) {
        const struct place *place = scraper->places[i];
        stats.up += place->state.up;
        stats.memory_bytes += place->bytes;
        if (place->state.last_ok && (!stats.oldest_ok || place->state.last_ok < stats.oldest_ok))
            stats.oldest_ok = place->state.last_ok;
    }
    pthread_mutex_unlock(&scraper->lock);
    pthread_mutex_lock(&scraper->writer.lock);
    stats.dropped_samples += scraper->writer.dropped;
    pthread_mutex_unlock(&scraper->writer.lock);
    *ret = stats;
}

static char *put_text(char **p, const char *text)
{
    size_t n = strlen(text) + 1;
    char *to = memcpy(*p, text, n);
    *p += n;
    return to;
}

static int state_order(const void *a, const void *b)
{
    const struct scrape_state *x = a, *y = b;
    int order = strcmp(x->job, y->job);
    if (order == 0)
        order = strcmp(x->instance, y->instance);
    return order ? order : strcmp(x->url, y->url);
}

struct scrape_state *scraper_states(struct scraper *scraper, size_t *ret_n)
{
    pthread_mutex_lock(&scraper->lock);
    size_t n = scraper->places_n, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct place *place = scraper->places[i];
        bytes += strlen(place->target->job->name) + strlen(place->target->instance) +
                 strlen(place->target->url) + strlen(place->state.error) + 4;
    }
    struct scrape_state *states = mem_alloc(n * sizeof *states + bytes + 1);
    char *p = (char *)(states + n);
    for (size_t i = 0; i < n; i++) {
        const struct place *place = scraper->places[i];
        states[i] = place->state;
        states[i].job = put_text(&p, place->target->job->name);
        states[i].instance = put_text(&p, place->target->instance);
        states[i].url = put_text(&p, place->target->url);
        states[i].error = put_text(&p, place->state.error);
    }
    pthread_mutex_unlock(&scraper->lock);
    if (n)
        qsort(states, n, sizeof *states, state_order);
    *ret_n = n;
    return states;
}
