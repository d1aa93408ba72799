/* Exposition text to values, one thread: the same targets scraped again, labels never seen, and
 * a file in which each series' samples stand together. Medians of RUNS. */
#include "bench_data.h"
#include "wire/promtext.h"

#define GPUS 1000
#define STEPS 240
#define RUNS 11
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

/* fresh: forget all heads before each run. */
static void bench(const char *name, struct str text, bool fresh, int counter)
{
    struct sums sums = {0};
    struct promtext_sink sink = {&sums, on_series, on_samples, NULL};
    struct promtext *x = promtext_new(PROMTEXT_OPENMETRICS, &sink);
    double seconds[RUNS], instructions[RUNS];
    read_text(x, text);
    for (int run = 0; run < RUNS; run++) {
        if (fresh)
            promtext_forget(x);
        sums.samples = 0;
        double before = bench_count(counter), start = bench_now();
        read_text(x, text);
        seconds[run] = bench_now() - start;
        instructions[run] = bench_count(counter) - before;
    }
    double s = bench_median(seconds, RUNS), n = (double)sums.samples;
    printf("promtext %-12s %7.0f MB/s %6.2f M samples/s %6.1f ns/sample %6.0f instructions/sample "
           "(%zu MB, %.0f heads tokenised a run)\n",
           name, (double)text.n / s / 1e6, n / s / 1e6, s / n * 1e9,
           bench_median(instructions, RUNS) / n, text.n / 1000000,
           (double)promtext_stats(x)->heads);
    promtext_free(x);
}

int main(void)
{
    uint64_t seed = 42;
    int counter = bench_counter();
    struct strbuf text = {0};
    bench_scrape(&text, GPUS, &seed);
    bench("known", strbuf_str(&text), false, counter);
    bench("unseen", strbuf_str(&text), true, counter);
    strbuf_clear(&text);
    bench_openmetrics(&text, 40, STEPS, &seed);
    bench("file", strbuf_str(&text), true, counter);
    strbuf_release(&text);
    return 0;
}
