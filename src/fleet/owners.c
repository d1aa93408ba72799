/* Ordered rules: what each asks of a pod, and what it says. The rules of a file and the default
 * ones are the same thing and go through one matcher.
 *
 * A rule matches where all that it asks fits; what fitted last (a label's value before the workload
 * before the namespace) is what {value} in its team stands for. */
#include "fleet/owners.h"

#include <stdlib.h>

#include "fleet/labels.h"
#include "fleet/owners_default.h"
#include "fleet/owners_rules.h"

#define UNOWNED STR("unowned")
#define VALUE STR("{value}")
#define TEAM_MAX 4096 /* bytes of a team after {value}; more is cut */

const char *const workload_type_words[WORKLOAD_TYPE_COUNT] = {"-", "training", "inference",
                                                              "interactive", "other"};

void owners_free(struct owners *owners)
{
    if (!owners)
        return;
    free(owners->teams.items);
    free(owners->types.items);
    arena_release(&owners->arena);
    free(owners);
}

uint64_t owners_digest(const struct owners *owners)
{
    return owners->digest;
}

bool owners_configured(const struct owners *owners)
{
    return owners->configured;
}

static bool fits(struct str glob, struct str text, struct str *value)
{
    if (!glob.p)
        return true;
    *value = text;
    return str_glob(glob, text);
}

static struct str label_of(const struct label *labels, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (labels[i].value.n && label_name_same(labels[i].name, name))
            return labels[i].value;
    return STR_NONE;
}

static struct str carried(const struct owner_rule *rule, const struct owner_query *query)
{
    switch (rule->carrier) {
    case CARRIER_POD_LABEL:
        return label_of(query->labels, query->labels_n, rule->label);
    case CARRIER_ANNOTATION:
        return label_of(query->annotations, query->annotations_n, rule->label);
    case CARRIER_NAMESPACE_LABEL:
        return label_of(query->namespace_labels, query->namespace_labels_n, rule->label);
    case CARRIER_NONE:
        break;
    }
    return STR_NONE;
}

static bool matches(const struct owner_rule *rule, const struct owner_query *query,
                    struct str *ret_value)
{
    const char *slash =
        query->workload.n ? memchr(query->workload.p, '/', query->workload.n) : NULL;
    size_t kind_n = slash ? (size_t)(slash - query->workload.p) : query->workload.n;
    struct str kind = {query->workload.p, kind_n};
    struct str name = slash ? (struct str){slash + 1, query->workload.n - kind_n - 1} : STR_NONE;
    struct str value = STR_NONE;
    if (!fits(rule->cluster, query->cluster, &value) ||
        !fits(rule->namespace, query->namespace, &value) || !fits(rule->kind, kind, &value) ||
        !fits(rule->workload, name, &value))
        return false;
    if (rule->carrier != CARRIER_NONE) {
        value = carried(rule, query);
        if (value.n == 0 || !str_glob(rule->value, value))
            return false;
    }
    *ret_value = value;
    return true;
}

/* team with every {value} in it replaced. */
static struct str spelled(struct str team, struct str value, struct arena *scratch)
{
    struct strbuf text = {0};
    if (str_eq(team, VALUE))
        return value;
    if (!memmem(team.p, team.n, VALUE.p, VALUE.n))
        return team;
    for (const char *at; (at = memmem(team.p, team.n, VALUE.p, VALUE.n)) && text.n < TEAM_MAX;) {
        size_t before = (size_t)(at - team.p);
        strbuf_add(&text, (struct str){team.p, before});
        strbuf_add(&text, value);
        team = (struct str){at + VALUE.n, team.n - before - VALUE.n};
    }
    strbuf_add(&text, team);
    struct str result = str_keep(scratch, strbuf_str(&text));
    strbuf_release(&text);
    return result;
}

struct str owners_team(const struct owners *owners, const struct owner_query *query,
                       struct arena *scratch, bool *ret_default)
{
    *ret_default = false;
    for (size_t i = 0; i < owners->teams.n; i++) {
        const struct owner_rule *rule = &owners->teams.items[i];
        struct str value;
        if (!matches(rule, query, &value))
            continue;
        struct str team = spelled(rule->team, value, scratch);
        *ret_default = rule->is_default && team.n;
        return team.n ? team : UNOWNED;
    }
    return UNOWNED;
}

enum workload_type owners_type(const struct owners *owners, const struct owner_query *query)
{
    for (size_t i = 0; i < owners->types.n; i++) {
        struct str value;
        if (matches(&owners->types.items[i], query, &value))
            return owners->types.items[i].type;
    }
    return WORKLOAD_OTHER;
}

struct str owners_user(const struct owner_query *query)
{
    static const char *const names[] = {USER_LABELS};
    struct str user = STR_NONE;
    for (size_t i = 0; i < sizeof names / sizeof *names && !user.n; i++) {
        user = label_of(query->annotations, query->annotations_n, str_of(names[i]));
        if (!user.n)
            user = label_of(query->labels, query->labels_n, str_of(names[i]));
    }
    return user;
}

void owners_add_rule(struct rule_list *list, struct owner_rule rule)
{
    mem_push(list->items, list->n, list->room, rule);
}

static void add_carried(struct rule_list *teams, enum carrier carrier, const char *const *labels,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        owners_add_rule(teams, (struct owner_rule){.carrier = carrier,
                                                   .label = str_of(labels[i]),
                                                   .value = STR("*"),
                                                   .team = VALUE});
}

void owners_add_default_teams(struct rule_list *teams)
{
    static const char *const owner[] = {OWNER_LABELS}, *const product[] = {PRODUCT_LABELS};
    size_t owner_n = sizeof owner / sizeof *owner, product_n = sizeof product / sizeof *product;
    add_carried(teams, CARRIER_POD_LABEL, owner, owner_n);
    add_carried(teams, CARRIER_ANNOTATION, owner, owner_n);
    add_carried(teams, CARRIER_NAMESPACE_LABEL, owner, owner_n);
    add_carried(teams, CARRIER_POD_LABEL, product, product_n);
    add_carried(teams, CARRIER_NAMESPACE_LABEL, product, product_n);
    owners_add_rule(teams,
                    (struct owner_rule){.namespace = STR("*"), .team = VALUE, .is_default = true});
}

static struct str glob_of(const char *text)
{
    return text ? str_of(text) : (struct str){NULL, 0};
}

void owners_add_default_types(struct rule_list *types)
{
    static const struct {
        enum workload_type type;
        const char *kind, *namespace, *workload, *label, *value;
    } table[] = {
#define X(type, kind, namespace, workload, label, value)                                           \
    {WORKLOAD_##type, kind, namespace, workload, label, value},
        TYPE_TABLE(X)
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        owners_add_rule(types, (struct owner_rule){
                                   .kind = glob_of(table[i].kind),
                                   .namespace = glob_of(table[i].namespace),
                                   .workload = glob_of(table[i].workload),
                                   .carrier = table[i].label ? CARRIER_POD_LABEL : CARRIER_NONE,
                                   .label = glob_of(table[i].label),
                                   .value = glob_of(table[i].value),
                                   .type = table[i].type,
                               });
}

struct owners *owners_new_default(void)
{
    struct owners *owners = mem_zalloc(1, sizeof *owners);
    owners_add_default_teams(&owners->teams);
    owners_add_default_types(&owners->types);
    return owners;
}
