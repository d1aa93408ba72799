/* What `gputally recommend` and `gputally idle` do with a database once it is open: the rules over
 * the books of a window, and the idle scan of its last 7 days with streaks over all of it.
 *
 *     bench_findings DB [DAYS]        DB as `bench_store --hours --keep` makes it */
#include "insight/idle.h"
#include "insight/recommend.h"
#include "measure.h"

#define END (INT64_C(1795996800000)) /* 2026-11-30T00:00Z, bench_store's */

struct job {
    struct store *store;
    struct span window;
    size_t found;
};

static void must(enum err code, const struct error *err)
{
    if (code == ERR_OK)
        return;
    fprintf(stderr, "bench_findings: %s\n", err->text);
    exit(1);
}

static void run_rules(void *context)
{
    struct job *job = context;
    struct error err = {0};
    struct books *books;
    must(books_read(job->store, job->window, NULL, &books, &err), &err);
    struct findings *findings = recommend(books, "USD");
    job->found = findings->n;
    findings_free(findings);
    books_free(books);
}

static void run_scan(void *context)
{
    struct job *job = context;
    struct error err = {0};
    struct view *view;
    struct view_options options = {.window = job->window, .days = 7};
    const struct idle_settings settings = {.days = 7, .floor_samples = 100, .power_auto = true};
    must(view_read(job->store, &options, &view, &err), &err);
    struct idle_scan *scan = idle_scan_new(view, &settings, 300000);
    job->found = 0;
    for (size_t i = 0; i < scan->devices_n; i++)
        job->found += scan->devices[i].verdict == VERDICT_IDLE;
    idle_scan_free(scan);
    view_free(view);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct job job = {0};
    if (argc < 2) {
        fprintf(stderr, "bench_findings DB [DAYS]\n");
        return 2;
    }
    int days = argc > 2 ? atoi(argv[2]) : 30;
    struct names *names = names_new();
    job.window = (struct span){END - days * DAY_MS, END};
    must(store_open(argv[1], STORE_READ, names, &job.store, &err), &err);
    char name[64];
    snprintf(name, sizeof name, "rules of recommend, %d days", days);
    measure(name, "day", days, run_rules, &job);
    fprintf(stderr, "%zu findings\n", job.found);
    snprintf(name, sizeof name, "idle scan, %d days", days);
    measure(name, "day", days, run_scan, &job);
    fprintf(stderr, "%zu GPUs idle\n", job.found);
    store_close(job.store);
    names_free(names);
    return 0;
}
