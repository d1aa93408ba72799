/* How the demo writes text: a sink, numbers by hand, and the lines of a series.
 *
 * A line is a head (`name{labels} `, made once a series), a number and a stamp. Stamps are made
 * once a target as fixed 16 bytes and the sink is one large buffer, so that the decoder is what a
 * run waits for. One thread owns a writer. */
#ifndef GPUTALLY_CMD_DEMO_WRITER_H
#define GPUTALLY_CMD_DEMO_WRITER_H

#include "cmd/demo_fleet.h"
#include "util/str.h"

#define DEMO_STAMP_BYTES 16 /* " 1772924288.575\n": fits from 2001-09-09 to 2286-11-20 */
#define DEMO_NUMBER_MAX 24

/* When a target is scraped: first + k x step, inside the window, and the text of it. */
struct demo_grid {
    time_ms first, step;
    size_t n;
    char (*stamps)[DEMO_STAMP_BYTES]; /* NULL where no text is written */
};

/* The values of a series: at(context, t) / 10^places. */
struct demo_values {
    int64_t (*at)(void *context, time_ms t);
    void *context;
    int places;
};

struct demo_writer {
    const struct demo_fleet *fleet;
    struct demo_grid *grids;    /* of each node's exporter */
    struct demo_grid kube_grid; /* of kube-state-metrics */
    struct span kube, gpu;      /* [from, to) of what is asked for */
    struct strbuf head;         /* of the series in hand */
    const char *only;           /* the one family that is asked for; NULL: all */
    /* Takes series [from, to) of the grid's scrapes instead of text; NULL: text goes to fd. */
    void (*series)(struct demo_writer *w, const struct demo_grid *grid, size_t from, size_t to,
                   struct demo_values values);
    void *context; /* of `series` */
    int fd;
    int error;   /* errno of the first write that failed; nothing is written after it */
    size_t n;    /* bytes held */
    char *bytes; /* DEMO_SINK_BYTES */
};
#define DEMO_SINK_BYTES ((size_t)1 << 18)

/* Decimal digits of v at p, and v with so many decimals; both return their end. */
char *demo_put_number(char *p, uint64_t v);
char *demo_put_fixed(char *p, uint64_t v, int places);

/* fd -1: `series` will be set, no text is written. */
void demo_writer_init(struct demo_writer *w, const struct demo_fleet *fleet, int fd);
/* The end mark, and everything out. */
void demo_put_end(struct demo_writer *w);
void demo_writer_release(struct demo_writer *w);

/* # HELP and # TYPE; false: nobody asks for this family. */
bool demo_put_family(struct demo_writer *w, const char *name, const char *type, const char *help);

/* The series whose head is in w->head, at the scrapes in [time.from, time.to): lines of text, or
 * given to w->series. */
void demo_put_series(struct demo_writer *w, const struct demo_grid *grid, struct span time,
                     struct demo_values values);

static inline struct span demo_overlap(struct span a, struct span b)
{
    return (struct span){a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
}

/* The families of a writer's fleet. */
void demo_write_gpus(struct demo_writer *w);
void demo_write_kube(struct demo_writer *w);
void demo_write_serving(struct demo_writer *w);

#endif
