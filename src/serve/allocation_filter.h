/* OpenCost's filter language (V2) as a condition of a query:
 *
 *     filter  = element {"+" element} | element {"|" element}      + is and, | is or
 *     element = field op value {"," value} | "(" filter ")"
 *     field   = namespace, cluster, …; label[team]
 *     op      = ":" "!:"  is, is not           "~:" "!~:"   contains
 *               "<~:" "!<~:" begins with       "~>:" "!~>:" ends with
 *     value   = "text"; __unallocated__: none
 *
 * Several values are any of these; of an op with !, none of these. + and | do not mix without
 * parentheses. Blanks count inside of quotes only. A value without quotes is taken too.
 * Source: opencost.io, core/pkg/filter/ast/parser.go. */
#ifndef GPUTALLY_SERVE_ALLOCATION_FILTER_H
#define GPUTALLY_SERVE_ALLOCATION_FILTER_H

#include "query/query.h"

#define ALLOCATION_FILTER_BYTES_MAX ((size_t)16 << 10)
#define ALLOCATION_FILTER_CONDITIONS_MAX 1024
#define ALLOCATION_FILTER_DEPTH_MAX 32

struct conditions {
    struct query_condition *items; /* a tree in preorder */
    size_t n, room;
};

/* ERR_USAGE says where and what would be right. Texts live in the arena; items are freed by the
 * caller, also after an error. An empty filter is no condition. */
enum err allocation_filter(struct str text, struct arena *arena, struct conditions *ret,
                           struct error *err);

/* filterNamespaces=a,b* of before: any of the values, where a * at the end is any end. Adds a
 * condition; false: the ledger has no such field, and a filter that is left out would show more
 * than was asked for. */
bool allocation_filter_list(const char *parameter, struct str values, struct arena *arena,
                            struct conditions *ret);
extern const char *const allocation_filter_lists[]; /* such parameters; ends with NULL */

#endif
