#include "store/unpack.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/column.h"

#define THREADS_MAX 8 /* the calling one included */
#define BATCHES_MAX (2 * THREADS_MAX)

enum batch_state { BATCH_FREE, BATCH_FILLED, BATCH_TAKEN, BATCH_READY };

struct batch {
    enum batch_state state; /* under the lock; the rest is whose the state says */
    struct strbuf bytes;
    struct unpack_value values[UNPACK_BATCH];
    size_t n;
    char *rooms;
    size_t good; /* values before the one that failed */
    enum err code;
    struct error err;
};

struct crew {
    const struct unpacking *of;
    pthread_mutex_t lock;
    pthread_cond_t filled, ready;
    struct batch *batches;
    size_t batches_n, begin, end; /* in turns: [begin, end) are not handed over yet */
    bool over;
    pthread_t threads[THREADS_MAX];
    char *scratches[THREADS_MAX];
    size_t threads_n, threads_max; /* begun; those beside the calling one */
};

static void *room_of(const struct crew *crew, const struct batch *batch, size_t i)
{
    return batch->rooms + i * crew->of->room_size;
}

static void unpack_batch(struct crew *crew, struct batch *batch, void *scratch)
{
    const struct unpacking *of = crew->of;
    batch->code = ERR_OK;
    for (batch->good = 0; batch->good < batch->n; batch->good++) {
        batch->code = of->unpack(of->context, scratch, &batch->values[batch->good],
                                 room_of(crew, batch, batch->good), &batch->err);
        if (batch->code)
            return;
    }
}

/* The oldest batch that waits for somebody, now the caller's; NULL: none. Under the lock. */
static struct batch *next_filled(struct crew *crew)
{
    for (size_t i = crew->begin; i < crew->end; i++) {
        struct batch *batch = &crew->batches[i % crew->batches_n];
        if (batch->state == BATCH_FILLED) {
            batch->state = BATCH_TAKEN;
            return batch;
        }
    }
    return NULL;
}

/* Unpack one; with the lock held before and after, not meanwhile. */
static void work_on(struct crew *crew, struct batch *batch, void *scratch)
{
    pthread_mutex_unlock(&crew->lock);
    unpack_batch(crew, batch, scratch);
    pthread_mutex_lock(&crew->lock);
    batch->state = BATCH_READY;
    pthread_cond_signal(&crew->ready);
}

struct worker {
    struct crew *crew;
    void *scratch;
};

static void *work(void *context)
{
    struct worker worker = *(struct worker *)context;
    struct crew *crew = worker.crew;
    free(context);
    pthread_mutex_lock(&crew->lock);
    while (!crew->over) {
        struct batch *batch = next_filled(crew);
        if (batch)
            work_on(crew, batch, worker.scratch);
        else
            pthread_cond_wait(&crew->filled, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* A thread more, where there is more to do than one batch. Where none is to be had, fewer do. */
static void call_for_help(struct crew *crew)
{
    if (crew->threads_n >= crew->threads_max)
        return;
    struct worker *worker = mem_alloc(sizeof *worker);
    *worker = (struct worker){crew, crew->scratches[crew->threads_n + 1]};
    if (pthread_create(&crew->threads[crew->threads_n], NULL, work, worker) == 0) {
        crew->threads_n++;
        return;
    }
    free(worker);
    crew->threads_max = crew->threads_n;
}

/* Rows into a batch; fewer than UNPACK_BATCH: these were the last. */
static enum err fill(const struct unpacking *of, struct batch *batch, struct error *err)
{
    static const char slack[COLUMN_PADDING];
    size_t begins[UNPACK_BATCH];
    strbuf_clear(&batch->bytes);
    for (batch->n = 0; batch->n < UNPACK_BATCH; batch->n++) {
        int rc = sqlite3_step(of->rows);
        if (rc == SQLITE_DONE)
            break;
        if (rc != SQLITE_ROW)
            return db_fail(of->store, rc, of->doing, err);
        struct unpack_value *value = &batch->values[batch->n];
        for (int k = 0; k < of->keys_n; k++)
            value->keys[k] = sqlite3_column_int64(of->rows, k);
        value->packed = db_text(of->rows, of->keys_n);
        begins[batch->n] = batch->bytes.n;
        strbuf_add(&batch->bytes, value->packed);
        strbuf_add(&batch->bytes, (struct str){slack, sizeof slack});
    }
    for (size_t i = 0; i < batch->n; i++) /* they do not move any more */
        batch->values[i].packed.p = batch->bytes.text + begins[i];
    return ERR_OK;
}

/* True: more is wanted. */
static bool hand_over(const struct crew *crew, const struct batch *batch)
{
    for (size_t i = 0; i < batch->good; i++)
        if (!crew->of->take(crew->of->context, room_of(crew, batch, i)))
            return false;
    return true;
}

/* Fill before all, then hand over, then help: so nobody waits for the calling thread. */
static enum err run(struct crew *crew, struct error *err)
{
    enum err code = ERR_OK, read = ERR_OK; /* read: told when all before it is handed over */
    bool more = true, last = false;
    pthread_mutex_lock(&crew->lock);
    while (more && !code && (!last || crew->begin < crew->end)) {
        struct batch *oldest = &crew->batches[crew->begin % crew->batches_n], *batch = NULL;
        if (!last && crew->end - crew->begin < crew->batches_n) {
            batch = &crew->batches[crew->end % crew->batches_n];
            pthread_mutex_unlock(&crew->lock);
            read = fill(crew->of, batch, err);
            last = read || batch->n < UNPACK_BATCH;
            if (crew->end > crew->begin)
                call_for_help(crew);
            pthread_mutex_lock(&crew->lock);
            batch->state = BATCH_FILLED;
            crew->end++;
            pthread_cond_signal(&crew->filled);
        } else if (oldest->state == BATCH_READY) {
            pthread_mutex_unlock(&crew->lock);
            more = hand_over(crew, oldest);
            code = more ? oldest->code : ERR_OK;
            if (code && err)
                *err = oldest->err;
            pthread_mutex_lock(&crew->lock);
            oldest->state = BATCH_FREE;
            crew->begin++;
        } else if ((batch = next_filled(crew))) {
            work_on(crew, batch, crew->scratches[0]);
        } else {
            pthread_cond_wait(&crew->ready, &crew->lock);
        }
    }
    crew->over = true;
    pthread_cond_broadcast(&crew->filled);
    pthread_mutex_unlock(&crew->lock);
    return code || !more ? code : read;
}

static void release(struct crew *crew)
{
    const struct unpacking *of = crew->of;
    for (size_t b = 0; b < crew->batches_n; b++) {
        for (size_t i = 0; i < UNPACK_BATCH; i++)
            of->release_room(room_of(crew, &crew->batches[b], i));
        strbuf_release(&crew->batches[b].bytes);
        free(crew->batches[b].rooms);
    }
    for (size_t t = 0; t < THREADS_MAX; t++) {
        if (crew->scratches[t])
            of->release_scratch(crew->scratches[t]);
        free(crew->scratches[t]);
    }
    free(crew->batches);
}

enum err unpack_all(const struct unpacking *unpacking, struct error *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
    struct crew crew = {.of = unpacking, .batches_n = 2 * threads, .threads_max = threads - 1};
    crew.batches = mem_zalloc(crew.batches_n, sizeof *crew.batches);
    for (size_t b = 0; b < crew.batches_n; b++)
        crew.batches[b].rooms = mem_zalloc(UNPACK_BATCH, unpacking->room_size);
    for (size_t t = 0; t < threads; t++)
        crew.scratches[t] = mem_zalloc(1, unpacking->scratch_size);
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.filled, NULL);
    pthread_cond_init(&crew.ready, NULL);
    enum err code = run(&crew, err);
    for (size_t t = 0; t < crew.threads_n; t++)
        pthread_join(crew.threads[t], NULL);
    sqlite3_reset(unpacking->rows);
    release(&crew);
    pthread_cond_destroy(&crew.filled);
    pthread_cond_destroy(&crew.ready);
    pthread_mutex_destroy(&crew.lock);
    return code;
}
