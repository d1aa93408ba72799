#include "source/pump.h"

#include <pthread.h>
#include <stdlib.h>

struct block {
    char *bytes;
    size_t n;
    bool full; /* the reader's turn is over, the decoder's begins */
};

struct pump {
    struct input *input;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    struct block blocks[2];
    _Atomic uint64_t read_bytes;
    uint64_t total_bytes;
    int taken; /* the block that the decoder holds; -1: none */
    int next;  /* the one that it takes next */
    bool leave;
    enum err code; /* of the reader; the block that came with it is handed on first */
    struct error err;
};

/* Fill a block; a short one is the last. */
static enum err fill(struct pump *pump, struct block *block, struct error *err)
{
    block->n = 0;
    while (block->n < PUMP_BLOCK_BYTES) {
        size_t n = 0;
        enum err e =
            input_read(pump->input, block->bytes + block->n, PUMP_BLOCK_BYTES - block->n, &n, err);
        block->n += n;
        if (e != ERR_OK || n == 0)
            return e;
    }
    return ERR_OK;
}

static void *pump_thread(void *context)
{
    struct pump *pump = context;
    for (int at = 0;; at = !at) {
        struct block *block = &pump->blocks[at];
        pthread_mutex_lock(&pump->lock);
        while (block->full && !pump->leave)
            pthread_cond_wait(&pump->turned, &pump->lock);
        bool leave = pump->leave;
        pthread_mutex_unlock(&pump->lock);
        if (leave)
            return NULL;
        struct error err = {0};
        enum err e = fill(pump, block, &err);
        pump->read_bytes = input_bytes(pump->input);
        bool last = e != ERR_OK || block->n < PUMP_BLOCK_BYTES;
        pthread_mutex_lock(&pump->lock);
        block->full = true;
        if (e != ERR_OK) {
            pump->code = e;
            pump->err = err;
        }
        pthread_cond_broadcast(&pump->turned);
        pthread_mutex_unlock(&pump->lock);
        if (last)
            return NULL;
    }
}

enum err pump_new(struct input *input, struct pump **ret, struct error *err)
{
    struct pump *pump = mem_zalloc(1, sizeof *pump);
    pump->input = input;
    pump->total_bytes = input_size(input);
    pump->taken = -1;
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->turned, NULL);
    for (int i = 0; i < 2; i++)
        pump->blocks[i].bytes = mem_alloc(PUMP_BLOCK_BYTES);
    if (pthread_create(&pump->thread, NULL, pump_thread, pump) != 0) {
        pump->leave = true; /* there is no thread to wait for */
        pump_free(pump);
        return error_set(err, ERR_LIMIT, "no thread could be started");
    }
    *ret = pump;
    return ERR_OK;
}

enum err pump_next(struct pump *pump, struct str *ret, struct error *err)
{
    enum err e = ERR_OK;
    *ret = STR_NONE;
    pthread_mutex_lock(&pump->lock);
    bool ended = false;
    if (pump->taken >= 0) {
        ended = pump->blocks[pump->taken].n < PUMP_BLOCK_BYTES;
        if (!ended)
            pump->blocks[pump->taken].full = false;
        pthread_cond_broadcast(&pump->turned);
    }
    if (!ended) {
        struct block *block = &pump->blocks[pump->next];
        while (!block->full)
            pthread_cond_wait(&pump->turned, &pump->lock);
        pump->taken = pump->next;
        pump->next = !pump->next;
        *ret = (struct str){block->bytes, block->n};
    }
    if (ret->n == 0 && pump->code != ERR_OK) {
        e = pump->code;
        if (err)
            *err = pump->err;
    }
    pthread_mutex_unlock(&pump->lock);
    return e;
}

uint64_t pump_read_bytes(const struct pump *pump)
{
    return pump->read_bytes;
}

uint64_t pump_total_bytes(const struct pump *pump)
{
    return pump->total_bytes;
}

void pump_free(struct pump *pump)
{
    if (!pump)
        return;
    pthread_mutex_lock(&pump->lock);
    bool started = !pump->leave;
    pump->leave = true;
    pthread_cond_broadcast(&pump->turned);
    pthread_mutex_unlock(&pump->lock);
    if (started)
        pthread_join(pump->thread, NULL);
    for (int i = 0; i < 2; i++)
        free(pump->blocks[i].bytes);
    input_close(pump->input);
    pthread_cond_destroy(&pump->turned);
    pthread_mutex_destroy(&pump->lock);
    free(pump);
}
