/* A matrix of the query API to values, one thread: what range selectors in instant queries answer
 * where there is no remote read. */
#include "bench_data.h"
#include "measure.h"
#include "wire/query_json.h"

#define SERIES 400
#define STEPS 2880
#define PIECE ((size_t)64 << 10)

struct job {
    struct strbuf text;
    uint64_t samples;
    double sum;
};

static bool on_series(void *context, const struct label *labels, size_t n)
{
    (void)context;
    return n > 0 && labels[0].name.n > 0;
}

static void on_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct job *job = context;
    (void)t;
    job->samples += n;
    for (size_t i = 0; i < n; i++)
        job->sum += v[i];
}

static void run(void *context)
{
    struct job *job = context;
    struct query_json_sink sink = {job, on_series, on_samples, NULL};
    struct query_json *x = query_json_new(&sink);
    struct str text = strbuf_str(&job->text);
    job->samples = 0;
    for (size_t i = 0; i < text.n; i += PIECE)
        if (query_json_feed(x, (struct str){text.p + i, text.n - i < PIECE ? text.n - i : PIECE},
                            NULL))
            abort();
    if (query_json_finish(x, NULL))
        abort();
    query_json_free(x);
}

/* digits: significant digits of the values, 0 for whole numbers. */
static void bench(const char *name, int digits)
{
    struct job job = {0};
    uint64_t seed = 42;
    strbuf_addf(&job.text,
                "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
    for (int s = 0; s < SERIES; s++) {
        strbuf_addf(
            &job.text,
            "%s{\"metric\":{\"__name__\":\"DCGM_FI_PROF_GR_ENGINE_ACTIVE\",\"UUID\":"
            "\"GPU-%032d\",\"Hostname\":\"gpu-h100-n%d\",\"pod\":\"train-%d\"},\"values\":[",
            s ? "," : "", s, s / 8, s / 16);
        for (int i = 0; i < STEPS; i++) {
            double v = bench_unit(&seed);
            strbuf_addf(&job.text, digits ? "%s[%d.%03d,\"%.*g\"]" : "%s[%d.%03d,\"%.*f\"]",
                        i ? "," : "", 1780272000 + 30 * i, s % 1000, digits, digits ? v : v * 100);
        }
        strbuf_addf(&job.text, "]}");
    }
    strbuf_addf(&job.text, "]}}");
    measure(name, "byte", (double)job.text.n, run, &job);
    fprintf(stderr, "%s: %zu MB, %.1f bytes a sample\n", name, job.text.n / 1000000,
            (double)job.text.n / (double)job.samples);
    strbuf_release(&job.text);
}

int main(void)
{
    bench("query JSON to values, percents", 0);
    bench("query JSON to values, ratios of 6 digits", 6);
    bench("query JSON to values, doubles of 17 digits", 17);
    return 0;
}
