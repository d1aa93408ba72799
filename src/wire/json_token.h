/* Inside of query_json: where a JSON token ends, and what a string says. */
#ifndef GPUTALLY_WIRE_JSON_TOKEN_H
#define GPUTALLY_WIRE_JSON_TOKEN_H

#include "util/str.h"

/* The closing quote of a string, from p on (behind its opening quote); NULL where it has not come:
 * then *ret_resume is from where to look when more has. */
const char *json_token_string_end(const char *p, const char *end, const char **ret_resume);

/* What stands between the quotes, unescaped: a view of `raw` where there is nothing to do, else of
 * scratch. False on an escape that is none. */
bool json_token_string(struct str raw, struct strbuf *scratch, struct str *ret);

/* Where a number or a word (true, false, null) at p ends: the first byte that belongs to none. */
const char *json_token_word_end(const char *p, const char *end);
bool json_token_is_word(struct str word); /* a number of JSON's grammar, true, false or null */

#endif
