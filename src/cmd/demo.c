/* gputally demo: the main job on a fleet that is simulated.
 *
 * The fleet's text goes through a pipe into the reader of OpenMetrics files, written by a thread
 * while it is read: what is decoded, booked, stored and printed is the same code as for real data.
 * Only the survey is the demo's own, since a pipe cannot be looked at beforehand. Any span can be
 * asked for any number of times, so the collector cuts it into slices as it does with a server. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/demo_text.h"
#include "cmd/flow.h"
#include "source/openmetrics_file.h"

#define DEFAULT_GPUS 64
#define DEFAULT_DAYS 7
#define DEFAULT_SEED 1
#define DEFAULT_STEP_MS 60000
#define STEP_MAX_MS 300000
#define PIPE_BYTES (1 << 20)
#define END_MIN INT64_C(1009843200000) /* 2002-01-01: stamps have 10 digits of seconds */
#define END_MAX INT64_C(7258118400000) /* 2200-01-01 */

/* ---- the source ---- */

struct demo_source {
    struct source source;
    struct demo_fleet *fleet;
};

/* What the writing thread does; it closes the descriptor. */
struct writing {
    const struct demo_fleet *fleet;
    struct fetch fetch;
    int fd;
    struct error err; /* code ERR_OK: all was written, or the reader had enough */
};

static void *write_fleet(void *context)
{
    struct writing *writing = context;
    const struct fetch *fetch = &writing->fetch;
    demo_text_write(writing->fleet, fetch->kube, fetch->gpu, writing->fd, &writing->err);
    close(writing->fd);
    return NULL;
}

static enum err demo_survey(struct source *source, struct span window, struct span *ret_extent,
                            double *ret_samples_an_hour, struct progress *progress,
                            struct error *err)
{
    (void)window, (void)progress, (void)err;
    const struct demo_fleet *fleet = ((struct demo_source *)source)->fleet;
    *ret_extent = fleet->options.window;
    *ret_samples_an_hour = demo_text_samples_an_hour(fleet);
    return ERR_OK;
}

/* Read what comes through the pipe as a file. */
static enum err read_pipe(int fd, const struct fetch *fetch, struct intake *intake,
                          struct progress *progress, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct source *file;
    enum err code = openmetrics_source_new(&(const char *){path}, 1, 0, &file, err);
    if (code)
        return code;
    code = file->ops->fetch(file, fetch, intake, progress, err);
    source_free(file);
    return code;
}

static enum err demo_fetch(struct source *source, const struct fetch *fetch, struct intake *intake,
                           struct progress *progress, struct error *err)
{
    struct demo_source *demo = (struct demo_source *)source;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, ERR_IO, "making a pipe: %s", strerror(errno));
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES); /* a smaller pipe works too */
    struct writing writing = {.fleet = demo->fleet, .fetch = *fetch, .fd = ends[1]};
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, write_fleet, &writing);
    if (failed) {
        close(ends[0]);
        close(ends[1]);
        return error_set(err, ERR_LIMIT, "starting a thread: %s", strerror(failed));
    }
    enum err code = read_pipe(ends[0], fetch, intake, progress, err);
    close(ends[0]); /* a writer that is still at it gets EPIPE and ends */
    pthread_join(thread, NULL);
    return code;
}

static void source_release(struct source *source)
{
    free(source->id);
    free(source);
}

/* The fleet must outlive the source. */
static struct source *demo_source_new(struct demo_fleet *fleet)
{
    static const struct source_ops ops = {
        .kind = "demo", .survey = demo_survey, .fetch = demo_fetch, .free = source_release};
    const struct demo_options *o = &fleet->options;
    struct strbuf id = {0};
    strbuf_addf(&id, "demo:%d-gpus:seed-%llu:step-%lld:to-%lld", o->gpus,
                (unsigned long long)o->seed, (long long)o->step_ms, (long long)o->window.to);
    struct demo_source *demo = mem_zalloc(1, sizeof *demo);
    *demo = (struct demo_source){.source = {.ops = &ops, .id = str_dup(strbuf_str(&id))},
                                 .fleet = fleet};
    strbuf_release(&id);
    return &demo->source;
}

/* ---- the command ---- */

static enum err parse_end(const struct options *options, time_ms *ret, struct error *err)
{
    const char *text = options_text(options, OPTION_END);
    *ret = hour_floor(clock_now());
    if (!text)
        return ERR_OK;
    if (!time_parse(str_of(text), ret) || *ret != hour_floor(*ret))
        return error_set(err, ERR_USAGE,
                         "--end %s: not a whole hour in RFC 3339, as 2026-11-30T00:00:00Z", text);
    if (*ret < END_MIN || *ret > END_MAX)
        return error_set(err, ERR_USAGE, "--end %s: not between the years 2002 and 2200", text);
    return ERR_OK;
}

static enum err parse_fleet(const struct options *options, struct demo_options *ret,
                            struct error *err)
{
    long long gpus = DEFAULT_GPUS, days = DEFAULT_DAYS, seed = DEFAULT_SEED;
    long long step = DEFAULT_STEP_MS;
    time_ms end;
    enum err code;
    if ((code = options_number(options, OPTION_GPUS, 1, &gpus, err)) ||
        (code = options_number(options, OPTION_DAYS, 1, &days, err)) ||
        (code = options_number(options, OPTION_SEED, 0, &seed, err)) ||
        (code = options_duration(options, OPTION_STEP, &step, err)) ||
        (code = parse_end(options, &end, err)))
        return code;
    if (gpus > DEMO_GPUS_MAX)
        return error_set(err, ERR_USAGE, "--gpus %lld: at most %d", gpus, DEMO_GPUS_MAX);
    if (days > DEMO_DAYS_MAX)
        return error_set(err, ERR_USAGE, "--days %lld: at most %d", days, DEMO_DAYS_MAX);
    if (step < 1000 || step > STEP_MAX_MS)
        return error_set(err, ERR_USAGE, "--step: the demo scrapes every 1 s to 5 min");
    *ret = (struct demo_options){.gpus = (int)gpus,
                                 .window = {end - days * DAY_MS, end},
                                 .step_ms = step,
                                 .seed = (uint64_t)seed};
    return ERR_OK;
}

/* Keep the text of the whole window in a file. */
static enum err write_file(const struct demo_fleet *fleet, const char *path, struct error *err)
{
    struct span window = fleet->options.window;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    enum err code = demo_text_write(fleet, window, window, fd, err);
    if (close(fd) != 0 && !code)
        code = error_set(err, ERR_IO, "writing the simulated fleet: %s", strerror(errno));
    if (code)
        error_prefix(err, "%s", path);
    return code;
}

/* Whose what is, unless the user says: by the label that the pods carry. */
static enum err read_owners(const struct options *options, struct error *err)
{
    static const char rules[] = "owners:\n"
                                "  rules:\n"
                                "    - {pod_label: team, team: '{value}'}\n"
                                "  types:\n"
                                "    - {workload: 'jupyter*', type: interactive}\n"
                                "    - {kind: '*Job', type: training}\n"
                                "    - {kind: Deployment, type: inference}\n";
    if (options->config->path.n || options_text(options, OPTION_OWNERS))
        return ERR_OK;
    return config_read_text(options->config, "the demo's owner rules", str_of(rules), err);
}

static enum err add_source(struct flow *flow, struct demo_fleet *fleet, struct error *err)
{
    const char *path = options_text(flow->options, OPTION_WRITE);
    struct source *source = NULL;
    enum err code = ERR_OK;
    if (!path) {
        source = demo_source_new(fleet);
    } else {
        code = write_file(fleet, path, err);
        if (code == ERR_OK)
            code = openmetrics_source_new(&path, 1, 0, &source, err);
    }
    if (code == ERR_OK)
        flow_add_source(flow, source);
    return code;
}

/* Become another command of the same program. */
static int become(const char **words)
{
    struct error err = {0};
    fflush(stdout);
    execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    error_set(&err, ERR_IO, "starting gputally again: %s", strerror(errno));
    return fail(&err);
}

/* --serve without --db: the same, with a database in a folder of its own. */
static int with_database(const struct options *options)
{
    const char *folder = getenv("TMPDIR");
    struct strbuf path = {0};
    struct error err = {0};
    strbuf_addf(&path, "%s/gputally-demo.XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(path.text)) {
        error_set(&err, ERR_IO, "%s: %s", path.text, strerror(errno));
        strbuf_release(&path);
        return fail(&err);
    }
    strbuf_add(&path, STR("/demo.db"));
    const char **words = mem_zalloc((size_t)options->argc + 3, sizeof *words);
    for (int i = 0; i < options->argc; i++)
        words[i] = options->argv[i];
    words[options->argc] = "--db";
    words[options->argc + 1] = path.text;
    return become(words);
}

static int serve(const struct options *options)
{
    const char *listen = options_text(options, OPTION_LISTEN);
    const char *words[] = {
        "gputally", "serve", "--db", options_text(options, OPTION_DB), listen ? "--listen" : NULL,
        listen,     NULL};
    printf("\n");
    return become(words);
}

int cmd_demo(const struct options *options)
{
    bool serves = options_switch(options, OPTION_SERVE);
    if (serves && !options_text(options, OPTION_DB))
        return with_database(options);
    struct flow flow = {0};
    struct error err = {0};
    struct demo_options demo;
    struct demo_fleet *fleet = NULL;
    enum err code = parse_fleet(options, &demo, &err);
    if (code == ERR_OK)
        code = read_owners(options, &err);
    if (code == ERR_OK)
        code = flow_open(options, &flow, &err);
    if (code == ERR_OK) {
        flow.title = "demo";
        flow.config->settings.step_ms = demo.step_ms;
        fleet = demo_fleet_new(&demo);
        code = add_source(&flow, fleet, &err);
    }
    int status;
    if (code == ERR_OK) {
        status = flow_finish_report(&flow);
    } else {
        flow_close(&flow);
        status = fail(&err);
    }
    demo_fleet_free(fleet);
    return status == EXIT_DONE && serves ? serve(options) : status;
}
