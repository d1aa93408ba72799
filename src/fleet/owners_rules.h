/* Inside of the owner rules, for owners.c (matching, the default rules) and owners_read.c (files).
 * Nobody else includes it. */
#ifndef GPUTALLY_FLEET_OWNERS_RULES_H
#define GPUTALLY_FLEET_OWNERS_RULES_H

#include "fleet/owners.h"

enum carrier { CARRIER_NONE, CARRIER_POD_LABEL, CARRIER_ANNOTATION, CARRIER_NAMESPACE_LABEL };

/* Globs are absent where p is NULL. */
struct owner_rule {
    struct str cluster, namespace, kind, workload;
    enum carrier carrier;
    struct str label, value; /* of the carrier */
    struct str team;
    enum workload_type type;
    bool is_default; /* the team is only the namespace */
};

struct rule_list {
    struct owner_rule *items;
    size_t n, room;
};

struct owners {
    struct arena arena;
    struct rule_list teams, types;
    bool configured;
    uint64_t digest;
};

void owners_add_rule(struct rule_list *list, struct owner_rule rule);
void owners_add_default_teams(struct rule_list *teams);
void owners_add_default_types(struct rule_list *types);

#endif
