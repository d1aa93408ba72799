/* How a benchmark measures: the median of several runs of a function, its CPU time, instructions
 * where the machine counts them, and one JSON line for bench/run.
 *
 *     measure("xor chunks to values", "sample", n, decode_all, &data);
 *
 * prints {"name": …, "unit": "sample", "work": n, "runs": 7, "median_s": …, "min_s": …, "max_s": …,
 * "cpu_s": …, "instructions": … or null}. GPUTALLY_BENCH_RUNS sets the number of runs. */
#ifndef GPUTALLY_BENCH_MEASURE_H
#define GPUTALLY_BENCH_MEASURE_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MEASURE_RUNS 7
#define MEASURE_RUNS_MAX 101

typedef void (*measure_fn)(void *context);

static inline double measure_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A counter of instructions of this process in user mode; -1 where there is none. */
static inline int measure_counter(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static inline int64_t measure_count(int counter)
{
    int64_t count;
    if (counter < 0 || read(counter, &count, sizeof count) != sizeof count)
        return -1;
    return count;
}

static inline int measure_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One run that is not counted, then the counted ones. work: units of work of one run. */
static inline void measure(const char *name, const char *unit, double work, measure_fn run,
                           void *context)
{
    double wall[MEASURE_RUNS_MAX], cpu[MEASURE_RUNS_MAX], instructions[MEASURE_RUNS_MAX];
    const char *text = getenv("GPUTALLY_BENCH_RUNS");
    int runs = text ? atoi(text) : MEASURE_RUNS;
    runs = runs < 1 ? 1 : runs > MEASURE_RUNS_MAX ? MEASURE_RUNS_MAX : runs;
    int counter = measure_counter();
    prctl(PR_SET_NAME, "measured"); /* profiles tell it from what was made before */
    run(context);
    for (int i = 0; i < runs; i++) {
        int64_t count = measure_count(counter);
        double cpu_from = measure_clock(CLOCK_PROCESS_CPUTIME_ID);
        double from = measure_clock(CLOCK_MONOTONIC);
        run(context);
        wall[i] = measure_clock(CLOCK_MONOTONIC) - from;
        cpu[i] = measure_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_from;
        instructions[i] = (double)(measure_count(counter) - count);
    }
    qsort(wall, (size_t)runs, sizeof *wall, measure_order);
    qsort(cpu, (size_t)runs, sizeof *cpu, measure_order);
    qsort(instructions, (size_t)runs, sizeof *instructions, measure_order);
    printf("{\"name\": \"%s\", \"unit\": \"%s\", \"work\": %.17g, \"runs\": %d, "
           "\"median_s\": %.9g, \"min_s\": %.9g, \"max_s\": %.9g, \"cpu_s\": %.9g, ",
           name, unit, work, runs, wall[runs / 2], wall[0], wall[runs - 1], cpu[runs / 2]);
    if (counter >= 0) {
        printf("\"instructions\": %.17g}\n", instructions[runs / 2]);
        close(counter);
    } else {
        printf("\"instructions\": null}\n");
    }
    fflush(stdout);
}

#endif
