/* What the files of the receiver share.
 *
 *     push.c         requests in hand: routes, headers, desks and trays, figures
 *     push_store.c   a body into the journal, and what is answered for it
 *
 * A desk is what one request needs of buffers until it is answered, a tray what it needs until its
 * samples are in the batch; there are as many of each as requests may be in hand, made when they
 * are needed, and kept. Most requests in hand wait for the disk: the tray that was given back last
 * goes to the next one, so that messages are unpacked where the caches know the memory. */
#ifndef GPUTALLY_SOURCE_PUSH_IMPL_H
#define GPUTALLY_SOURCE_PUSH_IMPL_H

#include <pthread.h>

#include "source/push.h"
#include "wire/remote_write.h"

#define RETRY_BUSY_S 1
#define RETRY_DISK_S 5

struct route {
    char *tenant;
    struct journal *journal;
    struct label *labels;
    size_t labels_n;
    struct str *drop;
    size_t drop_n;
    struct arena texts;
};

/* What a request is decoded into. */
struct tray {
    struct remote_write request;
    struct journal_key *keys;
    struct journal_series *series;
    size_t room;
};

/* What of it waits to be stored. */
struct desk {
    struct journal_batch *batch; /* of `route`; NULL: none yet */
    const struct route *route;
    bool busy;
};

struct push {
    struct route *routes;
    size_t routes_n;
    size_t body_max, decoded_max;
    time_ms oldest_ms, future_ms;
    time_ms (*now)(void *context);
    void *context;
    pthread_mutex_t lock; /* what follows */
    struct desk *desks;
    struct tray *trays, **idle; /* idle: the one that was used last is the last */
    size_t desks_n, idle_n;     /* as many trays as desks */
    bool stopped;
    struct push_stats stats;
};

/* A request in hand. */
struct work {
    struct push *push;
    struct desk *desk;
    struct tray *tray; /* until the samples are in the batch */
    const struct route *route;
    struct push_answer *answer;
    struct push_stats add; /* what it adds to the sums */
    char complaint[200];   /* about the first sample or series that can never be kept */
    time_ms oldest, newest;
};

/* ---- push.c */

/* Give the answer its text. */
void push_reply(struct work *work, int status, int retry_after_s, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* What was decoded is in the batch, or of no use: the tray is the next request's. */
void push_give_tray_back(struct work *work);

/* ---- push_store.c */

/* The whole way of a body that may be taken: decoded, named, in the journal, answered. */
void push_store(struct work *work, struct str body);

#endif
