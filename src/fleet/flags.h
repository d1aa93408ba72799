/* The flags of a ledger row: a word for each fallback that was taken (semantics, section 8). One
 * table; every renderer, API and document takes the words from here. */
#ifndef GPUTALLY_FLEET_FLAGS_H
#define GPUTALLY_FLEET_FLAGS_H

#include <stdint.h>

/* X(NAME, "word", "what it means") in order of the word */
#define FLAG_TABLE(X)                                                                              \
    X(BY_COUNT, "by-count", "laid on a slot by count: nothing says which GPU the pod has")         \
    X(CATALOGUE_DERIVED, "catalogue-derived", "the catalogue derived the price from other prices") \
    X(DEFAULT_PRICE, "default-price", "a default price of the GPU model")                          \
    X(E_ENGINE, "e-engine", "engine activity stands in for GPU_UTIL")                              \
    X(E_SM, "e-sm", "SM activity stands in for GPU_UTIL")                                          \
    X(ENERGY_POWER, "energy-power", "energy is power x time, not the counter")                     \
    X(KEPT_DEVICE, "kept-device", "no label names the pod now: it keeps the GPU it had")           \
    X(OWNER_DEFAULT, "owner-default", "no owner rule is configured: the team is the namespace")    \
    X(POWER_SHARE, "power-share", "a MIG instance's share of the board's energy")                  \
    X(PRICE_OVERRIDE, "price-override", "a configured price of this node")                         \
    X(RESERVED_AS_ON_DEMAND, "reserved-as-on-demand",                                              \
      "a reserved node without a reserved price takes the on-demand price")                        \
    X(SHARED_ESTIMATE, "shared-estimate", "divided by the holders of a shared GPU")                \
    X(SPLIT_UNKNOWN, "split-unknown", "the CPU and memory part of the price is not known")         \
    X(SPOT_AS_ON_DEMAND, "spot-as-on-demand",                                                      \
      "a spot node without a spot price takes the on-demand price")                                \
    X(STEP, "step", "a sample without a close predecessor: it covers one step")                    \
    X(STUCK_COUNTER, "stuck-counter", "profiling said 0 while GPU_UTIL did not: ignored")          \
    X(U_ENGINE, "u-engine", "engine activity stands in for SM activity")                           \
    X(U_UTIL, "u-util", "GPU_UTIL stands in for SM activity")                                      \
    X(UNIT_GUESS, "unit-guess", "the unit of GPU_UTIL was guessed from its values")                \
    X(UNPRICED, "unpriced", "no price is known: money 0, hours count")                             \
    X(UNSEEN, "unseen", "a GPU that sends nothing")                                                \
    X(UP_SAMPLES, "up-samples", "no record of the node: up while its samples say so")

enum flag_index {
#define X(name, word, meaning) FLAG_INDEX_##name,
    FLAG_TABLE(X)
#undef X
        FLAG_COUNT
};
/* Sets of flags are uint32_t of these bits. */
enum flag {
#define X(name, word, meaning) FLAG_##name = 1u << FLAG_INDEX_##name,
    FLAG_TABLE(X)
#undef X
};

extern const char *const flag_words[FLAG_COUNT];
extern const char *const flag_meanings[FLAG_COUNT];

#endif
