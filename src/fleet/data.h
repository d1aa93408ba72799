/* The tables of data/, which are in the binary: gpus.csv, mig_profiles.csv, sharing.csv, prices.csv
 * and cpu_prices.csv. The texts live for ever and are read-only. */
#ifndef GPUTALLY_FLEET_DATA_H
#define GPUTALLY_FLEET_DATA_H

#include "util/csv.h"

struct str data_file(struct str name); /* STR_NONE: there is no such table */
/* Each row of a table behind its head. The fields live as long as the table. */
void data_rows(struct str name, void (*each)(const struct csv *row));

#endif
