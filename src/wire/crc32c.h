/* CRC-32C (Castagnoli), as remote read's frames carry it: the processor's instruction where there
 * is one, a table elsewhere. Any thread. */
#ifndef GPUTALLY_WIRE_CRC32C_H
#define GPUTALLY_WIRE_CRC32C_H

#include <stdint.h>

#include "util/str.h"

/* The CRC of what went before (0 to begin) and then bytes. */
uint32_t crc32c(uint32_t crc, struct str bytes);

/* The same without the instruction: the fallback, apart so that tests reach it. */
uint32_t crc32c_by_table(uint32_t crc, struct str bytes);

#endif
