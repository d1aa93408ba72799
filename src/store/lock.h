/* The lock that keeps a second writer out of a database: FILE.lock, held by flock for as long as
 * the writer lives (the kernel lets it go however the process ends) and naming its process. */
#ifndef GPUTALLY_STORE_LOCK_H
#define GPUTALLY_STORE_LOCK_H

#include <stdbool.h>

#include "util/error.h"

struct lock {
    int fd;     /* valid where path is not NULL */
    char *path; /* owned */
};

/* ERR_LOCKED, naming the process, where another has it (also another handle of this process). */
enum err lock_take(struct lock *lock, const char *database, struct error *err);
void lock_release(struct lock *lock); /* removes the file; nothing where it is not held */

#endif
