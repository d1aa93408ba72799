/* Exposition text to values, one thread: the same targets scraped again, labels never seen, and
 * a file in which each series' samples stand together. */
#include "bench_data.h"
#include "measure.h"
#include "wire/promtext.h"

#define GPUS 1000
#define STEPS 240
#define PIECE ((size_t)256 << 10)

struct sums {
    uint32_t series;
    uint64_t samples, label_bytes;
    double sum;
};

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct sums *sums = context;
    for (size_t i = 0; i < n; i++)
        sums->label_bytes += labels[i].name.n + labels[i].value.n;
    return sums->series++;
}

static void on_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                       size_t n)
{
    struct sums *sums = context;
    (void)id;
    (void)t;
    sums->samples += n;
    for (size_t i = 0; i < n; i++)
        sums->sum += v[i];
}

static void read_text(struct promtext *x, struct str text)
{
    promtext_begin(x, 1780272000000);
    for (size_t i = 0; i < text.n; i += PIECE)
        promtext_feed(x, (struct str){text.p + i, text.n - i < PIECE ? text.n - i : PIECE});
    promtext_finish(x);
}

struct job {
    struct promtext *x;
    struct str text;
    bool fresh; /* forget all heads before each run */
    struct sums *sums;
};

static void run(void *context)
{
    struct job *job = context;
    if (job->fresh)
        promtext_forget(job->x);
    job->sums->samples = 0;
    read_text(job->x, job->text);
}

static void bench(const char *name, struct str text, bool fresh)
{
    struct sums sums = {0};
    struct promtext_sink sink = {&sums, on_series, on_samples, NULL};
    struct job job = {promtext_new(PROMTEXT_OPENMETRICS, &sink), text, fresh, &sums};
    measure(name, "byte", (double)text.n, run, &job);
    fprintf(stderr, "%s: %zu MB, %.0f bytes a sample, %.0f heads tokenised a run\n", name,
            text.n / 1000000, (double)text.n / (double)sums.samples,
            (double)promtext_stats(job.x)->heads);
    promtext_free(job.x);
}

int main(void)
{
    uint64_t seed = 42;
    struct strbuf text = {0};
    bench_scrape(&text, GPUS, &seed);
    bench("exposition text, known targets", strbuf_str(&text), false);
    bench("exposition text, labels unseen", strbuf_str(&text), true);
    strbuf_clear(&text);
    bench_openmetrics(&text, 40, STEPS, &seed);
    bench("OpenMetrics file, series together", strbuf_str(&text), true);
    strbuf_release(&text);
    return 0;
}
