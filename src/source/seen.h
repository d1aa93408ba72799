/* Who was heard of when: one entry for each value of a label, over all fetches of a source. It
 * tells a fetch whether somebody was silent at an edge of its hours, so that it must read further
 * there. Any thread, a lock. */
#ifndef GPUTALLY_SOURCE_SEEN_H
#define GPUTALLY_SOURCE_SEEN_H

#include "util/clock.h"
#include "util/str.h"

struct seen;
/* label: "instance"; copied. A series without it is heard of as "". */
struct seen *seen_new(struct str label);
void seen_free(struct seen *seen); /* NULL is fine */

/* A fetch begins: what was heard before is kept as "before". */
void seen_begin(struct seen *seen);
/* The place of the one whose series has these labels. */
size_t seen_place(struct seen *seen, const struct label *labels, size_t n);
/* It was heard of at both of these, and perhaps between. */
void seen_stamps(struct seen *seen, size_t place, time_ms first, time_ms last);

/* How many were silent at the edges of [from, to)? Before: known from fetches before, and not heard
 * of up to `from` in this one. After: not heard of after `to`. Whoever was last heard of before
 * `since` is gone for good. */
struct silence {
    size_t before, after;
};
struct silence seen_silent(struct seen *seen, struct span hours, time_ms since);
/* Was this one silent after, in these words? */
bool seen_is_silent_after(struct seen *seen, size_t place, struct span hours, time_ms since);
/* Append a regular expression of those silent after (RE2, anchored by the server). */
void seen_silent_after_regex(struct seen *seen, struct span hours, time_ms since,
                             struct strbuf *ret);

/* Append a regular expression of all that were ever heard of, but for "". */
void seen_all_regex(struct seen *seen, struct strbuf *ret);
/* The text of the only one that was ever heard of, appended; nothing where there are others too. */
void seen_only(struct seen *seen, struct strbuf *ret);
/* How many were ever heard of, and whether "" was among them. */
size_t seen_count(struct seen *seen, bool *ret_unnamed);

#endif
