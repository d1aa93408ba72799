/* The figures of a report: one table of names, units, headings and meanings, which every renderer,
 * the help text and docs/formats.md follow.
 *
 * A value is an integer, exact or rounded once: money, GPU-hours, ratios and kWh in 1e-9, counts
 * and bytes whole. Where there is nothing to divide by or nothing was seen, a value is absent. */
#ifndef GPUTALLY_REPORT_FIGURE_H
#define GPUTALLY_REPORT_FIGURE_H

#include "query/query.h"

enum figure_unit {
    UNIT_MONEY,     /* decimal text with nine places */
    UNIT_GPU_HOURS, /* number */
    UNIT_RATIO,     /* number 0..1 */
    UNIT_KWH,       /* number */
    UNIT_BYTES,     /* whole number */
    UNIT_COUNT,     /* whole number */
};
extern const char *const figure_unit_words[]; /* "money", "GPU-hours", … */

/* Where people see a figure. */
enum figure_shown {
    SHOWN_TABLE = 1u << 0,  /* always in the table */
    SHOWN_IF_ANY = 1u << 1, /* in the table where some row has it */
    SHOWN_WIDE = 1u << 2,   /* always in the wide table */
    SHOWN_WIDE_IF_ANY = 1u << 3,
    SHOWN_AS_SHARE = 1u << 4, /* in the table as percent of the row's cost */
};

/* X(ID, "name", unit, "HEADING", shown, "what it is"); the order is that of the machine formats */
#define FIGURE_TABLE(X)                                                                            \
    X(GPU_HOURS, "gpu_hours", UNIT_GPU_HOURS, "GPU-H", SHOWN_TABLE | SHOWN_WIDE,                   \
      "GPU-hours, held or not, shared GPUs by their share")                                        \
    X(HELD_GPU_HOURS, "held_gpu_hours", UNIT_GPU_HOURS, "HELD GPU-H", SHOWN_WIDE,                  \
      "of these, held by a pod")                                                                   \
    X(OBSERVED_GPU_HOURS, "observed_gpu_hours", UNIT_GPU_HOURS, "OBSERVED GPU-H", 0,               \
      "GPU-hours, held or not, that activity samples cover")                                       \
    X(HELD_OBSERVED_GPU_HOURS, "held_observed_gpu_hours", UNIT_GPU_HOURS, "HELD OBSERVED GPU-H",   \
      0, "held GPU-hours that activity samples cover")                                             \
    X(IDLE_GPU_HOURS, "idle_gpu_hours", UNIT_GPU_HOURS, "IDLE GPU-H", SHOWN_WIDE,                  \
      "held GPU-hours in which next to no kernel ran (state idle)")                                \
    X(LOW_GPU_HOURS, "low_gpu_hours", UNIT_GPU_HOURS, "LOW GPU-H", SHOWN_WIDE,                     \
      "held GPU-hours in which most of the chip did nothing (state low)")                          \
    X(BUSY_GPU_HOURS, "busy_gpu_hours", UNIT_GPU_HOURS, "BUSY GPU-H", SHOWN_WIDE,                  \
      "held GPU-hours at work (state busy)")                                                       \
    X(UNDER_30_GPU_HOURS, "under_30_gpu_hours", UNIT_GPU_HOURS, "UNDER-30 GPU-H", 0,               \
      "held GPU-hours in state idle or low")                                                       \
    X(USEFUL_GPU_HOURS, "useful_gpu_hours", UNIT_GPU_HOURS, "USEFUL GPU-H", 0,                     \
      "held GPU-hours times the work ratio")                                                       \
    X(COST, "cost", UNIT_MONEY, "COST", SHOWN_TABLE | SHOWN_WIDE,                                  \
      "all money of the rows; the categories below add up to it")                                  \
    X(USED, "used", UNIT_MONEY, "USED", SHOWN_TABLE | SHOWN_AS_SHARE | SHOWN_WIDE,                 \
      "held and at work: cost times the work ratio")                                               \
    X(SLACK, "slack", UNIT_MONEY, "SLACK", SHOWN_TABLE | SHOWN_AS_SHARE | SHOWN_WIDE,              \
      "held and at work: the rest of the cost")                                                    \
    X(HELD_IDLE, "held_idle", UNIT_MONEY, "HELD IDLE", SHOWN_TABLE | SHOWN_AS_SHARE | SHOWN_WIDE,  \
      "held while next to no kernel ran")                                                          \
    X(NODE_IDLE, "node_idle", UNIT_MONEY, "NODE IDLE", SHOWN_IF_ANY | SHOWN_AS_SHARE | SHOWN_WIDE, \
      "held by nobody; the sum of the five causes")                                                \
    X(NODE_IDLE_EMPTY, "node_idle_empty", UNIT_MONEY, "EMPTY", SHOWN_WIDE,                         \
      "cause: nothing of the node is held")                                                        \
    X(NODE_IDLE_STRANDED, "node_idle_stranded", UNIT_MONEY, "STRANDED", SHOWN_WIDE,                \
      "cause: something else of the node is held")                                                 \
    X(NODE_IDLE_UNPARTITIONED, "node_idle_unpartitioned", UNIT_MONEY, "UNPARTITIONED", SHOWN_WIDE, \
      "cause: the part of a GPU that no MIG instance has")                                         \
    X(NODE_IDLE_CORDONED, "node_idle_cordoned", UNIT_MONEY, "CORDONED", SHOWN_WIDE,                \
      "cause: the node takes no pods")                                                             \
    X(NODE_IDLE_STARTING, "node_idle_starting", UNIT_MONEY, "STARTING", SHOWN_WIDE,                \
      "cause: from the node's creation to its first pod")                                          \
    X(UNHEALTHY, "unhealthy", UNIT_MONEY, "UNHEALTHY", SHOWN_IF_ANY | SHOWN_AS_SHARE | SHOWN_WIDE, \
      "the GPU was lost (XID) or not allocatable")                                                 \
    X(UNOBSERVED, "unobserved", UNIT_MONEY, "UNOBSERVED",                                          \
      SHOWN_TABLE | SHOWN_AS_SHARE | SHOWN_WIDE, "no telemetry covers it: not known, not idle")    \
    X(UNATTRIBUTED, "unattributed", UNIT_MONEY, "UNATTRIBUTED",                                    \
      SHOWN_IF_ANY | SHOWN_AS_SHARE | SHOWN_WIDE, "at work while nobody held it")                  \
    X(UTILISATION, "utilisation", UNIT_RATIO, "UTIL", SHOWN_TABLE | SHOWN_WIDE,                    \
      "mean work ratio of held, observed time")                                                    \
    X(COVERAGE, "coverage", UNIT_RATIO, "COVERAGE", SHOWN_WIDE, "observed of held GPU-hours")      \
    X(EFFICIENCY, "efficiency", UNIT_RATIO, "EFFICIENCY", SHOWN_WIDE, "used / cost of held rows")  \
    X(EFFECTIVE_PRICE, "effective_price", UNIT_MONEY, "/USEFUL GPU-H", SHOWN_TABLE | SHOWN_WIDE,   \
      "(used + slack + held_idle) / useful_gpu_hours")                                             \
    X(ENERGY_KWH, "energy_kwh", UNIT_KWH, "KWH", SHOWN_WIDE, "energy that the GPUs took")          \
    X(MEMORY_AVG_BYTES, "memory_avg_bytes", UNIT_BYTES, "AVG GIB", SHOWN_WIDE_IF_ANY,              \
      "mean GPU memory used while it was seen")                                                    \
    X(MEMORY_MAX_BYTES, "memory_max_bytes", UNIT_BYTES, "MAX GIB", SHOWN_WIDE_IF_ANY,              \
      "most GPU memory that one GPU used")                                                         \
    X(GENERATION_TOKENS, "generation_tokens", UNIT_COUNT, "TOKENS OUT", SHOWN_WIDE_IF_ANY,         \
      "tokens generated")                                                                          \
    X(PROMPT_TOKENS, "prompt_tokens", UNIT_COUNT, "TOKENS IN", SHOWN_WIDE_IF_ANY,                  \
      "tokens of prompts")                                                                         \
    X(REQUESTS, "requests", UNIT_COUNT, "REQUESTS", SHOWN_WIDE_IF_ANY, "requests served")

enum figure_id {
#define X(id, name, unit, heading, shown, meaning) FIGURE_##id,
    FIGURE_TABLE(X)
#undef X
        FIGURE_COUNT
};

struct figure {
    const char *name;
    enum figure_unit unit;
    const char *heading;
    unsigned shown; /* enum figure_shown */
    const char *meaning;
};
extern const struct figure figure_defs[FIGURE_COUNT];

/* The value of a figure; false where it is absent. */
bool figure_get(const struct figures *figures, enum figure_id id, wide_t *ret);

/* As machine formats write it: money "16128.000000000", numbers plain. */
void figure_machine(struct strbuf *out, enum figure_unit unit, wide_t value);

/* A key as machine formats name it: "instance_type" of "instance-type". */
void key_machine(struct strbuf *out, enum key key);

#endif
