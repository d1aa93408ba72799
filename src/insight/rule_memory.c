/* A smaller GPU: the workload would fit another model of the catalogue, with less memory, that its
 * cloud and region rent for less by the work that it does.
 *
 * Its peaks are carried over to the other model, each by what it is bound by:
 *
 *     SM activity      x SMs here       / SMs there         the threads that run at one time
 *     tensor activity  x TFLOPS here    / TFLOPS there      multiplications
 *     DRAM activity    x bandwidth here / bandwidth there   bytes of memory
 *
 * and must stay below a limit there. Of tensor and DRAM activity only means are kept; their peaks
 * are thought to be as far above them as the peak of SM activity is above its mean. Where one of
 * them is not exported, SM activity stands in, which is hardly ever below it.
 *
 * Price an hour says little: what does not answer requests but ends takes longer on a slower chip.
 * Its hours are stretched by the slower of compute and bandwidth for as much of them as a kernel
 * ran, and it is the cost of the work that must be less. */
#include <stdlib.h>

#include "insight/need.h"

static const struct need_limits limits = {
    THRESHOLD_SMALLER_GPU_OBSERVED, THRESHOLD_SMALLER_GPU_PERCENTILE,
    THRESHOLD_SMALLER_GPU_HEADROOM, THRESHOLD_SMALLER_GPU_PREALLOCATED,
    THRESHOLD_SMALLER_GPU_KV_SHARE};

enum load { LOAD_SM, LOAD_TENSOR, LOAD_DRAM, LOAD_COUNT };

/* A model that is looked at in place of the one it has. */
struct choice {
    struct price_offer offer;
    int64_t loads[LOAD_COUNT]; /* 1e-9 of the chip there, at the peak */
    int64_t stretch;           /* 1e-9: its hours there by those here */
    size_t machines;
    wide_t cost; /* nano an hour of now, for all of its GPUs */
};

struct search {
    const struct books *books;
    const struct book_workload *of;
    const struct book_node *node;
    const struct gpu_model *gpu;
    struct need need;
    size_t copies;
    int64_t peaks[LOAD_COUNT]; /* 1e-9, here */
    bool known[LOAD_COUNT];    /* exported; else SM activity stands in */
    bool ends;                 /* it ends sooner or later as it gets on, rather than serving */
    bool smaller, fits, fast;  /* some offer was: has less memory, has enough, is fast enough */
    bool found;
    struct choice best;
};

static int64_t least(wide_t value, int64_t most)
{
    return value < most ? (int64_t)value : most;
}

/* The mean of a measure, as far above itself as the peak of SM activity is above its own mean. */
static void find_peak(struct search *search, enum load load, enum measure measure)
{
    const struct book_sum *sum = &search->of->sum;
    int64_t peak = search->peaks[LOAD_SM], seen = sum->measure_seen_ms[measure];
    search->known[load] = 10 * (wide_t)seen >= 9 * (wide_t)sum->observed_ms && sum->u > 0;
    wide_t mean = search->known[load] ? sum->measure[measure] / seen : 0;
    wide_t u = sum->observed_ms > 0 ? sum->u / sum->observed_ms : 0;
    search->peaks[load] =
        search->known[load] && u > 0 ? least(mean * peak / u, NANO) : search->peaks[LOAD_SM];
}

static void find_peaks(struct search *search)
{
    search->peaks[LOAD_SM] = (int64_t)search->need.peak_percent * (NANO / 100);
    search->known[LOAD_SM] = true;
    find_peak(search, LOAD_TENSOR, MEASURE_TENSOR);
    find_peak(search, LOAD_DRAM, MEASURE_DRAM);
}

/* What of a model a load is of. */
static int64_t capacity(const struct gpu_model *gpu, enum load load)
{
    return load == LOAD_SM ? gpu->sms : load == LOAD_TENSOR ? gpu->gflops : gpu->bandwidth_gbs;
}

static bool is_known(const struct gpu_model *gpu)
{
    return gpu->sms > 0 && gpu->gflops > 0 && gpu->bandwidth_gbs > 0;
}

/* 1e-9: how much longer a kernel takes there that is bound by compute or by bandwidth. */
static int64_t slowdown(const struct gpu_model *here, const struct gpu_model *there)
{
    int64_t most = NANO;
    for (enum load load = LOAD_TENSOR; load <= LOAD_DRAM; load++) {
        wide_t each = (wide_t)NANO * capacity(here, load) / capacity(there, load);
        most = each > most ? (int64_t)each : most;
    }
    return most;
}

static bool is_fast_enough(struct search *search, const struct gpu_model *there,
                           struct choice *choice)
{
    int64_t limit = books_threshold(search->books, THRESHOLD_SMALLER_GPU_LOAD);
    const struct book_sum *sum = &search->of->sum;
    bool fine = true;
    for (enum load load = 0; load < LOAD_COUNT; load++) {
        wide_t scaled = (wide_t)search->peaks[load] * capacity(search->gpu, load);
        choice->loads[load] = (int64_t)(scaled / capacity(there, load));
        fine &= choice->loads[load] <= limit;
    }
    choice->stretch = NANO;
    if (!search->ends)
        return fine;
    wide_t busy = sum->observed_ms > 0 ? sum->e / sum->observed_ms : NANO;
    choice->stretch += (int64_t)(busy * (slowdown(search->gpu, there) - NANO) / NANO);
    return true; /* it takes as long as it takes */
}

/* Are there CPUs enough for as many of its pods as the machine has GPUs? */
static bool has_cpus(const struct search *search, const struct price_offer *offer)
{
    int64_t each = search->of->load.cpu_limit_mcpu;
    int64_t pods = search->copies < (size_t)offer->gpus ? (int64_t)search->copies : offer->gpus;
    return each <= 0 || offer->vcpus_milli < 0 || each * pods <= offer->vcpus_milli;
}

static void take_offer(void *context, const struct price_offer *offer)
{
    struct search *search = context;
    const struct gpu_model *there = offer->gpu;
    struct choice choice = {.offer = *offer};
    if (!there || there->memory_bytes >= search->gpu->memory_bytes ||
        !str_eq(there->vendor, search->gpu->vendor) || !is_known(there) ||
        (search->gpu->bf16 && !there->bf16))
        return;
    search->smaller = true;
    if (!need_fits(search->books, &search->need, &limits, there->memory_bytes))
        return;
    search->fits = true;
    if (!has_cpus(search, offer) || !is_fast_enough(search, there, &choice))
        return;
    search->fast = true;
    choice.machines = (search->copies + (size_t)offer->gpus - 1) / (size_t)offer->gpus;
    choice.cost = (wide_t)offer->price * (wide_t)choice.machines * choice.stretch / NANO;
    bool better = !search->found || choice.cost < search->best.cost ||
                  (choice.cost == search->best.cost &&
                   str_cmp(offer->instance_type, search->best.offer.instance_type) < 0);
    if (better)
        search->best = choice;
    search->found = true;
}

static bool is_looked_at(const struct books *books, const struct book_workload *of)
{
    const struct book_sum *sum = &of->sum;
    if (!books_is_now(books, sum->last) || sum->shared || sum->cost <= 0 ||
        !book_is_judged(books, sum, THRESHOLD_SMALLER_GPU_HELD, limits.observed))
        return false;
    const struct gpu_model *gpu = catalogue_gpu(names_text(books->names, of->model));
    int64_t total = sum->mem_total_bytes ? sum->mem_total_bytes : gpu ? gpu->memory_bytes : 0;
    int64_t oversized = books_threshold(books, THRESHOLD_SMALLER_GPU_MEMORY);
    bool taken =
        of->type == WORKLOAD_INFERENCE &&
        ratio_reached(sum->mem_max_bytes, total, books_threshold(books, limits.preallocated));
    bool large = (wide_t)sum->mem_max_bytes * NANO < (wide_t)total * oversized;
    return taken || large || !total;
}

/* Is something else said of it that goes before its size? */
static bool is_idle(const struct findings *findings, struct str subject)
{
    static const enum rule_id before[] = {RULE_IDLE_SERVER, RULE_IDLE_WORKLOAD, RULE_IDLE_NOTEBOOK,
                                          RULE_BUSY_USELESS};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (finding_exists(findings, before[i], subject))
            return true;
    return false;
}

/* Why it is not even looked for; NULL: it is. */
static const char *refused(const struct search *search)
{
    const struct book_workload *of = search->of;
    if (of->type == WORKLOAD_TRAINING)
        return "training: batch size, precision and data loading come first";
    if (of->gpus_a_pod > 1)
        return "a pod of it runs across GPUs: what links the GPUs of a smaller model is not known";
    if (!search->gpu || !is_known(search->gpu))
        return "what its GPU model can do is not in the catalogue";
    if (search->need.why)
        return search->need.why;
    if (search->node->flags & FLAG_UNPRICED || search->node->gpus <= 0)
        return "its node has no price";
    if (search->node->facts.cloud == NAME_NONE || search->node->facts.region == NAME_NONE)
        return "its cloud and region are not known, so that no other machine has a price";
    return NULL;
}

static const char *none_found(const struct search *search)
{
    return !search->smaller ? "no GPU with less memory is offered in its cloud and region"
           : !search->fits  ? "no smaller GPU that is offered there has memory enough for its peak"
           : !search->fast  ? "the smaller GPUs that are offered there are too slow for its peak"
                            : "the work would cost no less on a smaller GPU that is offered there";
}

static wide_t cost_now(const struct search *search)
{
    return (wide_t)search->node->price * (wide_t)search->copies / search->node->gpus;
}

static struct str scaled(struct findings *findings, const struct search *search, enum load load)
{
    static const char *const units[] = {"SMs", "TFLOPS", "GB/s"};
    const struct choice *best = &search->best;
    int unit = load == LOAD_TENSOR ? 1000 : 1;
    return finding_text(findings, "%.*s x %lld / %lld %s = %.*s%s",
                        STR_ARG(finding_percent(findings, search->peaks[load], NANO)),
                        (long long)(capacity(search->gpu, load) / unit),
                        (long long)(capacity(best->offer.gpu, load) / unit), units[load],
                        STR_ARG(finding_percent(findings, best->loads[load], NANO)),
                        search->known[load] ? "" : " (SM activity stands in)");
}

static void evidence(struct findings *findings, struct finding *finding,
                     const struct search *search)
{
    static const char *const names[] = {"SM activity there", "tensor activity there",
                                        "DRAM activity there"};
    const struct choice *best = &search->best;
    need_evidence(findings, finding, &search->need, &limits);
    finding_evidence(findings, finding, "memory of the smaller GPU",
                     finding_gib(findings, best->offer.gpu->memory_bytes), "peak and the headroom");
    for (enum load load = 0; load < LOAD_COUNT; load++) {
        struct str text = scaled(findings, search, load);
        if (search->ends)
            finding_evidence(findings, finding, names[load], text, "");
        else
            finding_evidence_at(findings, finding, names[load], text, THRESHOLD_SMALLER_GPU_LOAD);
    }
    if (search->ends)
        finding_evidence(findings, finding, "hours there by hours here",
                         finding_percent(findings, best->stretch, NANO), "");
    finding_coverage(findings, finding, &search->of->sum, limits.observed);
}

static void say_doubts(struct findings *findings, struct finding *finding,
                       const struct search *search)
{
    const struct gpu_model *there = search->best.offer.gpu;
    bool all = search->known[LOAD_TENSOR] && search->known[LOAD_DRAM];
    if (!all || there->low_confidence || search->gpu->low_confidence)
        finding->confidence = CONFIDENCE_LOW;
    finding->reasons =
        finding_text(findings, "%s%.*s; figures of the models: %.*s and %.*s; %.*s",
                     all ? "" : "tensor or DRAM activity is not exported, SM activity stands in; ",
                     STR_ARG(search->of->load.cpu_limit_mcpu > 0
                                 ? STR("what memory its host needs is unchecked")
                                 : STR("what CPUs and memory its host needs is unchecked")),
                     STR_ARG(search->gpu->specs), STR_ARG(there->specs), STR_ARG(finding->reasons));
    need_doubts(findings, finding, &search->need, &limits, there->memory_bytes);
}

static void say_money(struct findings *findings, struct finding *finding,
                      const struct search *search)
{
    const struct choice *best = &search->best;
    const struct price_offer *offer = &best->offer;
    struct str source = finding_offer_source(findings, offer);
    finding->arithmetic = finding_text(
        findings,
        "%zu GPU%s: %.*s an hour now, %zu x %.*s (%.*s, %.*s)%s there: %.*s an hour of now; the "
        "difference is %.*s of %.*s a month",
        search->copies, search->copies == 1 ? "" : "s",
        STR_ARG(finding_money(findings, (money_t)cost_now(search))), best->machines,
        STR_ARG(finding_money(findings, offer->price)), STR_ARG(offer->instance_type),
        STR_ARG(source), search->ends ? " x the longer hours" : "",
        STR_ARG(finding_money(findings, (money_t)best->cost)),
        STR_ARG(finding_percent(findings, cost_now(search) - best->cost, cost_now(search))),
        STR_ARG(finding_money(findings, finding->month)));
    finding->depends = STR("the GPUs that it leaves being used by others, or their nodes removed");
}

static struct str times(struct findings *findings, int64_t ratio)
{
    long long tenths = (long long)((ratio + NANO / 20) / (NANO / 10));
    return finding_text(findings, "%lld.%lld", tenths / 10, tenths % 10);
}

static void found(const struct books *books, struct findings *findings, const struct search *search)
{
    const struct choice *best = &search->best;
    const struct book_sum *sum = &search->of->sum;
    const struct gpu_model *there = best->offer.gpu;
    struct finding *finding =
        finding_add(findings, RULE_SMALLER_GPU, finding_workload(findings, search->of),
                    names_text(books->names, search->of->owner));
    finding->window_cost = sum->cost;
    finding->month = books_month(books, sum->first, sum->cost);
    finding->what = finding_text(findings, "fits a %.*s in place of its %.*s", STR_ARG(there->name),
                                 STR_ARG(search->gpu->name));
    evidence(findings, finding, search);
    finding_price(findings, finding, search->node);
    say_money(findings, finding, search);
    finding->remedy = REMEDY_INSTANCE_TYPE;
    finding->target = finding_text(findings, "%.*s", STR_ARG(best->offer.instance_type));
    finding->action =
        finding_text(findings, "run it on a %.*s: %zu x %.*s, %d GPU%s each", STR_ARG(there->name),
                     best->machines, STR_ARG(best->offer.instance_type), best->offer.gpus,
                     best->offer.gpus == 1 ? "" : "s");
    finding->risk = finding_text(
        findings, "medium: a kernel takes up to %.*s times as long there%s; try one pod first",
        STR_ARG(times(findings, slowdown(search->gpu, there))),
        search->ends ? "" : ", and so does a request");
    say_doubts(findings, finding, search);
    for (size_t c = 0; c < search->of->cells_n; c++) {
        const struct book_cell *cell = &books->cells[search->of->cells[c]];
        money_t month = books_month(books, sum->first, cell->cost);
        wide_t now = cost_now(search);
        money_t saved = now > 0 ? (money_t)((wide_t)month * (now - best->cost) / now) : 0;
        finding_claim_kept(finding, search->of->cells[c], saved, month - saved);
    }
}

static size_t gpus_now(const struct books *books, const struct book_workload *of)
{
    size_t n = 0;
    for (size_t c = 0; c < of->cells_n; c++)
        n += books_is_now(books, books->cells[of->cells[c]].last);
    return n;
}

static void look_at(const struct books *books, struct findings *findings,
                    const struct book_workload *of)
{
    size_t last = of->cells[of->cells_n - 1];
    struct search search = {.books = books,
                            .of = of,
                            .node = &books->nodes[books->cells[last].node_index],
                            .gpu = catalogue_gpu(names_text(books->names, of->model)),
                            .copies = gpus_now(books, of),
                            .ends = of->type == WORKLOAD_OTHER};
    need_of(books, of, search.gpu, &limits, &search.need);
    find_peaks(&search);
    const char *why = refused(&search);
    if (!why) {
        const struct price_query where = {
            .cloud = names_text(books->names, search.node->facts.cloud),
            .region = names_text(books->names, search.node->facts.region),
            .at = books->window.to - 1};
        prices_offers(books->prices, &where, take_offer, &search);
        int64_t saving = books_threshold(books, THRESHOLD_SMALLER_GPU_SAVING);
        bool less =
            search.found &&
            ratio_reached(cost_now(&search) - search.best.cost, cost_now(&search), saving) &&
            search.best.cost < cost_now(&search);
        why = less ? NULL : none_found(&search);
    }
    if (why)
        refusal_add(findings, RULE_SMALLER_GPU, finding_workload(findings, of),
                    names_text(books->names, of->owner), why);
    else
        found(books, findings, &search);
}

void rule_smaller_gpu(const struct books *books, struct findings *findings)
{
    for (size_t i = 0; i < books->workloads_n; i++) {
        const struct book_workload *of = &books->workloads[i];
        if (is_looked_at(books, of) && !is_idle(findings, finding_workload(findings, of)))
            look_at(books, findings, of);
    }
}
