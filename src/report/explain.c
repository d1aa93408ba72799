/* The sections in their order, and how they are written. */
#include "report/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/text.h"

#define EXPLAIN_SCHEMA "gputally.explain/1"

void explain_section_add(struct explanation *explanation, const char *title)
{
    struct explain_section section = {.title = str_of(title)};
    mem_push(explanation->sections, explanation->n, explanation->room, section);
}

void explain_line(struct explanation *explanation, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    invariant(n >= 0 && explanation->n > 0);
    struct explain_section *section = &explanation->sections[explanation->n - 1];
    struct str line = str_keep(&explanation->arena, (struct str){text, (size_t)n});
    mem_push(section->lines, section->n, section->room, line);
    free(text);
}

/* Does the finding save money on a part of the thing, or is it of the team? */
static bool concerns(const struct findings *findings, const struct finding *finding,
                     const struct explain_target *target)
{
    const struct books *books = findings->books;
    if (target->thing == EXPLAIN_TEAM)
        return str_eq(finding->owner, names_text(books->names, target->value));
    for (size_t k = 0; k < finding->claims_n; k++) {
        const struct book_cell *cell = &books->cells[finding->claims[k].cell];
        bool here = target->thing == EXPLAIN_GPU         ? cell->device == target->value
                    : target->thing == EXPLAIN_NODE      ? cell->node == target->value
                    : target->thing == EXPLAIN_NAMESPACE ? cell->namespace == target->value
                                                         : false;
        if (here && (target->thing == EXPLAIN_GPU || cell->cluster == target->cluster))
            return true;
    }
    return false;
}

static void add_related(const struct findings *findings, const struct explain_target *target,
                        struct explanation *explanation)
{
    bool any = false;
    for (size_t i = 0; i < findings->n; i++) {
        const struct finding *finding = &findings->items[i];
        if (str_eq(finding->subject, target->title) || !concerns(findings, finding, target))
            continue;
        if (!any)
            explain_section_add(explanation, "findings about parts of it");
        any = true;
        struct strbuf money = {0};
        text_money(&money, finding->saving, 2, findings->currency);
        explain_line(explanation, "%.*s saves %.*s a month: %.*s: %s", STR_ARG(finding->id),
                     STR_ARG(strbuf_str(&money)), STR_ARG(finding->subject),
                     rules[finding->rule].title);
        strbuf_release(&money);
    }
}

static void add_findings(const struct findings *findings, const struct explain_target *target,
                         struct explanation *explanation)
{
    bool any = false;
    for (size_t i = 0; i < findings->n; i++)
        if (str_eq(findings->items[i].subject, target->title))
            explain_finding(findings, &findings->items[i], explanation);
    add_related(findings, target, explanation);
    for (size_t i = 0; i < findings->refusals_n; i++) {
        const struct refusal *refusal = &findings->refusals[i];
        if (!str_eq(refusal->subject, target->title))
            continue;
        if (!any)
            explain_section_add(explanation, "left alone");
        any = true;
        explain_line(explanation, "%s: %.*s", rules[refusal->rule].name, STR_ARG(refusal->reason));
    }
}

enum err explain(const struct explain_request *request, struct str what, struct explanation **ret,
                 struct error *err)
{
    struct explanation *explanation = mem_zalloc(1, sizeof *explanation);
    struct explain_target target = {0};
    explanation->of = str_keep(&explanation->arena, what);
    enum err code = explain_find(request, what, explanation, &target, err);
    if (code == ERR_OK) {
        explanation->title = str_keep(&explanation->arena, target.title);
        if (target.finding)
            explain_finding(request->findings, target.finding, explanation);
        if (target.query.filters_n)
            code = explain_chain(request, &target.query, explanation, err);
    }
    if (code == ERR_OK && !target.finding)
        add_findings(request->findings, &target, explanation);
    if (code != ERR_OK) {
        explanation_free(explanation);
        return code;
    }
    *ret = explanation;
    return ERR_OK;
}

void explanation_free(struct explanation *explanation)
{
    if (!explanation)
        return;
    for (size_t i = 0; i < explanation->n; i++)
        free(explanation->sections[i].lines);
    free(explanation->sections);
    arena_release(&explanation->arena);
    free(explanation);
}

void explanation_text(const struct explanation *explanation, struct strbuf *out)
{
    text_clean(out, explanation->title);
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < explanation->n; i++) {
        const struct explain_section *section = &explanation->sections[i];
        strbuf_addc(out, '\n');
        text_clean(out, section->title);
        strbuf_addc(out, '\n');
        for (size_t k = 0; k < section->n; k++) {
            strbuf_add(out, STR("  "));
            text_clean(out, section->lines[k]);
            strbuf_addc(out, '\n');
        }
    }
}

static void add_string(struct strbuf *out, struct str text)
{
    strbuf_addc(out, '"');
    text_json(out, text);
    strbuf_addc(out, '"');
}

void explanation_json(const struct explanation *explanation, struct strbuf *out)
{
    struct strbuf text = {0};
    explanation_text(explanation, &text);
    strbuf_add(out, STR("{\n  \"schema\": \"" EXPLAIN_SCHEMA "\",\n  \"of\": "));
    add_string(out, explanation->of);
    strbuf_add(out, STR(",\n  \"title\": "));
    add_string(out, explanation->title);
    strbuf_add(out, STR(",\n  \"text\": "));
    add_string(out, strbuf_str(&text));
    strbuf_add(out, STR(",\n  \"sections\": [\n"));
    for (size_t i = 0; i < explanation->n; i++) {
        const struct explain_section *section = &explanation->sections[i];
        strbuf_add(out, STR("    {\"title\": "));
        add_string(out, section->title);
        strbuf_add(out, STR(", \"lines\": ["));
        for (size_t k = 0; k < section->n; k++) {
            strbuf_add(out, str_of(k ? ", " : ""));
            add_string(out, section->lines[k]);
        }
        strbuf_add(out, str_of(i + 1 < explanation->n ? "]},\n" : "]}\n"));
    }
    strbuf_add(out, STR("  ]\n}\n"));
    strbuf_release(&text);
}

void explain_findings_json(const struct findings *findings, struct strbuf *out)
{
    struct strbuf text = {0};
    strbuf_addc(out, '{');
    for (size_t i = 0; i < findings->n; i++) {
        const struct finding *finding = &findings->items[i];
        struct explanation *explanation = mem_zalloc(1, sizeof *explanation);
        explanation->title = finding->subject;
        explain_finding(findings, finding, explanation);
        strbuf_clear(&text);
        explanation_text(explanation, &text);
        strbuf_add(out, str_of(i ? ",\n" : "\n"));
        add_string(out, finding->id);
        strbuf_add(out, STR(": "));
        add_string(out, strbuf_str(&text));
        explanation_free(explanation);
    }
    strbuf_add(out, STR("}"));
    strbuf_release(&text);
}
