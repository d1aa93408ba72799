/* Reading the facts: four queries over the rows, and one pass over the hours of GPUs and nodes. */
#include <stdlib.h>

#include "insight/doctor.h"
#include "query/hours.h"

static enum err ask(struct store *store, const struct query *of, enum key first, enum key second,
                    struct result **ret, struct error *err)
{
    struct query query = *of;
    query.keys[0] = first;
    query.keys[1] = second;
    query.keys_n = 2;
    enum err code = query_run(store, &query, ret, err);
    return code == ERR_OK ? result_sort(*ret, STR("cost"), err) : code;
}

/* Hours come node by node, every day in much the same order: the next one is mostly the right one.
 * NULL: it is none of the nodes that were asked for. */
static struct doctor_node *state_of(struct doctor_reading *reading, name_t cluster, name_t node)
{
    for (size_t i = 0; i < reading->states_n; i++) {
        size_t at = (reading->at + i) % reading->states_n;
        struct doctor_node *state = &reading->states[at];
        if (state->node == node && state->cluster == cluster) {
            reading->at = at;
            return state;
        }
    }
    if (reading->filtered)
        return NULL;
    mem_push(reading->states, reading->states_n, reading->states_room,
             ((struct doctor_node){.cluster = cluster, .node = node}));
    reading->at = reading->states_n - 1;
    return &reading->states[reading->at];
}

static bool take_devices(void *context, const struct device_hour *hours, size_t n)
{
    struct doctor_reading *reading = context;
    const struct names *names = reading->total->names;
    name_t device = NAME_NONE;
    bool silent = false;
    for (size_t i = 0; i < n; i++) {
        const struct device_hour *hour = &hours[i];
        if (hour->device != device) {
            device = hour->device;
            silent = str_starts(names_text(names, device), STR("unseen-"));
        }
        if (silent)
            continue;
        struct doctor_node *state = state_of(reading, hour->cluster, hour->node);
        if (!state)
            continue;
        state->up_ms += hour->up_ms;
        state->covered_ms += hour->covered_ms;
        state->observed_ms += hour->observed_ms;
        state->util_seen_ms += hour->util_seen_ms;
        state->mem_seen_ms += hour->mem_seen_ms;
        state->power_seen_ms += hour->power_seen_ms;
        state->limit_ms += hour->power_limit_mw ? hour->covered_ms : 0;
        reading->any_device = true;
    }
    return true;
}

static bool take_nodes(void *context, const struct node_hour *hours, size_t n)
{
    struct doctor_reading *reading = context;
    for (size_t i = 0; i < n; i++) {
        const struct node_hour *hour = &hours[i];
        struct doctor_node *state = state_of(reading, hour->cluster, hour->node);
        if (!state)
            continue;
        state->lives += state->instance_type != NAME_NONE && hour->instance_type != NAME_NONE &&
                        hour->instance_type != state->instance_type;
        if (hour->instance_type != NAME_NONE)
            state->instance_type = hour->instance_type;
    }
    return true;
}

/* From here on no other nodes come in. */
static void only_nodes_asked_for(struct doctor_reading *reading)
{
    const struct result *nodes = reading->nodes;
    for (size_t i = 0; i < nodes->groups_n; i++) {
        struct doctor_node node = {0};
        if (!str_eq(nodes->groups[i].keys[0], STR("-")))
            names_find(nodes->names, nodes->groups[i].keys[0], &node.cluster);
        names_find(nodes->names, nodes->groups[i].keys[1], &node.node);
        mem_push(reading->states, reading->states_n, reading->states_room, node);
    }
    reading->filtered = true;
}

enum err doctor_read(struct store *store, const struct query *query, struct doctor_reading *ret,
                     struct error *err)
{
    struct span window = query->window;
    *ret = (struct doctor_reading){0};
    enum err code = ask(store, query, KEY_CLUSTER, KEY_TEAM, &ret->total, err);
    if (code == ERR_OK)
        code = ask(store, query, KEY_CLUSTER, KEY_NODE, &ret->nodes, err);
    if (code == ERR_OK)
        code = ask(store, query, KEY_TEAM, KEY_NAMESPACE, &ret->teams, err);
    if (code == ERR_OK)
        code = ask(store, query, KEY_INSTANCE_TYPE, KEY_MODEL, &ret->types, err);
    if (code == ERR_OK && query->filters_n)
        only_nodes_asked_for(ret);
    if (code == ERR_OK)
        code = query_device_hours(store, window, DEVICE_HOURS_ALL, take_devices, ret, err);
    if (code == ERR_OK)
        code = query_node_hours(store, window, take_nodes, ret, err);
    ret->facts = (struct doctor_facts){.total = ret->total,
                                       .nodes = ret->nodes,
                                       .teams = ret->teams,
                                       .types = ret->types,
                                       .states = ret->any_device ? ret->states : NULL,
                                       .states_n = ret->any_device ? ret->states_n : 0};
    return code;
}

void doctor_reading_release(struct doctor_reading *reading)
{
    result_free(reading->total);
    result_free(reading->nodes);
    result_free(reading->teams);
    result_free(reading->types);
    free(reading->states);
    *reading = (struct doctor_reading){0};
}
