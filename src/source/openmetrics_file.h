/* Exposition and OpenMetrics files as a source: samples with time stamps, as fleetsim, promtool and
 * exporters write them; a file that begins with { is taken for a saved answer of a Prometheus
 * server (query, query_range). gzip and zstd are known by their first bytes, not by name.
 *
 * Files are read as streams: memory does not grow with their length. They do not say how many
 * samples they have, so that a window is read in one slice and each file once a run; standard input
 * can be read only once. Broken lines are skipped; the first few are named by number in notes
 * (NOTE_REJECTED, subject the file), all are counted. */
#ifndef GPUTALLY_SOURCE_OPENMETRICS_FILE_H
#define GPUTALLY_SOURCE_OPENMETRICS_FILE_H

#include "source/source.h"

/* paths[n]: files, "-" for standard input; copied. default_stamp: ms, for lines without a stamp; 0:
 * such lines are skipped, counted and noted. Opens nothing yet. */
enum err openmetrics_source_new(const char *const *paths, size_t n, time_ms default_stamp,
                                struct source **ret, struct error *err);

#endif
