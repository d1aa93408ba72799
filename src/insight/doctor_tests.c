/* How the doctor's checks look: each finds figures and names in the facts, or says why it could not
 * look. Their words stand in the table (doctor_checks.c). */
#include "insight/doctor_tests.h"
#include "fleet/intake.h"
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

enum doctor_status test_flags(const struct doctor_check *check, const struct doctor_facts *facts,
                              struct doctor_finding *ret, struct arena *arena)
{
    (void)arena;
    sum_flags(total_of(facts), check->flags, &ret->gpu_ns, &ret->money);
    if (ret->gpu_ns <= 0)
        return DOCTOR_FINE;
    name_nodes(check, facts, ret);
    return DOCTOR_FOUND;
}

/* What happens a little everywhere. */
enum doctor_status test_much_flags(const struct doctor_check *check,
                                   const struct doctor_facts *facts, struct doctor_finding *ret,
                                   struct arena *arena)
{
    wide_t gpu_ns;
    money_t money;
    sum_flags(total_of(facts), check->flags, &gpu_ns, &money);
    return is_much(facts, gpu_ns) ? test_flags(check, facts, ret, arena) : DOCTOR_FINE;
}

/* What a window's beginning does to every GPU for an hour (no sample and no label came before) is
 * not told. */
enum doctor_status test_flags_beyond_edges(const struct doctor_check *check,
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
enum doctor_status test_util(const struct doctor_check *check, const struct doctor_facts *facts,
                             struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_unpriced(const struct doctor_check *check, const struct doctor_facts *facts,
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

enum doctor_status test_no_type(const struct doctor_check *check, const struct doctor_facts *facts,
                                struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_list_prices(const struct doctor_check *check,
                                    const struct doctor_facts *facts, struct doctor_finding *ret,
                                    struct arena *arena)
{
    (void)check;
    (void)arena;
    ret->money = total_of(facts)->cost;
    ret->gpu_ns = total_of(facts)->gpu_ns;
    return facts->list_prices && ret->money > 0 ? DOCTOR_FOUND : DOCTOR_FINE;
}

enum doctor_status test_price_files(const struct doctor_check *check,
                                    const struct doctor_facts *facts, struct doctor_finding *ret,
                                    struct arena *arena)
{
    (void)check;
    (void)arena;
    for (size_t i = 0; i < facts->price_problems_n; i++)
        put_example(ret, (struct doctor_example){str_of(facts->price_problems[i]), -1, -1});
    ret->count = (int64_t)facts->price_problems_n;
    return facts->price_problems_n ? DOCTOR_FOUND : DOCTOR_FINE;
}

enum doctor_status test_settings(const struct doctor_check *check, const struct doctor_facts *facts,
                                 struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)ret;
    (void)arena;
    return facts->settings_changed ? DOCTOR_FOUND : DOCTOR_FINE;
}

/* ---- what was seen ---- */

enum doctor_status test_recorded(const struct doctor_check *check, const struct doctor_facts *facts,
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

enum doctor_status test_history(const struct doctor_check *check, const struct doctor_facts *facts,
                                struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_silent(const struct doctor_check *check, const struct doctor_facts *facts,
                               struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_no_activity(const struct doctor_check *check,
                                    const struct doctor_facts *facts, struct doctor_finding *ret,
                                    struct arena *arena)
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

enum doctor_status test_memory(const struct doctor_check *check, const struct doctor_facts *facts,
                               struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)arena;
    return nodes_without(facts, offsetof(struct doctor_node, mem_seen_ms), ret);
}

enum doctor_status test_power(const struct doctor_check *check, const struct doctor_facts *facts,
                              struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)arena;
    return nodes_without(facts, offsetof(struct doctor_node, power_seen_ms), ret);
}

enum doctor_status test_limit(const struct doctor_check *check, const struct doctor_facts *facts,
                              struct doctor_finding *ret, struct arena *arena)
{
    (void)check;
    (void)arena;
    return nodes_without(facts, offsetof(struct doctor_node, limit_ms), ret);
}

enum doctor_status test_lives(const struct doctor_check *check, const struct doctor_facts *facts,
                              struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_unattributed(const struct doctor_check *check,
                                     const struct doctor_facts *facts, struct doctor_finding *ret,
                                     struct arena *arena)
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

enum doctor_status test_unowned(const struct doctor_check *check, const struct doctor_facts *facts,
                                struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_notes(const struct doctor_check *check, const struct doctor_facts *facts,
                              struct doctor_finding *ret, struct arena *arena)
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
enum doctor_status test_ignore(const struct doctor_check *check, const struct doctor_facts *facts,
                               struct doctor_finding *ret, struct arena *arena)
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

enum doctor_status test_said(const struct doctor_check *check, const struct doctor_facts *facts,
                             struct doctor_finding *ret, struct arena *arena)
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
