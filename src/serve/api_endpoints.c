/* Every endpoint of the API that answers from the ledger. docs/api.md and the OpenAPI document
 * follow this table. */
#include "serve/api_impl.h"

#define PARAMETERS(...) ((const struct api_parameter[]){__VA_ARGS__, {0}})

#define SUBJECTS                                                                                   \
    {"cluster", false, "only of this cluster"}, {"node", false, "only of this node"},              \
        {"device", false, "only of this GPU (its UUID)"}, {"team", false, "only of this team"},    \
        {"namespace", false, "only of this namespace"},                                            \
        {"workload", false, "only of this workload (Kind/name)"},                                  \
        {"pod", false, "only of this pod"}, {"model", false, "only of this GPU model"},            \
    {                                                                                              \
        "pool", false, "only of this pool"                                                         \
    }

static const struct api_parameter allocation_parameters[] = {
    {"window", true, "7d, 60m, today, lastweek, FROM,TO in RFC 3339 or Unix seconds, …"},
    {"aggregate", false, "namespace, controller, node, cluster, pod, team, …, several with commas"},
    {"step", false, "length of a set: 1d; the window"},
    {"accumulate", false, "true: one set; hour, day, week, month, quarter: sets of these"},
    {"includeIdle", false, "true: with __idle__, what nobody holds (also: idle)"},
    {"idleByNode", false, "true: __idle__ of each node"},
    {"shareIdle", false, "true, weighted, even: __idle__ is shared out"},
    {"filter", false, "(namespace:\"a\",\"b\" | pod<~:\"c\") + node!:\"x\""},
    {"resolution", false, "ignored: the ledger's is an hour"},
    {0},
};

static const struct api_parameter idle_parameters[] = {
    {"days", false, "complete days that are judged; 7"},
    {"power", false, "auto, or a share of the power limit: 15%"},
    {0},
};

const struct api_endpoint api_endpoints[] = {
    {
        .pattern = "/api/v1/meta",
        .summary =
            "what there is to ask for: figures, categories, keys, rules, the ledger's extent",
        .schema = "Meta",
        .takes = TAKES_WINDOW,
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
        .parameters = PARAMETERS({"a", false, "the window before"},
                                 {"b", false, "the window after; without a, a is the time before"}),
        .cached = true,
        .write = api_diff,
    },
    {
        .pattern = "/api/v1/findings",
        .summary = "what to do about it; as gputally recommend --output json prints it",
        .schema = "Findings",
        .takes = TAKES_WINDOW | TAKES_BY | TAKES_LIMIT,
        .cached = true,
        .write = api_findings,
    },
    {
        .pattern = "/api/v1/explain",
        .summary = "where a finding comes from, as text and in sections",
        .schema = "Explain",
        .takes = TAKES_WINDOW,
        .parameters = PARAMETERS({"of", true, "id or subject of a finding"}),
        .cached = true,
        .write = api_explain,
    },
    {
        .pattern = "/api/v1/idle",
        .summary = "the idle scan; as gputally idle --output json prints it",
        .schema = "Idle",
        .takes = TAKES_WINDOW,
        .parameters = idle_parameters,
        .cached = true,
        .write = api_idle,
    },
    {
        .pattern = "/api/v1/idle/days",
        .summary = "the idle scan as a picture: a letter and the means for every GPU and day",
        .schema = "IdleDays",
        .takes = TAKES_WINDOW,
        .parameters = idle_parameters,
        .cached = true,
        .write = api_idle_days,
    },
    {
        .pattern = "/api/v1/doctor",
        .summary = "which data cannot be trusted; as gputally doctor --output json prints it",
        .schema = "Doctor",
        .takes = TAKES_WINDOW,
        .cached = true,
        .write = api_doctor,
    },
    {
        .pattern = "/api/v1/fleet",
        .summary = "the picture of the fleet: a letter for every GPU and hour",
        .schema = "Fleet",
        .takes = TAKES_WINDOW,
        .cached = true,
        .write = api_fleet,
    },
    {
        .pattern = "/api/v1/fleet/cell",
        .summary = "who held a GPU in an hour",
        .schema = "Cell",
        .parameters = PARAMETERS(
            {"device", true, "the GPU's UUID"}, {"hour", true, "RFC 3339, somewhere in the hour"},
            {"cluster", false, "only of this cluster"}, {"node", false, "only of this node"}),
        .cached = true,
        .write = api_fleet_cell,
    },
    {
        .pattern = "/api/v1/series",
        .summary = "figures over time, for charts",
        .schema = "Series",
        .takes = TAKES_WINDOW | TAKES_FILTER,
        .parameters = PARAMETERS({"step", false, "hour or day; hour"}, SUBJECTS),
        .cached = true,
        .write = api_series,
    },
    {
        .pattern = "/api/v1/gpus",
        .summary = "the GPUs now: who holds them and what they do",
        .schema = "Gpus",
        .write = api_gpus,
    },
    {
        .pattern = "/api/v1/workload",
        .summary = "a workload: its pods over time, figures and findings",
        .schema = "Subject",
        .takes = TAKES_WINDOW,
        .parameters =
            PARAMETERS({"namespace", true, "its namespace"}, {"workload", true, "Kind/name"},
                       {"cluster", false, "its cluster"}),
        .cached = true,
        .write = api_workload,
    },
    {
        .pattern = "/api/v1/node",
        .summary = "a node: its holders over time, figures and findings",
        .schema = "Subject",
        .takes = TAKES_WINDOW,
        .parameters = PARAMETERS({"node", true, "its name"}, {"cluster", false, "its cluster"}),
        .cached = true,
        .write = api_node,
    },
    {
        .pattern = "/api/v1/gpu",
        .summary = "a GPU: its holders over time, figures and findings",
        .schema = "Subject",
        .takes = TAKES_WINDOW,
        .parameters = PARAMETERS({"device", true, "its UUID"}, {"cluster", false, "its cluster"}),
        .cached = true,
        .write = api_gpu,
    },
    {
        .pattern = "/allocation",
        .summary = "costs of GPUs in the shape of OpenCost's Allocation API",
        .schema = "Allocation",
        .takes = TAKES_ANY,
        .parameters = allocation_parameters,
        .cached = true,
        .write = api_allocation,
    },
    {
        .pattern = "/allocation/compute",
        .summary = "costs of GPUs in the shape of OpenCost's Allocation API",
        .schema = "Allocation",
        .takes = TAKES_ANY,
        .parameters = allocation_parameters,
        .cached = true,
        .write = api_allocation,
    },
    {
        .pattern = "/model/allocation",
        .summary = "costs of GPUs in the shape of OpenCost's Allocation API",
        .schema = "Allocation",
        .takes = TAKES_ANY,
        .parameters = allocation_parameters,
        .cached = true,
        .write = api_allocation,
    },
    {
        .pattern = "/model/allocation/compute",
        .summary = "costs of GPUs in the shape of OpenCost's Allocation API",
        .schema = "Allocation",
        .takes = TAKES_ANY,
        .parameters = allocation_parameters,
        .cached = true,
        .write = api_allocation,
    },
    {
        .pattern = "/model/getConfigs",
        .summary = "the currency, where kubectl-cost looks for it",
        .schema = "AllocationConfigs",
        .takes = TAKES_ANY,
        .storeless = true,
        .write = api_allocation_configs,
    },
    {
        .pattern = "/metrics",
        .summary = "counters of money and GPU time, and the service's own health",
        .takes = TAKES_ANY,
        .storeless = true,
        .write = api_metrics,
        .content_type = "text/plain; version=0.0.4; charset=utf-8",
    },
};
const size_t api_endpoints_n = sizeof api_endpoints / sizeof *api_endpoints;
