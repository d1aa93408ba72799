/* Kubernetes lists as a source.
 *
 * The files are read at the first fetch, and kept as the objects that an intake takes: a run books
 * its window in slices, each with an intake of its own, and standard input can be read only once.
 * The survey of a later run looks whether a file is another one since, and then all are read anew.
 * Texts repeat over pods (labels, nodes, namespaces) and are kept once; annotations longer than
 * anything that an owner rule could look for are dropped.
 *
 * An object that comes twice (two lists, made at different times) is the later one, but that a
 * pod's known end is not forgotten. Pods are the same by uid, nodes by name, creation and provider
 * id: a name with another creation is another life.
 *
 * Claims (kube_claims.c) are looked up when all files are read, since the slice, the claim and the
 * pod may stand in three of them. */
#include "source/kube_file.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "fleet/objects.h"
#include "source/input.h"
#include "source/kube_claims.h"
#include "source/kube_views.h"
#include "util/idmap.h"
#include "wire/kube_objects.h"

#define READ_BYTES ((size_t)256 << 10)
#define OBJECTS_MAX (1u << 22) /* of all files */
#define FAULTS_NAMED_MAX 5     /* a file: more are only counted */
#define PROGRESS_MS 100

struct fault_note {
    struct str subject, text;
    int64_t count;
    enum note_kind kind;
};

/* Which file it was that was read. */
struct stamp {
    struct timespec changed;
    off_t size;
    ino_t inode;
};

struct kube_file {
    struct source source;
    char **paths;
    struct stamp *stamps; /* of each path, when it was read */
    size_t paths_n;
    char *cluster_name;
    struct str cluster;
    bool loaded, noted; /* notes add up over slices: they are given once */

    struct arena arena, scratch; /* scratch: of the object that is read */
    struct names *texts;

    struct node_object *nodes;
    struct pod_object *pods;
    struct kube_owner *owners;
    struct kube_namespace *namespaces;
    struct kube_quota *quotas;
    struct fault_note *faults;
    size_t nodes_n, nodes_room, pods_n, pods_room, owners_n, owners_room, namespaces_n,
        namespaces_room, quotas_n, quotas_room, faults_n, faults_room;
    struct idmap node_at, pod_at, owner_at, namespace_at;
    struct kube_claims *claims;

    const char *path; /* that is read */
    size_t path_faults;
    struct kube_counts counts; /* of all files */
};

static name_t id_of(struct kube_file *f, struct str text)
{
    return names_put(f->texts, text);
}

static struct str kept(struct kube_file *f, struct str text)
{
    return names_text(f->texts, id_of(f, text));
}

static const struct label *kept_labels(struct kube_file *f, const struct label *labels, size_t n)
{
    struct label *copy = arena_alloc(&f->arena, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = (struct label){kept(f, labels[i].name), kept(f, labels[i].value)};
    return copy;
}

static const struct resource_count *kept_counts(struct kube_file *f,
                                                const struct resource_count *counts, size_t n)
{
    struct resource_count *copy = arena_alloc(&f->arena, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = (struct resource_count){kept(f, counts[i].resource), counts[i].count};
    return copy;
}

/* The place of an object in its array: where it was, or the next one. */
static size_t place_of(struct idmap *map, struct idkey key, size_t n, bool *ret_new)
{
    return idmap_add(map, key, (uint32_t)n, ret_new);
}

static bool full(const struct kube_file *f)
{
    return f->nodes_n + f->pods_n + f->owners_n + f->namespaces_n + f->quotas_n +
               kube_claims_size(f->claims) >=
           OBJECTS_MAX;
}

static void on_node(void *context, const struct kube_node *node)
{
    struct kube_file *f = context;
    struct node_object object;
    arena_clear(&f->scratch);
    kube_view_node(&f->scratch, node, f->cluster, &object);
    struct str *const texts[] = {&object.name, &object.provider_id, &object.internal_ip,
                                 &object.ignore};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = kept(f, *texts[i]);
    object.capacity = kept_counts(f, object.capacity, object.capacity_n);
    object.allocatable = kept_counts(f, object.allocatable, object.allocatable_n);
    object.labels = kept_labels(f, object.labels, object.labels_n);
    if (full(f))
        return;
    uint32_t created[2];
    memcpy(created, &node->created, sizeof created);
    bool fresh;
    size_t at =
        place_of(&f->node_at,
                 IDKEY(id_of(f, node->name), id_of(f, node->provider_id), created[0], created[1]),
                 f->nodes_n, &fresh);
    if (fresh)
        mem_push(f->nodes, f->nodes_n, f->nodes_room, object);
    else
        f->nodes[at] = object;
}

static const struct container_object *
kept_containers(struct kube_file *f, const struct container_object *containers, size_t n)
{
    struct container_object *copy = arena_alloc(&f->arena, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = containers[i];
        copy[i].name = kept(f, containers[i].name);
        copy[i].requests = kept_counts(f, containers[i].requests, containers[i].requests_n);
    }
    return copy;
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    struct kube_file *f = context;
    struct pod_object object;
    arena_clear(&f->scratch);
    kube_view_pod(&f->scratch, pod, f->cluster, &object);
    struct str *const texts[] = {&object.namespace, &object.name,          &object.uid,
                                 &object.node,      &object.owner_kind,    &object.owner_name,
                                 &object.phase,     &object.priority_class};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = kept(f, *texts[i]);
    object.containers = kept_containers(f, object.containers, object.containers_n);
    object.labels = kept_labels(f, object.labels, object.labels_n);
    object.annotations = kept_labels(f, object.annotations, object.annotations_n);
    struct str *claims = arena_alloc(&f->arena, object.devices_n * sizeof *claims);
    for (size_t i = 0; i < object.devices_n; i++)
        claims[i] = kept(f, object.devices[i]);
    object.devices = claims; /* replaced by what they name once all files are read */
    if (full(f))
        return;
    bool fresh;
    size_t at = place_of(&f->pod_at,
                         IDKEY(id_of(f, pod->namespace), id_of(f, pod->name), id_of(f, pod->uid)),
                         f->pods_n, &fresh);
    if (fresh) {
        mem_push(f->pods, f->pods_n, f->pods_room, object);
        return;
    }
    if (object.finished == TIME_MIN)
        object.finished = f->pods[at].finished;
    f->pods[at] = object;
}

static void on_owner(void *context, const struct kube_owner *owner)
{
    struct kube_file *f = context;
    struct kube_owner object = {
        .namespace = kept(f, owner->namespace),
        .kind = kept(f, owner->kind),
        .name = kept(f, owner->name),
        .owner_kind = kept(f, owner->owner_kind),
        .owner_name = kept(f, owner->owner_name),
    };
    if (full(f))
        return;
    bool fresh;
    size_t at =
        place_of(&f->owner_at,
                 IDKEY(id_of(f, owner->namespace), id_of(f, owner->kind), id_of(f, owner->name)),
                 f->owners_n, &fresh);
    if (fresh)
        mem_push(f->owners, f->owners_n, f->owners_room, object);
    else
        f->owners[at] = object;
}

static void on_namespace(void *context, const struct kube_namespace *ns)
{
    struct kube_file *f = context;
    struct kube_namespace object = {.name = kept(f, ns->name)};
    object.labels = kept_labels(f, ns->labels, ns->labels_n);
    object.labels_n = ns->labels_n;
    arena_clear(&f->scratch);
    object.annotations = kube_view_annotations(&f->scratch, ns->annotations, ns->annotations_n,
                                               &object.annotations_n);
    object.annotations = kept_labels(f, object.annotations, object.annotations_n);
    if (full(f))
        return;
    bool fresh;
    size_t at = place_of(&f->namespace_at, IDKEY(id_of(f, ns->name)), f->namespaces_n, &fresh);
    if (fresh)
        mem_push(f->namespaces, f->namespaces_n, f->namespaces_room, object);
    else
        f->namespaces[at] = object;
}

/* Later ones of a name are not told from earlier ones: the least of all is what counts. */
static void on_quota(void *context, const struct kube_quota *quota)
{
    struct kube_file *f = context;
    struct kube_quantity *hard = arena_alloc(&f->arena, quota->hard_n * sizeof *hard);
    struct kube_quota object = {.namespace = kept(f, quota->namespace),
                                .name = kept(f, quota->name),
                                .hard = hard,
                                .hard_n = quota->hard_n};
    for (size_t i = 0; i < quota->hard_n; i++)
        hard[i] = (struct kube_quantity){kept(f, quota->hard[i].resource), quota->hard[i].milli};
    if (!full(f))
        mem_push(f->quotas, f->quotas_n, f->quotas_room, object);
}

static void on_slice(void *context, const struct kube_slice *slice)
{
    struct kube_file *f = context;
    if (!full(f))
        kube_claims_add_slice(f->claims, slice);
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    struct kube_file *f = context;
    if (!full(f))
        kube_claims_add_claim(f->claims, claim);
}

static void add_fault(struct kube_file *f, enum note_kind kind, int64_t count, struct str text)
{
    struct fault_note note = {str_of(f->path), str_keep(&f->arena, text), count, kind};
    mem_push(f->faults, f->faults_n, f->faults_room, note);
}

static void on_fault(void *context, const struct kube_fault *fault)
{
    struct kube_file *f = context;
    if (++f->path_faults <= FAULTS_NAMED_MAX)
        add_fault(f, fault->lost ? NOTE_PARTIAL : NOTE_REJECTED, 1, fault->text);
}

static void report_progress(struct kube_file *f, const struct input *input, uint64_t before,
                            struct progress *progress, time_ms *last)
{
    time_ms now = clock_monotonic();
    if (!progress || !progress->report || now - *last < PROGRESS_MS)
        return;
    *last = now;
    struct progress p = *progress;
    struct strbuf what = {0};
    strbuf_addf(&what, "reading %s", f->path);
    p.what = what.text;
    p.bytes = before + input_bytes(input);
    p.report(p.context, &p);
    strbuf_release(&what);
}

static enum err read_file(struct kube_file *f, struct progress *progress, uint64_t *bytes,
                          struct error *err)
{
    struct input *input = NULL;
    struct kube_counts counts;
    char *buf = NULL;
    struct kube_sink sink = {
        .context = f,
        .node = on_node,
        .pod = on_pod,
        .owner = on_owner,
        .namespace = on_namespace,
        .slice = on_slice,
        .claim = on_claim,
        .fault = on_fault,
        .quota = on_quota,
    };
    struct kube_reader *reader = kube_reader_new(&sink);
    time_ms last = 0;
    f->path_faults = 0;
    enum err rc = input_open(f->path, &input, err);
    if (rc)
        goto out;
    buf = mem_alloc(READ_BYTES);
    for (size_t n = 1; n > 0;) {
        rc = input_read(input, buf, READ_BYTES, &n, err);
        if (rc)
            goto out;
        kube_reader_feed(reader, buf, n);
        report_progress(f, input, *bytes, progress, &last);
        if (progress && progress_stopped(progress->stop)) {
            rc = error_set(err, ERR_STOPPED, "stopped while reading %s", f->path);
            goto out;
        }
    }
    rc = kube_reader_end(reader, &counts, err);
    if (rc) {
        error_prefix(err, "%s", f->path);
        goto out;
    }
    if (f->path_faults > FAULTS_NAMED_MAX)
        add_fault(f, NOTE_PARTIAL, (int64_t)(f->path_faults - FAULTS_NAMED_MAX),
                  STR("more items or fields that are not readable"));
    f->counts.lost += counts.lost;
    *bytes += input_bytes(input);
out:
    kube_reader_free(reader);
    input_close(input);
    free(buf);
    return rc;
}

/* Pods carry the names of their claims until all files are read, and then their devices. */
static void join_claims(struct kube_file *f)
{
    int64_t unknown = 0;
    for (size_t i = 0; i < f->pods_n; i++) {
        struct pod_object *pod = &f->pods[i];
        struct kube_pod who = {.namespace = pod->namespace, .name = pod->name, .uid = pod->uid};
        pod->devices = kube_claims_devices(f->claims, &who, pod->devices, pod->devices_n,
                                           &pod->devices_n, &unknown);
    }
    if (unknown)
        add_fault(f, NOTE_PARTIAL, unknown,
                  STR("devices of resource claims are in no ResourceSlice: give kubectl get "
                      "resourceslices -o json too"));
}

static void forget(struct kube_file *f)
{
    free(f->nodes);
    free(f->pods);
    free(f->owners);
    free(f->namespaces);
    free(f->quotas);
    free(f->faults);
    idmap_release(&f->node_at);
    idmap_release(&f->pod_at);
    idmap_release(&f->owner_at);
    idmap_release(&f->namespace_at);
    kube_claims_free(f->claims);
    names_free(f->texts);
    arena_release(&f->arena);
    arena_release(&f->scratch);
}

/* Nothing is known. */
static void begin_anew(struct kube_file *f)
{
    struct kube_file fresh = {.source = f->source,
                              .paths = f->paths,
                              .stamps = f->stamps,
                              .paths_n = f->paths_n,
                              .cluster_name = f->cluster_name,
                              .texts = names_new()};
    forget(f);
    *f = fresh;
    f->claims = kube_claims_new(f->texts, &f->arena);
    f->cluster = kept(f, str_of(f->cluster_name));
}

static struct stamp stamp_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct stamp){0};
    return (struct stamp){status.st_mtim, status.st_size, status.st_ino};
}

static bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Is a file another one than when it was read? What came by standard input cannot come again. */
static bool has_changed(const struct kube_file *f)
{
    bool changed = false;
    for (size_t i = 0; i < f->paths_n; i++) {
        struct stamp was = f->stamps[i], is = stamp_of(f->paths[i]);
        if (is_standard_input(f->paths[i]))
            return false;
        changed |= was.changed.tv_sec != is.changed.tv_sec ||
                   was.changed.tv_nsec != is.changed.tv_nsec || was.size != is.size ||
                   was.inode != is.inode;
    }
    return changed;
}

static enum err load(struct kube_file *f, struct progress *progress, struct error *err)
{
    uint64_t bytes = 0;
    begin_anew(f); /* of a try that failed */
    for (size_t i = 0; i < f->paths_n; i++) {
        f->path = f->paths[i];
        f->stamps[i] = stamp_of(f->path);
        enum err rc = read_file(f, progress, &bytes, err);
        if (rc)
            return rc;
    }
    if (full(f))
        add_fault(f, NOTE_PARTIAL, 1, STR("more than 4 million objects: the rest was left out"));
    join_claims(f);
    for (size_t i = 0; i < f->nodes_n; i++)
        kube_view_published(&f->arena, f->claims, &f->nodes[i]);
    f->loaded = true;
    return ERR_OK;
}

static enum err fetch(struct source *source, const struct fetch *what, struct intake *intake,
                      struct progress *progress, struct error *err)
{
    struct kube_file *f = (struct kube_file *)source;
    (void)what; /* a list stands for any time */
    if (!f->loaded) {
        enum err rc = load(f, progress, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < f->nodes_n; i++)
        intake_node(intake, &f->nodes[i]);
    for (size_t i = 0; i < f->pods_n; i++)
        intake_pod(intake, &f->pods[i]);
    for (size_t i = 0; i < f->owners_n; i++)
        intake_owner(intake, f->cluster, f->owners[i].namespace, f->owners[i].kind,
                     f->owners[i].name, f->owners[i].owner_kind, f->owners[i].owner_name);
    for (size_t i = 0; i < f->namespaces_n; i++)
        intake_namespace(intake, f->cluster, f->namespaces[i].name, f->namespaces[i].labels,
                         f->namespaces[i].labels_n, f->namespaces[i].annotations,
                         f->namespaces[i].annotations_n);
    for (size_t i = 0; i < f->quotas_n; i++)
        kube_view_quota(intake, f->cluster, &f->quotas[i]);
    for (size_t i = 0; i < f->faults_n && !f->noted; i++)
        intake_note(intake, f->faults[i].kind, f->faults[i].subject, f->faults[i].count,
                    f->faults[i].text);
    f->noted = true;
    return ERR_OK;
}

/* Are the files there and readable? Standard input can be read only once, and is taken at its word.
 */
static enum err survey(struct source *source, struct span window, struct span *ret_extent,
                       double *ret_samples_an_hour, struct progress *progress, struct error *err)
{
    struct kube_file *f = (struct kube_file *)source;
    (void)progress;
    for (size_t i = 0; i < f->paths_n; i++) {
        struct input *input;
        if (is_standard_input(f->paths[i]))
            continue;
        enum err rc = input_open(f->paths[i], &input, err);
        if (rc)
            return rc;
        input_close(input);
    }
    if (f->loaded && has_changed(f))
        f->loaded = false;
    *ret_extent = window;
    *ret_samples_an_hour = 0;
    return ERR_OK;
}

static void kube_file_free(struct source *source)
{
    struct kube_file *f = (struct kube_file *)source;
    for (size_t i = 0; i < f->paths_n; i++)
        free(f->paths[i]);
    free(f->paths);
    free(f->stamps);
    free(f->cluster_name);
    free(f->source.id);
    forget(f);
    free(f);
}

enum err kube_file_source_new(const char *const *paths, size_t n, const char *cluster,
                              struct source **ret, struct error *err)
{
    static const struct source_ops ops = {
        .kind = "kube-json", .survey = survey, .fetch = fetch, .free = kube_file_free};
    if (n == 0)
        return error_set(err, ERR_USAGE, "no Kubernetes list is named");
    struct kube_file *f = mem_zalloc(1, sizeof *f);
    struct strbuf id = {0};
    f->source.ops = &ops;
    f->texts = names_new();
    f->claims = kube_claims_new(f->texts, &f->arena);
    f->cluster_name = str_dup(str_of(cluster ? cluster : ""));
    f->cluster = kept(f, str_of(f->cluster_name));
    f->paths = mem_zalloc(n, sizeof *f->paths);
    f->stamps = mem_zalloc(n, sizeof *f->stamps);
    f->paths_n = n;
    for (size_t i = 0; i < n; i++) {
        f->paths[i] = str_dup(str_of(paths[i]));
        strbuf_addf(&id, "%s%s", i ? " " : "kube-json:", paths[i]);
    }
    f->source.id = str_dup(strbuf_str(&id));
    strbuf_release(&id);
    *ret = &f->source;
    return ERR_OK;
}
