/* Inside of number: the nearest double of digits * 10^power. */
#ifndef GPUTALLY_WIRE_NUMBER_ROUND_H
#define GPUTALLY_WIRE_NUMBER_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/* False where this way cannot tell (far powers, subnormal and infinite results, rare ties): then
 * *ret is untouched. */
bool number_round(uint64_t digits, int64_t power, double *ret);

#endif
