/* The demo's fleet: a table of machines and of what runs on them (the story), the plan that turns
 * it into pods with times, and the readings of every GPU.
 *
 * Readings are made from means that change at whole hours and where a pod begins or ends, with a
 * hash of (slot, instant) on top. So any instant can be asked for without walking there, and the
 * energy counter is a sum that is taken once, at the knots. */
#include "cmd/demo_fleet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/str.h"

#define MINUTE_MS ((time_ms)60000)
#define LINGER_MS HOUR_MS /* a finished pod stays in the API for so long */

/* ---- the story ---- */

static const struct demo_machine machines[] = {
    {"p5.48xlarge", "us-east-1", "us-east-1a", "NVIDIA H100 80GB HBM3", 8, 81559, 70, 700},
    {"p4de.24xlarge", "us-east-1", "us-east-1a", "NVIDIA A100-SXM4-80GB", 8, 81920, 55, 400},
    {"g5.12xlarge", "us-east-1", "us-east-1b", "NVIDIA A10G", 4, 23028, 20, 300},
    {"workstation-4x4090", "", "", "NVIDIA GeForce RTX 4090", 4, 24564, 22, 450},
};
enum { H100, A100, A10G, DESK };

/* A node of the story. Places in time are parts of the window, 0..1. */
struct node_plan {
    const char *pool;
    int machine;
    int split; /* so many of its devices are cut into three 2g.20gb instances */
    bool spot;
    double up_from, up_to;
    double silent_from, silent_to;
};
static const struct node_plan node_plans[] = {
    {.pool = "h100", .machine = H100, .up_to = 1},
    {.pool = "h100", .machine = H100, .up_to = 1},
    {.pool = "a100-mig", .machine = A100, .split = 4, .up_to = 1},
    {.pool = "h100", .machine = H100, .up_to = 1},
    {.pool = "h100-spot", .machine = H100, .spot = true, .up_from = 0.06, .up_to = 0.81},
    {.pool = "h100", .machine = H100, .up_to = 1},
    {.pool = "a10g", .machine = A10G, .up_to = 1},
    {.pool = "a10g", .machine = A10G, .up_to = 1, .silent_from = 0.43, .silent_to = 0.46},
    {.pool = "a10g", .machine = A10G, .up_to = 1},
    {.pool = "desk", .machine = DESK, .up_to = 1},
};
#define NODE_PLANS (sizeof node_plans / sizeof *node_plans)

enum plan {
    PLAN_SERVICE, /* a Deployment; its pods are replaced by a rollout in the middle */
    PLAN_JOBS,    /* one job after the other, with a pause */
    PLAN_NIGHTLY, /* a CronJob at 01:00 UTC */
    PLAN_HELD,    /* one pod that stays */
    PLAN_OUTSIDE, /* once, and Kubernetes knows nothing of it */
};
/* What runs on slots [first, first + slots) of the node plan `node`. */
struct track {
    int node, first, slots, slots_a_pod;
    enum plan plan;
    const char *namespace, *team, *kind, *workload, *container;
    double hours, pause_min; /* length of a job and pause after it */
    struct demo_work work;
};
static const struct track tracks[] = {
    {0, 0, 4, 1, PLAN_SERVICE, "search", "search", "Deployment", "ranker", "server",
     .work = {DEMO_SERVE, 0.62, 0.71, 0}},
    {0, 4, 2, 2, PLAN_SERVICE, "search", "search", "Deployment", "assistant-70b", "vllm",
     .work = {DEMO_SERVE, 0.74, 0.92, 1400}},
    {0, 6, 1, 1, PLAN_HELD, "research", "research", "StatefulSet", "jupyter-alex", "notebook",
     .work = {DEMO_NOTEBOOK, 0.35, 0.11, 0}},
    {1,
     0,
     8,
     8,
     PLAN_JOBS,
     "research",
     "research",
     "PyTorchJob",
     "pretrain-7b",
     "pytorch",
     46,
     35,
     {DEMO_TRAIN, 0.66, 0.88, 0}},
    {2, 0, 6, 1, PLAN_SERVICE, "search", "search", "Deployment", "embedder", "server",
     .work = {DEMO_SERVE, 0.55, 0.42, 0}},
    {2, 6, 3, 1, PLAN_SERVICE, "vision", "vision", "Deployment", "thumbnails", "server",
     .work = {DEMO_SERVE, 0.14, 0.31, 0}},
    {2,
     12,
     3,
     3,
     PLAN_JOBS,
     "vision",
     "vision",
     "Job",
     "segmenter",
     "train",
     9,
     75,
     {DEMO_TRAIN, 0.44, 0.63, 0}},
    {3,
     0,
     4,
     4,
     PLAN_JOBS,
     "vision",
     "vision",
     "Job",
     "detector",
     "train",
     7,
     55,
     {DEMO_TRAIN, 0.52, 0.77, 0}},
    {3,
     4,
     2,
     1,
     PLAN_JOBS,
     "research",
     "research",
     "Job",
     "sweep",
     "trial",
     3,
     18,
     {DEMO_STARVED, 0.17, 0.35, 0}},
    {3,
     6,
     2,
     2,
     PLAN_NIGHTLY,
     "search",
     "search",
     "CronJob",
     "reindex",
     "index",
     4,
     0,
     {DEMO_TRAIN, 0.58, 0.52, 0}},
    {4,
     0,
     8,
     4,
     PLAN_JOBS,
     "research",
     "research",
     "Job",
     "rollouts",
     "actor",
     11,
     25,
     {DEMO_TRAIN, 0.49, 0.69, 0}},
    {5, 2, 1, 1, PLAN_OUTSIDE, NULL, NULL, NULL, NULL, NULL, 9, 0, {DEMO_TRAIN, 0.81, 0.2, 0}},
    {6, 0, 2, 1, PLAN_SERVICE, "vision", "vision", "Deployment", "ocr", "server",
     .work = {DEMO_SERVE, 0.41, 0.48, 0}},
    {6, 2, 1, 1, PLAN_HELD, "sandbox", NULL, "Pod", "llm-test", "shell",
     .work = {DEMO_NOTEBOOK, 0.5, 0.83, 0}},
    {7, 0, 4, 1, PLAN_SERVICE, "search", "search", "Deployment", "spelling", "server",
     .work = {DEMO_SERVE, 0.11, 0.22, 0}},
    {8,
     0,
     1,
     1,
     PLAN_JOBS,
     "platform",
     "platform",
     "Job",
     "image-tests",
     "test",
     0.4,
     40,
     {DEMO_STARVED, 0.21, 0.3, 0}},
    {9,
     0,
     2,
     2,
     PLAN_JOBS,
     "research",
     "research",
     "Job",
     "distill",
     "train",
     14,
     90,
     {DEMO_TRAIN, 0.57, 0.81, 0}},
};
#define TRACKS (sizeof tracks / sizeof *tracks)

/* ---- small tools ---- */

uint64_t demo_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) ^ (b + UINT64_C(0x632be59bd9b4e019)) ^ c << 32;
    for (int round = 0; round < 2; round++) {
        x += c + UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
    }
    return x;
}

/* 0..1 */
static double part_of(uint64_t hash)
{
    return (double)(hash >> 11) * 0x1p-53;
}

static const char *keep(struct demo_fleet *fleet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *keep(struct demo_fleet *fleet, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    invariant(n >= 0 && (size_t)n < sizeof text);
    return str_keep(&fleet->arena, (struct str){text, (size_t)n}).p;
}

static const char *uuid_of(struct demo_fleet *fleet, const char *head, uint64_t salt)
{
    uint64_t a = demo_hash(salt, 1, fleet->options.seed), b = demo_hash(salt, 2, a);
    return keep(fleet, "%s%08x-%04x-4%03x-%04x-%012llx", head, (unsigned)(a >> 32),
                (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                (unsigned)(0x8000 | (b >> 50 & 0x3fff)), (unsigned long long)(b & 0xffffffffffff));
}

static const char *letters(struct demo_fleet *fleet, int n, uint64_t hash)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    char text[16];
    for (int i = 0; i < n; i++, hash /= 27)
        text[i] = alphabet[hash % 27];
    return str_keep(&fleet->arena, (struct str){text, (size_t)n}).p;
}

static time_ms at_part(const struct demo_fleet *fleet, double part)
{
    struct span window = fleet->options.window;
    return window.from + (time_ms)(part * (double)(window.to - window.from)) / 1000 * 1000;
}

/* ---- machines ---- */

static void add_slot(struct demo_device *device, const char *profile, uint64_t salt)
{
    struct demo_slot *slot = &device->slots[device->slots_n++];
    const struct demo_machine *machine = device->node->machine;
    *slot = (struct demo_slot){.device = device,
                               .profile = profile,
                               .instance_id = profile ? (int)device->slots_n + 2 : 0,
                               .memory_mib = profile ? 19968 : machine->memory_mib,
                               .share = profile ? 2.0 / 7 : 1,
                               .salt = demo_hash(salt, 3, device->slots_n)};
}

static void add_devices(struct demo_fleet *fleet, struct demo_node *node, int split, uint64_t salt)
{
    node->devices_n = (size_t)node->machine->gpus;
    node->devices = arena_zalloc(&fleet->arena, node->devices_n * sizeof *node->devices);
    node->slots = arena_zalloc(&fleet->arena, node->devices_n * 3 * sizeof *node->slots);
    for (size_t i = 0; i < node->devices_n; i++) {
        struct demo_device *device = &node->devices[i];
        uint64_t device_salt = demo_hash(salt, 4, i);
        device->node = node;
        device->index = (int)i;
        device->uuid = uuid_of(fleet, "GPU-", device_salt);
        device->slots = arena_zalloc(&fleet->arena, 3 * sizeof *device->slots);
        for (int k = 0; k < ((int)i < split ? 3 : 1); k++)
            add_slot(device, (int)i < split ? "2g.20gb" : NULL, device_salt);
        for (size_t k = 0; k < device->slots_n; k++) {
            node->slots[node->slots_n++] = &device->slots[k];
            node->instances += device->slots[k].profile != NULL;
        }
    }
}

static void add_node(struct demo_fleet *fleet, const struct node_plan *plan, int serial)
{
    struct demo_node *node = &fleet->nodes[fleet->nodes_n];
    uint64_t salt = demo_hash(fleet->options.seed, 5, fleet->nodes_n);
    struct span window = fleet->options.window;
    bool new = plan->up_from > 0;
    *node = (struct demo_node){
        .name = keep(fleet, "%s-%02d", plan->pool, serial),
        .address = keep(fleet, "10.0.%d.%d", (int)(fleet->nodes_n / 200),
                        (int)(fleet->nodes_n % 200) + 11),
        .uid = uuid_of(fleet, "", salt),
        .pool = plan->pool,
        .story = (int)(plan - node_plans),
        .machine = &machines[plan->machine],
        .spot = plan->spot,
        .up = {new ? at_part(fleet, plan->up_from) : TIME_MIN,
               plan->up_to < 1 ? at_part(fleet, plan->up_to) : TIME_MAX},
        .silent = {at_part(fleet, plan->silent_from), at_part(fleet, plan->silent_to)},
        .offset_ms = (time_ms)(part_of(salt) * (double)fleet->options.step_ms),
    };
    node->created =
        new ? node->up.from
            : window.from - DAY_MS *(2 + (time_ms)(salt % 50)) - (time_ms)(salt % 80000) * 1000;
    add_devices(fleet, node, plan->split, salt);
    fleet->nodes_n++;
}

/* Whole stories one after the other, then the machines of one that still fit, then small ones. */
static void add_nodes(struct demo_fleet *fleet)
{
    int left = (fleet->options.gpus + 3) / 4 * 4;
    fleet->nodes = arena_zalloc(&fleet->arena, (size_t)left / 4 * sizeof *fleet->nodes);
    int serials[NODE_PLANS] = {0};
    for (size_t i = 0; left > 0; i = (i + 1) % NODE_PLANS) {
        const struct node_plan *plan = &node_plans[i];
        if (machines[plan->machine].gpus > left)
            continue;
        size_t first = 0; /* the first plan of the same pool counts for all of it */
        while (strcmp(node_plans[first].pool, plan->pool) != 0)
            first++;
        add_node(fleet, plan, ++serials[first]);
        left -= machines[plan->machine].gpus;
    }
}

/* ---- pods ---- */

static struct demo_pod *add_pod(struct demo_fleet *fleet, const struct demo_node *node,
                                const struct track *track, struct span held)
{
    struct demo_pod *pod = arena_zalloc(&fleet->arena, sizeof *pod);
    uint64_t salt = demo_hash(fleet->options.seed, 6, fleet->pods_n);
    bool ends = held.to <= fleet->options.window.to;
    bool reclaimed = held.to >= node->up.to;
    *pod = (struct demo_pod){
        .namespace = track->namespace,
        .uid = uuid_of(fleet, "", salt),
        .container = track->container,
        .app = track->workload,
        .team = track->team,
        .node = node,
        .resource = "nvidia_com_gpu",
        .count = track->slots_a_pod,
        .held = {held.from, ends ? held.to : TIME_MAX},
        .created = held.from - 15000 - (time_ms)(salt % 40) * 1000,
        .completed = ends && !reclaimed && track->plan != PLAN_SERVICE,
        .work = track->work,
        .salt = salt,
    };
    pod->gone = !ends ? TIME_MAX : pod->completed ? held.to + LINGER_MS : held.to;
    mem_push(fleet->pods, fleet->pods_n, fleet->pods_room, pod);
    return pod;
}

/* Names and controllers as Kubernetes makes them. serial: of the pods of this track. */
static void name_pod(struct demo_fleet *fleet, struct demo_pod *pod, const struct track *track,
                     int serial)
{
    const char *workload = track->workload, *kind = track->kind;
    uint64_t track_salt = demo_hash(fleet->options.seed, 7, (uint64_t)(track - tracks));
    const char *tail = letters(fleet, 5, pod->salt);
    if (strcmp(kind, "Deployment") == 0) {
        const char *set =
            keep(fleet, "%s-%s", workload, letters(fleet, 9, demo_hash(track_salt, 8, serial > 0)));
        pod->name = keep(fleet, "%s-%s", set, tail);
        pod->owners[0] = (struct demo_owner){"ReplicaSet", set};
        pod->owners[1] = (struct demo_owner){kind, workload};
        pod->owners_n = 2;
    } else if (strcmp(kind, "CronJob") == 0) {
        const char *job = keep(fleet, "%s-%lld", workload, (long long)(pod->held.from / MINUTE_MS));
        pod->name = keep(fleet, "%s-%s", job, tail);
        pod->owners[0] = (struct demo_owner){"Job", job};
        pod->owners[1] = (struct demo_owner){kind, workload};
        pod->owners_n = 2;
    } else if (strcmp(kind, "Pod") == 0) {
        pod->name = workload;
    } else if (strcmp(kind, "StatefulSet") == 0) {
        pod->name = keep(fleet, "%s-0", workload);
        pod->owners[0] = (struct demo_owner){kind, workload};
        pod->owners_n = 1;
    } else {
        bool training = strcmp(kind, "PyTorchJob") == 0;
        const char *run = keep(fleet, "%s-%s", workload, letters(fleet, 4, pod->salt >> 20));
        pod->name = training ? keep(fleet, "%s-master-0", run) : keep(fleet, "%s-%s", run, tail);
        pod->owners[0] = (struct demo_owner){kind, run};
        pod->owners_n = 1;
    }
}

static void use_slots(struct demo_slot **slots, int n, struct demo_pod *pod,
                      const struct demo_work *work, struct span time)
{
    for (int i = 0; i < n; i++) {
        struct demo_span span = {.time = time, .pod = pod, .work = work};
        if (pod && slots[i]->profile)
            pod->resource = "nvidia_com_mig_2g_20gb";
        mem_push(slots[i]->spans, slots[i]->spans_n, slots[i]->spans_room, span);
    }
}

/* One pod on its slots, within the life of its node; nothing where that leaves less than a minute
 * or lies before the window. */
static void run_pod(struct demo_fleet *fleet, struct demo_node *node, const struct track *track,
                    int first, struct span held, int serial)
{
    time_ms earliest = node->up.from == TIME_MIN ? TIME_MIN : node->up.from + 6 * MINUTE_MS;
    held.from = held.from > earliest ? held.from : earliest;
    held.to = held.to < node->up.to ? held.to : node->up.to;
    if (held.from >= held.to - MINUTE_MS || held.to <= fleet->options.window.from ||
        held.from >= fleet->options.window.to)
        return;
    struct demo_pod *pod = NULL;
    if (track->plan != PLAN_OUTSIDE) {
        pod = add_pod(fleet, node, track, held);
        name_pod(fleet, pod, track, serial);
        held.to = pod->held.to;
    }
    use_slots(node->slots + first, track->slots_a_pod, pod, pod ? &pod->work : &track->work, held);
}

static time_ms whole_seconds(double ms)
{
    return (time_ms)(ms / 1000) * 1000;
}

static void run_jobs(struct demo_fleet *fleet, struct demo_node *node, const struct track *track,
                     int first, uint64_t salt)
{
    struct span window = fleet->options.window;
    double length = track->hours * (double)HOUR_MS;
    time_ms t = window.from - whole_seconds(part_of(salt) * length * 0.9);
    for (int serial = 0; t < window.to; serial++) {
        uint64_t hash = demo_hash(salt, 9, (uint64_t)serial);
        time_ms takes = whole_seconds(length * (0.7 + 0.6 * part_of(hash)));
        run_pod(fleet, node, track, first, (struct span){t, t + takes}, serial);
        double pause = track->pause_min * (0.5 + part_of(demo_hash(hash, 10, 0)));
        t += takes + whole_seconds(pause * (double)MINUTE_MS);
    }
}

static void run_group(struct demo_fleet *fleet, struct demo_node *node, const struct track *track,
                      int first)
{
    struct span window = fleet->options.window;
    uint64_t salt =
        demo_hash(fleet->options.seed, (uint64_t)(node - fleet->nodes) << 8 | (uint64_t)first, 11);
    time_ms before = window.from - DAY_MS - (time_ms)(salt % 200000) * 1000;
    time_ms length = whole_seconds(track->hours * (double)HOUR_MS);
    time_ms rollout = at_part(fleet, 0.55) + (time_ms)(first * 45000);
    switch (track->plan) {
    case PLAN_SERVICE:
        run_pod(fleet, node, track, first, (struct span){before, rollout}, 0);
        run_pod(fleet, node, track, first, (struct span){rollout + 25000, TIME_MAX}, 1);
        break;
    case PLAN_JOBS:
        run_jobs(fleet, node, track, first, salt);
        break;
    case PLAN_NIGHTLY:
        for (time_ms day = window.from / DAY_MS * DAY_MS; day < window.to; day += DAY_MS)
            run_pod(fleet, node, track, first, (struct span){day + HOUR_MS, day + HOUR_MS + length},
                    0);
        break;
    case PLAN_HELD:
        run_pod(fleet, node, track, first, (struct span){before, TIME_MAX}, 0);
        break;
    case PLAN_OUTSIDE:
        run_pod(fleet, node, track, first,
                (struct span){at_part(fleet, 0.25), at_part(fleet, 0.25) + length}, 0);
        break;
    }
}

static void add_pods(struct demo_fleet *fleet)
{
    for (size_t i = 0; i < fleet->nodes_n; i++) {
        struct demo_node *node = &fleet->nodes[i];
        for (size_t k = 0; k < TRACKS; k++) {
            const struct track *track = &tracks[k];
            if (track->node != node->story)
                continue;
            for (int at = 0; at < track->slots; at += track->slots_a_pod)
                run_group(fleet, node, track, track->first + at);
        }
    }
}

/* ---- the fleet ---- */

/* Serving follows the day, and sleeps a little at the weekend. */
static void add_day(struct demo_fleet *fleet)
{
    struct span window = fleet->options.window;
    fleet->day_n = (size_t)((window.to - window.from) / HOUR_MS);
    fleet->day = arena_alloc(&fleet->arena, fleet->day_n * sizeof *fleet->day);
    fleet->day_sum = arena_alloc(&fleet->arena, (fleet->day_n + 1) * sizeof *fleet->day_sum);
    fleet->day_sum[0] = 0;
    for (size_t i = 0; i < fleet->day_n; i++) {
        time_ms t = window.from + (time_ms)i * HOUR_MS;
        double hour = (double)(t / HOUR_MS % 24);
        int weekday = (int)((t / DAY_MS + 4) % 7); /* 1970-01-01 was a Thursday; 0: Sunday */
        double sun = sin((hour - 6) / 17 * 3.14159265358979);
        double busy = 0.1 + 0.9 * (hour < 6 || sun < 0 ? 0 : sun);
        fleet->day[i] = weekday == 0 || weekday == 6 ? busy * 0.6 : busy;
        fleet->day_sum[i + 1] = fleet->day_sum[i] + fleet->day[i];
    }
}

struct demo_fleet *demo_fleet_new(const struct demo_options *options)
{
    invariant(options->gpus > 0 && options->gpus <= DEMO_GPUS_MAX && options->step_ms > 0 &&
              options->window.from >= 0 && options->window.from < options->window.to);
    struct demo_fleet *fleet = mem_zalloc(1, sizeof *fleet);
    fleet->options = *options;
    add_day(fleet);
    add_nodes(fleet);
    add_pods(fleet);
    for (size_t i = 0; i < fleet->nodes_n; i++) {
        for (size_t k = 0; k < fleet->nodes[i].devices_n; k++)
            demo_device_charge(fleet, &fleet->nodes[i].devices[k]);
    }
    return fleet;
}

void demo_fleet_free(struct demo_fleet *fleet)
{
    if (!fleet)
        return;
    for (size_t i = 0; i < fleet->nodes_n; i++) {
        for (size_t k = 0; k < fleet->nodes[i].slots_n; k++)
            free(fleet->nodes[i].slots[k]->spans);
    }
    free(fleet->pods);
    arena_release(&fleet->arena);
    free(fleet);
}
