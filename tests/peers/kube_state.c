/* Follows a Kubernetes API and tells what it knows of it: a line a command on standard input.
 *
 *     kube_state KUBECONFIG RECORDS [watch_ms backoff_ms page seen_ms [relist_ms [allow-exec]]]
 *
 *     state     every living object, a line each, in order; then an empty line
 *     status    a line a resource; then an empty line
 *     snapshot  the whole state to RECORDS
 *     size      what the history holds
 *     quit
 *
 *     kube_state - RECORDS      the state that the records of a file give, without any API
 *
 * RECORDS gets each record with its length in front (4 bytes, little endian). Notes and targets go
 * to standard output as they come ("note …", "targets …"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/kube_watch.h"

static FILE *records;

static enum err on_record(void *context, time_ms t, struct str record, struct error *err)
{
    (void)context, (void)t;
    uint32_t n = (uint32_t)record.n;
    if (fwrite(&n, sizeof n, 1, records) != 1 || fwrite(record.p, 1, n, records) != n)
        return error_set(err, ERR_IO, "cannot write");
    fflush(records);
    return ERR_OK;
}

static void on_note(void *context, struct str text)
{
    (void)context;
    printf("note %.*s\n", STR_ARG(text));
    fflush(stdout);
}

static void on_targets(void *context, const struct kube_target *targets, size_t n)
{
    (void)context;
    printf("targets");
    for (size_t i = 0; i < n; i++)
        printf(" %.*s=%.*s/%.*s@%.*s", STR_ARG(targets[i].address), STR_ARG(targets[i].namespace),
               STR_ARG(targets[i].pod), STR_ARG(targets[i].node));
    printf("\n");
    fflush(stdout);
}

struct listing {
    char **lines;
    size_t n, room;
    const char *kind;
};

static void add_line(struct listing *l, struct strbuf *line)
{
    mem_push(l->lines, l->n, l->room, line->text);
}

static void add_labels(struct strbuf *line, const char *word, const struct label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(line, " %s:%.*s=%.*s", word, STR_ARG(labels[i].name), STR_ARG(labels[i].value));
}

static void add_quantities(struct strbuf *line, const char *word, const struct kube_quantity *q,
                           size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(line, " %s:%.*s=%lld", word, STR_ARG(q[i].resource), (long long)q[i].milli);
}

static void add_time(struct strbuf *line, const char *word, time_ms t)
{
    char text[TIME_TEXT_MAX];
    if (t != TIME_MIN)
        strbuf_addf(line, " %s=%s", word, time_format(t, text));
}

static void on_node(void *context, const struct kube_node *node)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "Node %.*s uid=%.*s%s", STR_ARG(node->name), STR_ARG(node->uid),
                node->unschedulable ? " unschedulable" : "");
    add_time(&line, "created", node->created);
    add_labels(&line, "label", node->labels, node->labels_n);
    for (size_t i = 0; i < node->taints_n; i++)
        strbuf_addf(&line, " taint:%.*s=%.*s:%.*s", STR_ARG(node->taints[i].key),
                    STR_ARG(node->taints[i].value), STR_ARG(node->taints[i].effect));
    add_quantities(&line, "capacity", node->capacity, node->capacity_n);
    add_quantities(&line, "allocatable", node->allocatable, node->allocatable_n);
    add_line(context, &line);
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "Pod %.*s/%.*s uid=%.*s node=%.*s phase=%.*s owner=%.*s/%.*s",
                STR_ARG(pod->namespace), STR_ARG(pod->name), STR_ARG(pod->uid), STR_ARG(pod->node),
                STR_ARG(pod->phase), STR_ARG(pod->owner_kind), STR_ARG(pod->owner_name));
    add_time(&line, "scheduled", pod->scheduled);
    add_time(&line, "started", pod->started);
    add_labels(&line, "label", pod->labels, pod->labels_n);
    for (size_t i = 0; i < pod->containers_n; i++) {
        const struct kube_container *c = &pod->containers[i];
        strbuf_addf(&line, " %s:%.*s",
                    c->sidecar ? "sidecar"
                    : c->init  ? "init"
                               : "container",
                    STR_ARG(c->name));
        add_quantities(&line, "request", c->requests, c->requests_n);
    }
    for (size_t i = 0; i < pod->claims_n; i++)
        strbuf_addf(&line, " claim:%.*s", STR_ARG(pod->claims[i]));
    add_line(context, &line);
}

static void on_owner(void *context, const struct kube_owner *owner)
{
    struct strbuf line = {0};
    struct listing *l = context;
    strbuf_addf(&line, "%s%.*s %.*s/%.*s uid=%.*s owner=%.*s/%.*s", l->kind, STR_ARG(owner->kind),
                STR_ARG(owner->namespace), STR_ARG(owner->name), STR_ARG(owner->uid),
                STR_ARG(owner->owner_kind), STR_ARG(owner->owner_name));
    add_line(l, &line);
}

static void on_namespace(void *context, const struct kube_namespace *ns)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "Namespace %.*s", STR_ARG(ns->name));
    add_labels(&line, "label", ns->labels, ns->labels_n);
    add_line(context, &line);
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "ResourceClaim %.*s/%.*s", STR_ARG(claim->namespace), STR_ARG(claim->name));
    for (size_t i = 0; i < claim->allocations_n; i++)
        strbuf_addf(&line, " device:%.*s", STR_ARG(claim->allocations[i].device));
    add_line(context, &line);
}

static void on_slice(void *context, const struct kube_slice *slice)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "ResourceSlice %.*s node=%.*s", STR_ARG(slice->name), STR_ARG(slice->node));
    for (size_t i = 0; i < slice->devices_n; i++)
        strbuf_addf(&line, " device:%.*s=%.*s", STR_ARG(slice->devices[i].name),
                    STR_ARG(slice->devices[i].uuid));
    add_line(context, &line);
}

static void on_quota(void *context, const struct kube_quota *quota)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "ResourceQuota %.*s/%.*s", STR_ARG(quota->namespace), STR_ARG(quota->name));
    add_quantities(&line, "hard", quota->hard, quota->hard_n);
    add_line(context, &line);
}

static void on_priority(void *context, const struct kube_priority *priority)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "PriorityClass %.*s value=%lld", STR_ARG(priority->name),
                (long long)priority->value);
    add_line(context, &line);
}

/* Of a node with several versions the last line is its state. */
static enum err list_record(void *context, time_ms t, struct str bytes, struct error *err)
{
    struct listing *l = context;
    struct kube_record record;
    struct arena arena = {0};
    struct kube_sink sink = {.context = l,
                             .node = on_node,
                             .pod = on_pod,
                             .owner = on_owner,
                             .namespace = on_namespace,
                             .claim = on_claim,
                             .slice = on_slice,
                             .quota = on_quota,
                             .priority = on_priority};
    (void)t;
    enum err e = kube_record_read(bytes, &record, err);
    if (e != ERR_OK || record.act != KUBE_ACT_OBJECT)
        return e;
    l->kind = record.kind == KUBE_KIND_OWNER ? "above " : "";
    e = kube_record_object(record.kind, record.object, &arena, &sink, err);
    arena_release(&arena);
    return e;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Kind and name: what stands in front of the second space. */
static size_t head_of(const char *line)
{
    const char *space = strchr(line, ' ');
    space = space ? strchr(space + 1, ' ') : NULL;
    return space ? (size_t)(space - line) : strlen(line);
}

static void print_state(struct kube_history *history)
{
    struct listing l = {0};
    struct error err;
    if (kube_history_snapshot(history, list_record, &l, &err) != ERR_OK)
        printf("error %s\n", err.text);
    size_t kept = 0;
    for (size_t i = 0; i < l.n; i++) { /* versions of an object come one after the other */
        size_t head = head_of(l.lines[i]);
        if (kept && head_of(l.lines[kept - 1]) == head &&
            strncmp(l.lines[kept - 1], l.lines[i], head) == 0)
            free(l.lines[--kept]);
        l.lines[kept++] = l.lines[i];
    }
    if (kept)
        qsort(l.lines, kept, sizeof *l.lines, by_text);
    for (size_t i = 0; i < kept; i++) {
        printf("%s\n", l.lines[i]);
        free(l.lines[i]);
    }
    free(l.lines);
    printf("\n");
    fflush(stdout);
}

static void print_status(struct kube_watch *watch)
{
    struct kube_watch_status status;
    char seen[TIME_TEXT_MAX];
    static const char *const kinds[] = {
#define X(name, text) #name,
        KUBE_KIND_TABLE(X)
#undef X
    };
    kube_watch_status(watch, &status);
    for (int i = 0; i < KUBE_KIND_OWNER; i++) {
        const struct kube_resource_status *r = &status.resources[i];
        printf("%s %s lists=%llu watches=%llu events=%llu failures=%llu faults=%llu seen=%s %s\n",
               kinds[i], kube_watch_state_names[r->state], (unsigned long long)r->lists,
               (unsigned long long)r->watches, (unsigned long long)r->events,
               (unsigned long long)r->failures, (unsigned long long)r->faults,
               r->seen == TIME_MIN ? "-" : time_format(r->seen, seen), r->text);
    }
    printf("all synced=%d records=%llu owners=%llu/%llu\n\n", status.synced != TIME_MIN,
           (unsigned long long)status.records, (unsigned long long)status.owners_known,
           (unsigned long long)status.owners_asked);
    fflush(stdout);
}

static int replay(const char *path)
{
    struct kube_history *history = kube_history_new();
    FILE *file = fopen(path, "rb");
    uint32_t n;
    int rc = 0;
    while (file && fread(&n, sizeof n, 1, file) == 1) {
        char *bytes = malloc(n + 1);
        struct error err;
        if (fread(bytes, 1, n, file) != n ||
            kube_history_add(history, (struct str){bytes, n}, NULL, &err) != ERR_OK)
            rc = 1;
        free(bytes);
    }
    if (file)
        fclose(file);
    print_state(history);
    kube_history_free(history);
    return rc;
}

static void print_size(struct kube_history *history)
{
    struct kube_history_size size = kube_history_size(history);
    printf("nodes=%zu pods=%zu objects=%zu versions=%zu bytes=%zu\n\n", size.nodes, size.pods,
           size.objects, size.versions, size.bytes);
    fflush(stdout);
}

static int follow(int argc, char **argv)
{
    struct kube_access *access;
    struct kube_watch *watch;
    struct error err;
    struct kube_access_options login = {.kubeconfig = argv[1], .allow_exec = argc > 8};
    struct kube_watch_sink sink = {.record = on_record, .note = on_note, .targets = on_targets};
    if (kube_access_new(&login, &access, &err) != ERR_OK) {
        printf("error %s\n", err.text);
        return 1;
    }
    if (kube_access_warning(access))
        printf("warning %s\n", kube_access_warning(access));
    struct kube_watch_options options = {.access = access, .sink = &sink};
    options.history = kube_history_new();
    options.targets = kube_target_defaults(&options.targets_n);
    if (argc > 6) {
        options.watch_ms = atoll(argv[3]);
        options.backoff_ms = atoll(argv[4]);
        options.page = (size_t)atoll(argv[5]);
        options.seen_ms = atoll(argv[6]);
    }
    if (argc > 7)
        options.relist_ms = atoll(argv[7]);
    if (kube_watch_start(&options, &watch, &err) != ERR_OK) {
        printf("error %s\n", err.text);
        return 1;
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "state\n") == 0)
            print_state(options.history);
        else if (strcmp(line, "status\n") == 0)
            print_status(watch);
        else if (strcmp(line, "size\n") == 0)
            print_size(options.history);
        else if (strcmp(line, "snapshot\n") == 0)
            printf("%d\n\n", kube_history_snapshot(options.history, on_record, NULL, NULL)),
                fflush(stdout);
        else
            break;
    }
    kube_watch_stop(watch);
    kube_history_free(options.history);
    kube_access_free(access);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "-") == 0)
        return replay(argv[2]);
    records = fopen(argv[2], "wb");
    if (!records)
        return 2;
    int rc = follow(argc, argv);
    fclose(records);
    return rc;
}
