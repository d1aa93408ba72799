/* Private to serve/metrics*.c and serve/api.c. */
#ifndef GPUTALLY_SERVE_METRICS_IMPL_H
#define GPUTALLY_SERVE_METRICS_IMPL_H

#include "serve/api_impl.h"
#include "serve/metrics_text.h"

enum gpu_state { GPU_BUSY, GPU_LOW, GPU_IDLE, GPU_UNOBSERVED, GPU_FREE, GPU_STATES };
extern const char *const gpu_state_words[GPU_STATES];

struct metrics_team {
    char *name;
    money_t category[CATEGORY_COUNT];
    wide_t gpu_ns[GPU_STATES];
};

/* What the counters show, and have shown: of a month. metrics_state.c keeps it on disk. */
struct metrics_state {
    time_ms month;              /* its begin; 0: nothing yet */
    struct metrics_team *teams; /* the last one is of the others, where there are such */
    size_t teams_n, teams_room;
    bool others;
};
/* Nothing is loaded where there is no file, or none that can be read. */
void metrics_state_load(struct metrics_state *state, const char *path, const char *currency);
bool metrics_state_save(const struct metrics_state *state, const char *path, const char *currency);

/* Counters of the ledger, with what they have shown before. Any thread. */
struct metrics_ledger;
/* path: the file that keeps what they show over a restart; NULL: none. */
struct metrics_ledger *metrics_ledger_new(const char *path);
void metrics_ledger_free(struct metrics_ledger *ledger); /* NULL is fine */
enum err metrics_write_ledger(struct metrics_ledger *ledger, struct api_call *call,
                              struct metrics_text *text, struct error *err);

#endif
