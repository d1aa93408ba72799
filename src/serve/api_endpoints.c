/* Every endpoint of the API that answers from the ledger. docs/api.md and the OpenAPI document
 * follow this table. */
#include "serve/api_impl.h"

#define PARAMETERS(...) ((const struct api_parameter[]){__VA_ARGS__, {0}})

const struct api_endpoint api_endpoints[] = {
    {
        .pattern = "/api/v1/meta",
        .summary =
            "what there is to ask for: figures, categories, keys, rules, the ledger's extent",
        .schema = "Meta",
        .write = api_meta,
    },
    {
        .pattern = "/api/v1/report",
        .summary = "where the money went; as gputally report --output json prints it",
        .schema = "Report",
        .takes = TAKES_WINDOW | TAKES_BY | TAKES_FILTER | TAKES_SORT | TAKES_LIMIT,
        .cached = true,
        .write = api_report,
    },
    {
        .pattern = "/api/v1/diff",
        .summary = "what changed between two windows; as gputally diff --output json prints it",
        .schema = "Diff",
        .takes = TAKES_WINDOW | TAKES_BY | TAKES_FILTER | TAKES_LIMIT,
        .parameters =
            PARAMETERS({"a", false, "the window before"}, {"b", false, "the window after"}),
        .cached = true,
        .write = api_diff,
    },
};
const size_t api_endpoints_n = sizeof api_endpoints / sizeof *api_endpoints;
