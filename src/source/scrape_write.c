/* Batches go round: one is filled by "scrape", full ones wait for "scrape-write", which commits and
 * syncs them and gives them back. Where all are with the writer, the disk is behind by as many
 * times sync_ms; what is scraped meanwhile is dropped and counted, rather than kept without end. */
#include "source/scrape_impl.h"

static void *write_batches(void *context)
{
    struct scraper *scraper = context;
    struct writer *writer = &scraper->writer;
    pthread_setname_np(pthread_self(), "scrape-write");
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        while (writer->full_n == 0 && !writer->ending)
            pthread_cond_wait(&writer->change, &writer->lock);
        if (writer->full_n == 0)
            break;
        struct journal_batch *batch = writer->full[0];
        memmove(writer->full, writer->full + 1, --writer->full_n * sizeof writer->full[0]);
        pthread_mutex_unlock(&writer->lock);
        size_t samples = journal_batch_samples(batch);
        bool good = journal_commit(batch, true, NULL) == ERR_OK;
        pthread_mutex_lock(&writer->lock);
        writer->dropped += good ? 0 : samples;
        writer->idle[writer->idle_n++] = batch;
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

enum err writer_start(struct scraper *scraper, struct error *err)
{
    struct writer *writer = &scraper->writer;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->change, NULL);
    for (size_t i = 0; i < BATCHES; i++)
        writer->idle[writer->idle_n++] = writer->batch[i] = journal_batch_new(scraper->journal);
    if (pthread_create(&writer->thread, NULL, write_batches, scraper) == 0)
        return ERR_OK;
    for (size_t i = 0; i < BATCHES; i++)
        journal_batch_free(writer->batch[i]);
    return error_set(err, ERR_IO, "no thread can be started to write what is scraped");
}

void writer_stop(struct scraper *scraper)
{
    struct writer *writer = &scraper->writer;
    pthread_mutex_lock(&writer->lock);
    writer->ending = true;
    pthread_cond_signal(&writer->change);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    for (size_t i = 0; i < BATCHES; i++)
        journal_batch_free(writer->batch[i]);
    pthread_cond_destroy(&writer->change);
    pthread_mutex_destroy(&writer->lock);
}

bool writer_batch(struct scraper *scraper)
{
    struct writer *writer = &scraper->writer;
    if (scraper->batch && journal_batch_samples(scraper->batch) < JOURNAL_BATCH_MAX / 2)
        return true;
    if (scraper->batch)
        return false;
    pthread_mutex_lock(&writer->lock);
    if (writer->idle_n)
        scraper->batch = writer->idle[--writer->idle_n];
    pthread_mutex_unlock(&writer->lock);
    if (!scraper->batch)
        return false;
    scraper->segment = journal_begin(scraper->batch);
    scraper->batch_begun = clock_monotonic();
    return true;
}

/* A batch is given away a little before its time, so that scraped samples are synced within it. */
void writer_hand_over(struct scraper *scraper, bool now)
{
    struct writer *writer = &scraper->writer;
    if (!scraper->batch)
        return;
    bool old = clock_monotonic() - scraper->batch_begun >= scraper->sync_ms / 2;
    if (!now && !old && journal_batch_samples(scraper->batch) < BATCH_SAMPLES_FULL)
        return;
    pthread_mutex_lock(&writer->lock);
    bool last = writer->idle_n == 0;
    if (!last || now) {
        writer->full[writer->full_n++] = scraper->batch;
        scraper->batch = NULL;
        pthread_cond_signal(&writer->change);
    }
    pthread_mutex_unlock(&writer->lock);
}
