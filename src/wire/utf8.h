/* Are these bytes UTF-8? Texts that leave gputally (JSON, HTML, SQLite) must be. */
#ifndef GPUTALLY_WIRE_UTF8_H
#define GPUTALLY_WIRE_UTF8_H

#include "util/str.h"

/* True for well-formed UTF-8 (no overlong forms, no surrogates, up to U+10FFFF). O(n). */
bool utf8_valid(struct str text);

/* Append a code point; one that is none (a surrogate, above U+10FFFF) becomes U+FFFD. */
void utf8_put(struct strbuf *buf, unsigned code);

#endif
