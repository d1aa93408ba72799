/* OpenCost filters from strangers: nothing crashes, a tree is whole, and what is refused is said.
 */
#include <stdlib.h>

#include "serve/allocation_filter.h"

/* Every condition inside a group ends where the group does. */
static void check(const struct conditions *conditions, size_t at)
{
    const struct query_condition *condition = &conditions->items[at];
    invariant(at + condition->inside < conditions->n);
    invariant(condition->test != QUERY_FITS || condition->inside == 0);
    size_t i = at + 1;
    for (; i <= at + condition->inside; i += 1 + conditions->items[i].inside)
        check(conditions, i);
    invariant(i == at + condition->inside + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct conditions conditions = {0};
    struct arena arena = {0};
    struct error err = {0};
    enum err code = allocation_filter(text, &arena, &conditions, &err);
    if (code == ERR_OK && conditions.n)
        check(&conditions, 0);
    invariant(code == ERR_OK || *err.text);
    size_t before = conditions.n;
    if (allocation_filter_list("filterPods", text, &arena, &conditions))
        check(&conditions, before);
    free(conditions.items);
    arena_release(&arena);
    return 0;
}
