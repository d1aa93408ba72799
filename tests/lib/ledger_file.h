/* A ledger in a folder of its own, for tests of what is on disk. */
#ifndef GPUTALLY_TESTS_LEDGER_FILE_H
#define GPUTALLY_TESTS_LEDGER_FILE_H

#include "unit.h"

static char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16]; /* path: ledger.db in it */

static inline int make_folder(void **state)
{
    (void)state;
    temporary(folder, "gputally-ledger");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/ledger.db", folder);
    return 0;
}

static inline int empty_folder(void **state)
{
    (void)state;
    char command[TEMPORARY_MAX + 16];
    snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
    return system(command);
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[TEMPORARY_MAX + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

#endif
