/* Small files that are kept for later. */
#ifndef GPUTALLY_UTIL_FILE_H
#define GPUTALLY_UTIL_FILE_H

#include "util/error.h"
#include "util/str.h"

/* Replaces a file whole, by way of PATH.new: after a crash the old text is there or the new one.
 * Mode 0600. ERR_IO. One writer of a path at a time. */
enum err file_replace(const char *path, struct str text, struct error *err);

#endif
