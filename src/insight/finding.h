/* A finding: something to do, by whom, for how much, and why one should believe it.
 *
 * Money is what the subject costs at the pace of the window. `month` is what is wasted a month;
 * `saving` what doing it would really save, after what other findings have claimed on the same
 * GPUs (recommend.c). Texts live in the findings' arena. */
#ifndef GPUTALLY_INSIGHT_FINDING_H
#define GPUTALLY_INSIGHT_FINDING_H

#include "fleet/prices.h"
#include "insight/books.h"
#include "insight/exempt.h"
#include "insight/threshold.h"
#include "util/memory.h"

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
extern const char *const confidence_words[];

struct evidence {
    struct str name, value, threshold; /* threshold may be empty */
};
#define EVIDENCE_MAX 12

/* What the action is, for whoever writes it down as a change (report/patch.h). */
enum remedy {
    REMEDY_WORDS,         /* nothing beyond action and command */
    REMEDY_STOP,          /* the workload stops; it begins again when somebody wants it */
    REMEDY_MIG,           /* its pods ask for `target`, "nvidia.com/mig-1g.10gb" */
    REMEDY_INSTANCE_TYPE, /* its pods, or a node's, run on machines of the type `target` */
    REMEDY_REPLICAS,      /* `target` of its pods stay */
    REMEDY_SHARE,         /* its pods take turns on GPUs, `target` to one */
};

/* A saving a month on a cell; kept: what it still costs afterwards, so that nobody else can save
 * it. */
struct claim {
    size_t cell;
    money_t month, kept;
    money_t saved; /* what is left of month after the join */
};

struct finding {
    enum rule_id rule;
    struct str id;      /* "idle-workload-1f3a9c02": of rule and subject, the same every day */
    struct str subject; /* "workload svc/Deployment/tagger", "node prod/gpu-7" */
    struct str owner;   /* team, "platform" or "finance" */
    struct str user;    /* the person who works in it, where labels say so; empty */
    struct str what;    /* a sentence */
    time_ms since;      /* TIME_MIN: not known */
    money_t window_cost, month, saving;
    struct str depends; /* what the saving depends on */
    enum confidence confidence;
    struct str reasons;               /* of the confidence */
    struct str risk, action, command; /* command may be empty */
    enum remedy remedy;
    struct str target;     /* of the remedy */
    struct str arithmetic; /* how the saving comes about */
    struct str price;      /* price row and its source */
    struct str joined;     /* what was claimed by others; empty */
    struct str exempt;     /* why it is to be left alone; empty: it is not */
    struct str ended;      /* an exemption that has ended; empty: none */
    struct evidence evidence[EVIDENCE_MAX];
    size_t evidence_n;
    struct claim *claims;
    size_t claims_n, claims_room;
};

/* A workload or node that a rule looked at and left alone, and why. */
struct refusal {
    enum rule_id rule;
    struct str subject, owner, reason;
};

struct findings {
    const struct books *books;
    const struct exemptions *exemptions; /* borrowed; NULL: none were asked for */
    const char *currency;                /* of the ledger; borrowed */
    struct finding *items; /* after recommend(): by saving, month, id; exempt ones last */
    size_t n, room;
    size_t exempt_n; /* the last ones of n */
    struct refusal *refusals;
    size_t refusals_n, refusals_room;
    struct arena arena;
};

/* A new finding of a rule on a subject "KIND NAME": id, owner and defaults are filled in; valid
 * until the next one is added. */
struct finding *finding_add(struct findings *findings, enum rule_id rule, struct str subject,
                            struct str owner);
void refusal_add(struct findings *findings, enum rule_id rule, struct str subject, struct str owner,
                 const char *reason);
/* Text in the arena. */
struct str finding_text(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_evidence(struct findings *findings, struct finding *finding, const char *name,
                      struct str value, const char *threshold);
/* The same, held against a threshold: "24 GPU-hours". */
void finding_evidence_at(struct findings *findings, struct finding *finding, const char *name,
                         struct str value, enum threshold_id threshold);
/* What holds of a threshold, as text. */
struct str finding_threshold(struct findings *findings, enum threshold_id threshold);
void finding_claim(struct finding *finding, size_t cell, money_t month);
/* The same, where something cheaper takes the cell's place: `kept` a month is spent on that. */
void finding_claim_kept(struct finding *finding, size_t cell, money_t month, money_t kept);

/* "workload svc/Deployment/tagger", with the cluster in front where it has a name. */
struct str finding_workload(struct findings *findings, const struct book_workload *workload);
struct str finding_node(struct findings *findings, const struct book_node *node);
/* "pool prod/gpu/p5.48xlarge", of a node of it. Nodes of one pool, instance type and cluster are
 * looked at together. */
struct str finding_pool(struct findings *findings, const struct book_node *node);
static inline bool book_same_pool(const struct book_node *a, const struct book_node *b)
{
    return a->pool == b->pool;
}
/* Is there one of this rule on the subject? What is found idle need not also be found little used.
 */
bool finding_exists(const struct findings *findings, enum rule_id rule, struct str subject);
/* Figures as texts: 61.2 %, 12.5 h, 168.0, 14.2 GiB, $12.34, 2026-11-30T00:00:00Z */
struct str finding_percent(struct findings *findings, wide_t part, wide_t whole);
struct str finding_hours(struct findings *findings, int64_t ms);
struct str finding_gpu_hours(struct findings *findings, wide_t ns);
struct str finding_gib(struct findings *findings, int64_t bytes);
struct str finding_money(struct findings *findings, money_t amount);
struct str finding_time(struct findings *findings, time_ms t);
/* Coverage of a cell's held time as evidence against a rule's threshold, and the confidence that
 * follows from it. */
void finding_coverage(struct findings *findings, struct finding *finding,
                      const struct book_sum *sum, enum threshold_id threshold);
/* Is the work of its nodes on their CPUs? Then they are in a finding of their own (rule_cpu.c). */
bool finding_works_on_cpu(struct findings *findings, const struct book_workload *of);
/* Claim the whole pods of a workload that could go if the rest ran at `target` (1e-9) mean SM
 * activity: a single pod that is used better frees no GPU. Says so in arithmetic and depends. */
void finding_claim_pods(struct findings *findings, struct finding *finding,
                        const struct book_workload *of, enum threshold_id target);
/* Has the workload a target: one of its own, of its namespace or of its team, in this order
 * (rule_target.c)? */
bool rule_target_of(const struct books *books, const struct book_workload *of, int64_t *ret);
/* How many pods such as those of the workload lie beside each other in the memory of its GPU, with
 * the headroom of time-slicing, at most as many as may share one; 0: not known, or no time-slicing
 * on that model (rule_share.c). */
int64_t rule_replicas_by_memory(const struct books *books, const struct book_workload *of);
/* Does a node that is there have pods without GPUs, and no taint that keeps them away
 * (rule_policy.c)? */
bool rule_lets_cpu_pods_in(const struct books *books, const struct book_node *node);
/* How little of its GPUs a workload uses, as evidence against a threshold of the time that it is
 * idle or low. */
void finding_use(struct findings *findings, struct finding *finding, const struct book_sum *sum,
                 enum threshold_id low);
/* Where an offer's price is from. */
struct str finding_offer_source(struct findings *findings, const struct price_offer *offer);
/* The price row of a node. */
void finding_price(struct findings *findings, struct finding *finding,
                   const struct book_node *node);

#endif
