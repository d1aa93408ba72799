/* Books a ledger from telemetry and from what a watch of a Kubernetes API saw, told as text, at the
 * times that the text says: records carry the clock of who watches, simulated fleets do not.
 *
 *     kube_ledger FOLDER OBSERVATIONS COLLECT-ARGUMENT...
 *
 * What FOLDER kept is read first. Then the lines of OBSERVATIONS are taken in and kept in FOLDER
 * too, and `gputally collect` runs with the arguments and that history beside its other sources. A
 * line:
 *
 *     ACT KIND T CLUSTER [OBJECT]     LIST, OBJECT, LISTED, DELETED or SEEN; Node, Pod, ReplicaSet
 *                                     or Job; ms; - for none; JSON as the API prints it
 *     SNAPSHOT                        what came so far is from here on known by its snapshot alone,
 *                                     as from a journal whose old part is gone */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/flow.h"
#include "source/kube_log.h"

struct replay {
    struct source source;
    struct kube_history *history;
};

static enum err survey(struct source *source, struct span window, struct span *ret_extent,
                       double *ret_samples_an_hour, struct progress *progress, struct error *err)
{
    struct span known;
    (void)progress, (void)err;
    *ret_extent = window;
    if (kube_history_extent(((struct replay *)source)->history, &known) && known.from > window.from)
        ret_extent->from = known.from < window.to ? known.from : window.to;
    *ret_samples_an_hour = 0;
    return ERR_OK;
}

static enum err fetch(struct source *source, const struct fetch *what, struct intake *intake,
                      struct progress *progress, struct error *err)
{
    (void)progress, (void)err;
    kube_history_deliver(((struct replay *)source)->history, what->hours, intake);
    return ERR_OK;
}

static void free_source(struct source *source)
{
    kube_history_free(((struct replay *)source)->history);
    free(source->id);
    free(source);
}

static struct source *replay_new(struct kube_history *history)
{
    static const struct source_ops ops = {
        .kind = "kubernetes", .survey = survey, .fetch = fetch, .free = free_source};
    struct replay *replay = mem_zalloc(1, sizeof *replay);
    replay->source = (struct source){&ops, str_dup(STR("kubernetes:replayed"))};
    replay->history = history;
    return &replay->source;
}

/* ------------------------------------------------------------------ lines */

static void on_node(void *context, const struct kube_node *node)
{
    kube_record_node(context, node);
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    kube_record_pod(context, pod);
}

static void on_owner(void *context, const struct kube_owner *owner)
{
    kube_record_owner(context, owner);
}

static const char *const acts[] = {
    [KUBE_ACT_LIST] = "LIST",       [KUBE_ACT_OBJECT] = "OBJECT", [KUBE_ACT_LISTED] = "LISTED",
    [KUBE_ACT_DELETED] = "DELETED", [KUBE_ACT_SEEN] = "SEEN",
};
static const char *const kinds[] = {
#define X(name, text) text,
    KUBE_KIND_TABLE(X)
#undef X
};

/* The word's place in words, from `first` on; n where it is none of them. */
static size_t place_of(const char *word, const char *const *words, size_t first, size_t n)
{
    while (first < n && strcmp(words[first], word) != 0)
        first++;
    return first;
}

static enum err read_object(const char *json, const char *kind, struct strbuf *object,
                            struct error *err)
{
    struct kube_sink sink = {.context = object, .node = on_node, .pod = on_pod, .owner = on_owner};
    struct kube_counts counts;
    struct kube_reader *reader = kube_reader_new(&sink);
    kube_reader_kind(reader, str_of(kind));
    kube_reader_feed(reader, json, strlen(json));
    enum err e = kube_reader_end(reader, &counts, err);
    kube_reader_free(reader);
    if (e == ERR_OK && (counts.items != 1 || counts.lost || counts.faults || !object->n))
        e = error_set(err, ERR_PARSE, "no %s: %.200s", kind, json);
    return e;
}

static enum err take_line(struct kube_history *history, struct kube_log *log, const char *line,
                          struct error *err)
{
    char act_word[16], kind_word[16], cluster[64];
    long long t;
    int at = 0;
    struct strbuf object = {0}, bytes = {0};
    if (sscanf(line, "%15s %15s %lld %63s %n", act_word, kind_word, &t, cluster, &at) != 4)
        return error_set(err, ERR_PARSE, "no observation: %.200s", line);
    size_t act = place_of(act_word, acts, KUBE_ACT_LIST, KUBE_ACT_SEEN + 1);
    size_t kind = place_of(kind_word, kinds, 0, KUBE_KIND_COUNT);
    if (act > KUBE_ACT_SEEN || kind == KUBE_KIND_COUNT)
        return error_set(err, ERR_PARSE, "no observation: %.200s", line);
    struct kube_record record =
        kube_record_of((enum kube_act)act, (enum kube_kind)kind, t,
                       strcmp(cluster, "-") == 0 ? STR_NONE : str_of(cluster));
    enum err e = line[at] ? read_object(line + at, kinds[kind], &object, err) : ERR_OK;
    bool news = false;
    if (e == ERR_OK) {
        record.object = strbuf_str(&object);
        kube_record_write(&bytes, &record);
        e = kube_history_add(history, strbuf_str(&bytes), &news, err);
    }
    if (e == ERR_OK && news)
        e = kube_log_append(log, t, strbuf_str(&bytes), err);
    if (e == ERR_OK && act == KUBE_ACT_LISTED) /* it does so within KUBE_LOG_SYNC_MS */
        e = kube_log_sync(log, err);
    strbuf_release(&object);
    strbuf_release(&bytes);
    return e;
}

static enum err hand_on(void *context, time_ms t, struct str record, struct error *err)
{
    (void)t;
    return kube_history_add(context, record, NULL, err);
}

/* *history becomes one that knows no more than its snapshot says; `kept` is not freed. */
static enum err forget_rest(struct kube_history **history, struct kube_history *kept,
                            struct error *err)
{
    struct kube_history *next = kube_history_new();
    enum err e = kube_history_snapshot(*history, hand_on, next, err);
    if (*history != kept)
        kube_history_free(*history);
    *history = next;
    return e;
}

static enum err take_lines(struct kube_history **history, struct kube_log *log, const char *path,
                           struct error *err)
{
    FILE *file = fopen(path, "r");
    struct kube_history *kept = *history;
    char *line = NULL;
    size_t room = 0;
    enum err e = file ? ERR_OK : error_set(err, ERR_IO, "cannot read %s", path);
    for (ssize_t n; e == ERR_OK && (n = getline(&line, &room, file)) > 0;) {
        line[n - 1] = '\0';
        e = strcmp(line, "SNAPSHOT") == 0 ? forget_rest(history, kept, err)
                                          : take_line(*history, log, line, err);
    }
    free(line);
    if (file)
        fclose(file);
    return e;
}

/* What the folder has, and the lines. Nothing is read where it fails. */
static enum err read_history(const char *folder, const char *lines, struct kube_history **ret,
                             struct error *err)
{
    struct kube_history *kept = kube_history_new(), *history = kept;
    struct kube_log *log = NULL;
    enum err e = kube_log_open(folder, kept, &log, err);
    if (e == ERR_OK)
        e = take_lines(&history, log, lines, err);
    kube_log_close(log); /* uses kept */
    if (history != kept)
        kube_history_free(kept);
    if (e == ERR_OK)
        *ret = history;
    else
        kube_history_free(history);
    return e;
}

static enum err book(int argc, char **argv, struct kube_history *history, struct error *err)
{
    struct options options;
    struct flow flow = {0};
    struct source *source = replay_new(history);
    enum err e = options_parse(argc, argv, &options, err);
    if (e == ERR_OK)
        e = options_read_config(&options, NULL, err);
    if (e == ERR_OK)
        e = flow_open(&options, &flow, err);
    if (e == ERR_OK) {
        flow_add_source(&flow, source);
        source = NULL;
        e = flow_collect(&flow, err);
    }
    if (source)
        source_free(source);
    flow_close(&flow);
    config_free(options.config);
    options_release(&options);
    return e;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    if (argc < 4) {
        fprintf(stderr, "see the head of kube_ledger.c\n");
        return 2;
    }
    struct kube_history *history = NULL;
    enum err e = read_history(argv[1], argv[2], &history, &err);
    if (e == ERR_OK)
        e = book(argc - 2, argv + 2, history, &err);
    if (e != ERR_OK)
        fprintf(stderr, "error %d: %s\n", (int)e, err.text);
    return e == ERR_OK ? 0 : 1;
}
