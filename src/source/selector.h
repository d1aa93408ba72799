/* The inside of a PromQL selector, taken apart: remote read takes matchers one by one. */
#ifndef GPUTALLY_SOURCE_SELECTOR_H
#define GPUTALLY_SOURCE_SELECTOR_H

#include "util/error.h"
#include "wire/remote_read.h"

#define SELECTOR_MATCHERS_MAX 64

struct selector {
    struct remote_read_matcher items[SELECTOR_MATCHERS_MAX];
    size_t n;
};

/* Append the matchers of `text` (`cluster="prod",job=~"dcgm.*"`, without braces) to `selector`.
 * Strings may be in double quotes, single quotes or back quotes; texts live in `arena`. ERR_USAGE
 * says where the text is none. */
enum err selector_parse(struct str text, struct arena *arena, struct selector *selector,
                        struct error *err);
/* Append one matcher; texts are not copied. False: there are too many. */
bool selector_add(struct selector *selector, enum remote_read_match match, struct str name,
                  struct str value);

#endif
