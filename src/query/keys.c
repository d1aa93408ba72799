#include "query/keys.h"

#include <stdlib.h>

#include "query/window.h"

#define VERDICT_ATOMS_MAX ((atom_t)NAMES_MAX) /* atoms from here on are times */

const char *const key_words[KEY_COUNT] = {
#define X(name, word) word,
    KEY_TABLE(X)
#undef X
};

/* What an atom of a key is, and where it lies. */
enum atom_kind { ATOM_KEY_NAME, ATOM_FACTS_NAME, ATOM_OTHER };
static const struct {
    enum atom_kind kind;
    size_t at;
} sources[KEY_COUNT] = {
    [KEY_CLUSTER] = {ATOM_KEY_NAME, offsetof(struct row_key, cluster)},
    [KEY_NODE] = {ATOM_KEY_NAME, offsetof(struct row_key, node)},
    [KEY_POOL] = {ATOM_FACTS_NAME, offsetof(struct row_facts, pool)},
    [KEY_INSTANCE_TYPE] = {ATOM_FACTS_NAME, offsetof(struct row_facts, instance_type)},
    [KEY_REGION] = {ATOM_FACTS_NAME, offsetof(struct row_facts, region)},
    [KEY_CLOUD] = {ATOM_FACTS_NAME, offsetof(struct row_facts, cloud)},
    [KEY_CAPACITY_TYPE] = {ATOM_OTHER, 0},
    [KEY_MODEL] = {ATOM_FACTS_NAME, offsetof(struct row_facts, model)},
    [KEY_GPU] = {ATOM_KEY_NAME, offsetof(struct row_key, device)},
    [KEY_INSTANCE] = {ATOM_KEY_NAME, offsetof(struct row_key, instance)},
    [KEY_NAMESPACE] = {ATOM_KEY_NAME, offsetof(struct row_key, namespace)},
    [KEY_TEAM] = {ATOM_FACTS_NAME, offsetof(struct row_facts, owner)},
    [KEY_WORKLOAD] = {ATOM_FACTS_NAME, offsetof(struct row_facts, workload)},
    [KEY_KIND] = {ATOM_OTHER, 0},
    [KEY_TYPE] = {ATOM_OTHER, 0},
    [KEY_POD] = {ATOM_KEY_NAME, offsetof(struct row_key, pod)},
    [KEY_CONTAINER] = {ATOM_KEY_NAME, offsetof(struct row_key, container)},
    [KEY_CATEGORY] = {ATOM_OTHER, 0},
    [KEY_CAUSE] = {ATOM_OTHER, 0},
    [KEY_DAY] = {ATOM_OTHER, 0},
    [KEY_HOUR] = {ATOM_OTHER, 0},
};

enum err keys_init(struct keys *keys, struct names *names, const char *tz, struct error *err)
{
    *keys = (struct keys){.names = names};
    return zone_load(tz, &keys->zone, err);
}

void keys_release(struct keys *keys)
{
    free(keys->kinds);
    *keys = (struct keys){0};
}

bool key_of_node(enum key key)
{
    return key == KEY_CLUSTER || key == KEY_NODE || key == KEY_POOL || key == KEY_INSTANCE_TYPE ||
           key == KEY_REGION || key == KEY_CLOUD || key == KEY_CAPACITY_TYPE;
}

/* Job of Job/name; NAME_NONE of none. */
static name_t kind_of(struct keys *keys, name_t workload)
{
    if (workload == NAME_NONE)
        return NAME_NONE;
    if (workload >= keys->kinds_n) {
        size_t n = keys->kinds_n * 2 > workload + 1u ? keys->kinds_n * 2 : workload + 1024u;
        keys->kinds = mem_realloc(keys->kinds, n, sizeof *keys->kinds);
        memset(keys->kinds + keys->kinds_n, 0, (n - keys->kinds_n) * sizeof *keys->kinds);
        keys->kinds_n = n;
    }
    if (keys->kinds[workload] == NAME_NONE) {
        struct str text = names_text(keys->names, workload);
        const char *slash = memchr(text.p, '/', text.n);
        if (slash)
            text.n = (size_t)(slash - text.p);
        keys->kinds[workload] = names_put(keys->names, text);
    }
    return keys->kinds[workload];
}

static atom_t local_day(struct keys *keys, time_ms hour)
{
    if (hour < keys->day.from || hour >= keys->day.to) {
        time_ms local = hour + zone_offset(keys->zone, hour), rest = local % DAY_MS;
        local -= rest < 0 ? rest + DAY_MS : rest;
        keys->day = (struct span){zone_instant(keys->zone, local),
                                  zone_instant(keys->zone, local + DAY_MS)};
    }
    return (atom_t)keys->day.from;
}

static bool is_node_idle(int category)
{
    return category >= CATEGORY_NODE_IDLE_FIRST && category <= CATEGORY_NODE_IDLE_LAST;
}

/* Categories are numbered from 1, since 0 is none; the causes of node idle are one category. */
static atom_t category_atom(int category)
{
    return category < 0
               ? 0
               : 1u + (unsigned)(is_node_idle(category) ? CATEGORY_NODE_IDLE_FIRST : category);
}

atom_t keys_atom(struct keys *keys, enum key key, const struct facets *facets)
{
    name_t name;
    switch (sources[key].kind) {
    case ATOM_KEY_NAME:
        memcpy(&name, (const char *)facets->key + sources[key].at, sizeof name);
        return name;
    case ATOM_FACTS_NAME:
        memcpy(&name, (const char *)facets->facts + sources[key].at, sizeof name);
        return name;
    case ATOM_OTHER:
        break;
    }
    switch (key) {
    case KEY_CAPACITY_TYPE:
        return (atom_t)facets->facts->capacity;
    case KEY_KIND:
        return kind_of(keys, facets->facts->workload);
    case KEY_TYPE:
        return (atom_t)facets->facts->type;
    case KEY_CATEGORY:
        return category_atom(facets->category);
    case KEY_CAUSE:
        return is_node_idle(facets->category) ? 1u + (unsigned)facets->category : 0;
    case KEY_DAY:
        return local_day(keys, facets->key->hour);
    default:
        return (atom_t)facets->key->hour;
    }
}

struct str keys_text(const struct keys *keys, enum key key, atom_t atom, char *buf)
{
    switch (key) {
    case KEY_CAPACITY_TYPE:
        return str_of(capacity_type_words[atom]);
    case KEY_TYPE:
        return str_of(workload_type_words[atom]);
    case KEY_CATEGORY:
        if (atom == 1u + CATEGORY_NODE_IDLE_FIRST)
            return STR("node_idle");
        return atom ? str_of(category_columns[atom - 1]) : STR("-");
    case KEY_CAUSE:
        return atom ? str_of(category_words[atom - 1]) : STR("-");
    case KEY_DAY: {
        time_ms local = (time_ms)atom + zone_offset(keys->zone, (time_ms)atom);
        time_format(local, buf);
        return (struct str){buf, sizeof "2026-11-30" - 1};
    }
    case KEY_HOUR:
        return str_of(time_format((time_ms)atom, buf));
    default:
        return atom ? names_text(keys->names, (name_t)atom) : STR("-");
    }
}

void filters_init(struct filters *filters, const struct query *query, struct keys *keys)
{
    *filters = (struct filters){.query = query, .keys = keys};
    for (size_t i = 0; i < query->filters_n; i++) {
        enum key key = query->filters[i].key;
        filters->on[key] = true;
        filters->splits |= key_splits(key);
        filters->any_on_nodes |= key_of_node(key);
    }
    if (query->where_n)
        filters->of_condition = mem_zalloc(query->where_n, sizeof *filters->of_condition);
}

void filters_release(struct filters *filters)
{
    for (int i = 0; i < KEY_COUNT; i++)
        free(filters->verdicts[i].of_atom);
    for (size_t i = 0; filters->of_condition && i < filters->query->where_n; i++)
        free(filters->of_condition[i].of_atom);
    free(filters->of_condition);
}

/* Any of the values that are asked for, and none of those that are excluded. */
static bool judge(const struct filters *filters, enum key key, struct str text)
{
    bool wanted = false, asked = false;
    for (size_t i = 0; i < filters->query->filters_n; i++) {
        const struct query_filter *filter = &filters->query->filters[i];
        if (filter->key != key)
            continue;
        bool fits = str_glob(filter->value, text);
        if (filter->negate && fits)
            return false;
        asked |= !filter->negate;
        wanted |= fits && !filter->negate;
    }
    return wanted || !asked;
}

/* By a condition, or by the filters on a key. */
static bool judge_text(const struct filters *filters, const struct query_filter *condition,
                       enum key key, struct str text)
{
    if (!condition)
        return judge(filters, key, text);
    return str_glob(condition->value, text) != condition->negate;
}

static bool verdict(struct filters *filters, struct verdicts *verdicts,
                    const struct query_filter *condition, enum key key, atom_t atom)
{
    char buf[TIME_TEXT_MAX];
    if (atom >= VERDICT_ATOMS_MAX) {
        if (!verdicts->last_verdict || verdicts->last != atom) {
            verdicts->last = atom;
            verdicts->last_verdict =
                1 + judge_text(filters, condition, key, keys_text(filters->keys, key, atom, buf));
        }
        return verdicts->last_verdict == 2;
    }
    if (atom >= verdicts->room) {
        size_t room = verdicts->room * 2 > atom + 1 ? verdicts->room * 2 : (size_t)atom + 256;
        verdicts->of_atom = mem_realloc(verdicts->of_atom, room, 1);
        memset(verdicts->of_atom + verdicts->room, 0, room - verdicts->room);
        verdicts->room = room;
    }
    if (!verdicts->of_atom[atom])
        verdicts->of_atom[atom] =
            1 + judge_text(filters, condition, key, keys_text(filters->keys, key, atom, buf));
    return verdicts->of_atom[atom] == 2;
}

static bool verdict_of_key(struct filters *filters, enum key key, const struct facets *facets)
{
    return verdict(filters, &filters->verdicts[key], NULL, key,
                   keys_atom(filters->keys, key, facets));
}

bool filters_pass_key(struct filters *filters, enum key key, const struct facets *facets)
{
    return !filters->on[key] || verdict_of_key(filters, key, facets);
}

bool filters_pass(struct filters *filters, enum filters_of which, const struct facets *facets)
{
    for (enum key key = 0; key < KEY_COUNT; key++) {
        if (!filters->on[key])
            continue;
        if ((which == FILTERS_OF_NODES && !key_of_node(key)) ||
            (which == FILTERS_OF_ROWS && key_splits(key)))
            continue;
        if (!verdict_of_key(filters, key, facets))
            return false;
    }
    return true;
}

static bool row_passes(struct filters *filters, const struct facets *facets)
{
    return filters_pass(filters, FILTERS_OF_NODES, facets) &&
           filters_pass(filters, FILTERS_OF_ROWS, facets);
}

/* Rows of a series differ in their hours only. */
uint32_t filters_pass_hours(struct filters *filters, const struct day_series *series)
{
    struct row_key key = series->key;
    struct facets facets = {&key, &series->facts, -1};
    if (!filters->on[KEY_DAY] && !filters->on[KEY_HOUR])
        return row_passes(filters, &facets) ? series->hours : 0;
    time_ms midnight = key.hour - __builtin_ctz(series->hours) * HOUR_MS;
    uint32_t hours = 0;
    for (uint32_t rest = series->hours; rest; rest &= rest - 1) {
        key.hour = midnight + __builtin_ctz(rest) * HOUR_MS;
        if (row_passes(filters, &facets))
            hours |= rest & (0 - rest);
    }
    return hours;
}

/* The condition at `at`, and what is inside of it. */
static bool holds(struct filters *filters, size_t at, const struct facets *facets)
{
    const struct query_condition *where = filters->query->where, *condition = &where[at];
    const struct query_filter *filter = &condition->filter;
    if (condition->test == QUERY_FITS)
        return verdict(filters, &filters->of_condition[at], filter, filter->key,
                       keys_atom(filters->keys, filter->key, facets));
    bool any = condition->test == QUERY_ANY;
    for (size_t i = at + 1; i <= at + condition->inside; i += 1 + where[i].inside)
        if (holds(filters, i, facets) == any)
            return any;
    return !any;
}

bool filters_hold(struct filters *filters, const struct facets *facets)
{
    return !filters->query->where_n || holds(filters, 0, facets);
}
