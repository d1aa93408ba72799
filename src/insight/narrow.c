#include "insight/narrow.h"

#include <stdlib.h>

#include "query/keys.h"

/* A sorted list of texts: "gpu c|n|d", "cell c|n|d|ns|w" with the unit separator between names, and
 * subjects as findings write them. */
struct narrow {
    struct arena arena;
    struct str *texts;
    size_t n, room;
    bool of_holders; /* a filter asks who held what, or for what */
};

#define SEPARATOR "\x1f" /* in no name of Kubernetes or of a GPU */

static struct str name_in(const struct group *group, size_t key)
{
    return str_eq(group->keys[key], STR("-")) ? STR_NONE : group->keys[key];
}

/* KIND and names, each behind a separator. */
static void write_place(struct strbuf *out, const char *kind, const struct str *names, size_t n)
{
    strbuf_clear(out);
    strbuf_add(out, str_of(kind));
    for (size_t i = 0; i < n; i++) {
        strbuf_add(out, STR(SEPARATOR));
        strbuf_add(out, names[i]);
    }
}

/* "node prod/gpu-7": KIND, then the names that are there with a slash between. */
static void write_subject(struct strbuf *out, const char *kind, const struct str *names, size_t n)
{
    bool any = false;
    strbuf_clear(out);
    strbuf_addf(out, "%s ", kind);
    for (size_t i = 0; i < n; i++) {
        if (!names[i].n)
            continue;
        strbuf_add(out, any ? STR("/") : STR_NONE);
        strbuf_add(out, names[i]);
        any = true;
    }
}

static void keep(struct narrow *narrow, const struct strbuf *text)
{
    struct str kept = str_keep(&narrow->arena, strbuf_str(text));
    mem_push(narrow->texts, narrow->n, narrow->room, kept);
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static bool has(const struct narrow *narrow, struct str text)
{
    return narrow->n && bsearch(&text, narrow->texts, narrow->n, sizeof text, by_text);
}

/* What is said of a node or pool is about GPUs that nobody holds, or about the machines: where the
 * filters ask for holders, one that they hold a GPU of is not meant. */
static bool is_of_machines(const struct narrow *narrow, bool held)
{
    return !held || !narrow->of_holders;
}

/* Keys: cluster, node, gpu, namespace, workload. */
static void take_cell(struct narrow *narrow, const struct group *group, struct strbuf *text)
{
    const struct str names[] = {name_in(group, 0), name_in(group, 1), name_in(group, 2),
                                name_in(group, 3), name_in(group, 4)};
    const struct str workload[] = {names[0], names[3], names[4]};
    write_place(text, "gpu", names, 3);
    keep(narrow, text);
    write_place(text, "cell", names, 5);
    keep(narrow, text);
    write_subject(text, "node", names, 2);
    if (is_of_machines(narrow, names[3].n > 0))
        keep(narrow, text);
    if (!names[3].n)
        return;
    write_subject(text, "namespace", workload, 2);
    keep(narrow, text);
    write_subject(text, "workload", workload, 3);
    keep(narrow, text);
}

/* Keys: cluster, pool, instance-type, team. */
static void take_pool(struct narrow *narrow, const struct group *group, struct strbuf *text)
{
    const struct str names[] = {name_in(group, 0), name_in(group, 1), name_in(group, 2)};
    const struct str team = name_in(group, 3);
    write_subject(text, "pool", names, 3);
    if (is_of_machines(narrow, team.n > 0))
        keep(narrow, text);
    if (!team.n)
        return;
    write_subject(text, "team", &team, 1);
    keep(narrow, text);
}

static enum err ask(struct store *store, const struct query *query, const char *keys,
                    void (*take)(struct narrow *, const struct group *, struct strbuf *),
                    struct narrow *narrow, struct error *err)
{
    struct query by = *query;
    struct result *result = NULL;
    struct strbuf text = {0};
    by.keys_n = 0;
    enum err code = query_parse_keys(str_of(keys), &by, err);
    if (code == ERR_OK)
        code = query_run(store, &by, &result, err);
    for (size_t i = 0; code == ERR_OK && i < result->groups_n; i++)
        take(narrow, &result->groups[i], &text);
    strbuf_release(&text);
    result_free(result);
    return code;
}

static bool asks_for_holders(enum key key)
{
    return !key_of_node(key) && key != KEY_GPU && key != KEY_INSTANCE && key != KEY_MODEL &&
           key != KEY_DAY && key != KEY_HOUR;
}

enum err narrow_read(struct store *store, const struct query *query, struct narrow **ret,
                     struct error *err)
{
    struct narrow *narrow = mem_zalloc(1, sizeof *narrow);
    for (size_t i = 0; i < query->filters_n; i++)
        narrow->of_holders |= asks_for_holders(query->filters[i].key);
    enum err code =
        ask(store, query, "cluster,node,gpu,namespace,workload", take_cell, narrow, err);
    if (code == ERR_OK)
        code = ask(store, query, "cluster,pool,instance-type,team", take_pool, narrow, err);
    if (code != ERR_OK) {
        narrow_free(narrow);
        return code;
    }
    if (narrow->n)
        qsort(narrow->texts, narrow->n, sizeof *narrow->texts, by_text);
    *ret = narrow;
    return ERR_OK;
}

void narrow_free(struct narrow *narrow)
{
    if (!narrow)
        return;
    free(narrow->texts);
    arena_release(&narrow->arena);
    free(narrow);
}

bool narrow_has_gpu(const struct narrow *narrow, struct str cluster, struct str node,
                    struct str gpu)
{
    if (!narrow)
        return true;
    struct strbuf text = {0};
    const struct str names[] = {cluster, node, gpu};
    write_place(&text, "gpu", names, 3);
    bool found = has(narrow, strbuf_str(&text));
    strbuf_release(&text);
    return found;
}

static bool has_cell(const struct narrow *narrow, const struct books *books, size_t at)
{
    const struct book_cell *cell = &books->cells[at];
    struct strbuf text = {0};
    const struct str names[] = {
        names_text(books->names, cell->cluster), names_text(books->names, cell->node),
        names_text(books->names, cell->device), names_text(books->names, cell->namespace),
        names_text(books->names, cell->facts.workload)};
    write_place(&text, "cell", names, 5);
    bool found = has(narrow, strbuf_str(&text));
    strbuf_release(&text);
    return found;
}

static bool has_finding(const struct narrow *narrow, const struct findings *findings,
                        const struct finding *finding)
{
    for (size_t i = 0; i < finding->claims_n; i++)
        if (has_cell(narrow, findings->books, finding->claims[i].cell))
            return true;
    return !finding->claims_n && has(narrow, finding->subject);
}

void narrow_findings(const struct narrow *narrow, struct findings *findings)
{
    size_t n = 0, exempt_n = 0, refusals_n = 0, first_exempt = findings->n - findings->exempt_n;
    for (size_t i = 0; narrow && i < findings->n; i++) {
        struct finding finding = findings->items[i];
        if (has_finding(narrow, findings, &finding)) {
            exempt_n += i >= first_exempt;
            findings->items[n++] = finding;
        } else {
            free(finding.claims);
        }
    }
    for (size_t i = 0; narrow && i < findings->refusals_n; i++)
        if (has(narrow, findings->refusals[i].subject))
            findings->refusals[refusals_n++] = findings->refusals[i];
    if (!narrow)
        return;
    findings->n = n;
    findings->exempt_n = exempt_n;
    findings->refusals_n = refusals_n;
}
