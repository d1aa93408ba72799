/* The commands and what help says of them. */
#include "cmd/cmd.h"

#define WHERE_IT_READS                                                                             \
    "Telemetry is read from a Prometheus-compatible server (--prometheus) or from files "          \
    "(--openmetrics, --kube-json), and changes nothing there. With --db the ledger is kept in a "  \
    "file and only what is new is read; without it everything is in memory and gone afterwards."

const struct command_def command_defs[] = {
    {
        .name = "report",
        .bit = IN_REPORT,
        .summary = "where the GPU money went",
        .details =
            "Prints what the GPUs of the window cost, by team unless --by says otherwise: used, "
            "slack, held idle, node idle, not observed. Every hour of every node is booked exactly "
            "once, which the last line shows. What is missing, estimated or not known is said "
            "first.\n\n" WHERE_IT_READS,
        .examples = "  gputally report --prometheus http://prometheus:9090\n"
                    "  gputally report --prometheus http://prometheus:9090 --window lastmonth "
                    "--db gpu.db\n"
                    "  gputally report --db gpu.db --by team,workload --limit 20\n"
                    "  gputally report --db gpu.db --by node --filter 'pool=spot*' --output wide\n"
                    "  gputally report --openmetrics metrics.om --prices prices.csv "
                    "--output json\n",
        .run = cmd_report,
    },
    {
        .name = "idle",
        .bit = IN_IDLE,
        .summary = "which GPUs and nodes stand idle, since when, and what that cost",
        .details =
            "Judges every GPU on each of the last complete days: average GPU_UTIL below 10 %, "
            "memory below 20 %, power below 15 % of the limit. Idle is what meets all of them on "
            "all days; a day of which half is not observed does not count, and then the answer is "
            "'not enough data', never 'idle'. Beside it stands since when nothing has run at all, "
            "with its hours and cost. --output wide shows every GPU, json and csv every "
            "day.\n\n" WHERE_IT_READS,
        .examples = "  gputally idle --prometheus http://prometheus:9090\n"
                    "  gputally idle --db gpu.db --days 14 --tz Europe/Berlin\n"
                    "  gputally idle --db gpu.db --power 15% --output wide\n",
        .run = cmd_idle,
    },
    {
        .name = "recommend",
        .bit = IN_RECOMMEND,
        .summary = "what to do about it, ranked by dollars a month",
        .details =
            "Looks through the ledger of the window for what wastes money and can be acted on now: "
            "idle and little used workloads, hung ones, empty and stranded nodes, whole GPUs for "
            "needs that a MIG slice has. Each finding has an owner, what it costs and what doing "
            "it "
            "would save a month (730 hours), how sure that is, and why. Where two findings could "
            "save the same dollar, one keeps it. --output wide and json have "
            "everything.\n\n" WHERE_IT_READS,
        .examples = "  gputally recommend --prometheus http://prometheus:9090\n"
                    "  gputally recommend --db gpu.db --by owner\n"
                    "  gputally recommend --db gpu.db --by user\n"
                    "  gputally recommend --db gpu.db --window lastweek --output json\n",
        .run = cmd_recommend,
    },
    {
        .name = "explain",
        .positional = "ID|NAME|CELL",
        .bit = IN_EXPLAIN,
        .summary = "where a finding or a figure comes from",
        .details =
            "Shows the chain from rows to dollars: rows and hours, money by category, coverage, "
            "fallbacks, the price and its source, the arithmetic, findings with their evidence and "
            "thresholds, and what would change them. Give a finding's id, the name of a workload, "
            "node, GPU, team or namespace, or a cell of a report such as "
            "team=search/category=held_idle, and the sources and window of recommend or "
            "report.\n\n" WHERE_IT_READS,
        .examples = "  gputally explain --db gpu.db idle-workload-1f3a9c02\n"
                    "  gputally explain --db gpu.db search/Deployment/rank\n"
                    "  gputally explain --db gpu.db team=search,day=2026-11-29\n",
        .run = cmd_explain,
    },
    {
        .name = "doctor",
        .bit = IN_DOCTOR,
        .summary = "which data cannot be trusted, and how to mend it",
        .details =
            "Goes through what the ledger has of the window: GPUs that send nothing, labels that "
            "were lost, metrics that the exporter does not send, prices that are guesses. Each "
            "finding says what it does to the figures, of how many GPU-hours and dollars, and the "
            "line, flag or command that mends it. --output wide lists all "
            "checks.\n\n" WHERE_IT_READS,
        .examples = "  gputally doctor --prometheus http://prometheus:9090\n"
                    "  gputally doctor --db gpu.db --window lastmonth --exit-code\n"
                    "  gputally doctor --db gpu.db --output json\n",
        .run = cmd_doctor,
    },
    {
        .name = "diff",
        .positional = "[A B]",
        .bit = IN_DIFF,
        .summary = "what changed between two windows, or two saved reports",
        .details =
            "Compares window A with window B, row by row: the change of the cost, split into price "
            "(the rate of a GPU-hour) and volume (GPU-hours), which add up to it exactly, and "
            "efficiency: what is used in B beyond A's used share. One window is compared with the "
            "time before it that is as long; without any the last 7 days are B. Two files that "
            "report --output json wrote are compared without any source.\n\n" WHERE_IT_READS,
        .examples = "  gputally diff --db gpu.db lastweek week\n"
                    "  gputally diff --prometheus http://prometheus:9090 --by team,model\n"
                    "  gputally diff old.json new.json --output markdown\n",
        .run = cmd_diff,
    },
    {
        .name = "export",
        .positional = "ledger|hours KIND",
        .bit = IN_EXPORT,
        .summary = "the rows of the ledger, as CSV or JSON lines",
        .details =
            "export ledger writes one row for each hour, GPU and holder, with the columns of "
            "docs/formats.md. Rows are written as they are read. export hours machine, workload or "
            "namespace writes what findings read beside the rows, as CSV.\n\n" WHERE_IT_READS,
        .examples = "  gputally export ledger --prometheus http://prometheus:9090 --window "
                    "yesterday > ledger.csv\n"
                    "  gputally export ledger --db gpu.db --output json | jq .cost\n",
        .run = cmd_export,
    },
    {
        .name = "collect",
        .bit = IN_COLLECT,
        .summary = "fill a database, and report nothing",
        .details =
            "Reads what the database does not have yet, from where the last run ended, and books "
            "it. Running it again changes nothing; a run that was killed is taken up by the "
            "next.",
        .examples = "  gputally collect --prometheus http://prometheus:9090 --db gpu.db\n"
                    "  gputally collect --prometheus http://prometheus:9090 --db gpu.db --window "
                    "30d\n",
        .run = cmd_collect,
    },
    {
        .name = "serve",
        .bit = IN_SERVE,
        .summary = "collect for ever, and answer over HTTP",
        .details =
            "Keeps a database up to date and serves the dashboard, the API and metrics. What to "
            "collect from stands in the configuration under sources: (several clusters, each with "
            "its own watermark), or, for one server, in the options below. It listens on loopback "
            "unless told otherwise, and elsewhere only with tokens or client certificates "
            "(docs/serve.md). SIGHUP reads the configuration again; SIGTERM ends it cleanly. "
            "Killed at any moment it goes on where it was.",
        .examples = "  gputally serve --prometheus http://prometheus:9090 --db gpu.db\n"
                    "  gputally serve --config /etc/gputally/config.yaml\n",
        .run = cmd_serve,
    },
    {
        .name = "top",
        .bit = IN_TOP,
        .summary = "GPUs now, on the whole screen",
        .details =
            "Shows what every GPU does, who holds it, what it costs an hour and since when it is "
            "idle, as a gputally serve knows it, every two seconds. Keys: s another order (node, "
            "cost, idle, use, memory, power), / a filter, t sums by team, arrows and space move, q "
            "ends. Where standard output is no terminal, it is printed once.",
        .examples = "  gputally top\n"
                    "  gputally top --server https://gputally.example --bearer-token-file token\n"
                    "  gputally top --sort cost | head\n",
        .run = cmd_top,
    },
    {
        .name = "db",
        .positional = "check|repair|vacuum|backup FILE",
        .bit = IN_DB,
        .summary = "look after the database: check, repair, shrink, copy",
        .details =
            "check reads everything: the file is sound, sums equal their rows, and the rows of "
            "each "
            "node and hour add up to what the node cost. repair makes a new database of what is "
            "sound, says what it had to leave out, and keeps the damaged file under another name. "
            "vacuum gives back the room of deleted hours. backup copies the database while a "
            "service or collect writes it, and reads the copy.\n\nrepair and vacuum need the "
            "database for themselves: stop the service first.",
        .examples = "  gputally db check --db gpu.db\n"
                    "  gputally db backup --db gpu.db /backup/gpu-$(date +%F).db\n",
        .run = cmd_db,
    },
    {
        .name = "alerts",
        .positional = "list|test",
        .bit = IN_ALERTS,
        .summary = "what would ring now, and whether alerts arrive",
        .details =
            "list looks at the database as gputally serve does, and shows which alerts would ring "
            "and who would be told; it tells nobody. test sends a message to every receiver of the "
            "configuration. docs/alerts.md has the section alerts:.",
        .examples = "  gputally alerts list --config config.yaml\n"
                    "  gputally alerts test --config config.yaml\n",
        .run = cmd_alerts,
    },
    {
        .name = "config",
        .positional = "check [FILE] | token [NAME]",
        .bit = IN_CONFIG,
        .summary = "check the configuration, make an access token",
        .details =
            "check reads a configuration as report and serve would, with every file that it names, "
            "and says what is wrong with its line and column. token makes an access token for "
            "serve "
            "and the line that goes into the configuration for it: there only its hash is kept.",
        .examples = "  gputally config check /etc/gputally/config.yaml\n"
                    "  gputally config token grafana\n",
        .run = cmd_config,
    },
    {
        .name = "demo",
        .bit = IN_DEMO,
        .summary = "a report on a simulated fleet",
        .details =
            "Simulates a small fleet and sends its telemetry through the same decoders, ledger "
            "and store as real data. Nothing is read from anywhere.",
        .examples = "  gputally demo\n"
                    "  gputally demo --gpus 256 --days 14 --seed 7 --by workload\n"
                    "  gputally demo --serve\n",
        .run = cmd_demo,
    },
    {
        .name = "help",
        .positional = "[COMMAND|keys|figures|flags]",
        .bit = IN_ALL,
        .summary = "about a command, or the keys, figures and flags of a report",
        .details = "",
        .examples = "  gputally help report\n  gputally help figures\n",
        .run = cmd_help,
    },
    {
        .name = "version",
        .bit = IN_ALL,
        .summary = "name and version",
        .details = "",
        .examples = "",
        .run = cmd_version,
    },
    {
        .name = "man",
        .bit = IN_ALL,
        .hidden = true,
        .summary = "the man page",
        .details = "",
        .examples = "  gputally man > gputally.1\n",
        .run = cmd_man,
    },
    {
        .name = "completion",
        .positional = "bash|zsh|fish",
        .bit = IN_ALL,
        .hidden = true,
        .summary = "completion for a shell",
        .details = "",
        .examples = "  source <(gputally completion bash)\n",
        .run = cmd_completion,
    },
};

const size_t command_defs_n = sizeof command_defs / sizeof *command_defs;
