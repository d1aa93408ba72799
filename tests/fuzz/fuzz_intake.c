/* Random fleets: the input is a little program that names series of the wanted metrics with labels
 * from a small vocabulary (so that devices, nodes and pods meet), appends samples in and out of
 * order, and hands over Kubernetes objects. Then three hours are booked at one of a few prices:
 * whatever came in, it balances, on one thread as on two, and with all rows packed and each node
 * booked alone as in one go. */
#include <math.h>
#include <stdlib.h>

#include "../lib/ledger_checks.h"
#include "fleet/intake_data.h"
#include "ledger/engine.h"

#define FROM INT64_C(1767225600000) /* 2026-01-01 */
#define BOOKS 4

static struct settings settings;
static struct prices *prices[BOOKS];
static struct owners *owners;

static void add_rule(struct prices *book, enum price_rule_kind kind, struct str node,
                     int64_t amount)
{
    struct price_rule rule = {
        .kind = kind,
        .selector = {.node = node, .any_capacity = true, .valid = {TIME_MIN, TIME_MAX}},
        .amount = amount,
        .source = STR("test")};
    prices_add_rule(book, &rule);
}

static void make_books(void)
{
    settings_defaults(&settings);
    owners = owners_new_default();
    for (int i = 0; i < BOOKS; i++)
        prices[i] = prices_new();
    add_rule(prices[1], PRICE_RULE_NODE, STR("*"), 98765432101);
    add_rule(prices[2], PRICE_RULE_GPU, STR("a*"), PRICE_MAX);
    add_rule(prices[2], PRICE_RULE_GPU, STR("*"), 1);
    struct price_rule change = {
        .kind = PRICE_RULE_NODE,
        .selector = {.any_capacity = true, .valid = {TIME_MIN, FROM + HOUR_MS + 12345}},
        .amount = 7000000000,
        .source = STR("test")};
    prices_add_rule(prices[3], &change);
    add_rule(prices[3], PRICE_RULE_GPU, STR("*"), 1234567890);
    for (int i = 0; i < BOOKS; i++)
        prices_ready(prices[i]);
}

/* ------------------------------------------------------------------ the program's words */

struct program {
    const unsigned char *p, *end;
};

static unsigned take(struct program *program)
{
    return program->p < program->end ? *program->p++ : 0;
}

static const char *const label_names[] = {"UUID",
                                          "gpu",
                                          "GPU_I_ID",
                                          "GPU_I_PROFILE",
                                          "node",
                                          "Hostname",
                                          "hostname",
                                          "pod",
                                          "namespace",
                                          "container",
                                          "exported_pod",
                                          "exported_namespace",
                                          "vgpu",
                                          "modelName",
                                          "job",
                                          "instance",
                                          "cluster",
                                          "uid",
                                          "resource",
                                          "unit",
                                          "phase",
                                          "owner_kind",
                                          "owner_name",
                                          "provider_id",
                                          "label_node_kubernetes_io_instance_type",
                                          "label_nvidia_com_gpu_replicas",
                                          "internal_ip",
                                          "restart_policy",
                                          "label_team",
                                          "pci_bus_id",
                                          "err_code",
                                          "replicaset",
                                          "job_name",
                                          "mode",
                                          "cpu",
                                          "device",
                                          "key",
                                          "effect",
                                          "type",
                                          "resourcequota",
                                          "priority_class"};
static const char *const words[] = {"a",
                                    "b",
                                    "c",
                                    "GPU-a",
                                    "GPU-a::1",
                                    "GPU-b",
                                    "0",
                                    "1",
                                    "2",
                                    "7",
                                    "1g.10gb",
                                    "3g.40gb",
                                    "7c.7g.80gb",
                                    "999g.1gb",
                                    "nvidia_com_gpu",
                                    "nvidia_com_mig_1g_10gb",
                                    "nvidia_com_gpucores",
                                    "alibabacloud_com_gpu_milli",
                                    "Succeeded",
                                    "Failed",
                                    "Always",
                                    "NVIDIA A100",
                                    "NVIDIA A30",
                                    "localhost",
                                    "A",
                                    "exporter",
                                    "10.0.0.1:9400",
                                    "10.0.0.1",
                                    "Job",
                                    "ReplicaSet",
                                    "<none>",
                                    "p4d.24xlarge",
                                    "aws:///x/i-1",
                                    "9973",
                                    "idle",
                                    "user",
                                    "cpu",
                                    "memory",
                                    "hard",
                                    "NoSchedule",
                                    "requests.nvidia.com/gpu",
                                    "DaemonSet",
                                    ""};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static struct str word(struct program *program)
{
    return str_of(words[take(program) % COUNT(words)]);
}

static double value(struct program *program)
{
    static const double odd[] = {0,
                                 1,
                                 2,
                                 8,
                                 100,
                                 79,
                                 0.05,
                                 0.31,
                                 0.999999999,
                                 1.2,
                                 1.5,
                                 -1,
                                 1e6,
                                 1e15,
                                 1e300,
                                 9.3e18,
                                 140737488355328.0,
                                 2147483632.0,
                                 NAN,
                                 INFINITY,
                                 -INFINITY,
                                 1767225600,
                                 1767229200.5,
                                 1767232800,
                                 4096};
    unsigned at = take(program);
    return at < COUNT(odd) ? odd[at] : at / 256.0;
}

static time_ms stamp(struct program *program)
{
    static const time_ms odd[] = {
        TIME_MIN,           TIME_MAX, INT64_MIN,      INT64_MAX,          0,
        FROM - 6 * HOUR_MS, FROM,     FROM + HOUR_MS, FROM + 3 * HOUR_MS, FROM + 9 * HOUR_MS};
    unsigned at = take(program);
    return at < COUNT(odd) ? odd[at] : FROM + ((time_ms)at - 20) * 60000 + take(program) * 250;
}

/* ------------------------------------------------------------------ its operations */

#define LABELS_MAX 20

static void add_series(struct program *program, struct intake *intake)
{
    size_t metrics_n;
    const struct wanted_metric *metrics = wanted_metrics(&metrics_n);
    struct label labels[LABELS_MAX + 1];
    size_t n = take(program) % LABELS_MAX;
    labels[0] = (struct label){
        STR("__name__"), str_of(metrics[(take(program) * 256u + take(program)) % metrics_n].name)};
    for (size_t i = 1; i <= n; i++)
        labels[i] =
            (struct label){str_of(label_names[take(program) % COUNT(label_names)]), word(program)};
    series_id id = intake_series(intake, labels, n + 1);
    static const time_ms steps[] = {0, 1, 250, 15000, 30000, 30001, 299999, 300001};
    time_ms t[64], at = stamp(program), step = steps[take(program) % COUNT(steps)];
    double v[64], first = value(program), second = value(program);
    size_t samples = take(program) % 64;
    for (size_t i = 0; i < samples; i++) {
        t[i] = at;
        v[i] = i % 2 ? second : first;
        at = at > INT64_MAX - step ? INT64_MAX : at + step;
    }
    intake_append(intake, id, t, v, samples);
}

static void add_node(struct program *program, struct intake *intake)
{
    struct resource_count counts[2] = {{STR("nvidia.com/gpu"), take(program) % 12},
                                       {STR("nvidia.com/mig-1g.10gb"), take(program) % 12}};
    struct label label = {STR("nvidia.com/gpu.replicas"), word(program)};
    struct node_object node = {.cluster = word(program),
                               .name = word(program),
                               .provider_id = word(program),
                               .internal_ip = word(program),
                               .created = stamp(program),
                               .unschedulable = take(program) & 1,
                               .labels = &label,
                               .labels_n = 1,
                               .capacity = counts,
                               .capacity_n = 2,
                               .allocatable = counts,
                               .allocatable_n = take(program) % 3};
    intake_node(intake, &node);
}

static void add_pod(struct program *program, struct intake *intake)
{
    static const char *const resources[] = {"nvidia.com/gpu", "nvidia.com/mig-1g.10gb",
                                            "nvidia.com/gpucores", "alibabacloud.com/gpu-milli"};
    struct resource_count request = {str_of(resources[take(program) % COUNT(resources)]),
                                     (int64_t)take(program) * (1 + (int64_t)take(program) * 40)};
    struct container_object containers[2] = {{.name = word(program),
                                              .init = take(program) & 1,
                                              .sidecar = take(program) & 1,
                                              .requests = &request,
                                              .requests_n = 1},
                                             {.name = word(program)}};
    struct str devices[2] = {STR("GPU-a"), STR("GPU-b/1")};
    struct pod_object pod = {.cluster = word(program),
                             .namespace = word(program),
                             .name = word(program),
                             .uid = word(program),
                             .node = word(program),
                             .owner_kind = word(program),
                             .owner_name = word(program),
                             .phase = word(program),
                             .scheduled = stamp(program),
                             .started = stamp(program),
                             .finished = stamp(program),
                             .deleted = stamp(program),
                             .containers = containers,
                             .containers_n = 2,
                             .devices = devices,
                             .devices_n = take(program) % 3};
    intake_pod(intake, &pod);
}

/* What came later: quotas, what pods ask of hosts, and series that promise their order. */
static void add_more(struct program *program, struct intake *intake)
{
    struct container_object container = {.name = word(program),
                                         .mcpu = (int64_t)take(program) << 50,
                                         .memory_bytes = (int64_t)take(program) << 50};
    struct pod_object pod = {.cluster = word(program),
                             .namespace = word(program),
                             .name = word(program),
                             .node = word(program),
                             .phase = word(program),
                             .priority_class = word(program),
                             .created = stamp(program),
                             .scheduled = stamp(program),
                             .containers = &container,
                             .containers_n = 1};
    struct node_object node = {
        .cluster = word(program), .name = word(program), .created = TIME_MIN, .tainted = true};
    switch (take(program) % 4) {
    case 0:
        intake_quota(intake, word(program), word(program), word(program), take(program));
        break;
    case 1:
        intake_pod(intake, &pod);
        break;
    case 2:
        intake_node(intake, &node);
        break;
    default:
        intake_in_order(intake, (struct span){FROM, FROM + 3 * HOUR_MS});
        add_series(program, intake);
        intake_in_any_order(intake);
    }
}

static void run(struct program program, struct intake *intake)
{
    while (program.p < program.end)
        switch (take(&program) % 8) {
        case 0:
            add_node(&program, intake);
            break;
        case 1:
            add_pod(&program, intake);
            break;
        case 2:
            intake_owner(intake, word(&program), word(&program), word(&program), word(&program),
                         word(&program), word(&program));
            break;
        case 3:
            add_more(&program, intake);
            break;
        default:
            add_series(&program, intake);
        }
}

/* ------------------------------------------------------------------ what has to hold */

struct outcome {
    struct names *names;
    struct row *rows;
    size_t n, room;
    struct note *notes;
    size_t notes_n, notes_room;
    struct strbuf carry;
};

static void release(struct outcome *outcome)
{
    free(outcome->rows);
    free(outcome->notes);
    strbuf_release(&outcome->carry);
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->rows, b->rows, a->n * sizeof *a->rows) == 0) &&
           a->notes_n == b->notes_n &&
           (a->notes_n == 0 || memcmp(a->notes, b->notes, a->notes_n * sizeof *a->notes) == 0) &&
           str_eq(strbuf_str(&a->carry), strbuf_str(&b->carry));
}

static void keep(void *context, const struct row_batch *batch)
{
    struct outcome *outcome = context;
    check_batch(batch);
    for (size_t i = 0; i < batch->rows_n; i++)
        mem_push(outcome->rows, outcome->n, outcome->room, batch->rows[i]);
    for (size_t i = 0; i < batch->notes_n; i++)
        mem_push(outcome->notes, outcome->notes_n, outcome->notes_room, batch->notes[i]);
}

/* Every strip packs what it can, as soon as it can, and the rest when it was looked at. */
static void pack_all(struct intake *intake)
{
    intake_by_time(intake, NULL);
    intake->packing.budget_bytes = 0;
    intake->packing.used = true;
}

static void book(struct program program, int threads, bool packed, int book, struct outcome *ret)
{
    struct intake *intake = intake_new(&settings, ret->names);
    if (packed)
        pack_all(intake);
    run(program, intake);
    struct engine_options options = {&settings, prices[book], owners, threads, NULL};
    struct span hours = {FROM, FROM + 3 * HOUR_MS};
    invariant(engine_book(intake, hours, &options, keep, ret, &ret->carry, NULL) == ERR_OK);
    intake_free(intake);
    intake = intake_new(&settings, ret->names);
    struct error err;
    if (intake_restore(intake, strbuf_str(&ret->carry), &err) != ERR_OK)
        invariant_failed(err.text, __FILE__, __LINE__);
    struct outcome next = {.names = ret->names};
    hours = (struct span){FROM + 3 * HOUR_MS, FROM + 4 * HOUR_MS};
    invariant(engine_book(intake, hours, &options, keep, &next, NULL, NULL) == ERR_OK);
    release(&next);
    intake_free(intake);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!owners)
        make_books();
    if (size < 1)
        return 0;
    struct program program = {data + 1, data + size};
    struct outcome one = {.names = names_new()};
    book(program, 1, false, data[0] % BOOKS, &one);
    if (data[0] & 192) {
        struct outcome two = {.names = one.names};
        book(program, data[0] & 128 ? 2 : 1, data[0] & 64, data[0] % BOOKS, &two);
        invariant(same(&one, &two));
        release(&two);
    }
    release(&one);
    names_free(one.names);
    return 0;
}
