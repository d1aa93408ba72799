/* What must be said before the figures.
 *
 * Not known is not zero: money without a price, hours without telemetry, teams without a rule and
 * answers that were cut would otherwise vanish in a sum. Each becomes a sentence here, with how
 * much of the report it is about and, where there is one, the option that mends it. */
#include "report/statement.h"

#include <stdlib.h>

#include "fleet/intake.h"
#include "query/zone.h"
#include "report/figure.h"
#include "report/text.h"

#define EXAMPLES_MAX 3 /* notes of a kind that people are shown */

const char *const statement_level_words[] = {"missing", "caution", "info"};

/* A sentence under construction. */
struct draft {
    const struct report *report;
    struct statements *list;
    struct strbuf text;
};

static void add_amount(struct draft *draft, money_t amount)
{
    const struct result *result = draft->report->result;
    const char *currency = draft->report->currency;
    text_money(&draft->text, amount, text_money_places(result->total.cost), currency);
    if (amount > 0 && result->total.cost > 0) {
        int64_t part = (int64_t)((wide_t)amount * NANO / result->total.cost);
        strbuf_add(&draft->text, STR(" ("));
        text_percent(&draft->text, part, 0);
        strbuf_addc(&draft->text, ')');
    }
}

static void add_hours(struct draft *draft, wide_t gpu_ns)
{
    text_nano(&draft->text, gpu_ns / 3600, 1);
    strbuf_add(&draft->text, STR(" GPU-hours"));
}

static struct statement *put(struct draft *draft, enum statement_level level, const char *code,
                             struct str topic)
{
    struct statements *list = draft->list;
    struct statement statement = {.level = level,
                                  .code = code,
                                  .topic = str_keep(&list->arena, topic),
                                  .text = str_keep(&list->arena, strbuf_str(&draft->text)),
                                  .gpu_ns = -1,
                                  .money = -1,
                                  .count = -1};
    mem_push(list->items, list->n, list->room, statement);
    strbuf_clear(&draft->text);
    return &list->items[list->n - 1];
}

/* By category the groups have money only; the overview has the same rows by team. */
static const struct figures *all_rows(const struct report *report)
{
    return report->overview ? &report->overview->total : &report->result->total;
}

/* ---- of the window ---- */

/* Is there a filter that takes rows of a node and leaves others? */
static bool filters_rows(const struct query *query)
{
    static const enum key of_nodes[] = {KEY_CLUSTER, KEY_NODE,  KEY_POOL,         KEY_INSTANCE_TYPE,
                                        KEY_REGION,  KEY_CLOUD, KEY_CAPACITY_TYPE};
    for (size_t i = 0; i < query->filters_n; i++) {
        bool of_node = false;
        for (size_t k = 0; k < sizeof of_nodes / sizeof *of_nodes; k++)
            of_node |= query->filters[i].key == of_nodes[k];
        if (!of_node)
            return true;
    }
    return false;
}

static void say_recorded(struct draft *draft)
{
    const struct result *result = draft->report->result;
    struct span asked = result->query.window, have = result->recorded;
    if (have.from >= have.to) {
        strbuf_add(&draft->text, STR("the ledger has no hour of this window"));
        put(draft, STATEMENT_MISSING, "not-recorded", STR("nothing recorded"));
    } else if (have.from > asked.from || have.to < asked.to) {
        strbuf_add(&draft->text, STR("the ledger has only "));
        text_time(&draft->text, have.from);
        strbuf_add(&draft->text, STR(" to "));
        text_time(&draft->text, have.to);
        strbuf_addf(&draft->text, ": %lld of the window's %lld hours",
                    (long long)((have.to - have.from) / HOUR_MS),
                    (long long)((asked.to - asked.from) / HOUR_MS));
        put(draft, STATEMENT_MISSING, "not-recorded", STR("not all recorded"));
    }
    if (draft->report->settings_changed) {
        strbuf_add(&draft->text,
                   STR("some hours were booked with other prices, owners or settings; "
                       "--rebook books them anew"));
        put(draft, STATEMENT_CAUTION, "settings-changed", STR("settings"));
    }
    if (draft->report->window_widened) {
        strbuf_add(&draft->text, STR("the window was widened to whole hours"));
        put(draft, STATEMENT_INFO, "window-widened", STR("window"));
    }
    if (result->query.filters_n) {
        for (size_t i = 0; i < result->query.filters_n; i++) {
            const struct query_filter *filter = &result->query.filters[i];
            strbuf_addf(&draft->text, "%s%s%s%.*s", i ? ", " : "", key_words[filter->key],
                        filter->negate ? "!=" : "=", STR_ARG(filter->value));
        }
        if (filters_rows(&result->query))
            strbuf_add(&draft->text, STR("; the balance is of all that the nodes cost"));
        put(draft, STATEMENT_INFO, "filtered", STR("filtered"));
    }
}

/* ---- of prices ---- */

struct flag_sentence {
    enum flag_index flag;
    enum statement_level level;
    const char *code, *topic;
    const char *one, *many; /* the verb after money, and after GPU-hours */
    const char *rest;
    bool hours; /* the amount is GPU-hours, not money */
};

static const struct flag_sentence flag_sentences[] = {
    {FLAG_INDEX_DEFAULT_PRICE, STATEMENT_CAUTION, "default-price", "estimate", " rests", " rest",
     " on a default price of the GPU model; give yours with --prices FILE", false},
    {FLAG_INDEX_CATALOGUE_DERIVED, STATEMENT_CAUTION, "catalogue-derived", "estimate", " rests",
     " rest", " on prices that the catalogue derived from others; give yours with --prices FILE",
     false},
    {FLAG_INDEX_SPOT_AS_ON_DEMAND, STATEMENT_CAUTION, "spot-as-on-demand", "estimate", " is",
     " are", " of spot nodes without a spot price, charged as on-demand", false},
    {FLAG_INDEX_RESERVED_AS_ON_DEMAND, STATEMENT_CAUTION, "reserved-as-on-demand", "estimate",
     " is", " are", " of reserved nodes without a reserved price, charged as on-demand", false},
    {FLAG_INDEX_SPLIT_UNKNOWN, STATEMENT_CAUTION, "split-unknown", "estimate", " still has",
     " still have", " CPU and memory in it: their part of the price is not known", false},
    {FLAG_INDEX_BY_COUNT, STATEMENT_CAUTION, "by-count", "by count", " is", " are",
     " laid on GPUs by count: nothing says which GPU those pods have", false},
    {FLAG_INDEX_STUCK_COUNTER, STATEMENT_CAUTION, "stuck-counter", "contradiction", " is", " are",
     " of GPUs whose profiling counters stand at 0 while GPU_UTIL does not: those counters are "
     "not believed",
     true},
    {FLAG_INDEX_UP_SAMPLES, STATEMENT_CAUTION, "up-samples", "node lives", " is", " are",
     " of nodes that no Kubernetes record knows: up while their GPUs send samples", true},
    {FLAG_INDEX_UNSEEN, STATEMENT_CAUTION, "unseen", "silent GPUs", " is", " are",
     " of GPUs that send nothing", true},
    {FLAG_INDEX_OWNER_DEFAULT, STATEMENT_INFO, "owner-default", "teams", " is", " are",
     " booked on the namespace as team: no owner rules are configured (--owners FILE)", false},
};

/* " (p5.48xlarge; A30 of no known type and 2 more)": what lacks a price. */
static void add_unpriced_types(struct draft *draft)
{
    const struct result *result = draft->report->unpriced;
    size_t shown = 0, more = 0;
    for (size_t i = 0; result && i < result->groups_n; i++) {
        const struct group *group = &result->groups[i];
        if (group->figures.flag_gpu_ns[FLAG_INDEX_UNPRICED] == 0)
            continue;
        if (shown == EXAMPLES_MAX) {
            more++;
            continue;
        }
        strbuf_add(&draft->text, str_of(shown++ ? "; " : " ("));
        if (!str_eq(group->keys[0], STR("-")))
            strbuf_addf(&draft->text, "instance type %.*s", STR_ARG(group->keys[0]));
        else
            strbuf_addf(&draft->text, "%.*s on nodes of no known type", STR_ARG(group->keys[1]));
    }
    if (more)
        strbuf_addf(&draft->text, " and %zu more", more);
    if (shown)
        strbuf_addc(&draft->text, ')');
}

static void say_unpriced(struct draft *draft)
{
    const struct figures *total = all_rows(draft->report);
    wide_t gpu_ns = total->flag_gpu_ns[FLAG_INDEX_UNPRICED];
    if (gpu_ns == 0)
        return;
    add_hours(draft, gpu_ns);
    strbuf_add(&draft->text, STR(" have no known price and stand here as 0"));
    add_unpriced_types(draft);
    strbuf_add(&draft->text, STR("; give one with --prices FILE"));
    put(draft, STATEMENT_MISSING, "unpriced", STR("unpriced"))->gpu_ns = gpu_ns;
}

static void say_problems(struct draft *draft)
{
    if (draft->report->list_prices.n) {
        strbuf_addf(&draft->text,
                    "prices are list prices of the built-in catalogue (%.*s); give yours with "
                    "--prices FILE",
                    STR_ARG(draft->report->list_prices));
        put(draft, STATEMENT_CAUTION, "list-prices", STR("estimate"));
    }
    for (size_t i = 0; i < draft->report->problems_n; i++) {
        strbuf_add(&draft->text, str_of(draft->report->problems[i]));
        put(draft, STATEMENT_CAUTION, "prices", STR("prices"));
    }
}

static void say_flags(struct draft *draft)
{
    const struct figures *total = all_rows(draft->report);
    for (size_t i = 0; i < sizeof flag_sentences / sizeof *flag_sentences; i++) {
        const struct flag_sentence *sentence = &flag_sentences[i];
        wide_t gpu_ns = total->flag_gpu_ns[sentence->flag];
        money_t money = total->flag_cost[sentence->flag];
        if (gpu_ns == 0 && money == 0)
            continue;
        bool hours = sentence->hours || money == 0;
        if (hours)
            add_hours(draft, gpu_ns);
        else
            add_amount(draft, money);
        strbuf_add(&draft->text, str_of(hours ? sentence->many : sentence->one));
        strbuf_add(&draft->text, str_of(sentence->rest));
        struct statement *statement =
            put(draft, sentence->level, sentence->code, str_of(sentence->topic));
        statement->gpu_ns = gpu_ns;
        statement->money = money;
    }
    if (draft->report->residual) {
        strbuf_add(&draft->text,
                   STR("the CPU and memory part of the nodes' prices is taken off and stands in "
                       "no row and in no balance"));
        put(draft, STATEMENT_INFO, "residual", STR("prices"));
    }
}

/* ---- of what is not known ---- */

static void say_unknown(struct draft *draft)
{
    const struct figures *total = all_rows(draft->report);
    wide_t blind = total->gpu_held_ns - total->gpu_observed_held_ns;
    money_t unobserved = total->category[CATEGORY_UNOBSERVED];
    if (unobserved > 0 || blind > 0) {
        if (unobserved > 0) {
            add_amount(draft, unobserved);
            strbuf_add(&draft->text, STR(" is covered by no telemetry"));
        }
        if (blind > 0) {
            strbuf_add(&draft->text, str_of(unobserved > 0 ? "; " : ""));
            add_hours(draft, blind);
            strbuf_add(&draft->text, STR(" were held and not observed"));
        }
        struct statement *statement =
            put(draft, STATEMENT_CAUTION, "unobserved", STR("unobserved"));
        statement->gpu_ns = blind;
        statement->money = unobserved;
    }
    money_t unattributed = total->category[CATEGORY_UNATTRIBUTED];
    if (unattributed > 0) {
        add_amount(draft, unattributed);
        strbuf_add(&draft->text, STR(" of GPUs at work that no pod held: processes outside "
                                     "Kubernetes, or lost labels"));
        put(draft, STATEMENT_CAUTION, "unattributed", STR("unattributed"))->money = unattributed;
    }
}

static void say_unowned(struct draft *draft)
{
    const struct result *overview = draft->report->overview;
    struct figures sum = {0};
    for (size_t i = 0; overview && i < overview->groups_n; i++)
        if (str_eq(overview->groups[i].keys[1], STR("unowned")))
            figures_add(&sum, &overview->groups[i].figures);
    if (sum.rows == 0)
        return;
    add_amount(draft, sum.cost);
    strbuf_add(&draft->text, STR(", "));
    add_hours(draft, sum.gpu_ns);
    strbuf_add(&draft->text, STR(", of pods that no owner rule matches"));
    struct statement *statement = put(draft, STATEMENT_CAUTION, "unowned", STR("unowned"));
    statement->gpu_ns = sum.gpu_ns;
    statement->money = sum.cost;
}

/* ---- of what the sources said ---- */

static const struct note_words {
    int kind;
    enum statement_level level;
    const char *code, *topic;
} note_words[] = {
    {NOTE_PARTIAL, STATEMENT_MISSING, "partial", "partial"},
    {NOTE_REJECTED, STATEMENT_CAUTION, "rejected", "rejected"},
    {NOTE_GUESS, STATEMENT_CAUTION, "guess", "guessed"},
    {NOTE_LATE_LABELS, STATEMENT_CAUTION, "late-labels", "late labels"},
    {NOTE_FROZEN, STATEMENT_CAUTION, "frozen", "frozen exporters"},
    {NOTE_UNPLACED, STATEMENT_CAUTION, "unplaced", "work without a row"},
    {NOTE_INFO, STATEMENT_INFO, "info", "note"},
};
#define NOTE_WORDS_N (sizeof note_words / sizeof *note_words)

static void say_notes(struct draft *draft)
{
    const struct result *result = draft->report->result;
    for (size_t k = 0; k < NOTE_WORDS_N; k++)
        for (size_t i = 0; i < result->notes_n; i++) {
            const struct note *note = &result->notes[i];
            if (note->kind != note_words[k].kind)
                continue;
            strbuf_add(&draft->text, names_text(result->names, note->text));
            struct statement *statement =
                put(draft, note_words[k].level, note_words[k].code, str_of(note_words[k].topic));
            statement->subject = names_text(result->names, note->subject);
            statement->count = note->count;
        }
}

/* Notes of one kind and text. */
struct note_group {
    const struct note **notes; /* the largest first */
    size_t n;
    int64_t count;
};

static int by_text_then_count(const void *a, const void *b, void *context)
{
    const struct note *x = *(const struct note *const *)a, *y = *(const struct note *const *)b;
    const struct names *names = context;
    if (x->text != y->text)
        return str_cmp(names_text(names, x->text), names_text(names, y->text));
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return str_cmp(names_text(names, x->subject), names_text(names, y->subject));
}

static int larger_group_first(const void *a, const void *b)
{
    const struct note_group *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->notes > y->notes) - (x->notes < y->notes); /* in order of their texts */
}

/* "1,204 samples without a time stamp (a.om, b.om and 3 more)"; a count of 1 goes without saying.
 */
static void add_note_group(struct draft *draft, const struct note_group *group)
{
    const struct names *names = draft->report->result->names;
    if (group->count > 1) {
        text_count(&draft->text, group->count);
        strbuf_addc(&draft->text, ' ');
    }
    strbuf_add(&draft->text, names_text(names, group->notes[0]->text));
    size_t shown = 0;
    for (; shown < group->n && shown < EXAMPLES_MAX; shown++) {
        struct str subject = names_text(names, group->notes[shown]->subject);
        if (subject.n == 0)
            break;
        strbuf_addf(&draft->text, "%s%.*s", shown ? ", " : " (", STR_ARG(subject));
    }
    if (shown && shown < group->n) {
        strbuf_add(&draft->text, STR(" and "));
        text_count(&draft->text, (wide_t)(group->n - shown));
        strbuf_add(&draft->text, STR(" more"));
    }
    if (shown)
        strbuf_addc(&draft->text, ')');
}

static void roll_up(struct draft *draft, const struct note_words *words, const struct note **notes,
                    size_t n)
{
    struct note_group *groups = mem_zalloc(n, sizeof *groups);
    size_t groups_n = 0;
    int64_t sum = 0;
    qsort_r(notes, n, sizeof *notes, by_text_then_count, draft->report->result->names);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || notes[i]->text != notes[i - 1]->text)
            groups[groups_n++] = (struct note_group){.notes = notes + i};
        groups[groups_n - 1].n++;
        groups[groups_n - 1].count += notes[i]->count;
        sum += notes[i]->count;
    }
    qsort(groups, groups_n, sizeof *groups, larger_group_first);
    for (size_t i = 0; i < groups_n && i < EXAMPLES_MAX; i++) {
        strbuf_add(&draft->text, str_of(i ? "; " : ""));
        add_note_group(draft, &groups[i]);
    }
    if (groups_n > EXAMPLES_MAX) {
        strbuf_add(&draft->text, STR("; and "));
        text_count(&draft->text, (wide_t)(groups_n - EXAMPLES_MAX));
        strbuf_add(&draft->text, STR(" more (--output json has all)"));
    }
    put(draft, words->level, words->code, str_of(words->topic))->count = sum;
    free(groups);
}

static void say_notes_rolled_up(struct draft *draft)
{
    const struct result *result = draft->report->result;
    const struct note **notes = mem_zalloc(result->notes_n + 1, sizeof *notes);
    for (size_t k = 0; k < NOTE_WORDS_N; k++) {
        size_t n = 0;
        for (size_t i = 0; i < result->notes_n; i++)
            if (result->notes[i].kind == note_words[k].kind)
                notes[n++] = &result->notes[i];
        if (n)
            roll_up(draft, &note_words[k], notes, n);
    }
    free(notes);
}

static void build(const struct report *report, struct statements *list, bool rolled_up)
{
    struct draft draft = {.report = report, .list = list};
    say_recorded(&draft);
    if (rolled_up)
        say_notes_rolled_up(&draft);
    else
        say_notes(&draft);
    say_unpriced(&draft);
    say_problems(&draft);
    say_flags(&draft);
    say_unknown(&draft);
    say_unowned(&draft);
    strbuf_release(&draft.text);
    /* The worst first, otherwise as they were said. */
    struct statement *sorted = mem_zalloc(list->n + 1, sizeof *sorted);
    size_t n = 0;
    for (int level = STATEMENT_MISSING; level <= STATEMENT_INFO; level++)
        for (size_t i = 0; i < list->n; i++)
            if ((int)list->items[i].level == level)
                sorted[n++] = list->items[i];
    free(list->items);
    list->items = sorted;
    list->room = list->n + 1;
}

void statements_of(const struct report *report, struct statements *list)
{
    build(report, list, false);
}

void statements_for_people(const struct report *report, struct statements *list)
{
    build(report, list, true);
}

void statements_release(struct statements *list)
{
    free(list->items);
    arena_release(&list->arena);
    *list = (struct statements){0};
}

/* ---- first and last line ---- */

static void add_name(const struct report *report, struct strbuf *out)
{
    const struct result *overview = report->overview;
    struct str name = STR_NONE;
    size_t clusters = 0;
    for (size_t i = 0; overview && i < overview->groups_n; i++) {
        struct str cluster = overview->groups[i].keys[0];
        if (clusters && str_eq(cluster, name))
            continue;
        bool known = false;
        for (size_t k = 0; k < i && !known; k++)
            known = str_eq(cluster, overview->groups[k].keys[0]);
        clusters += !known;
        name = cluster;
    }
    if (clusters > 1)
        text_plural(out, (wide_t)clusters, "cluster", "clusters");
    else if (clusters == 1 && !str_eq(name, STR("-")))
        text_clean(out, name);
    else if (report->title)
        text_clean(out, str_of(report->title));
    else
        strbuf_add(out, STR("gputally"));
}

static void add_window(const struct report *report, struct strbuf *out)
{
    struct span window = report->result->query.window;
    const struct zone *zone = NULL;
    if (!report->tz || strcmp(report->tz, "UTC") == 0 || zone_load(report->tz, &zone, NULL)) {
        text_time(out, window.from);
        strbuf_add(out, STR(" to "));
        text_time(out, window.to);
        return;
    }
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    time_format(window.from + zone_offset(zone, window.from), from);
    time_format(window.to + zone_offset(zone, window.to), to);
    strbuf_addf(out, "%.10s %.5s to %.10s %.5s %s", from, from + 11, to, to + 11, report->tz);
}

void report_headline(const struct report *report, struct strbuf *out)
{
    const struct result *result = report->result;
    wide_t coverage;
    add_name(report, out);
    strbuf_add(out, STR(" · "));
    add_window(report, out);
    strbuf_add(out, STR(" · "));
    text_plural(out, (wide_t)result->gpus, "GPU on ", "GPUs on ");
    text_plural(out, (wide_t)result->nodes, "node", "nodes");
    strbuf_add(out, STR(" · "));
    if (figure_get(all_rows(report), FIGURE_COVERAGE, &coverage)) {
        text_percent(out, (int64_t)coverage, 1);
        strbuf_add(out, STR(" observed"));
    } else
        strbuf_add(out, STR("nothing held"));
}

void report_balance(const struct report *report, struct strbuf *out)
{
    const struct result *result = report->result;
    int places = result->price >= NANO || result->price == 0 ? 2 : 4;
    if (result->booked == result->price) {
        strbuf_add(out, STR("balanced: every one of "));
        text_plural(out, (wide_t)result->node_hours, "node-hour", "node-hours");
        strbuf_add(out, STR(" is booked once ("));
    } else {
        strbuf_add(out,
                   STR("NOT BALANCED, which is a bug of gputally: please report it. Booked ("));
        places = 9;
    }
    text_money(out, result->booked, places, report->currency);
    strbuf_add(out, STR(" of "));
    text_money(out, result->price, places, report->currency);
    strbuf_addc(out, ')');
}
