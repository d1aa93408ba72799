/* What a cmocka program needs: calls that must succeed, places for files, and random numbers whose
 * seed is printed: a failure is run again with GPUTALLY_TEST_SEED set to it. */
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

#include "util/error.h"

static struct error failure __attribute__((unused));
/* The call succeeds; where it does not, the test says why: the call writes to `failure`. */
#define must(call)                                                                                 \
    do {                                                                                           \
        failure.text[0] = 0;                                                                       \
        if ((call) != ERR_OK)                                                                      \
            fail_msg("%s: %s", #call, failure.text);                                               \
    } while (0)

/* "TMPDIR/name-XXXXXX" (/tmp where none is set), for mkstemp() or mkdtemp(). */
#define TEMPORARY_MAX 256
static inline void temporary(char ret[TEMPORARY_MAX], const char *name)
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(ret, TEMPORARY_MAX, "%s/%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
    assert_in_range(n, 1, TEMPORARY_MAX - 1);
}

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
