/* Names once: strings interned to small ids. Rows, facts and queries carry ids; texts live here.
 *
 * Any thread may put and look up at any time: putting takes a lock, looking up does not, and a text
 * never moves. Ids are given in order of first putting, which depends on threads and arrival: never
 * order anything by id, compare the texts. Id 0 is the empty text, which stands for "none". */
#ifndef GPUTALLY_UTIL_NAMES_H
#define GPUTALLY_UTIL_NAMES_H

#include <stdint.h>

#include "util/str.h"

typedef uint32_t name_t;
#define NAME_NONE 0u
#define NAMES_MAX (1u << 26) /* ids; putting more aborts: callers cap series and objects before */

struct names;
struct names *names_new(void);
void names_free(struct names *names);                               /* NULL is fine */
name_t names_put(struct names *names, struct str text);             /* copies; O(1) */
bool names_find(struct names *names, struct str text, name_t *ret); /* does not put */
struct str names_text(const struct names *names, name_t id); /* NUL-terminated; lives as long */
uint32_t names_count(const struct names *names);
size_t names_bytes(struct names *names); /* any thread */

#endif
