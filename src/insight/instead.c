#include "insight/instead.h"

#define GIB (INT64_C(1) << 30)

static const char *missing(const struct instead_node *node)
{
    if (!node->priced)
        return "the node has no price";
    if (!node->cloud.n || !node->region.n)
        return "the node's cloud and region are not known";
    if (node->requested_mcpu <= 0)
        return "its pods request no CPU, or what they request is not known";
    return NULL;
}

void instead_find(const struct prices *prices, const struct instead_node *node, struct instead *ret)
{
    const struct price_query where = {.cloud = node->cloud, .region = node->region, .at = node->at};
    int64_t bytes = node->requested_memory_bytes > 0 ? node->requested_memory_bytes : 0;
    int64_t milli_gib = (int64_t)(((wide_t)bytes * 1000 + GIB - 1) / GIB);
    *ret = (struct instead){.why = missing(node)};
    if (ret->why)
        return;
    ret->found =
        prices_cheapest_general(prices, &where, node->requested_mcpu, milli_gib, &ret->offer);
    if (ret->found)
        ret->saving = node->price - ret->offer.price;
    else
        ret->why = "no general-purpose machine of its cloud and region that is large enough has a "
                   "known price";
}
