/* The keys of a report, as small numbers ("atoms") that rows are grouped and filtered by.
 *
 * An atom stands for a text of its key; equal texts of one key have equal atoms in one keys struct.
 * Texts are made only for the groups that come out. Owned by one thread. */
#ifndef GPUTALLY_QUERY_KEYS_H
#define GPUTALLY_QUERY_KEYS_H

#include "query/query.h"
#include "query/zone.h"

typedef uint64_t atom_t;

/* What keys are read from: a row, or a sum of rows that has those fields in common. */
struct facets {
    const struct row_key *key;
    const struct row_facts *facts;
    int category; /* enum category of a part of a row, or -1: the whole row */
};

struct keys {
    struct names *names;
    const struct zone *zone;
    struct span day; /* cached: the local day that was asked for last */
    name_t *kinds;   /* [workload]: its kind, NAME_NONE not looked up yet */
    size_t kinds_n;
    name_t no_kind;
};
enum err keys_init(struct keys *keys, struct names *names, const char *tz, struct error *err);
void keys_release(struct keys *keys);

/* Keys that split a row into parts by its money. */
static inline bool key_splits(enum key key)
{
    return key == KEY_CATEGORY || key == KEY_CAUSE;
}
/* Keys that a node has by itself, whoever holds its GPUs. */
bool key_of_node(enum key key);

atom_t keys_atom(struct keys *keys, enum key key, const struct facets *facets);
/* "-" where there is none; valid until the next call with the same buf (TIME_TEXT_MAX bytes). */
struct str keys_text(const struct keys *keys, enum key key, atom_t atom, char *buf);

/* The filters of a query, each atom judged once. */
struct filters {
    const struct query *query;
    struct keys *keys;
    struct verdicts {
        uint8_t *of_atom; /* of small atoms: 0 not judged, 1 no, 2 yes */
        size_t room;
        atom_t last; /* of large ones (times): the last one */
        uint8_t last_verdict;
    } verdicts[KEY_COUNT];
    bool on[KEY_COUNT];
    bool splits, any_on_nodes;
    struct verdicts *of_condition; /* [query->where_n] */
};
void filters_init(struct filters *filters, const struct query *query, struct keys *keys);
void filters_release(struct filters *filters);
/* Only those on node keys, or only those that do not split, or all. */
enum filters_of { FILTERS_OF_NODES, FILTERS_OF_ROWS, FILTERS_OF_PARTS };
bool filters_pass_key(struct filters *filters, enum key key, const struct facets *facets);
bool filters_pass(struct filters *filters, enum filters_of which, const struct facets *facets);
/* The rows of a series that pass the filters on nodes and rows: bits of its hours. */
uint32_t filters_pass_hours(struct filters *filters, const struct day_series *series);
/* The query's `where`. */
bool filters_hold(struct filters *filters, const struct facets *facets);

#endif
