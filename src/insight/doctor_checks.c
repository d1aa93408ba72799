/* The checks, one table. What a check finds are figures and names; its words stand in the table, so
 * that the command, the JSON and docs/doctor.md say the same. */
#include "fleet/intake.h"
#include "insight/doctor.h"
#include "insight/exempt.h"

#include <stddef.h>

#define HISTORY_MS (7 * DAY_MS)            /* what the idle scan judges */
#define PART_IN 100                        /* less than a hundredth goes without saying … */
#define MUCH_NS ((wide_t)24 * 3600 * NANO) /* … unless it is a GPU-day */
#define SEEN_PART 2                        /* a signal is there where half of the time has it */

static const struct figures *total_of(const struct doctor_facts *facts)
{
    return &facts->total->total;
}

/* Put an example among the largest; equal ones stay in the order in which they came. */
static void put_example(struct doctor_finding *ret, struct doctor_example example)
{
    size_t at = ret->examples_n;
    while (at > 0 && (ret->examples[at - 1].gpu_ns < example.gpu_ns ||
                      (ret->examples[at - 1].gpu_ns == example.gpu_ns &&
                       ret->examples[at - 1].count < example.count)))
        at--;
    if (ret->examples_n == DOCTOR_EXAMPLES_MAX) {
        ret->more++;
        if (at == DOCTOR_EXAMPLES_MAX)
            return;
        ret->examples_n--;
    }
    memmove(&ret->examples[at + 1], &ret->examples[at],
            (ret->examples_n - at) * sizeof *ret->examples);
    ret->examples[at] = example;
    ret->examples_n++;
}

static int key_at(const struct result *result, enum key key)
{
    for (size_t i = 0; result && i < result->query.keys_n; i++)
        if (result->query.keys[i] == key)
            return (int)i;
    return -1;
}

static enum doctor_status unchecked(struct doctor_finding *ret, const char *reason)
{
    ret->reason = reason;
    return DOCTOR_UNCHECKED;
}

/* Is it much of all GPU time? */
static bool is_much(const struct doctor_facts *facts, wide_t gpu_ns)
{
    return gpu_ns > 0 && (gpu_ns >= MUCH_NS || gpu_ns * PART_IN >= total_of(facts)->gpu_ns);
}

/* ---- flags of the rows ---- */

/* A row may carry several of the flags: the largest is a lower bound that is never counted twice.
 */
static void sum_flags(const struct figures *figures, uint32_t flags, wide_t *ret_ns,
                      money_t *ret_money)
{
    *ret_ns = 0;
    *ret_money = 0;
    for (int f = 0; f < FLAG_COUNT; f++) {
        if (!(flags & (1u << f)))
            continue;
        if (figures->flag_gpu_ns[f] > *ret_ns)
            *ret_ns = figures->flag_gpu_ns[f];
        if (figures->flag_cost[f] > *ret_money)
            *ret_money = figures->flag_cost[f];
    }
}

static void name_nodes(const struct doctor_check *check, const struct doctor_facts *facts,
                       struct doctor_finding *ret)
{
    int key = key_at(facts->nodes, KEY_NODE);
    for (size_t i = 0; key >= 0 && i < facts->nodes->groups_n; i++) {
        const struct group *group = &facts->nodes->groups[i];
        wide_t gpu_ns;
        money_t money;
        sum_flags(&group->figures, check->flags, &gpu_ns, &money);
        if (gpu_ns > 0)
            put_example(ret, (struct doctor_example){group->keys[key], gpu_ns, -1});
    }
}

static enum doctor_status test_flags(const struct doctor_check *check,
                                     const struct doctor_facts *facts, struct doctor_finding *ret,
                                     struct arena *arena)
{
    (void)arena;
    sum_flags(total_of(facts), check->flags, &ret->gpu_ns, &ret->money);
    if (ret->gpu_ns <= 0)
        return DOCTOR_FINE;
    name_nodes(check, facts, ret);
    return DOCTOR_FOUND;
}

/* What happens a little everywhere. */
static enum doctor_status test_much_flags(const struct doctor_check *check,
                                          const struct doctor_facts *facts,
                                          struct doctor_finding *ret, struct arena *arena)
{
    wide_t gpu_ns;
    money_t money;
    sum_flags(total_of(facts), check->flags, &gpu_ns, &money);
    return is_much(facts, gpu_ns) ? test_flags(check, facts, ret, arena) : DOCTOR_FINE;
}

/* What a window's beginning does to every GPU for an hour (no sample and no label came before) is
 * not told. */
static enum doctor_status test_flags_beyond_edges(const struct doctor_check *check,
                                                  const struct doctor_facts *facts,
                                                  struct doctor_finding *ret, struct arena *arena)
{
    wide_t gpu_ns, edges = (wide_t)facts->total->gpus * HOUR_MS * 1000000;
    money_t money;
    sum_flags(total_of(facts), check->flags, &gpu_ns, &money);
    return is_much(facts, gpu_ns - edges) ? test_flags(check, facts, ret, arena) : DOCTOR_FINE;
}

/* GPU_UTIL is never sent for MIG instances: that is no fault. Rows of instances carry e-engine
 * too, so only GPUs without it as such count. */
static enum doctor_status test_util(const struct doctor_check *check,
                                    const struct doctor_facts *facts, struct doctor_finding *ret,
                                    struct arena *arena)
{
    if (!facts->states)
        return unchecked(ret, "the ledger has no hours of GPUs");
    (void)check;
    (void)arena;
    for (size_t i = 0; i < facts->states_n; i++) {
        const struct doctor_node *state = &facts->states[i];
        if (state->observed_ms == 0 || state->util_seen_ms * SEEN_PART >= state->observed_ms)
            continue;
        wide_t gpu_ns = (wide_t)(state->observed_ms - state->util_seen_ms) * 1000000;
        ret->gpu_ns = (ret->gpu_ns < 0 ? 0 : ret->gpu_ns) + gpu_ns;
        put_example(
            ret, (struct doctor_example){names_text(facts->total->names, state->node), gpu_ns, -1});
    }
    return ret->gpu_ns > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- prices ---- */

static enum doctor_status test_unpriced(const struct doctor_check *check,
                                        const struct doctor_facts *facts,
                                        struct doctor_finding *ret, struct arena *arena)
{
    int type = key_at(facts->types, KEY_INSTANCE_TYPE), model = key_at(facts->types, KEY_MODEL);
    ret->gpu_ns = total_of(facts)->flag_gpu_ns[FLAG_INDEX_UNPRICED];
    (void)check;
    if (ret->gpu_ns <= 0)
        return DOCTOR_FINE;
    for (size_t i = 0; type >= 0 && model >= 0 && i < facts->types->groups_n; i++) {
        const struct group *group = &facts->types->groups[i];
        wide_t gpu_ns = group->figures.flag_gpu_ns[FLAG_INDEX_UNPRICED];
        if (gpu_ns <= 0)
            continue;
        struct strbuf name = {0};
        if (str_eq(group->keys[type], STR("-")))
            strbuf_addf(&name, "%.*s on nodes of no known type", STR_ARG(group->keys[model]));
        else
            strbuf_addf(&name, "%.*s", STR_ARG(group->keys[type]));
        put_example(ret, (struct doctor_example){str_keep(arena, strbuf_str(&name)), gpu_ns, -1});
        strbuf_release(&name);
    }
    return DOCTOR_FOUND;
}

static enum doctor_status test_no_type(const struct doctor_check *check,
                                       const struct doctor_facts *facts, struct doctor_finding *ret,
                                       struct arena *arena)
{
    int type = key_at(facts->types, KEY_INSTANCE_TYPE), model = key_at(facts->types, KEY_MODEL);
    (void)check;
    (void)arena;
    if (type < 0 || model < 0)
        return unchecked(ret, "instance types were not asked for");
    struct figures sum = {0};
    for (size_t i = 0; i < facts->types->groups_n; i++) {
        const struct group *group = &facts->types->groups[i];
        if (!str_eq(group->keys[type], STR("-")))
            continue;
        figures_add(&sum, &group->figures);
        put_example(ret, (struct doctor_example){group->keys[model], group->figures.gpu_ns, -1});
    }
    ret->gpu_ns = sum.gpu_ns;
    ret->money = sum.cost;
    return sum.gpu_ns > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_list_prices(const struct doctor_check *check,
                                           const struct doctor_facts *facts,
                                           struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)arena;
    ret->money = total_of(facts)->cost;
    ret->gpu_ns = total_of(facts)->gpu_ns;
    return facts->list_prices && ret->money > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_price_files(const struct doctor_check *check,
                                           const struct doctor_facts *facts,
                                           struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)arena;
    for (size_t i = 0; i < facts->price_problems_n; i++)
        put_example(ret, (struct doctor_example){str_of(facts->price_problems[i]), -1, -1});
    ret->count = (int64_t)facts->price_problems_n;
    return facts->price_problems_n ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_settings(const struct doctor_check *check,
                                        const struct doctor_facts *facts,
                                        struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)ret;
    (void)arena;
    return facts->settings_changed ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- what was seen ---- */

static enum doctor_status test_recorded(const struct doctor_check *check,
                                        const struct doctor_facts *facts,
                                        struct doctor_finding *ret, struct arena *arena)
{
    struct span asked = facts->total->query.window, have = facts->total->recorded;
    (void)check;
    (void)arena;
    int64_t hours = (asked.to - asked.from) / HOUR_MS;
    if (have.from < have.to)
        hours -= (have.to - have.from) / HOUR_MS;
    ret->count = hours;
    return hours > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_history(const struct doctor_check *check,
                                       const struct doctor_facts *facts, struct doctor_finding *ret,
                                       struct arena *arena)
{
    (void)check;
    (void)arena;
    if (facts->extent.from >= facts->extent.to)
        return unchecked(ret, "how far back the ledger goes is not known");
    ret->count = (facts->extent.to - facts->extent.from) / HOUR_MS;
    return ret->count * HOUR_MS < HISTORY_MS ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* GPU time of GPUs that send something, but not then. */
static wide_t silent_ns(const struct figures *figures)
{
    return figures->gpu_ns - figures->gpu_observed_ns - figures->flag_gpu_ns[FLAG_INDEX_UNSEEN];
}

static enum doctor_status test_silent(const struct doctor_check *check,
                                      const struct doctor_facts *facts, struct doctor_finding *ret,
                                      struct arena *arena)
{
    (void)check;
    (void)arena;
    if (total_of(facts)->gpu_ns <= 0)
        return unchecked(ret, "the window has no GPU time");
    if (!facts->states) {
        ret->gpu_ns = silent_ns(total_of(facts));
        return is_much(facts, ret->gpu_ns) ? DOCTOR_FOUND : DOCTOR_FINE;
    }
    ret->gpu_ns = 0;
    for (size_t i = 0; i < facts->states_n; i++) {
        const struct doctor_node *state = &facts->states[i];
        wide_t gpu_ns = (wide_t)(state->up_ms - state->covered_ms) * 1000000;
        if (gpu_ns <= 0)
            continue;
        ret->gpu_ns += gpu_ns;
        put_example(
            ret, (struct doctor_example){names_text(facts->total->names, state->node), gpu_ns, -1});
    }
    return is_much(facts, ret->gpu_ns) ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_no_activity(const struct doctor_check *check,
                                           const struct doctor_facts *facts,
                                           struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)arena;
    if (!facts->states)
        return unchecked(ret, "the ledger has no hours of GPUs");
    ret->gpu_ns = 0;
    for (size_t i = 0; i < facts->states_n; i++) {
        const struct doctor_node *state = &facts->states[i];
        wide_t gpu_ns = (wide_t)(state->covered_ms - state->observed_ms) * 1000000;
        if (gpu_ns <= 0)
            continue;
        ret->gpu_ns += gpu_ns;
        put_example(
            ret, (struct doctor_example){names_text(facts->total->names, state->node), gpu_ns, -1});
    }
    return is_much(facts, ret->gpu_ns) ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* Nodes that send samples, but hardly any of a signal that only the idle scan reads. */
static enum doctor_status nodes_without(const struct doctor_facts *facts, size_t offset,
                                        struct doctor_finding *ret)
{
    if (!facts->states)
        return unchecked(ret, "the ledger has no hours of GPUs");
    for (size_t i = 0; i < facts->states_n; i++) {
        const struct doctor_node *state = &facts->states[i];
        int64_t seen;
        memcpy(&seen, (const char *)state + offset, sizeof seen);
        if (state->covered_ms == 0 || seen * SEEN_PART >= state->covered_ms)
            continue;
        wide_t gpu_ns = (wide_t)(state->covered_ms - seen) * 1000000;
        ret->gpu_ns = (ret->gpu_ns < 0 ? 0 : ret->gpu_ns) + gpu_ns;
        put_example(
            ret, (struct doctor_example){names_text(facts->total->names, state->node), gpu_ns, -1});
    }
    return ret->gpu_ns > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_memory(const struct doctor_check *check,
                                      const struct doctor_facts *facts, struct doctor_finding *ret,
                                      struct arena *arena)
{
    (void)check;
    (void)arena;
    return nodes_without(facts, offsetof(struct doctor_node, mem_seen_ms), ret);
}

static enum doctor_status test_power(const struct doctor_check *check,
                                     const struct doctor_facts *facts, struct doctor_finding *ret,
                                     struct arena *arena)
{
    (void)check;
    (void)arena;
    return nodes_without(facts, offsetof(struct doctor_node, power_seen_ms), ret);
}

static enum doctor_status test_limit(const struct doctor_check *check,
                                     const struct doctor_facts *facts, struct doctor_finding *ret,
                                     struct arena *arena)
{
    (void)check;
    (void)arena;
    return nodes_without(facts, offsetof(struct doctor_node, limit_ms), ret);
}

static enum doctor_status test_lives(const struct doctor_check *check,
                                     const struct doctor_facts *facts, struct doctor_finding *ret,
                                     struct arena *arena)
{
    (void)check;
    (void)arena;
    if (!facts->states)
        return unchecked(ret, "the ledger has no hours of GPUs");
    ret->count = 0;
    for (size_t i = 0; i < facts->states_n; i++) {
        const struct doctor_node *state = &facts->states[i];
        if (!state->lives)
            continue;
        ret->count++;
        put_example(ret, (struct doctor_example){names_text(facts->total->names, state->node), -1,
                                                 state->lives});
    }
    return ret->count ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- who held it ---- */

static enum doctor_status test_unattributed(const struct doctor_check *check,
                                            const struct doctor_facts *facts,
                                            struct doctor_finding *ret, struct arena *arena)
{
    int key = key_at(facts->nodes, KEY_NODE);
    (void)check;
    (void)arena;
    ret->money = total_of(facts)->category[CATEGORY_UNATTRIBUTED];
    for (size_t i = 0; key >= 0 && i < facts->nodes->groups_n; i++)
        if (facts->nodes->groups[i].figures.category[CATEGORY_UNATTRIBUTED] > 0)
            put_example(ret, (struct doctor_example){facts->nodes->groups[i].keys[key], -1, -1});
    return ret->money > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

static enum doctor_status test_unowned(const struct doctor_check *check,
                                       const struct doctor_facts *facts, struct doctor_finding *ret,
                                       struct arena *arena)
{
    int team = key_at(facts->teams, KEY_TEAM), space = key_at(facts->teams, KEY_NAMESPACE);
    struct figures sum = {0};
    (void)check;
    (void)arena;
    if (team < 0)
        return unchecked(ret, "teams were not asked for");
    for (size_t i = 0; i < facts->teams->groups_n; i++) {
        const struct group *group = &facts->teams->groups[i];
        if (!str_eq(group->keys[team], STR("unowned")))
            continue;
        figures_add(&sum, &group->figures);
        if (space >= 0)
            put_example(ret,
                        (struct doctor_example){group->keys[space], group->figures.gpu_ns, -1});
    }
    ret->gpu_ns = sum.gpu_ns;
    ret->money = sum.cost;
    return sum.rows ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- notes of the sources ---- */

static enum doctor_status test_notes(const struct doctor_check *check,
                                     const struct doctor_facts *facts, struct doctor_finding *ret,
                                     struct arena *arena)
{
    const struct result *result = facts->total;
    ret->count = 0;
    for (size_t i = 0; i < result->notes_n; i++) {
        const struct note *note = &result->notes[i];
        if (note->kind != check->note)
            continue;
        struct str subject = names_text(result->names, note->subject);
        struct strbuf name = {0};
        if (subject.n && note->kind == NOTE_LATE_LABELS)
            strbuf_add(&name, subject); /* the title says the rest */
        else
            strbuf_add(&name, names_text(result->names, note->text));
        if (subject.n && note->kind != NOTE_LATE_LABELS)
            strbuf_addf(&name, " (%.*s)", STR_ARG(subject));
        put_example(ret,
                    (struct doctor_example){str_keep(arena, strbuf_str(&name)), -1, note->count});
        strbuf_release(&name);
        ret->count += note->count;
    }
    return ret->examples_n ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* Annotations that ask for no findings, and cannot be read. */
static enum doctor_status test_ignore(const struct doctor_check *check,
                                      const struct doctor_facts *facts, struct doctor_finding *ret,
                                      struct arena *arena)
{
    const struct result *result = facts->total;
    (void)check;
    ret->count = 0;
    for (size_t i = 0; i < result->notes_n; i++) {
        const struct note *note = &result->notes[i];
        struct error wrong = {0};
        if (note->kind != NOTE_EXEMPT ||
            exemption_check(names_text(result->names, note->text), &wrong) == ERR_OK)
            continue;
        struct strbuf name = {0};
        strbuf_addf(&name, "%.*s: %s", STR_ARG(names_text(result->names, note->subject)),
                    wrong.text);
        put_example(ret, (struct doctor_example){str_keep(arena, strbuf_str(&name)), -1, -1});
        strbuf_release(&name);
        ret->count++;
    }
    return ret->count ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- what sources say when they are asked ---- */

static enum doctor_status test_said(const struct doctor_check *check,
                                    const struct doctor_facts *facts, struct doctor_finding *ret,
                                    struct arena *arena)
{
    bool asked = false;
    (void)arena;
    for (size_t i = 0; i < facts->asked_n; i++)
        asked |= strcmp(facts->asked[i], check->id) == 0;
    if (!asked)
        return unchecked(ret, "no server was asked that could say (--prometheus)");
    ret->count = 0;
    for (size_t i = 0; i < facts->said_n; i++) {
        const struct doctor_said *said = &facts->said[i];
        if (strcmp(said->check, check->id) != 0)
            continue;
        put_example(ret, (struct doctor_example){said->text, -1, said->count});
        ret->count++;
    }
    return ret->count ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- the table ---- */

#define LABELS_OF_KSM                                                                              \
    "--metric-labels-allowlist=nodes=[*],pods=[team,app.kubernetes.io/name,"                       \
    "app.kubernetes.io/part-of]"
#define EXPORTER_CSV "in dcgm-exporter's metrics CSV (its ConfigMap, -f FILE): "

const struct doctor_check doctor_checks[] = {
    {"partial", DOCTOR_ERROR, "an answer of a source was cut or failed",
     "the hours that it is about lack GPUs, pods or samples; what lacks samples is unobserved",
     "mend what the source says, then book these hours again with --rebook", "faults", test_notes,
     0, NOTE_PARTIAL},
    {"not-recorded", DOCTOR_ERROR, "hours of the window are not in the ledger",
     "they count nowhere: totals and shares are of the other hours",
     "gputally collect --db FILE --prometheus URL --window WINDOW reads them, if the server keeps "
     "them still",
     "hours", test_recorded, 0, 0},
    {"unpriced", DOCTOR_ERROR, "GPU time has no known price",
     "its hours count and its money is 0, so totals are too low",
     "--prices FILE with a line instance_type,usd_per_hour for each of them (docs/prices.md)", NULL,
     test_unpriced, FLAG_UNPRICED, 0},
    {"unseen", DOCTOR_ERROR, "GPUs of nodes send no metrics at all",
     "their cost is unobserved: not known, never idle",
     "run dcgm-exporter there: its DaemonSet must tolerate the node's taints (tolerations: "
     "[{operator: Exists}]) and match its labels; kubectl get pods -A -o wide | grep dcgm says "
     "where it runs",
     NULL, test_flags, FLAG_UNSEEN, 0},
    {"silent", DOCTOR_WARNING, "GPUs that send metrics fell silent for a time",
     "that time is unobserved: not known, never idle",
     "up{job=~\".*dcgm.*\"} == 0 says when; kubectl logs of the exporter says why (restarts, an "
     "XID, scrape_timeout too short)",
     NULL, test_silent, 0, 0},
    {"frozen", DOCTOR_WARNING, "exporters served the same text again and again",
     "that time is unobserved: an old text says nothing of now",
     "the exporter's collection hangs: restart it (dcgm-exporter up to 3.6.1 does so; later ones "
     "answer 500), and look for XIDs and a hung nv-hostengine",
     "seconds", test_notes, 0, NOTE_FROZEN},
    {"down", DOCTOR_WARNING, "exporters do not answer now",
     "their GPUs are unobserved while it lasts: not known, never idle",
     "kubectl logs of the exporter's pod; from 4.8.3 on one NaN or duplicate makes it answer 500 "
     "to "
     "the whole scrape: restart it, and look at its last error",
     "targets", test_said, 0, 0},
    {"clock", DOCTOR_WARNING, "clocks differ",
     "Kubernetes' times and samples do not fit together: pods seem to hold GPUs before or after "
     "they do, and the newest hour is cut wrongly",
     "chrony or systemd-timesyncd on the machines that are named", "clocks", test_said, 0, 0},
    {"no-activity", DOCTOR_WARNING, "GPUs send metrics, but none of their activity",
     "their time is unobserved: not known, never idle",
     EXPORTER_CSV "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Ratio of time the graphics engine is "
                  "active. (MIG needs it: GPU_UTIL says nothing there); profiling needs "
                  "securityContext capabilities SYS_ADMIN",
     NULL, test_no_activity, 0, 0},
    {"sm-active", DOCTOR_WARNING, "SM_ACTIVE is not exported",
     "used money rests on GPU_UTIL or engine activity, which call a GPU busy when one kernel "
     "runs: used is too high, slack too low",
     EXPORTER_CSV "DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio of cycles an SM has at least 1 warp "
                  "assigned.",
     NULL, test_much_flags, FLAG_U_UTIL | FLAG_U_ENGINE, 0},
    {"gpu-util", DOCTOR_INFO, "GPU_UTIL is not exported",
     "engine or SM activity says in its place whether anything ran; the idle scan's GPU_UTIL "
     "stays unchecked on whole GPUs",
     EXPORTER_CSV "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).", NULL, test_util, 0, 0},
    {"stuck-counter", DOCTOR_WARNING, "profiling metrics say 0 while GPU_UTIL does not",
     "they are ignored there, and GPU_UTIL is taken: used is too high",
     "another profiler holds the counters, or they hang: dcgmi profile --resume on the node, or "
     "restart dcgm-exporter",
     NULL, test_flags, FLAG_STUCK_COUNTER, 0},
    {"unit-guess", DOCTOR_WARNING, "the unit of GPU_UTIL was guessed from its values",
     "if the guess is wrong, activity is 100 times too high or too low",
     "one version of dcgm-exporter on all nodes, from 4.9 on ratios; no rules that rescale "
     "metrics under their old name",
     NULL, test_flags, FLAG_UNIT_GUESS, 0},
    {"rejected", DOCTOR_WARNING, "values were not believed",
     "they count as not sent: their time may be unobserved",
     "blanks and values out of range come from the driver: nvidia-smi -q on the node; lines that "
     "cannot be read from whoever wrote the file",
     "values", test_notes, 0, NOTE_REJECTED},
    {"step", DOCTOR_INFO, "samples stand alone, further apart than --gap",
     "each covers one --step, and the time between is unobserved",
     "scrape more often (scrape_interval: 30s), or widen --gap to the interval", NULL,
     test_flags_beyond_edges, FLAG_STEP, 0},
    {"by-count", DOCTOR_WARNING, "no label says which GPU a pod has",
     "GPUs are laid on pods by count: right in sum on a node, a guess between its pods",
     "dcgm-exporter with DCGM_EXPORTER_KUBERNETES=true and /var/lib/kubelet/pod-resources "
     "mounted; honorLabels: true (or keep exported_pod) in the scrape; with the resource "
     "nvidia.com/gpu.shared also NVIDIA_RESOURCE_NAMES",
     NULL, test_much_flags, FLAG_BY_COUNT, 0},
    {"kept-device", DOCTOR_INFO, "labels of pods went missing for a time",
     "the pod is taken to keep the GPU that it had while it runs",
     "the exporter lost the kubelet's answer (kubectl logs: pod-resources timeout): restart it; "
     "from 3.4.2 on it waits longer",
     NULL, test_flags_beyond_edges, FLAG_KEPT_DEVICE, 0},
    {"unattributed", DOCTOR_WARNING, "GPUs were at work while no pod held them",
     "their cost is unattributed: in no team",
     "processes outside Kubernetes, or pods that see GPUs which they did not ask for: "
     "NVIDIA_VISIBLE_DEVICES without a resource request (device-plugin "
     "accept-nvidia-visible-devices-envvar-when-unprivileged=false)",
     NULL, test_unattributed, 0, 0},
    {"shared", DOCTOR_WARNING, "pods share GPUs, and no metric tells them apart",
     "the whole card's activity is divided by its holders: what each used is an estimate",
     "MIG instances instead of time-slicing; or dcgm-exporter from 4.8.2 on with "
     "KUBERNETES_VIRTUAL_GPUS=true and hostPID, which tells GPU_UTIL by process",
     NULL, test_flags, FLAG_SHARED_ESTIMATE, 0},
    {"late-labels", DOCTOR_WARNING, "telemetry named pods that were finished",
     "that time is booked on nobody or on who holds the GPU now",
     "dcgm-exporter reads the kubelet's list, which keeps finished pods: update it and kubelet "
     "to a version that drops them, or set ttlSecondsAfterFinished on Jobs",
     "seconds", test_notes, 0, NOTE_LATE_LABELS},
    {"unplaced", DOCTOR_INFO, "serving counters counted where no GPU was held",
     "their tokens and requests are in no row: unit costs are too high",
     "give the serving metrics the labels namespace and pod of the pod that holds the GPU",
     "counted", test_notes, 0, NOTE_UNPLACED},
    {"guessed", DOCTOR_INFO, "guesses were made from what the sources sent",
     "what they are about is said beside", "see the checks unit-guess and shared", "times",
     test_notes, 0, NOTE_GUESS},
    {"no-kube", DOCTOR_WARNING, "no record of Kubernetes knows these nodes",
     "they are up while their GPUs send samples: start-up, silence and nodes without an exporter "
     "are not seen, and labels of pods and nodes are missing",
     "let the same server scrape kube-state-metrics, started with " LABELS_OF_KSM
     "; or give --kube-json FILE",
     NULL, test_flags, FLAG_UP_SAMPLES, 0},
    {"no-type", DOCTOR_INFO, "nodes say no instance type",
     "no price fits them by type, and pool, region and capacity type may lack too",
     "kube-state-metrics with " LABELS_OF_KSM
     "; on bare metal label the nodes node.kubernetes.io/instance-type and price that name",
     NULL, test_no_type, 0, 0},
    {"node-lives", DOCTOR_INFO, "nodes of one name changed their instance type",
     "each hour has the type of its time; by node the machines are added up",
     "nothing to mend where machines were replaced; else give nodes names of their own", "nodes",
     test_lives, 0, 0},
    {"default-price", DOCTOR_WARNING, "prices are defaults of the GPU model",
     "dollars are an estimate; shares inside one model are right",
     "--prices FILE with a line instance_type,usd_per_hour (docs/prices.md)", NULL, test_flags,
     FLAG_DEFAULT_PRICE, 0},
    {"spot-as-on-demand", DOCTOR_WARNING, "spot nodes are priced as on-demand",
     "their dollars are too high, mostly by half or more",
     "--prices FILE with a line instance_type,capacity_type,usd_per_hour where capacity_type is "
     "spot",
     NULL, test_flags, FLAG_SPOT_AS_ON_DEMAND, 0},
    {"reserved-as-on-demand", DOCTOR_WARNING, "reserved nodes are priced as on-demand",
     "their dollars are too high by the discount",
     "--prices FILE with a line instance_type,capacity_type,usd_per_hour where capacity_type is "
     "reserved",
     NULL, test_flags, FLAG_RESERVED_AS_ON_DEMAND, 0},
    {"catalogue-derived", DOCTOR_INFO, "prices are derived from other prices of the catalogue",
     "dollars are an estimate", "--prices FILE with the price of the instance type", NULL,
     test_flags, FLAG_CATALOGUE_DERIVED, 0},
    {"list-prices", DOCTOR_INFO, "prices are list prices of the built-in catalogue",
     "dollars are without your discounts", "--prices FILE, or prices: in --config FILE", NULL,
     test_list_prices, 0, 0},
    {"price-files", DOCTOR_WARNING, "lines of price files were left out",
     "what they price takes another price, or none", "mend the lines that are named", "lines",
     test_price_files, 0, 0},
    {"settings", DOCTOR_WARNING, "hours were booked with other prices, owners or settings",
     "figures of the window are not all made alike", "book them again with --rebook", NULL,
     test_settings, 0, 0},
    {"ignore", DOCTOR_WARNING, "annotations gputally.io/ignore cannot be read",
     "they are not obeyed: the findings count",
     "write until=DATE, reason=TEXT and, for some rules only, rule=RULE (docs/configuration.md)",
     "annotations", test_ignore, 0, 0},
    {"unowned", DOCTOR_WARNING, "no owner rule matches these pods",
     "their money is on the team unowned",
     "a rule for their namespaces in --owners FILE (docs/owners.md), or a label team on the pods "
     "or the namespace, which kube-state-metrics must let through: " LABELS_OF_KSM
     ",namespaces=[team]",
     NULL, test_unowned, 0, 0},
    {"owner-default", DOCTOR_INFO, "teams are the names of namespaces",
     "no rule and no label names an owner: several namespaces of one team are not added up",
     "--owners FILE (docs/owners.md), or a label team let through with " LABELS_OF_KSM, NULL,
     test_flags, FLAG_OWNER_DEFAULT, 0},
    {"history", DOCTOR_INFO, "the ledger has less than 7 days",
     "gputally idle says 'not enough data', and months are projected from little",
     "gputally collect --db FILE --prometheus URL --window 7d, as far back as the server keeps",
     "hours", test_history, 0, 0},
    {"hidden-labels", DOCTOR_WARNING, "kube-state-metrics hides labels",
     "types, pools, regions and teams that these labels say are not known",
     "start kube-state-metrics with the flag that is named (helm: metricLabelsAllowlist)", "lists",
     test_said, 0, 0},
    {"oversampled", DOCTOR_INFO, "GPUs are scraped more often than they are measured",
     "none: values are weighted by time; the samples cost what they cost",
     "scrape_interval at the exporter's interval (-c, DCGM_EXPORTER_INTERVAL; 30 s)", "jobs",
     test_said, 0, 0},
    {"series", DOCTOR_INFO, "what GPU metrics cost to keep",
     "none; services that charge by sample charge for these",
     "drop what nobody reads by metric_relabel_configs, or in dcgm-exporter's metrics CSV", "jobs",
     test_said, 0, 0},
    {"memory", DOCTOR_INFO, "GPU memory is not exported",
     "the idle scan's memory stays unchecked; sizes cannot be judged",
     EXPORTER_CSV "DCGM_FI_DEV_FB_USED, gauge, Framebuffer memory used (in MiB). and "
                  "DCGM_FI_DEV_FB_FREE",
     NULL, test_memory, 0, 0},
    {"power", DOCTOR_INFO, "power is not exported",
     "the idle scan's power stays unchecked; energy is absent",
     EXPORTER_CSV "DCGM_FI_DEV_POWER_USAGE, gauge, Power draw (in W).", NULL, test_power, 0, 0},
    {"power-limit", DOCTOR_INFO, "the power limit is not exported",
     "the idle scan takes the limit of the configuration or of the catalogue's model",
     EXPORTER_CSV "DCGM_FI_DEV_POWER_MGMT_LIMIT, gauge, Power limit (in W).", NULL, test_limit, 0,
     0},
    {"energy-power", DOCTOR_INFO, "energy is power times time",
     "kWh are less exact than the counter's",
     EXPORTER_CSV "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Total energy consumption since "
                  "boot (in mJ).",
     NULL, test_flags_beyond_edges, FLAG_ENERGY_POWER, 0},
};
const size_t doctor_checks_n = sizeof doctor_checks / sizeof *doctor_checks;
