/* Which finding goes into which file, how files are called, and the comments before each change. */
#include "report/patch.h"

#include <stdlib.h>
#include <xxhash.h>

#include "report/text.h"
#include "report/yaml.h"

#define NAME_LETTERS 48

static struct patch_file *file_of(struct patch_set *set, struct str owner, struct str cluster)
{
    for (size_t i = 0; i < set->n; i++)
        if (str_eq(set->files[i].owner, owner) && str_eq(set->files[i].cluster, cluster))
            return &set->files[i];
    struct patch_file file = {.set = set, .owner = owner, .cluster = cluster};
    mem_push(set->files, set->n, set->room, file);
    return &set->files[set->n - 1];
}

static void add_line(struct strbuf *out, const char *name, struct str text)
{
    if (!text.n)
        return;
    struct strbuf line = {0};
    strbuf_addf(&line, "%s: %.*s", name, STR_ARG(text));
    yaml_comment(out, 0, strbuf_str(&line));
    strbuf_release(&line);
}

static void add_money_line(const struct findings_report *report, const struct finding *finding,
                           struct strbuf *out)
{
    struct strbuf line = {0};
    text_money(&line, finding->saving, 2, report->currency);
    strbuf_add(&line, STR(" a month, of "));
    text_money(&line, finding->month, 2, report->currency);
    strbuf_add(&line, STR(" that it costs"));
    if (finding->joined.n)
        strbuf_addf(&line, "; %.*s", STR_ARG(finding->joined));
    add_line(out, "saves", strbuf_str(&line));
    strbuf_release(&line);
}

static void add_evidence(const struct finding *finding, struct strbuf *out)
{
    for (size_t i = 0; i < finding->evidence_n; i++) {
        const struct evidence *evidence = &finding->evidence[i];
        struct strbuf line = {0};
        strbuf_addf(&line, "%.*s %.*s", STR_ARG(evidence->name), STR_ARG(evidence->value));
        if (evidence->threshold.n)
            strbuf_addf(&line, " (threshold: %.*s)", STR_ARG(evidence->threshold));
        add_line(out, "evidence", strbuf_str(&line));
        strbuf_release(&line);
    }
}

static void add_finding(const struct findings_report *report, const struct finding *finding,
                        const struct patch_place *place, struct patch_file *file)
{
    struct strbuf *out = &file->text;
    struct strbuf head = {0}, because = {0};
    strbuf_addf(&head, "%.*s: %s", STR_ARG(finding->id), rules[finding->rule].title);
    strbuf_addf(&because, "%s; %.*s", confidence_words[finding->confidence],
                STR_ARG(finding->reasons));
    strbuf_add(out, STR("---\n"));
    yaml_comment(out, 0, strbuf_str(&head));
    add_line(out, "subject", finding->subject);
    add_line(out, "what", finding->what);
    add_money_line(report, finding, out);
    add_line(out, "arithmetic", finding->arithmetic);
    add_line(out, "price", finding->price);
    add_line(out, "depends on", finding->depends);
    add_evidence(finding, out);
    add_line(out, "confidence", strbuf_str(&because));
    add_line(out, "risk", finding->risk);
    add_line(out, "action", finding->action);
    patch_change(report->findings, finding, place, file);
    file->findings++;
    file->saving += finding->saving;
    strbuf_release(&head);
    strbuf_release(&because);
}

/* ---- names of files ---- */

/* Letters, digits, '_' and '-' stay; what had to be changed is told apart by its hash. */
static void add_slug(struct strbuf *out, struct str text)
{
    size_t begin = out->n;
    bool same = text.n > 0 && text.n <= NAME_LETTERS && text.p[0] != '-';
    for (size_t i = 0; i < text.n && i < NAME_LETTERS; i++) {
        char c = text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        bool upper = c >= 'A' && c <= 'Z';
        same &= plain;
        char kept = plain ? c : upper ? (char)(c - 'A' + 'a') : '-';
        if (out->n > begin || kept != '-')
            strbuf_addc(out, kept);
    }
    if (!same)
        strbuf_addf(out, "%s%08llx", out->n > begin ? "-" : "x",
                    (unsigned long long)(XXH64(text.p, text.n, 0) & 0xffffffff));
}

static void name_files(struct patch_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        struct patch_file *file = &set->files[i];
        struct strbuf name = {0};
        add_slug(&name, file->owner);
        if (file->cluster.n) {
            strbuf_addc(&name, '.');
            add_slug(&name, file->cluster);
        }
        strbuf_add(&name, STR(".yaml"));
        bool taken = false;
        for (size_t k = 0; k < i; k++)
            taken |= str_eq(set->files[k].name, strbuf_str(&name));
        if (taken) { /* two names with one hash, or one that imitates it */
            name.n -= 5;
            strbuf_addf(&name, "-%zu.yaml", i);
        }
        file->name = str_keep(&set->arena, strbuf_str(&name));
        strbuf_release(&name);
    }
}

/* ---- heads ---- */

static void add_head(const struct findings_report *report, struct patch_file *file)
{
    struct strbuf body = file->text, text = {0};
    file->text = (struct strbuf){0};
    strbuf_add(&file->text, STR(PATCH_MARK ": for review; written again by gputally recommend "
                                           "--patch\n"));
    strbuf_addf(&text, "what gputally proposes to %.*s", STR_ARG(file->owner));
    if (file->cluster.n)
        strbuf_addf(&text, " in cluster %.*s", STR_ARG(file->cluster));
    strbuf_add(&text, STR(", from "));
    if (report->title)
        strbuf_addf(&text, "%s, ", report->title);
    text_time(&text, report->findings->books->window.from);
    strbuf_add(&text, STR(" to "));
    text_time(&text, report->findings->books->window.to);
    strbuf_add(&text, STR(": "));
    text_plural(&text, (wide_t)file->findings, "finding", "findings");
    strbuf_add(&text, STR(", "));
    text_money(&text, file->saving, text_money_places(file->saving), report->currency);
    strbuf_add(&text, STR(" a month"));
    yaml_comment(&file->text, 0, strbuf_str(&text));
    strbuf_clear(&text);
    if (!file->documents)
        strbuf_add(&text, STR("Nothing was changed, and nothing here is to be applied: what is to "
                              "be done is done by hand."));
    else
        strbuf_addf(
            &text,
            "Nothing was changed. Each document has only the fields that change; make the "
            "change where the objects are kept (Git, Helm values, the patches of a "
            "kustomization), or look and then apply:\n"
            "  kubectl diff --server-side --force-conflicts --field-manager=gputally -f %.*s\n"
            "  kubectl apply --server-side --force-conflicts --field-manager=gputally -f %.*s",
            STR_ARG(file->name), STR_ARG(file->name));
    yaml_comment(&file->text, 0, strbuf_str(&text));
    strbuf_add(&file->text, strbuf_str(&body));
    strbuf_release(&body);
    strbuf_release(&text);
}

static int by_saving(const void *a, const void *b)
{
    const struct patch_file *left = a, *right = b;
    if (left->saving != right->saving)
        return left->saving > right->saving ? -1 : 1;
    return str_cmp(left->name, right->name);
}

static bool has_several_clusters(const struct books *books)
{
    for (size_t i = 1; i < books->nodes_n; i++)
        if (books->nodes[i].cluster != books->nodes[0].cluster)
            return true;
    return false;
}

/* How many pods are to share a GPU; 0: they are not. */
static int64_t pods_to_a_gpu(const struct findings *findings, const struct finding *finding,
                             const struct patch_place *place)
{
    long long pods = 0;
    if (finding->remedy == REMEDY_SHARE)
        return str_to_i64(finding->target, &pods) ? pods : 0;
    if (finding->rule == RULE_IDLE_NOTEBOOK && place->workload)
        return rule_replicas_by_memory(findings->books, place->workload);
    return 0;
}

struct patch_set *patch_new(const struct findings_report *report)
{
    const struct findings *findings = report->findings;
    struct patch_set *set = mem_zalloc(1, sizeof *set);
    bool several = has_several_clusters(findings->books);
    for (size_t i = 0; i < findings->n - findings->exempt_n; i++) {
        const struct finding *finding = &findings->items[i];
        struct patch_place place = patch_place_of(findings, finding);
        struct str cluster = several ? place.cluster : STR_NONE;
        add_finding(report, finding, &place, file_of(set, finding->owner, cluster));
    }
    for (size_t i = 0; i < findings->n - findings->exempt_n; i++) {
        const struct finding *finding = &findings->items[i];
        struct patch_place place = patch_place_of(findings, finding);
        int64_t pods = pods_to_a_gpu(findings, finding, &place);
        if (pods >= 2 && pods < PATCH_SHARES_MAX)
            file_of(set, STR("platform"), several ? place.cluster : STR_NONE)->shares |= UINT64_C(1)
                                                                                         << pods;
    }
    for (size_t i = 0; i < set->n; i++)
        patch_time_slicing(&set->files[i]);
    name_files(set);
    for (size_t i = 0; i < set->n; i++)
        add_head(report, &set->files[i]);
    if (set->n)
        qsort(set->files, set->n, sizeof *set->files, by_saving);
    return set;
}

void patch_free(struct patch_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->n; i++)
        strbuf_release(&set->files[i].text);
    free(set->files);
    free(set->changed);
    arena_release(&set->arena);
    free(set);
}
