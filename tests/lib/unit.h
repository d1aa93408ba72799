/* What a cmocka program needs, and random numbers whose seed is printed: a failure is run again
 * with GPUTALLY_TEST_SEED set to it. */
#ifndef GPUTALLY_TESTS_UNIT_H
#define GPUTALLY_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

struct random {
    uint64_t state;
};

static inline struct random random_new(void)
{
    const char *text = getenv("GPUTALLY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL) * 1000003u;
    print_message("seed %llu\n", (unsigned long long)seed);
    return (struct random){seed};
}

static inline uint64_t random_next(struct random *random) /* splitmix64 */
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0..below - 1 */
static inline int64_t random_below(struct random *random, int64_t below)
{
    return (int64_t)(random_next(random) % (uint64_t)below);
}

#endif
