/* Inside of promtext: a sample's head (`name{labels}`) taken apart into labels. */
#ifndef GPUTALLY_WIRE_PROMTEXT_HEAD_H
#define GPUTALLY_WIRE_PROMTEXT_HEAD_H

#include <stdint.h>

#include "util/str.h"
#include "wire/promtext.h"

#define PROMTEXT_SHAPE_BYTES 32 /* a longer name is not remembered */

/* Labels of the head read last, and what is kept between heads: zero-initialise. */
struct promtext_head {
    struct label
        labels[PROMTEXT_LABELS_MAX]; /* __name__ first; texts in the line or in unescaped */
    size_t n;
    struct strbuf unescaped;
    /* The shape of the head before: what stood in front of each label's value, `name="`. A head of
     * the same exporter repeats it, so that its names are known to be good and unique. */
    struct promtext_shape {
        char text[PROMTEXT_SHAPE_BYTES];
        uint32_t n, mask;                 /* bytes, and as many ones */
    } shape[PROMTEXT_LABELS_MAX], metric; /* metric: its name and the opening brace */
    size_t shape_n;
};

/* Read the head at p (the first byte that is no blank) of a line that ends at end, where a newline
 * stands. Returns the head's end, or NULL and *ret_reason. */
const char *promtext_head_read(struct promtext_head *head, const char *p, const char *end,
                               const char **ret_reason);
void promtext_head_release(struct promtext_head *head);

#endif
