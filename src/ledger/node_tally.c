/* Rows of a node while they are booked: one an hour, slot and holder; who a holder is, is looked up
 * once a node. */
#include "ledger/node_booking.h"

static uint32_t holder_number(struct booking *booking, const struct holder *holder)
{
    if (!holder)
        return 0;
    struct idkey key = IDKEY(holder->namespace, holder->pod, holder->uid, holder->container);
    bool fresh;
    uint32_t number = idmap_add(&booking->holder_by_key, key, booking->holders + 1, &fresh);
    if (!fresh)
        return number;
    booking->holders++;
    struct facts *facts = booking->facts;
    struct identity identity = {.workload = facts_workload(facts, holder->pod_index, holder->pod)};
    struct owner_query query;
    facts_owner_query(facts, holder->pod_index, booking->node->cluster, holder->namespace,
                      identity.workload, &query);
    bool by_default = false;
    identity.owner = names_put(
        facts->names, owners_team(booking->options->owners, &query, &booking->arena, &by_default));
    identity.type = owners_type(booking->options->owners, &query);
    identity.flags = by_default ? FLAG_OWNER_DEFAULT : 0;
    mem_push(booking->identities, booking->identities_n, booking->identities_room, identity);
    return number;
}

static name_t device_name(struct booking *booking, const struct slot *slot)
{
    if (slot->device)
        return slot->name;
    struct strbuf text = {0};
    strbuf_addf(&text, "%s@%s", names_text(booking->facts->names, slot->name).p,
                names_text(booking->facts->names, booking->node->name).p);
    name_t name = names_put(booking->facts->names, strbuf_str(&text));
    strbuf_release(&text);
    return name;
}

struct tally *booking_tally(struct booking *booking, time_ms hour, const struct slot *slot,
                            name_t instance, const struct holder *holder)
{
    uint32_t number = holder_number(booking, holder);
    struct idkey key = IDKEY((uint32_t)(hour / HOUR_MS), slot->name, instance, number);
    bool fresh;
    uint32_t at = idmap_add(&booking->tally_by_slot, key, (uint32_t)booking->tallies_n, &fresh);
    if (!fresh)
        return booking->tallies[at];
    struct tally *tally = arena_zalloc(&booking->arena, sizeof *tally);
    tally->row.key = (struct row_key){.hour = hour,
                                      .cluster = booking->node->cluster,
                                      .node = booking->node->name,
                                      .device = device_name(booking, slot),
                                      .instance = instance};
    tally->row.facts = booking->facts_of_life;
    tally->row.facts.model = slot->device ? slot->device->model : NAME_NONE;
    if (holder) {
        const struct identity *identity = &booking->identities[number - 1];
        tally->row.key.namespace = holder->namespace;
        tally->row.key.pod = holder->pod;
        tally->row.key.pod_uid = holder->uid;
        tally->row.key.container = holder->container;
        tally->row.facts.workload = identity->workload;
        tally->row.facts.owner = identity->owner;
        tally->row.facts.type = identity->type;
        tally->row.flags |= identity->flags;
    }
    mem_push(booking->tallies, booking->tallies_n, booking->tallies_room, tally);
    return tally;
}
