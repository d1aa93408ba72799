/* Which meters measure what (ledger/load_book.h). */
#include "ledger/load_book.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ whose is a meter? */

static name_t label_of(const struct facts *facts, const struct record *target, const char *name)
{
    name_t id;
    return names_find(facts->names, str_of(name), &id) ? record_label(target, id) : NAME_NONE;
}

/* The node of a host's exporter: a label that names one, else the address that it is scraped at,
 * else the pod that is scraped. NAME_NONE: no node that is known. */
static name_t node_of(struct facts *facts, const struct record *target, name_t cluster)
{
    static const char *const names[] = {"node",     "nodename", "kubernetes_node",
                                        "Hostname", "hostname", "exported_node"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        name_t name = label_of(facts, target, names[i]);
        if (name != NAME_NONE && facts_find_node(facts, cluster, name))
            return name;
    }
    struct str instance = names_text(facts->names, label_of(facts, target, "instance"));
    const char *colon = memrchr(instance.p, ':', instance.n);
    struct str host = {instance.p, colon ? (size_t)(colon - instance.p) : instance.n};
    if (host.n > 2 && host.p[0] == '[') /* [::1]:9100 */
        host = (struct str){host.p + 1, host.n - 2};
    name_t id;
    if (host.n && names_find(facts->names, host, &id)) {
        uint32_t at = idmap_get(&facts->address, IDKEY(cluster, id));
        if (at != IDMAP_NONE)
            return at;
        if (facts_find_node(facts, cluster, id))
            return id;
    }
    uint32_t at = idmap_get(&facts->pod_node, IDKEY(cluster, label_of(facts, target, "pod")));
    return at == IDMAP_NONE ? NAME_NONE : at;
}

static bool is_of_host(enum load load)
{
    return load == LOAD_CPU || load == LOAD_CPUS || load == LOAD_NET_IN || load == LOAD_NET_OUT;
}

static void put_meter(struct load_book *book, const struct meter *meter)
{
    struct facts *facts = book->facts;
    struct record target = {.labels = meter->labels, .labels_n = meter->labels_n};
    enum load load = meter->name->load;
    name_t cluster = facts_label(facts, &target, "cluster");
    struct idmap *map = is_of_host(load) ? &book->of_node : &book->of_pod;
    struct idkey key;
    if (is_of_host(load)) {
        name_t node = node_of(facts, &target, cluster);
        if (node == NAME_NONE)
            return;
        key = IDKEY(cluster, node, load);
    } else {
        name_t pod = facts_label(facts, &target, "pod");
        if (pod == NAME_NONE)
            return;
        key = IDKEY(cluster, facts_label(facts, &target, "namespace"), pod, load);
    }
    bool fresh;
    uint32_t at = idmap_add(map, key, (uint32_t)book->lists_n, &fresh);
    struct meter_list none = {.key = key, .of_node = is_of_host(load)};
    if (fresh)
        mem_push(book->lists, book->lists_n, book->lists_room, none);
    struct meter_list *list = &book->lists[at];
    mem_push(list->at, list->n, list->room, meter);
}

static int by_preference(const void *a, const void *b, void *context)
{
    const struct names *names = context;
    const struct meter *x = *(const struct meter *const *)a, *y = *(const struct meter *const *)b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    for (uint32_t i = 0; i < x->labels_n && i < y->labels_n; i++) {
        int order =
            str_cmp(names_text(names, x->labels[i].name), names_text(names, y->labels[i].name));
        order = order ? order
                      : str_cmp(names_text(names, x->labels[i].value),
                                names_text(names, y->labels[i].value));
        if (order)
            return order;
    }
    return (x->labels_n > y->labels_n) - (x->labels_n < y->labels_n);
}

/* ------------------------------------------------------------------ sums that a server made */

/* How many processors the sum at t is of: the last count up to t; -1: not known. */
static int64_t cpus_at(const struct meter *counts, time_ms t)
{
    size_t low = 0, high = counts->readings_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (counts->readings[mid].t <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? counts->readings[low - 1].sum : -1;
}

static const struct meter *counts_of(const struct intake *intake, const struct meter *sums)
{
    for (size_t i = 0; i < load_names_n; i++)
        if (load_names[i].load == LOAD_CPUS) {
            uint32_t at = idmap_get(&intake->meter_of, meter_key(&load_names[i], sums->hash));
            return at == IDMAP_NONE ? NULL : intake->meters[at];
        }
    return NULL;
}

/* A sum over processors jumps where one comes or goes: such five minutes say nothing. */
static void drop_jumps(const struct intake *intake, struct meter *sums)
{
    const struct meter *counts = counts_of(intake, sums);
    for (size_t i = 0; counts && i < sums->bins_n; i++) {
        struct load_bin *bin = &sums->bins[i];
        time_ms end = (bin->slot + 1) * LOAD_SLOT_MS;
        int64_t now = cpus_at(counts, end), before = cpus_at(counts, end - LOAD_SLOT_MS);
        if (before >= 0 && now != before)
            bin->sum = bin->idle = 0;
        bin->cpus = now > 0 ? now : bin->cpus;
    }
}

/* ------------------------------------------------------------------ life */

static void put_pods(struct load_book *book)
{
    const struct facts *facts = book->facts;
    for (size_t i = 0; i < facts->pods_n; i++) {
        const struct pod *pod = &facts->pods[i];
        if (pod->node == NAME_NONE)
            continue;
        bool fresh;
        uint32_t at = idmap_add(&book->pods_of_node, IDKEY(pod->cluster, pod->node),
                                (uint32_t)book->on_node_n, &fresh);
        struct pod_list none = {0};
        if (fresh)
            mem_push(book->on_node, book->on_node_n, book->on_node_room, none);
        struct pod_list *list = &book->on_node[at];
        mem_push(list->pods, list->n, list->room, (uint32_t)i);
    }
}

void load_book_init(struct load_book *book, struct facts *facts, struct intake *intake,
                    struct span hours)
{
    *book = (struct load_book){.facts = facts, .hours = hours};
    for (size_t i = 0; i < intake->loads_n; i++)
        load_settle(intake->loads[i]);
    for (size_t i = 0; i < intake->meters_n; i++) {
        struct meter *meter = intake->meters[i];
        if (meter->name->group == LOAD_GROUP_SUM && meter->name->load == LOAD_CPU)
            drop_jumps(intake, meter);
        if (meter->bins_n || meter->readings_n)
            put_meter(book, meter);
    }
    for (size_t i = 0; i < book->lists_n; i++)
        qsort_r(book->lists[i].at, book->lists[i].n, sizeof *book->lists[i].at, by_preference,
                facts->names);
    put_pods(book);
}

void load_book_release(struct load_book *book)
{
    for (size_t i = 0; i < book->lists_n; i++)
        free(book->lists[i].at);
    for (size_t i = 0; i < book->on_node_n; i++)
        free(book->on_node[i].pods);
    free(book->lists);
    free(book->on_node);
    free(book->holders);
    idmap_release(&book->of_node);
    idmap_release(&book->of_pod);
    idmap_release(&book->pods_of_node);
    idmap_release(&book->held);
    *book = (struct load_book){0};
}

/* ------------------------------------------------------------------ asking */

static const struct meter_list *list_at(const struct load_book *book, uint32_t at)
{
    return at == IDMAP_NONE ? NULL : &book->lists[at];
}

const struct meter_list *load_list_of_node(const struct load_book *book, name_t cluster,
                                           name_t node, enum load load)
{
    return list_at(book, idmap_get(&book->of_node, IDKEY(cluster, node, load)));
}

const struct meter_list *load_list_of_pod(const struct load_book *book, name_t cluster,
                                          name_t namespace, name_t pod, enum load load)
{
    return list_at(book, idmap_get(&book->of_pod, IDKEY(cluster, namespace, pod, load)));
}

const struct load_bin *load_list_bin(const struct meter_list *list, int64_t slot)
{
    for (size_t i = 0; list && i < list->n; i++) {
        const struct load_bin *bin = meter_bin(list->at[i], slot);
        /* processors always do something, if it is nothing */
        if (bin && (bin->sum > 0 || list->at[i]->name->load != LOAD_CPU))
            return bin;
    }
    return NULL;
}

int64_t load_book_count(const struct load_book *book, time_ms hour, name_t cluster,
                        name_t namespace, name_t pod, enum load load)
{
    const struct meter_list *list = load_list_of_pod(book, cluster, namespace, pod, load);
    int64_t sum = -1, first = hour / LOAD_SLOT_MS;
    for (int64_t slot = first; list && slot < first + LOAD_SLOTS_AN_HOUR; slot++) {
        const struct load_bin *bin = load_list_bin(list, slot);
        if (bin)
            sum = (sum < 0 ? 0 : sum) + bin->sum; /* 12 of at most 2e17 */
    }
    return sum;
}

void load_book_holders(struct load_book *book, const struct row_batch *batch)
{
    for (size_t i = 0; i < batch->rows_n; i++) {
        const struct row_key *key = &batch->rows[i].key;
        if (key->pod == NAME_NONE)
            continue;
        bool fresh;
        idmap_add(&book->held,
                  IDKEY((uint32_t)(key->hour / HOUR_MS), key->cluster, key->namespace, key->pod),
                  (uint32_t)book->holders_n, &fresh);
        struct load_holder holder = {key->hour,
                                     key->cluster,
                                     key->namespace,
                                     key->pod,
                                     batch->rows[i].facts.workload,
                                     batch->rows[i].facts.type};
        if (fresh)
            mem_push(book->holders, book->holders_n, book->holders_room, holder);
    }
}
