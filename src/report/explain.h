/* Where a figure or a finding comes from: the chain from rows to dollars, as sections of lines that
 * the command line prints and the API sends.
 *
 * What can be asked for: a finding's id; a workload, node, GPU, team or namespace, by its name
 * ("svc/Deployment/tagger", "gpu-7", or with its kind: "team search"); a cell of a report, as
 * filters: "team=search", "team=search,day=2026-11-29", "team=search/category=held_idle". */
#ifndef GPUTALLY_REPORT_EXPLAIN_H
#define GPUTALLY_REPORT_EXPLAIN_H

#include "insight/recommend.h"
#include "query/query.h"

struct explain_section {
    struct str title;
    struct str *lines;
    size_t n, room;
};
/* Texts live in the arena; names of strangers are in them as they came: renderers clean them. */
struct explanation {
    struct str of; /* what was asked for */
    struct str title;
    struct explain_section *sections;
    size_t n, room;
    struct arena arena;
};

/* All borrowed. The findings are those of the store's window, with their books. */
struct explain_request {
    struct store *store;
    const struct findings *findings;
    const struct settings *settings; /* where states are cut; NULL: not told */
    struct span window;
    const char *tz;       /* NULL: UTC */
    const char *currency; /* "USD" */
};

/* ERR_NOT_FOUND: nothing is called so, or several are, with what is near; ERR_USAGE: a cell that
 * cannot be. Some queries of the store; one thread. */
enum err explain(const struct explain_request *request, struct str what, struct explanation **ret,
                 struct error *err);
void explanation_free(struct explanation *explanation); /* NULL is fine */

void explanation_text(const struct explanation *explanation, struct strbuf *out);
/* {"schema": "gputally.explain/1", "of", "title", "text", "sections": [{"title", "lines": [...]}]}
 */
void explanation_json(const struct explanation *explanation, struct strbuf *out);

/* {"ID": text, …}: what each finding rests on, without the rows behind it, so that no store is
 * asked: the parts of explain_finding(). O(findings). */
void explain_findings_json(const struct findings *findings, struct strbuf *out);

/* ---- the parts, a file each ---- */

/* A new section; lines are added to the last one. */
void explain_section_add(struct explanation *explanation, const char *title);
void explain_line(struct explanation *explanation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* explain_find.c: what a name means, as the filters of a query */
struct explain_target {
    struct str title;              /* "workload svc/Deployment/tagger", "team=search" */
    const struct finding *finding; /* it is this one; NULL: it is a thing or a cell */
    struct query query;            /* filters alone; texts live in the explanation's arena */
    enum explain_thing {
        EXPLAIN_WORKLOAD,
        EXPLAIN_NODE,
        EXPLAIN_GPU,
        EXPLAIN_TEAM,
        EXPLAIN_NAMESPACE,
        EXPLAIN_THINGS, /* none of them: a cell */
    } thing;
    name_t cluster, value; /* of the thing; a GPU and a team have no cluster */
};
enum err explain_find(const struct explain_request *request, struct str what,
                      struct explanation *explanation, struct explain_target *ret,
                      struct error *err);

/* explain_chain.c: rows, money, coverage, fallbacks, price and arithmetic of what the filters let
 * through */
enum err explain_chain(const struct explain_request *request, const struct query *query,
                       struct explanation *explanation, struct error *err);

/* explain_finding.c */
void explain_finding(const struct findings *findings, const struct finding *finding,
                     struct explanation *explanation);

#endif
