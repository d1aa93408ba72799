/* What the files of the scraper share.
 *
 *     scrape.c         the thread that has the connections: schedule, transfers
 *     scrape_place.c   a target: what its text says, into a batch; stale markers, up
 *     scrape_write.c   the thread that commits batches
 *     scrape_state.c   targets that come and go; figures for others */
#ifndef GPUTALLY_SOURCE_SCRAPE_IMPL_H
#define GPUTALLY_SOURCE_SCRAPE_IMPL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "source/http_impl.h"
#include "source/scrape.h"
#include "wire/promtext.h"

#define BATCHES 3                           /* one that fills, and what the disk is busy with */
#define BATCH_SAMPLES_FULL ((size_t)200000) /* handed over before its time */

/* A target's state of things; "scrape" owns it, `state` and `bytes` under the scraper's lock. */
struct place {
    const struct target *target; /* of scraper->list */
    time_ms due;                 /* monotonic; when the next scrape begins */
    size_t heap_at;
    struct transfer *transfer; /* NULL: none is running */
    struct promtext_layout *layout;
    struct journal_series *series; /* by the ids that the layout's heads have */
    size_t series_n, series_room;
    uint64_t segment; /* of those */
    struct journal_series up;
    bool has_up;
    struct scrape_state state; /* texts but `error` are not kept here */
    size_t bytes;              /* about, of all this */
};

/* A scrape in hand. */
struct transfer {
    CURL *curl;
    struct place *place; /* NULL: it is free */
    struct strbuf body;
    time_ms stamp; /* when it was begun, by the scraper's clock */
    time_ms begun; /* monotonic */
    bool too_long;
    char text[CURL_ERROR_SIZE];
    struct curl_slist *headers;
};

/* Between "scrape" and "scrape-write". */
struct writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct journal_batch *batch[BATCHES];
    struct journal_batch *idle[BATCHES], *full[BATCHES];
    size_t idle_n, full_n;
    bool ending;
    uint64_t dropped; /* samples of commits that failed */
};

struct scraper {
    struct targets *targets;
    struct journal *journal;
    struct label *labels;
    size_t labels_n;
    struct arena texts;
    time_ms sync_ms;
    time_ms (*now)(void *context);
    void *context;
    double speed;
    atomic_int stop;

    pthread_t thread;
    CURLM *multi;
    struct transfer *transfers;
    size_t transfers_n, running;
    struct promtext *text;
    const struct target_list *list;
    struct place **places; /* by target->id */
    size_t places_n;
    struct place **heap;         /* by due */
    struct journal_batch *batch; /* begun, or NULL: all are with the writer */
    uint64_t segment;            /* of it */
    time_ms batch_begun;         /* monotonic */
    struct writer writer;

    /* While a text is read. */
    struct place *reading;
    time_ms stamp;
    uint32_t samples, refused;

    pthread_mutex_t lock; /* stats, and the state of places */
    struct scrape_stats stats;
};

/* ---- scrape_place.c */

struct place *place_new(const struct target *target);
void place_free(struct place *place); /* NULL is fine */
struct promtext *place_decoder_new(struct scraper *scraper);
/* The body of a good scrape, or an empty one for a bad one; up is 1 or 0. */
void place_take(struct scraper *scraper, struct place *place, struct str body, bool up,
                time_ms stamp);
/* The target is gone: mark its series stale. */
void place_end(struct scraper *scraper, struct place *place, time_ms stamp);

/* ---- scrape_write.c */

enum err writer_start(struct scraper *scraper, struct error *err);
void writer_stop(struct scraper *scraper);
/* Have a batch to add to, begun; false: the disk is behind, what comes is dropped. */
bool writer_batch(struct scraper *scraper);
/* Give the batch away where it is full or old (or `now`). */
void writer_hand_over(struct scraper *scraper, bool now);

/* ---- scrape_state.c */

/* Take the targets of now; true where they changed. */
bool places_update(struct scraper *scraper);
void places_free(struct scraper *scraper);
/* A scrape is over: error "" where it is good. */
void place_note(struct scraper *scraper, struct place *place, const struct transfer *transfer,
                const char *error, const struct promtext_stats *text);

/* ---- scrape.c */

void heap_add(struct scraper *scraper, struct place *place, size_t n);
/* When a place is due next, after now; again: it was just scraped. */
void place_schedule(const struct scraper *scraper, struct place *place, bool again);
void transfer_give_up(struct scraper *scraper, struct transfer *transfer);

#endif
