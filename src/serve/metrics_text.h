/* Metrics as text: the Prometheus exposition format 0.0.4, or OpenMetrics 1.0 (docs/metrics.md).
 *
 * A family is begun with its name, kind and help, then its samples follow. Names are given as the
 * Prometheus format has them: counters end in _total, which OpenMetrics leaves out of the family's
 * name. One thread. */
#ifndef GPUTALLY_SERVE_METRICS_TEXT_H
#define GPUTALLY_SERVE_METRICS_TEXT_H

#include <stdint.h>

#include "util/clock.h"
#include "util/money.h"
#include "util/str.h"

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metrics_text {
    struct strbuf *out;
    bool openmetrics;
    const char *name; /* of the family that was begun */
};
void metrics_begin(struct metrics_text *text, const char *name, enum metric_kind kind,
                   const char *help);
/* A label of the next sample; call metrics_value after the last one. first: of this sample. */
void metrics_sample(struct metrics_text *text, const char *suffix); /* "" or "_bucket", … */
void metrics_label(struct metrics_text *text, const char *name, struct str value);
void metrics_whole(struct metrics_text *text, int64_t value);
void metrics_nano(struct metrics_text *text, wide_t nano); /* 1e-9 */
void metrics_double(struct metrics_text *text, double value);
void metrics_end(struct metrics_text *text);

#endif
