#include "serve/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct writer {
    char *db;
    struct collect_lender lender;
    pthread_mutex_t turn; /* who has the store */
    struct store *store;  /* of whose turn it is; NULL: not open */
    pthread_mutex_t lock; /* of what follows */
    struct writer_state state;
};

void writer_told(struct writer *writer, enum err code, const struct error *err)
{
    pthread_mutex_lock(&writer->lock);
    writer->state.code = code;
    snprintf(writer->state.why, sizeof writer->state.why, "%.250s", code && err ? err->text : "");
    pthread_mutex_unlock(&writer->lock);
}

static void is_open(struct writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->state.open = writer->store != NULL;
    writer->state.turns++;
    pthread_mutex_unlock(&writer->lock);
}

/* What failed is opened afresh: the file may be another one by now, on another disk. */
static void forget_failed(struct writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    bool failed = writer->state.code == ERR_STORE;
    pthread_mutex_unlock(&writer->lock);
    if (!failed)
        return;
    store_close(writer->store);
    writer->store = NULL;
}

static enum err take(void *context, struct names *names, struct store **ret, struct error *err)
{
    struct writer *writer = context;
    struct error own = {0};
    pthread_mutex_lock(&writer->turn);
    forget_failed(writer);
    enum err code = writer->store
                        ? store_use_names(writer->store, names, &own)
                        : store_open(writer->db, STORE_WRITE, names, &writer->store, &own);
    if (code && writer->store) {
        store_close(writer->store);
        writer->store = NULL;
    }
    is_open(writer);
    if (code) {
        writer_told(writer, code, &own);
        pthread_mutex_unlock(&writer->turn);
        if (err)
            *err = own;
        return code;
    }
    *ret = writer->store;
    return ERR_OK;
}

/* The names of the run go with the run. */
static void give(void *context, struct store *store)
{
    struct writer *writer = context;
    store_use_names(store, NULL, NULL);
    pthread_mutex_unlock(&writer->turn);
}

struct writer *writer_new(const char *db)
{
    struct writer *writer = mem_zalloc(1, sizeof *writer);
    writer->db = str_dup(str_of(db));
    writer->lender = (struct collect_lender){.context = writer, .take = take, .give = give};
    pthread_mutex_init(&writer->turn, NULL);
    pthread_mutex_init(&writer->lock, NULL);
    return writer;
}

void writer_free(struct writer *writer)
{
    if (!writer)
        return;
    store_close(writer->store);
    pthread_mutex_destroy(&writer->turn);
    pthread_mutex_destroy(&writer->lock);
    free(writer->db);
    free(writer);
}

const struct collect_lender *writer_lender(struct writer *writer)
{
    return &writer->lender;
}

enum err writer_retain(struct writer *writer, time_ms keep, struct error *err)
{
    struct names *names = names_new();
    struct store *store;
    struct span extent;
    enum err code = take(writer, names, &store, err);
    if (!code) {
        code = store_extent(store, &extent, err);
        if (!code)
            code = store_retain(store, extent.to - keep, err);
        give(writer, store);
    }
    names_free(names);
    return code == ERR_NOT_FOUND ? ERR_OK : code;
}

void writer_state(struct writer *writer, struct writer_state *ret)
{
    pthread_mutex_lock(&writer->lock);
    *ret = writer->state;
    pthread_mutex_unlock(&writer->lock);
}
