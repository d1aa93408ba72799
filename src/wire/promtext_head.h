/* Inside of promtext: a sample's head (`name{labels}`) taken apart into labels. */
#ifndef GPUTALLY_WIRE_PROMTEXT_HEAD_H
#define GPUTALLY_WIRE_PROMTEXT_HEAD_H

#include "util/str.h"
#include "wire/promtext.h"

/* Labels of the head read last, and what is kept between heads: zero-initialise. */
struct promtext_head {
    struct label
        labels[PROMTEXT_LABELS_MAX]; /* __name__ first; texts in the line or in unescaped */
    size_t n;
    struct strbuf unescaped;
    /* The shape of the head before: what stood between its values, `name="` for each label. A head
     * of the same exporter repeats it, so that its names are known to be good and unique. */
    struct strbuf shape;
    size_t shape_at[PROMTEXT_LABELS_MAX + 1]; /* where each begins in shape; one more, its end */
    size_t shape_n;
};

/* Read the head at p (the first byte that is no blank) of a line that ends at end, where a newline
 * stands. Returns the head's end, or NULL and *ret_reason. */
const char *promtext_head_read(struct promtext_head *head, const char *p, const char *end,
                               const char **ret_reason);
void promtext_head_release(struct promtext_head *head);

#endif
