/* Slots and holders at a moment. Between two cuts (node_book.c) nothing here changes, so this runs
 * a few times an hour and node, and may be plain. */
#include "ledger/holders.h"

#include <stdlib.h>

#include "fleet/resources.h"

/* Replicas of a slot that are mapped to a pod. */
struct mapped {
    uint32_t pod_index, slot;
    uint32_t next; /* of the same bucket: index + 1; 0: none */
    name_t container;
    int64_t times;
};

/* Cuts off and gives what stands before the separator, or all. */
static struct str str_until(struct str *text, char separator)
{
    const char *found = memchr(text->p, separator, text->n);
    struct str head = {text->p, found ? (size_t)(found - text->p) : text->n};
    size_t taken = head.n + (found != NULL);
    *text = (struct str){text->p + taken, text->n - taken};
    return head;
}

static struct frac need_of(const struct slot *slot, struct frac fraction)
{
    return fraction.num ? fraction : (struct frac){1, slot->replicas ? slot->replicas : 1};
}

/* Is there room for one more? */
static bool has_room(const struct slot *slot, struct frac fraction)
{
    return frac_cmp(slot->taken, FRAC_ONE) < 0 &&
           frac_cmp(frac_add(slot->taken, need_of(slot, fraction)), FRAC_ONE) <= 0;
}

static void hold(struct slot *slot, struct holder holder)
{
    struct frac need = need_of(slot, holder.fraction);
    slot->taken = frac_add(slot->taken, frac_mul(need, (struct frac){holder.times, 1}));
    mem_push(slot->holders, slot->holders_n, slot->holders_room, holder);
}

static struct slot *new_slot(struct slots *slots)
{
    /* Slots keep their holders' room from one moment to the next. */
    if (slots->n == slots->room) {
        size_t room = slots->room * 2 + 16;
        slots->at = mem_realloc(slots->at, room, sizeof *slots->at);
        memset(slots->at + slots->room, 0, (room - slots->room) * sizeof *slots->at);
        slots->room = room;
    }
    struct slot *slot = &slots->at[slots->n++];
    *slot = (struct slot){.holders = slot->holders,
                          .holders_room = slot->holders_room,
                          .share = FRAC_ONE,
                          .taken = FRAC_ZERO};
    return slot;
}

static bool sampled_at(const struct timeline *line, time_ms moment)
{
    return spans_hold(&line->covered, moment);
}

static void add_instances(struct slots *slots, const struct slot_context *context,
                          const struct mount *mount, const struct layout *layout, time_ms moment)
{
    struct names *names = context->facts->names;
    int64_t whole = mig_model_slices(names_text(names, mount->device->model)), sum = 0;
    for (size_t i = 0; i < layout->n; i++)
        sum += mig_compute_slices(names_text(names, layout->parts[i].profile));
    whole = sum > whole ? sum : whole;
    for (size_t i = 0; i < layout->n; i++) {
        const struct layout_part *part = &layout->parts[i];
        struct slot *slot = new_slot(slots);
        slot->device = mount->device;
        slot->name = mount->device->uuid;
        slot->index = mount->index;
        slot->instance = part->id;
        slot->profile = part->profile;
        slot->share = frac_of(mig_compute_slices(names_text(names, part->profile)), whole);
        slot->line = &mount->device->instances[part->instance].line;
        slot->sampled = sampled_at(slot->line, moment);
        slot->replicas = 1;
    }
}

static void add_slots(struct slots *slots, const struct slot_context *context, time_ms moment)
{
    int64_t present = 0;
    for (size_t i = 0; i < context->life->mounts_n; i++) {
        const struct mount *mount = &context->life->mounts[i];
        if (moment < mount->since || moment >= mount->until)
            continue;
        present++;
        const struct layout *layout = device_layout_at(mount->device, moment);
        if (layout) {
            add_instances(slots, context, mount, layout, moment);
            continue;
        }
        struct slot *slot = new_slot(slots);
        slot->device = mount->device;
        slot->name = mount->device->uuid;
        slot->index = mount->index;
        slot->line = &mount->device->own;
        slot->sampled = sampled_at(slot->line, moment);
        slot->replicas = context->replicas;
    }
    for (int64_t number = present; number < context->least_gpus; number++) {
        char text[40];
        snprintf(text, sizeof text, "unseen-%lld", (long long)number);
        struct slot *slot = new_slot(slots);
        slot->name = names_put(context->facts->names, str_of(text));
        slot->index = 1000 + number;
        slot->replicas = context->replicas;
    }
}

/* ------------------------------------------------------------------ by labels */

static void map_to(struct slots *slots, const struct holder *holder, size_t slot)
{
    uint32_t *first = &slots->mapped_first[holder->pod_index % MAPPED_BUCKETS];
    struct mapped mapped = {holder->pod_index, (uint32_t)slot, *first, holder->container,
                            holder->times};
    mem_push(slots->mapped, slots->mapped_n, slots->mapped_room, mapped);
    *first = (uint32_t)slots->mapped_n;
}

/* The pod that is named does not hold: it has ended, or has yet to start, as when the exporter's
 * map of pods is read live beside older values; only the first is worth a word, once for all its
 * GPUs. */
static void note_late(struct slots *slots, const struct slot_context *context,
                      const struct named *named, time_ms moment)
{
    struct late_label late = {named->namespace, named->pod};
    if (!facts_began(context->facts, context->node->cluster, late.namespace, late.pod, moment))
        return;
    for (size_t i = 0; i < slots->late_n; i++)
        if (slots->late[i].pod == late.pod && slots->late[i].namespace == late.namespace)
            return;
    mem_push(slots->late, slots->late_n, slots->late_room, late);
}

static void hold_by_labels(struct slots *slots, const struct slot_context *context, time_ms moment)
{
    struct facts *facts = context->facts;
    for (size_t i = 0; i < slots->n; i++) {
        struct slot *slot = &slots->at[i];
        const struct label_run *run =
            slot->line ? timeline_named_at(slot->line, slot->device->own.t, moment) : NULL;
        for (size_t k = 0; run && k < run->set->n; k++) {
            const struct named *named = &run->set->at[k];
            uint32_t pod;
            if (!facts_incarnation(facts, context->node->cluster, named->namespace, named->pod,
                                   moment, &pod)) {
                note_late(slots, context, named, moment);
                continue;
            }
            struct holder holder = {.namespace = named->namespace,
                                    .pod = named->pod,
                                    .uid = pod == POD_NONE ? NAME_NONE : facts->pods[pod].uid,
                                    .container = named->container,
                                    .pod_index = pod,
                                    .times = named->replicas};
            if (pod != POD_NONE)
                holder.fraction = facts->pods[pod].fraction;
            hold(slot, holder);
            map_to(slots, &holder, i);
        }
    }
}

/* The first of what is mapped to a pod, from `at` on (mapped_first, then its next); NULL: no more.
 */
static const struct mapped *mapped_of(const struct slots *slots, uint32_t pod, uint32_t at)
{
    while (at && slots->mapped[at - 1].pod_index != pod)
        at = slots->mapped[at - 1].next;
    return at ? &slots->mapped[at - 1] : NULL;
}

#define EACH_MAPPED(it, slots, pod)                                                                \
    const struct mapped *it =                                                                      \
        mapped_of(slots, pod, (slots)->mapped_first[(pod) % MAPPED_BUCKETS]);                      \
    it;                                                                                            \
    it = mapped_of(slots, pod, it->next)

static int64_t mapped_count(const struct slots *slots, uint32_t pod)
{
    int64_t count = 0;
    for (EACH_MAPPED(mapped, slots, pod))
        count += mapped->times;
    return count;
}

static int64_t mapped_by_container(const struct slots *slots, uint32_t pod, name_t container)
{
    int64_t count = 0;
    for (EACH_MAPPED(mapped, slots, pod))
        count += mapped->container == container ? mapped->times : 0;
    return count;
}

static bool is_mapped(const struct slots *slots, uint32_t pod, size_t slot)
{
    for (EACH_MAPPED(mapped, slots, pod))
        if (mapped->slot == slot)
            return true;
    return false;
}

static struct holder holder_of(const struct facts *facts, uint32_t index, name_t container,
                               uint32_t flag)
{
    const struct pod *pod = &facts->pods[index];
    return (struct holder){.namespace = pod->namespace,
                           .pod = pod->name,
                           .uid = pod->uid,
                           .container = container,
                           .pod_index = index,
                           .flag = flag,
                           .fraction = pod->fraction,
                           .times = 1};
}

/* How well a slot fits a claimed device. `part`: a GPU instance id, or a MIG profile, which is all
 * that a ResourceSlice tells of an instance and which exporters may spell with other gigabytes;
 * empty: the whole device. */
enum fit { FIT_NONE, FIT_SLICES, FIT_PROFILE, FIT_EXACT };

static enum fit claim_fit(const struct slot *slot, const struct names *names, struct str uuid,
                          struct str part)
{
    if (!slot->device || !str_eq(names_text(names, slot->name), uuid))
        return FIT_NONE;
    if (slot->instance == NAME_NONE || str_eq(names_text(names, slot->instance), part))
        return FIT_EXACT; /* a device that does not show its instances stands for all of them */
    struct str profile = names_text(names, slot->profile);
    if (str_eq(profile, part))
        return FIT_PROFILE;
    struct str slices = str_until(&profile, '.');
    return part.n && str_eq(slices, str_until(&part, '.')) ? FIT_SLICES : FIT_NONE;
}

/* The slot of a claim, slots->n where there is none or the pod has it already. Pods that share a
 * claim share its slot. A device that telemetry does not know is one of those that send nothing. */
static size_t slot_of_claim(const struct slots *slots, const struct names *names, uint32_t index,
                            name_t claim)
{
    struct str text = names_text(names, claim), uuid = str_until(&text, '/');
    struct str part = str_until(&text, '/');
    size_t best = slots->n, unseen = slots->n;
    enum fit best_fit = FIT_NONE;
    bool known = false;
    for (size_t i = 0; i < slots->n; i++)
        if (slots->at[i].claim == claim)
            return is_mapped(slots, index, i) ? slots->n : i;
    for (size_t i = 0; i < slots->n; i++) {
        const struct slot *slot = &slots->at[i];
        enum fit fit = claim_fit(slot, names, uuid, part);
        known = known || (slot->device && str_eq(names_text(names, slot->name), uuid));
        if (!slot->device && slot->holders_n == 0 && unseen == slots->n)
            unseen = i;
        if (fit != FIT_NONE && is_mapped(slots, index, i)) {
            if (slot->claim == NAME_NONE) /* labels said so already */
                return slots->n;
            continue; /* another claim of the pod */
        }
        if (fit > best_fit && (fit == FIT_EXACT || slot->holders_n == 0)) {
            best_fit = fit;
            best = i;
        }
    }
    return known ? best : unseen;
}

/* A DRA claim's allocation names the device and is as good as a label: "UUID", "UUID/instance", or
 * "UUID/profile/MIG-UUID", the form in which a MIG device is known beforehand. */
static void hold_by_claim(struct slots *slots, const struct slot_context *context, uint32_t index)
{
    struct facts *facts = context->facts;
    const struct pod *pod = &facts->pods[index];
    name_t container = pod->requests_n ? pod->requests[0].container : NAME_NONE;
    for (size_t d = 0; d < pod->devices_n; d++) {
        size_t at = slot_of_claim(slots, facts->names, index, pod->devices[d]);
        if (at == slots->n)
            continue;
        struct slot *slot = &slots->at[at];
        struct holder holder = holder_of(facts, index, container, slot->device ? 0 : FLAG_BY_COUNT);
        hold(slot, holder);
        slot->claim = pod->devices[d];
        map_to(slots, &holder, at);
    }
}

/* ------------------------------------------------------------------ the device that a pod keeps */

struct kept {
    time_ms stamp;
    const struct seen_place *place;
};

/* First own stamp after t. */
static size_t stamp_after(const struct timeline *own, time_ms t)
{
    size_t low = 0, high = own->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (own->t[mid] <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The first run of the place that ends after t; runs_n: none. */
static size_t run_after(const struct seen_place *place, time_ms t)
{
    const struct timeline *own = &place->device->own;
    size_t low = 0, high = place->runs_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (own->t[place->line->labels[place->runs[mid]].i1] <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Latest stamp at or before t at which the place was shown; TIME_MIN: none. */
static time_ms shown_before(const struct seen_place *place, time_ms t)
{
    const struct timeline *own = &place->device->own;
    size_t k = run_after(place, t);
    if (k < place->runs_n && own->t[place->line->labels[place->runs[k]].i0] <= t)
        return own->t[stamp_after(own, t) - 1];
    return k > 0 ? own->t[place->line->labels[place->runs[k - 1]].i1] : TIME_MIN;
}

/* First stamp after t at which it is shown, and what that covers; false: none. */
static bool shown_after(const struct seen_place *place, time_ms t, const struct settings *settings,
                        time_ms *ret_stamp, time_ms *ret_start)
{
    const struct timeline *own = &place->device->own;
    size_t k = run_after(place, t);
    if (k == place->runs_n)
        return false;
    const struct label_run *run = &place->line->labels[place->runs[k]];
    size_t i = own->t[run->i0] > t ? run->i0 : stamp_after(own, t);
    *ret_stamp = own->t[i];
    *ret_start = i == run->i0 ? run->start : cover_start(own->t, i, settings);
    return true;
}

static int by_place(const struct names *names, const struct seen_place *a,
                    const struct seen_place *b)
{
    int order = str_cmp(names_text(names, a->device->uuid), names_text(names, b->device->uuid));
    struct str left = a->instance == NAME_NONE ? STR("-") : names_text(names, a->instance);
    struct str right = b->instance == NAME_NONE ? STR("-") : names_text(names, b->instance);
    order = order ? order : str_cmp(left, right);
    return order ? order
                 : str_cmp(names_text(names, a->container), names_text(names, b->container));
}

static int latest_first(const void *a, const void *b, void *names)
{
    const struct kept *x = a, *y = b;
    if (x->stamp != y->stamp)
        return x->stamp > y->stamp ? -1 : 1;
    return by_place(names, x->place, y->place);
}

/* Places at which labels showed the pod at or before the moment, the latest first; before its first
 * sample, those on which they first show it. Only inside its own life. */
static size_t last_seen_on(const struct slot_context *context, const struct pod *pod,
                           time_ms moment, struct kept **ret)
{
    uint32_t at =
        idmap_get(&context->sightings->by_pod, IDKEY(pod->cluster, pod->namespace, pod->name));
    *ret = NULL;
    if (at == IDMAP_NONE)
        return 0;
    const struct seen_list *list = &context->sightings->lists[at];
    struct kept *kept = mem_alloc(list->n * sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        time_ms stamp = shown_before(&list->at[i], moment);
        if (stamp != TIME_MIN && stamp > pod->since)
            kept[n++] = (struct kept){stamp, &list->at[i]};
    }
    if (!n) {
        time_ms first = TIME_MAX;
        time_ms after = moment > pod->since ? moment : pod->since;
        for (size_t i = 0; i < list->n; i++) {
            time_ms stamp, start;
            if (!shown_after(&list->at[i], after, context->facts->settings, &stamp, &start) ||
                start >= pod->until || stamp > first)
                continue;
            if (stamp < first)
                n = 0;
            first = stamp;
            kept[n++] = (struct kept){stamp, &list->at[i]};
        }
    }
    qsort_r(kept, n, sizeof *kept, latest_first, context->facts->names);
    *ret = kept;
    return n;
}

/* Rule 2: a living pod keeps the free slots on which labels showed it last, the latest first, as
 * many as it requested and no label names now (all, where it requests nothing that is known and no
 * label names it). */
static void keep(struct slots *slots, const struct slot_context *context, uint32_t index,
                 time_ms moment)
{
    struct facts *facts = context->facts;
    const struct pod *pod = &facts->pods[index];
    int64_t mapped = mapped_count(slots, index);
    if (mapped > 0 && mapped >= pod->requested)
        return;
    struct kept *kept;
    size_t n = last_seen_on(context, pod, moment, &kept);
    for (size_t i = 0; i < n; i++) {
        if (pod->requested && mapped >= pod->requested)
            break;
        for (size_t s = 0; s < slots->n; s++) {
            struct slot *slot = &slots->at[s];
            if (slot->device != kept[i].place->device || slot->instance != kept[i].place->instance)
                continue;
            if (!has_room(slot, pod->fraction) || is_mapped(slots, index, s))
                break;
            struct holder holder =
                holder_of(facts, index, kept[i].place->container, FLAG_KEPT_DEVICE);
            hold(slot, holder);
            map_to(slots, &holder, s);
            mapped++;
            break;
        }
    }
    free(kept);
}

/* ------------------------------------------------------------------ by count */

bool slot_fits(const struct slots *slots, const struct slot *slot, const struct names *names,
               struct str resource)
{
    struct str profile = resource_mig_profile(resource);
    if (profile.n)
        return mig_profile_is(names_text(names, slot->profile), profile);
    return slot->instance == NAME_NONE || !slots->whole;
}

/* Lay what the pod requested and no label shows on free slots, lowest index first. */
static void lay_by_count(struct slots *slots, const struct slot_context *context, uint32_t index)
{
    struct facts *facts = context->facts;
    const struct pod *pod = &facts->pods[index];
    int64_t missing = pod->requested - mapped_count(slots, index);
    for (size_t r = 0; r < pod->requests_n && missing > 0; r++) {
        const struct pod_request *request = &pod->requests[r];
        struct str resource = names_text(facts->names, request->resource);
        int64_t count = request->count - mapped_by_container(slots, index, request->container);
        while (slots->first_free < slots->n &&
               frac_cmp(slots->at[slots->first_free].taken, FRAC_ONE) >= 0)
            slots->first_free++;
        for (size_t i = slots->first_free; i < slots->n && count > 0 && missing > 0; i++) {
            struct slot *slot = &slots->at[i];
            if (!slot_fits(slots, slot, facts->names, resource))
                continue;
            struct holder holder = holder_of(facts, index, request->container, FLAG_BY_COUNT);
            holder.times = 0;
            struct frac taken = slot->taken;
            while (count > 0 && missing > 0 && has_room(slot, pod->fraction)) {
                slot->taken = frac_add(slot->taken, need_of(slot, pod->fraction));
                holder.times++;
                count--;
                missing--;
            }
            slot->taken = taken;
            if (holder.times)
                hold(slot, holder);
        }
    }
}

/* ------------------------------------------------------------------ all of it */

void slots_build(struct slots *slots, const struct slot_context *context, time_ms moment)
{
    const struct node *node = context->node;
    slots->n = slots->late_n = slots->mapped_n = slots->living_n = slots->first_free = 0;
    memset(slots->mapped_first, 0, sizeof slots->mapped_first);
    add_slots(slots, context, moment);
    slots->whole = false;
    for (size_t i = 0; i < slots->n; i++)
        slots->whole = slots->whole || slots->at[i].instance == NAME_NONE;
    hold_by_labels(slots, context, moment);
    for (size_t i = 0; i < node->pods_n; i++) {
        const struct pod *pod = &context->facts->pods[node->pods[i]];
        if (pod->since > moment)
            break; /* they are in order of since */
        if (spans_hold(&pod->counted, moment))
            mem_push(slots->living, slots->living_n, slots->living_room, node->pods[i]);
    }
    for (size_t i = 0; i < slots->living_n; i++)
        if (context->facts->pods[slots->living[i]].devices_n)
            hold_by_claim(slots, context, slots->living[i]);
    for (size_t i = 0; i < slots->living_n; i++)
        keep(slots, context, slots->living[i], moment);
    for (size_t i = 0; i < slots->living_n; i++)
        lay_by_count(slots, context, slots->living[i]);
}

void slots_release(struct slots *slots)
{
    for (size_t i = 0; i < slots->room; i++)
        free(slots->at[i].holders);
    free(slots->at);
    free(slots->late);
    free(slots->mapped);
    free(slots->living);
    *slots = (struct slots){0};
}

static bool same_holder(const struct holder *a, const struct holder *b)
{
    return a->pod == b->pod && a->namespace == b->namespace && a->uid == b->uid &&
           a->container == b->container;
}

size_t slot_parts(const struct slot *slot, enum share_policy policy, struct part *parts,
                  struct frac *ret_free)
{
    size_t n = 0;
    bool even = true;
    for (size_t i = 0; i < slot->holders_n; i++) {
        const struct holder *holder = &slot->holders[i];
        struct frac need = need_of(slot, holder->fraction);
        size_t at = 0;
        while (at < n && !same_holder(parts[at].holder, holder))
            at++;
        if (at == n)
            parts[n++] = (struct part){holder, FRAC_ZERO, 0};
        if (slot->replicas)
            parts[at].share =
                frac_add(parts[at].share, frac_mul(need, (struct frac){holder->times, 1}));
        else if (!parts[at].share.num)
            parts[at].share = need;
        parts[at].flags |= holder->flag;
        even = even && holder->fraction.num == 0;
    }
    struct frac taken = FRAC_ZERO;
    for (size_t i = 0; i < n; i++)
        taken = frac_add(taken, parts[i].share);
    even = even || policy == SHARE_POLICY_EVEN;
    if (n && (policy == SHARE_POLICY_EVEN || frac_cmp(taken, FRAC_ONE) > 0)) {
        for (size_t i = 0; i < n; i++) {
            parts[i].share = even ? (struct frac){1, (int64_t)n} : frac_div(parts[i].share, taken);
            if (n > 1)
                parts[i].flags |= FLAG_SHARED_ESTIMATE;
        }
        taken = FRAC_ONE;
    }
    *ret_free = frac_sub(FRAC_ONE, taken);
    return n;
}
