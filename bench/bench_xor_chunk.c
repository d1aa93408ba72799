/* XOR chunks to columns, one thread: what a week of a fleet looks like in a server's chunks of 120
 * samples, a sample every 30 s. Noise on power and ratios, whole numbers, constants. */
#include "../tests/lib/xor_encode.h"
#include "bench_data.h"
#include "measure.h"
#include "wire/xor_chunk.h"

#define SERIES 200
#define CHUNKS 40
#define SAMPLES 120
#define BYTES_MAX ((size_t)SAMPLES * 20 + 32)

struct chunks {
    struct str data[BENCH_FAMILIES * SERIES * CHUNKS];
    size_t n, bytes;
    double sum;
};

static void decode_all(void *context)
{
    struct chunks *chunks = context;
    static time_ms t[SAMPLES];
    static double v[SAMPLES];
    size_t n;
    double sum = 0;
    for (size_t i = 0; i < chunks->n; i++) {
        if (xor_chunk_decode(chunks->data[i], t, v, SAMPLES, &n, NULL))
            abort();
        sum += v[n - 1];
    }
    chunks->sum = sum;
}

/* Samples of one family, appended to chunks. */
static void make_family(struct chunks *chunks, struct arena *arena, size_t family, uint64_t *seed)
{
    time_ms t[SAMPLES];
    double v[SAMPLES], energy = 1e9;
    for (size_t s = 0; s < SERIES; s++)
        for (size_t c = 0; c < CHUNKS; c++) {
            for (size_t i = 0; i < SAMPLES; i++) {
                char text[64];
                t[i] = 1780272000000 + (time_ms)(c * SAMPLES + i) * 30000;
                v[i] = bench_value(family, seed);
                energy += 1e7 * bench_unit(seed);
                snprintf(text, sizeof text, "%.*f", bench_families[family].decimals,
                         family == 9 ? energy : v[i]);
                v[i] = strtod(text, NULL);
            }
            struct xor_encoder to = {arena_zalloc(arena, BYTES_MAX), 0};
            struct str data = xor_encode(&to, t, v, SAMPLES);
            chunks->data[chunks->n++] = data;
            chunks->bytes += data.n;
        }
}

static void bench(const char *name, struct chunks *chunks)
{
    double samples = (double)chunks->n * SAMPLES;
    fprintf(stderr, "xor_chunk %s: %.0f samples, %.2f bytes a sample\n", name, samples,
            (double)chunks->bytes / samples);
    measure(name, "sample", samples, decode_all, chunks);
}

int main(void)
{
    static struct chunks all, ratio, whole;
    struct arena arena = {0};
    uint64_t seed = 42;
    for (size_t f = 0; f < BENCH_FAMILIES; f++)
        make_family(&all, &arena, f, &seed);
    make_family(&ratio, &arena, 7, &seed);
    make_family(&whole, &arena, 0, &seed);
    bench("XOR chunks to values, ten DCGM families", &all);
    bench("XOR chunks to values, noisy ratios", &ratio);
    bench("XOR chunks to values, noisy percents", &whole);
    arena_release(&arena);
    return 0;
}
