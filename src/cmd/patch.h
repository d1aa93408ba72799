/* recommend --patch DIR: the owners' files, written. */
#ifndef GPUTALLY_CMD_PATCH_H
#define GPUTALLY_CMD_PATCH_H

#include "report/patch.h"

/* Write the files into a folder, which is made where it is not there. A file that is there is
 * replaced only where gputally wrote it (its first line says so), in one step, so that nobody reads
 * half of it. Nothing is written where one of them may not be. What was written is told on standard
 * error, unless quiet. ERR_IO. */
enum err patch_write(const struct patch_set *set, const char *folder, bool quiet,
                     struct error *err);

#endif
