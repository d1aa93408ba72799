/* A ledger in a folder of its own, for tests of what is on disk. After the cmocka headers. */
#ifndef GPUTALLY_TESTS_LEDGER_FILE_H
#define GPUTALLY_TESTS_LEDGER_FILE_H

#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"

static struct error failure;
/* The call succeeds; where it does not, the test says why: the call writes to `failure`. */
#define must(call)                                                                                 \
    do {                                                                                           \
        failure.text[0] = 0;                                                                       \
        if ((call) != ERR_OK)                                                                      \
            fail_msg("%s: %s", #call, failure.text);                                               \
    } while (0)

static char folder[64], path[96]; /* path: ledger.db in it */

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gputally-ledger-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/ledger.db", folder);
    return 0;
}

static inline int empty_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
    return system(command);
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

#endif
