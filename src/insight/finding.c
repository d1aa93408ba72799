#include "insight/finding.h"

#include <stdarg.h>
#include <stdlib.h>
#include <xxhash.h>

const char *const confidence_words[] = {"low", "medium", "high"};

#define GIB (INT64_C(1) << 30)

struct str finding_text(struct findings *findings, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    invariant(n >= 0);
    char *text = arena_alloc(&findings->arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return (struct str){text, (size_t)n};
}

struct finding *finding_add(struct findings *findings, enum rule_id rule, struct str subject,
                            struct str owner)
{
    uint64_t hash = XXH64(subject.p, subject.n, rule + 1);
    struct finding finding = {.rule = rule,
                              .subject = subject,
                              .owner = owner,
                              .since = TIME_MIN,
                              .confidence = CONFIDENCE_HIGH};
    finding.id = finding_text(findings, "%s-%08llx", rules[rule].name,
                              (unsigned long long)(hash & 0xffffffff));
    mem_push(findings->items, findings->n, findings->room, finding);
    return &findings->items[findings->n - 1];
}

void refusal_add(struct findings *findings, enum rule_id rule, struct str subject, struct str owner,
                 const char *reason)
{
    struct refusal refusal = {rule, subject, owner, str_of(reason)};
    mem_push(findings->refusals, findings->refusals_n, findings->refusals_room, refusal);
}

void finding_evidence(struct findings *findings, struct finding *finding, const char *name,
                      struct str value, const char *threshold)
{
    (void)findings;
    invariant(finding->evidence_n < EVIDENCE_MAX);
    finding->evidence[finding->evidence_n++] =
        (struct evidence){str_of(name), value, str_of(threshold)};
}

struct str finding_threshold(struct findings *findings, enum threshold_id threshold)
{
    struct strbuf text = {0};
    threshold_text(threshold, books_threshold(findings->books, threshold), &text);
    struct str kept = str_keep(&findings->arena, strbuf_str(&text));
    strbuf_release(&text);
    return kept;
}

void finding_evidence_at(struct findings *findings, struct finding *finding, const char *name,
                         struct str value, enum threshold_id threshold)
{
    invariant(finding->evidence_n < EVIDENCE_MAX);
    finding->evidence[finding->evidence_n++] =
        (struct evidence){str_of(name), value, finding_threshold(findings, threshold)};
}

void finding_claim(struct finding *finding, size_t cell, money_t month)
{
    finding_claim_kept(finding, cell, month, 0);
}

void finding_claim_kept(struct finding *finding, size_t cell, money_t month, money_t kept)
{
    struct claim claim = {.cell = cell, .month = month, .kept = kept};
    if (month > 0)
        mem_push(finding->claims, finding->claims_n, finding->claims_room, claim);
}

struct str finding_workload(struct findings *findings, const struct book_workload *workload)
{
    const struct names *names = findings->books->names;
    struct str cluster = names_text(names, workload->cluster);
    return finding_text(findings, "workload %.*s%s%.*s/%.*s", STR_ARG(cluster),
                        cluster.n ? "/" : "", STR_ARG(names_text(names, workload->namespace)),
                        STR_ARG(names_text(names, workload->workload)));
}

struct str finding_node(struct findings *findings, const struct book_node *node)
{
    const struct names *names = findings->books->names;
    struct str cluster = names_text(names, node->cluster);
    return finding_text(findings, "node %.*s%s%.*s", STR_ARG(cluster), cluster.n ? "/" : "",
                        STR_ARG(names_text(names, node->node)));
}

struct str finding_pool(struct findings *findings, const struct book_node *node)
{
    const struct names *names = findings->books->names;
    struct str cluster = names_text(names, node->cluster),
               name = names_text(names, node->facts.pool);
    return finding_text(findings, "pool %.*s%s%.*s%s%.*s", STR_ARG(cluster), cluster.n ? "/" : "",
                        STR_ARG(name), name.n ? "/" : "",
                        STR_ARG(names_text(names, node->facts.instance_type)));
}

bool finding_exists(const struct findings *findings, enum rule_id rule, struct str subject)
{
    for (size_t i = 0; i < findings->n; i++)
        if (findings->items[i].rule == rule && str_eq(findings->items[i].subject, subject))
            return true;
    return false;
}

bool finding_works_on_cpu(struct findings *findings, const struct book_workload *of)
{
    const struct books *books = findings->books;
    for (size_t c = 0; c < of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[of->cells[c]];
        if (books_is_now(books, cell->last) &&
            !finding_exists(findings, RULE_CPU_NODE,
                            finding_node(findings, &books->nodes[cell->node_index])))
            return false;
    }
    return true;
}

/* Tenths of num / den, rounded. */
static long long tenths(wide_t num, wide_t den)
{
    return den > 0 ? (long long)((num * 20 + den) / (2 * den)) : 0;
}

struct str finding_percent(struct findings *findings, wide_t part, wide_t whole)
{
    long long t = tenths(part * 100, whole);
    return finding_text(findings, "%lld.%lld %%", t / 10, t % 10);
}

struct str finding_hours(struct findings *findings, int64_t ms)
{
    long long t = tenths(ms, HOUR_MS);
    return finding_text(findings, "%lld.%lld h", t / 10, t % 10);
}

struct str finding_gpu_hours(struct findings *findings, wide_t ns)
{
    long long t = tenths(ns, (wide_t)HOUR_MS * 1000000);
    return finding_text(findings, "%lld.%lld GPU-hours", t / 10, t % 10);
}

struct str finding_gib(struct findings *findings, int64_t bytes)
{
    long long t = tenths(bytes, GIB);
    return finding_text(findings, "%lld.%lld GiB", t / 10, t % 10);
}

struct str finding_money(struct findings *findings, money_t amount)
{
    wide_t cents = ((wide_t)amount + NANO / 200) / (NANO / 100);
    bool usd = strcmp(findings->currency, "USD") == 0;
    return finding_text(findings, "%s%lld.%02lld%s%s", usd ? "$" : "", (long long)(cents / 100),
                        (long long)(cents % 100), usd ? "" : " ", usd ? "" : findings->currency);
}

struct str finding_time(struct findings *findings, time_ms t)
{
    char text[TIME_TEXT_MAX];
    return finding_text(findings, "%s", time_format(t, text));
}

void finding_coverage(struct findings *findings, struct finding *finding,
                      const struct book_sum *sum, enum threshold_id threshold)
{
    finding_evidence_at(findings, finding, "observed of held",
                        finding_percent(findings, sum->observed_ns, sum->held_ns), threshold);
    bool tight = 100 * sum->observed_ns >= 99 * sum->held_ns;
    time_ms ms = findings->books->window.to - sum->first;
    finding->confidence = tight && ms >= 7 * DAY_MS ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
    finding->reasons = finding_text(
        findings,
        "%.*s of the held time is observed, over %.*s; CPU and network of the node and "
        "serving counters are unchecked",
        STR_ARG(finding_percent(findings, sum->observed_ns, sum->held_ns)),
        STR_ARG(finding_hours(findings, ms)));
}

void finding_use(struct findings *findings, struct finding *finding, const struct book_sum *sum,
                 enum threshold_id low)
{
    wide_t under = sum->state_ns[STATE_IDLE] + sum->state_ns[STATE_LOW];
    wide_t whole = (wide_t)sum->observed_ms * NANO;
    finding_evidence_at(findings, finding, "idle or low",
                        finding_percent(findings, under, sum->observed_ns), low);
    finding_evidence(findings, finding, "mean SM activity",
                     finding_percent(findings, sum->u, whole), "");
    finding_evidence(findings, finding, "mean GPU_UTIL", finding_percent(findings, sum->e, whole),
                     "");
}

struct str finding_offer_source(struct findings *findings, const struct price_offer *offer)
{
    return offer->source ? str_of(offer->source)
                         : finding_text(findings, "catalogue %.*s%s", STR_ARG(offer->date),
                                        offer->derived ? ", derived" : "");
}

void finding_price(struct findings *findings, struct finding *finding, const struct book_node *node)
{
    const struct names *names = findings->books->names;
    struct str type = names_text(names, node->facts.instance_type);
    struct str source = names_text(names, node->price_source);
    if (node->flags & FLAG_UNPRICED) {
        finding->price = finding_text(findings, "%.*s has no price", STR_ARG(type));
        return;
    }
    finding->price = finding_text(findings, "%.*s, %s: %.*s an hour for %d GPU%s (%.*s)",
                                  STR_ARG(type), capacity_type_words[node->facts.capacity],
                                  STR_ARG(finding_money(findings, node->price)), (int)node->gpus,
                                  node->gpus == 1 ? "" : "s", STR_ARG(source));
}
