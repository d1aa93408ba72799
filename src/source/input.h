/* Bytes of a file or of standard input, unpacked: gzip and zstd are known by their first bytes, not
 * by name, also where several packed members follow each other. A stream: memory does not grow with
 * the length. One thread owns an input. */
#ifndef GPUTALLY_SOURCE_INPUT_H
#define GPUTALLY_SOURCE_INPUT_H

#include <stdint.h>

#include "util/error.h"
#include "util/str.h"

struct input;

/* path "-": standard input. ERR_IO with the path and the reason; folders are refused. */
enum err input_open(const char *path, struct input **ret, struct error *err);
/* Up to room bytes; *ret_n 0 at the end. ERR_IO; ERR_PARSE where packed bytes are broken or cut off
 * (what could be unpacked before was given). */
enum err input_read(struct input *input, char *buf, size_t room, size_t *ret_n, struct error *err);
uint64_t input_bytes(const struct input *input); /* read so far, packed as they are */
uint64_t input_size(const struct input *input);  /* of the file as it lies; 0 unknown */
void input_close(struct input *input);           /* NULL is fine */

#endif
