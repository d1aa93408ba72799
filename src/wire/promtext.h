/* Prometheus exposition text 0.0.4 and OpenMetrics 1.0 text, read in pieces of any size.
 *
 * A line is a sample, a remark (# …) or blank. What stands before a sample's value is its head
 * (`name{labels}`); a head that was read before is recognised by a hash of its raw bytes and not
 * looked into again, so that the same target scraped again, or a file in which a series fills a
 * thousand lines, costs a hash or a compare and a number per line.
 *
 * Invariants: the result does not depend on how the bytes are cut into pieces; a line that cannot
 * be read is skipped, counted and reported by number, and nothing else is lost; memory is bounded
 * by the caps below, whatever the input. One thread owns a decoder.
 *
 * Both dialects are read liberally: tabs and runs of blanks, CRLF, no newline at the end, a
 * trailing comma in the labels, exponents, NaN and Inf in any case, quoted UTF-8 names
 * (`{"name","a b"="x"}`), exemplars (ignored), remarks anywhere. Label names must be unique, values
 * must be UTF-8. TYPE, HELP and UNIT say nothing that gputally believes, and are skipped.
 * Source: prometheus.io/docs/instrumenting/exposition_formats; OpenMetrics 1.0 */
#ifndef GPUTALLY_WIRE_PROMTEXT_H
#define GPUTALLY_WIRE_PROMTEXT_H

#include "util/clock.h"
#include "util/str.h"

#define PROMTEXT_LINE_MAX ((size_t)1 << 20)  /* bytes of a line without its newline */
#define PROMTEXT_LABELS_MAX 256              /* labels of a head, the name included */
#define PROMTEXT_HEADS_MAX ((size_t)1 << 20) /* heads remembered (about 45 bytes each) */
#define PROMTEXT_BATCH 512                   /* samples of a delivery, at most */
#define PROMTEXT_NO_TIME INT64_MIN           /* the stamp of a sample that has none */
#define PROMTEXT_SKIP UINT32_MAX             /* a series that nobody wants */

/* What a sample's own time stamp means. */
enum promtext_dialect {
    PROMTEXT_AUTO,        /* by each stamp: a whole number from ±1e11 on is ms (1973-03-03; as
                             seconds it would be the year 5138), everything else is seconds */
    PROMTEXT_TEXT,        /* 0.0.4: whole ms */
    PROMTEXT_OPENMETRICS, /* seconds, with decimals, rounded to the ms */
};

/* Where decoded values go. The callbacks are called from inside promtext_feed and _finish. */
struct promtext_sink {
    void *context;
    /* A head that was not seen before (or was forgotten): labels in the order of the text, the
     * metric's name as __name__ and first. The texts live during the call only. Returns the
     * caller's id of the series, or PROMTEXT_SKIP: then its samples are checked but not delivered.
     * Two spellings of one series ask twice. */
    uint32_t (*series)(void *context, const struct label *labels, size_t n);
    /* n <= PROMTEXT_BATCH samples in the order of the text: series id, stamp, value (NaN and
     * infinities as they came). Samples of one series that stand together come in a run. */
    void (*samples)(void *context, const uint32_t *id, const time_ms *t, const double *v, size_t n);
    /* A line that was skipped: its number from 1, how it begins (at most 100 bytes, raw), why.
     * May be NULL. */
    void (*bad_line)(void *context, uint64_t line, struct str begins, const char *reason);
};

/* What a text held so far; counted from promtext_begin on. */
struct promtext_stats {
    uint64_t bytes, lines;
    uint64_t samples; /* delivered */
    uint64_t skipped; /* read well, of series that the sink does not want */
    uint64_t
        duplicates;     /* same head and same stamp as the sample of that head before it: dropped */
    uint64_t unstamped; /* delivered or skipped, without a stamp of their own */
    uint64_t bad_lines;
    uint64_t heads; /* heads that had to be tokenised */
    bool eof_mark;  /* `# EOF` was there: an OpenMetrics text that was not cut */
};

struct promtext;
struct promtext *promtext_new(enum promtext_dialect dialect, const struct promtext_sink *sink);
void promtext_free(struct promtext *text); /* NULL is fine */

/* Start a text (a scrape, a file): line 1, fresh stats. Samples without a stamp get `unstamped`
 * (the time of the scrape, or PROMTEXT_NO_TIME). Heads stay known from the texts before. */
void promtext_begin(struct promtext *text, time_ms unstamped);
void promtext_feed(struct promtext *text, struct str bytes);
/* The end of the text: the last line may lack its newline; what is still held is delivered. */
void promtext_finish(struct promtext *text);
const struct promtext_stats *promtext_stats(const struct promtext *text);

/* Forget every head: the ids that the sink gave are no longer good. */
void promtext_forget(struct promtext *text);
/* Heads that are remembered; 0 inside sink.series: all ids from before are forgotten. */
size_t promtext_remembered(const struct promtext *text);
/* Every series of the text before this one that is not in this one, after promtext_finish. What was
 * forgotten in between is not among them. */
void promtext_vanished(const struct promtext *text, void (*each)(void *context, uint32_t series),
                       void *context);

/* Many targets, one decoder: a layout is what is remembered of one target's texts, about 40 bytes a
 * head. A layout belongs to the decoder that it was used with first (hashes are under its secret).
 */
struct promtext_layout;
struct promtext_layout *promtext_layout_new(void);
void promtext_layout_free(struct promtext_layout *layout); /* not in use; NULL is fine */
size_t promtext_layout_bytes(const struct promtext_layout *layout);
/* From the next promtext_begin on this one is used; NULL: the decoder's own. Between texts. */
void promtext_use(struct promtext *text, struct promtext_layout *layout);

#endif
