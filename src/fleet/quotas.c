/* What a namespace may use of GPUs (kube_resourcequota), and the stamps at which a cluster's
 * records say one thing or another at all: what is never said is not known, and not "none". */
#include "fleet/facts.h"
#include "fleet/resources.h"

void facts_stamps(const struct facts *facts, const struct record *record, struct spans *out)
{
    for (size_t k = 0; k < record->n; k++) {
        const struct run *run = &record->runs[k];
        if (run->dt <= facts->settings->node_break_ms) {
            spans_push(out, run->t0 - 1, run_last(run));
            continue;
        }
        for (uint32_t j = 0; j < run->n; j++) {
            time_ms t = run->t0 + run->dt * (time_ms)j;
            spans_push(out, t - 1, t);
        }
    }
}

/* "requests.nvidia.com/gpu" -> nvidia_com_gpu; NAME_NONE where it counts no GPUs. */
static name_t resource_of(struct facts *facts, struct str resource)
{
    static const char *const heads[] = {"requests.", "limits.", "requests_", "limits_"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct str head = str_of(heads[i]);
        if (str_starts(resource, head)) {
            resource.p += head.n;
            resource.n -= head.n;
            break;
        }
    }
    struct str spelled = resource_spell(&facts->arena, resource);
    return resource_is_gpu(spelled) ? names_put(facts->names, spelled) : NAME_NONE;
}

static bool touches(const struct spans *spans, time_ms hour)
{
    size_t i = spans_after(spans, hour);
    return i < spans->n && spans->at[i].from < hour + HOUR_MS;
}

bool watch_says(const struct watch *watch, const struct spans *stamps, time_ms hour)
{
    bool objects = stamps == &watch->quotas_known ? watch->quota_objects : watch->objects;
    return touches(stamps, hour) || (objects && touches(&watch->known, hour));
}

void facts_read_quotas(struct facts *facts, struct intake *intake)
{
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        if (record->metric != RECORD_QUOTA)
            continue;
        struct quota quota = {.cluster = facts_label(facts, record, "cluster"),
                              .namespace = facts_label(facts, record, "namespace"),
                              .record = record};
        facts_stamps(facts, record, &facts_watch(facts, quota.cluster)->quotas_known);
        quota.resource =
            resource_of(facts, names_text(facts->names, facts_label(facts, record, "resource")));
        if (quota.resource != NAME_NONE)
            mem_push(facts->quotas, facts->quotas_n, facts->quotas_room, quota);
    }
    for (size_t i = 0; i < facts->watches_n; i++)
        spans_normalise(&facts->watches[i]->quotas_known);
    for (size_t i = 0; i < intake->quotas_n; i++) {
        const struct object_quota *object = &intake->quotas[i];
        struct quota quota = {
            .cluster = object->cluster, .namespace = object->namespace, .count = object->count};
        facts_watch(facts, object->cluster)->quota_objects = true;
        quota.resource = resource_of(facts, names_text(facts->names, object->resource));
        if (quota.resource != NAME_NONE && quota.count >= 0 && quota.count <= RESOURCE_COUNT_MAX)
            mem_push(facts->quotas, facts->quotas_n, facts->quotas_room, quota);
    }
}

/* The last value of a record in (from, to]; -1: none that is a count. */
static int64_t last_count(const struct record *record, struct span hours)
{
    for (size_t k = record->n; k-- > 0;) {
        const struct run *run = &record->runs[k];
        if (run->t0 > hours.to)
            continue;
        time_ms last = run_last(run);
        if (last > hours.to)
            last = run->t0 + (hours.to - run->t0) / run->dt * run->dt;
        if (last <= hours.from || !(run->v >= 0 && run->v <= RESOURCE_COUNT_MAX))
            return -1;
        return (int64_t)run->v;
    }
    return -1;
}

int64_t facts_gpu_quota(const struct facts *facts, name_t cluster, name_t namespace,
                        struct span hours)
{
    int64_t sum = -1;
    for (size_t i = 0; i < facts->quotas_n; i++) {
        const struct quota *quota = &facts->quotas[i];
        int64_t least = -1;
        bool first = true;
        if (quota->cluster != cluster || quota->namespace != namespace)
            continue;
        for (size_t k = 0; k < facts->quotas_n; k++) {
            const struct quota *other = &facts->quotas[k];
            if (other->cluster != cluster || other->namespace != namespace ||
                other->resource != quota->resource)
                continue;
            first = first && k >= i;
            int64_t count = other->record ? last_count(other->record, hours) : other->count;
            if (count >= 0 && (least < 0 || count < least))
                least = count;
        }
        if (first && least >= 0)
            sum = (sum < 0 ? 0 : sum) + least;
    }
    return sum;
}
