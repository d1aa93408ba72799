/* What a name means. A name that is exactly something's goes before one that only ends so
 * ("tagger" of svc/Deployment/tagger); where several things are called so, the reader says which.
 */
#include "report/explain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/suggest.h"

#define NAMED_MAX 6    /* things that are named where one is not clear */
#define NEAR_MAX 20000 /* things that are searched for what is near */

static const char *const thing_words[] = {"workload", "node", "gpu", "team", "namespace"};

struct found {
    enum explain_thing thing;
    struct str name; /* as it is shown, without its kind */
    name_t cluster, namespace, value;
};

struct search {
    const struct books *books;
    struct arena *arena;
    struct found *things;
    size_t n, room;
};

static void add_thing(struct search *search, struct found thing)
{
    struct strbuf text = {0};
    struct str cluster = names_text(search->books->names, thing.cluster);
    struct str namespace = names_text(search->books->names, thing.namespace);
    strbuf_addf(&text, "%.*s%s%.*s%s%.*s", STR_ARG(cluster), cluster.n ? "/" : "",
                STR_ARG(namespace), namespace.n ? "/" : "",
                STR_ARG(names_text(search->books->names, thing.value)));
    thing.name = str_keep(search->arena, strbuf_str(&text));
    strbuf_release(&text);
    mem_push(search->things, search->n, search->room, thing);
}

static int by_thing(const void *a, const void *b)
{
    const struct found *left = a, *right = b;
    if (left->thing != right->thing)
        return left->thing < right->thing ? -1 : 1;
    return str_cmp(left->name, right->name);
}

/* All that the books know by name, each once. */
static void gather(struct search *search)
{
    const struct books *books = search->books;
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        add_thing(search, (struct found){.thing = EXPLAIN_WORKLOAD,
                                         .cluster = of->cluster,
                                         .namespace = of->namespace,
                                         .value = of->workload});
        add_thing(search, (struct found){.thing = EXPLAIN_NAMESPACE,
                                         .cluster = of->cluster,
                                         .value = of->namespace});
        add_thing(search, (struct found){.thing = EXPLAIN_TEAM, .value = of->owner});
    }
    for (size_t i = 0; i < books->nodes_n; i++)
        add_thing(search, (struct found){.thing = EXPLAIN_NODE,
                                         .cluster = books->nodes[i].cluster,
                                         .value = books->nodes[i].node});
    for (size_t i = 0; i < books->cells_n; i++)
        add_thing(search, (struct found){.thing = EXPLAIN_GPU, .value = books->cells[i].device});
    if (search->n)
        qsort(search->things, search->n, sizeof *search->things, by_thing);
    size_t kept = 0;
    for (size_t i = 0; i < search->n; i++)
        if (!kept || by_thing(&search->things[kept - 1], &search->things[i]) != 0)
            search->things[kept++] = search->things[i];
    search->n = kept;
}

/* The text without the kind in front of it ("node gpu-7"), and which kind: EXPLAIN_THINGS none. */
static enum explain_thing kind_in(struct str what, struct str *ret)
{
    *ret = what;
    for (int t = 0; t < EXPLAIN_THINGS; t++) {
        size_t n = strlen(thing_words[t]);
        if (what.n > n + 1 && memcmp(what.p, thing_words[t], n) == 0 && what.p[n] == ' ') {
            *ret = (struct str){what.p + n + 1, what.n - n - 1};
            return (enum explain_thing)t;
        }
    }
    return EXPLAIN_THINGS;
}

static bool ends_so(struct str name, struct str text)
{
    return text.n && name.n > text.n && name.p[name.n - text.n - 1] == '/' &&
           memcmp(name.p + name.n - text.n, text.p, text.n) == 0;
}

/* Things that are called so: exactly, else those that end so. Indices into ret, at most NAMED_MAX;
 * returns how many there are. */
static size_t called(const struct search *search, struct str what, const struct found **ret)
{
    struct str name;
    enum explain_thing kind = kind_in(what, &name);
    size_t n = 0;
    for (int exact = 1; exact >= 0 && !n; exact--)
        for (size_t i = 0; i < search->n; i++) {
            const struct found *thing = &search->things[i];
            bool fits = exact ? str_eq(thing->name, name) : ends_so(thing->name, name);
            if (!fits || (kind != EXPLAIN_THINGS && kind != thing->thing))
                continue;
            if (n < NAMED_MAX)
                ret[n] = thing;
            n++;
        }
    return n;
}

/* A glob that fits this text alone. */
static struct str literal(struct arena *arena, struct str text)
{
    struct strbuf glob = {0};
    for (size_t i = 0; i < text.n; i++)
        strbuf_addf(&glob, strchr("*?[", text.p[i]) && text.p[i] ? "[%c]" : "%c", text.p[i]);
    struct str kept = str_keep(arena, text.n ? strbuf_str(&glob) : STR("-"));
    strbuf_release(&glob);
    return kept;
}

static void filter(const struct search *search, struct query *query, enum key key, name_t value)
{
    struct str text = names_text(search->books->names, value);
    query->filters[query->filters_n++] =
        (struct query_filter){.key = key, .value = literal(search->arena, text)};
}

static void target_of(const struct search *search, const struct found *thing,
                      struct explain_target *ret)
{
    static const enum key keys[] = {KEY_WORKLOAD, KEY_NODE, KEY_GPU, KEY_TEAM, KEY_NAMESPACE};
    struct strbuf title = {0};
    strbuf_addf(&title, "%s %.*s", thing_words[thing->thing], STR_ARG(thing->name));
    ret->title = str_keep(search->arena, strbuf_str(&title));
    strbuf_release(&title);
    ret->thing = thing->thing;
    ret->cluster = thing->cluster;
    ret->value = thing->value;
    if (thing->thing != EXPLAIN_TEAM && thing->thing != EXPLAIN_GPU)
        filter(search, &ret->query, KEY_CLUSTER, thing->cluster);
    if (thing->thing == EXPLAIN_WORKLOAD)
        filter(search, &ret->query, KEY_NAMESPACE, thing->namespace);
    filter(search, &ret->query, keys[thing->thing], thing->value);
}

/* ---- cells ---- */

/* "team=search,day=2026-11-29/category=held_idle": filters. A comma that no key follows belongs to
 * the value. */
static enum err read_cell(struct explanation *explanation, struct str what,
                          struct explain_target *ret, struct error *err)
{
    struct str text = str_keep(&explanation->arena, what);
    char *category = strstr((char *)text.p, "/category=");
    if (category)
        *category = ',';
    ret->title = what;
    while (text.n) {
        size_t end = 0;
        for (end = 0; end < text.n; end++) {
            size_t word = end + 1;
            while (word < text.n &&
                   (isalpha((unsigned char)text.p[word]) || strchr("-_", text.p[word])))
                word++;
            if (text.p[end] == ',' && word > end + 1 && word < text.n && text.p[word] == '=')
                break;
        }
        for (size_t i = 0; i < end && text.p[i] != '='; i++) /* as machine formats write keys */
            if (text.p[i] == '_')
                ((char *)text.p)[i] = '-';
        enum err code = query_parse_filter((struct str){text.p, end}, &ret->query, err);
        if (code != ERR_OK)
            return code;
        text = end < text.n ? (struct str){text.p + end + 1, text.n - end - 1} : STR_NONE;
    }
    return ERR_OK;
}

/* ---- nothing, or too much ---- */

static enum err refuse_several(struct str what, const struct found *const *things, size_t n,
                               struct error *err)
{
    struct strbuf list = {0};
    for (size_t i = 0; i < n && i < NAMED_MAX; i++)
        strbuf_addf(&list, "%s\"%s %.*s\"", i ? ", " : "", thing_words[things[i]->thing],
                    STR_ARG(things[i]->name));
    if (n > NAMED_MAX)
        strbuf_addf(&list, " and %zu more", n - NAMED_MAX);
    enum err code = error_set(err, ERR_NOT_FOUND, "'%.*s' may be several: write one of %.*s",
                              STR_ARG(what), STR_ARG(strbuf_str(&list)));
    strbuf_release(&list);
    return code;
}

static void name_near(const struct search *search, const struct findings *findings, struct str what,
                      struct strbuf *out)
{
    size_t total = search->n + findings->n, n = 0, named = 0;
    const char **texts = mem_zalloc(total + 1, sizeof *texts);
    for (size_t i = 0; i < findings->n && n < NEAR_MAX; i++)
        texts[n++] = findings->items[i].id.p;
    for (size_t i = 0; i < search->n && n < NEAR_MAX; i++)
        texts[n++] = search->things[i].name.p;
    const char *near;
    while (named < NAMED_MAX / 2 && (near = suggest(what, texts, n))) {
        strbuf_addf(out, "%s'%s'", named++ ? ", " : "", near);
        for (size_t i = 0; i < n; i++)
            if (texts[i] && strcmp(texts[i], near) == 0 && texts[i] != near)
                texts[i] = NULL;
        for (size_t i = 0; i < n; i++)
            if (texts[i] == near)
                texts[i] = NULL;
    }
    char *word = str_dup(what);
    for (size_t i = 0; i < n && named < NAMED_MAX && what.n > 2; i++)
        if (texts[i] && strcasestr(texts[i], word))
            strbuf_addf(out, "%s'%s'", named++ ? ", " : "", texts[i]);
    free(word);
    free(texts);
}

static enum err refuse_unknown(const struct search *search, const struct findings *findings,
                               struct str what, struct error *err)
{
    struct strbuf near = {0};
    name_near(search, findings, what, &near);
    enum err code = error_set(
        err, ERR_NOT_FOUND,
        "nothing is called '%.*s' in this window: %s%.*s%sgive a finding's id, the name of a "
        "workload, node, GPU, team or namespace, or a cell such as team=search",
        STR_ARG(what), near.n ? "near are " : "", STR_ARG(strbuf_str(&near)), near.n ? "; " : "");
    strbuf_release(&near);
    return code;
}

/* The thing that a finding is about, where it is one. */
static void target_of_finding(const struct search *search, const struct finding *finding,
                              struct explain_target *ret)
{
    const struct found *things[NAMED_MAX];
    struct str title = finding->subject;
    if (called(search, finding->subject, things) == 1)
        target_of(search, things[0], ret);
    ret->title = title;
    ret->finding = finding;
}

enum err explain_find(const struct explain_request *request, struct str what,
                      struct explanation *explanation, struct explain_target *ret,
                      struct error *err)
{
    const struct findings *findings = request->findings;
    struct search search = {.books = findings->books, .arena = &explanation->arena};
    const struct found *things[NAMED_MAX];
    enum err code = ERR_OK;
    what = str_keep(&explanation->arena, what);
    ret->thing = EXPLAIN_THINGS;
    gather(&search);
    size_t n = called(&search, what, things);
    for (size_t i = 0; i < findings->n && !ret->finding; i++)
        if (str_eq(findings->items[i].id, what) || (!n && str_eq(findings->items[i].subject, what)))
            target_of_finding(&search, &findings->items[i], ret);
    if (ret->finding)
        code = ERR_OK;
    else if (n == 1)
        target_of(&search, things[0], ret);
    else if (n > 1)
        code = refuse_several(what, things, n, err);
    else if (memchr(what.p, '=', what.n))
        code = read_cell(explanation, what, ret, err);
    else
        code = refuse_unknown(&search, findings, what, err);
    free(search.things);
    return code;
}
