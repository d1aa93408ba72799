/* Inside of a feed: what it is fed by, for feed.c, which opens it, and feed_shown.c, which tells of
 * it. */
#ifndef GPUTALLY_SERVE_FEED_IMPL_H
#define GPUTALLY_SERVE_FEED_IMPL_H

#include <pthread.h>

#include "serve/feed.h"
#include "source/kube_source.h"
#include "source/scrape.h"

struct feed {
    struct feed_options options;
    const char *cluster;     /* label of series that have none; "" none */
    struct label label;      /* the same as a label */
    struct source **sources; /* Prometheus and files first; then the journal's and the watch's */
    size_t sources_n, sources_room;
    const struct source_config *first, *receiver, *kube; /* entries; NULL: none */
    char *name;
    struct targets *targets;   /* NULL: nothing is scraped */
    bool journaled, from_kube; /* needs a journal; exporter pods are targets */
    pthread_rwlock_t lock;     /* what is opened, against those who show or write */
    struct journal *journal;
    struct scraper *scraper;
    struct push *push;
    struct source *watch;           /* also among the sources */
    struct prometheus_live **lives; /* newest samples of servers */
    size_t lives_n, lives_room;
    bool open;
};

#endif
