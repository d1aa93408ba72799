/* Exporter pods as scrape targets, picked from the pods that are followed anyway. */
#include <stdio.h>
#include <stdlib.h>

#include "source/kube_watch_impl.h"

#define EXPORTER_PORT 9400 /* dcgm-exporter's */

const struct kube_target_selector *kube_target_defaults(size_t *ret_n)
{
    static const struct label app = {{"app", 3}, {"nvidia-dcgm-exporter", 20}};
    static const struct label plain = {{"app", 3}, {"dcgm-exporter", 13}};
    static const struct label name = {{"app.kubernetes.io/name", 22}, {"dcgm-exporter", 13}};
    static const struct kube_target_selector selectors[] = {
        {&app, 1, {"", 0}}, {&plain, 1, {"", 0}}, {&name, 1, {"", 0}}};
    *ret_n = sizeof selectors / sizeof *selectors;
    return selectors;
}

void kube_targets_copy(struct kube_watch *watch, const struct kube_target_selector *selectors,
                       size_t n)
{
    watch->selectors = mem_zalloc(n, sizeof *watch->selectors);
    watch->selectors_n = n;
    for (size_t i = 0; i < n; i++) {
        struct label *labels =
            arena_alloc(&watch->selector_texts, selectors[i].labels_n * sizeof *labels);
        for (size_t k = 0; k < selectors[i].labels_n; k++)
            labels[k] =
                (struct label){str_keep(&watch->selector_texts, selectors[i].labels[k].name),
                               str_keep(&watch->selector_texts, selectors[i].labels[k].value)};
        watch->selectors[i] = (struct kube_target_selector){
            labels, selectors[i].labels_n, str_keep(&watch->selector_texts, selectors[i].port)};
    }
}

static void release_target(struct kube_target_kept *target)
{
    char *const texts[] = {target->address, target->node, target->namespace, target->pod,
                           target->uid};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

void kube_targets_release(struct kube_watch *watch)
{
    for (size_t i = 0; i < watch->targets_n; i++)
        release_target(&watch->targets[i]);
    free(watch->targets);
    free(watch->selectors);
    arena_release(&watch->selector_texts);
}

static const struct kube_target_selector *selector_of(const struct kube_watch *watch,
                                                      const struct kube_pod *pod)
{
    for (size_t i = 0; i < watch->selectors_n; i++) {
        const struct kube_target_selector *selector = &watch->selectors[i];
        size_t k = 0;
        while (k < selector->labels_n &&
               str_eq(labels_get(pod->labels, pod->labels_n, selector->labels[k].name),
                      selector->labels[k].value))
            k++;
        if (k == selector->labels_n && k > 0)
            return selector;
    }
    return NULL;
}

/* The number of the port that the selector names. */
static int port_of(const struct kube_target_selector *selector, const struct kube_pod *pod)
{
    struct str wanted = selector->port.n ? selector->port : STR("metrics");
    long long number;
    if (str_to_i64(wanted, &number) && number > 0 && number <= UINT16_MAX)
        return (int)number;
    for (size_t i = 0; i < pod->ports_n; i++)
        if (str_eq(pod->ports[i].name, wanted))
            return pod->ports[i].number;
    return selector->port.n ? 0 : EXPORTER_PORT;
}

static bool is_address(struct str ip)
{
    for (size_t i = 0; i < ip.n; i++)
        if (!strchr("0123456789abcdefABCDEF.:", ip.p[i]))
            return false;
    return ip.n > 0 && ip.n < 64;
}

static bool same_text(const char *kept, struct str text)
{
    return str_eq(str_of(kept), text);
}

static size_t find_target(const struct kube_watch *watch, const struct kube_pod *pod)
{
    size_t i = 0;
    while (i < watch->targets_n && !(same_text(watch->targets[i].pod, pod->name) &&
                                     same_text(watch->targets[i].namespace, pod->namespace)))
        i++;
    return i;
}

static void drop_target(struct kube_watch *watch, size_t at)
{
    release_target(&watch->targets[at]);
    watch->targets[at] = watch->targets[--watch->targets_n];
    watch->targets_changed = true;
}

static void set_target(struct kube_watch *watch, size_t at, const struct kube_pod *pod, int port)
{
    struct strbuf address = {0};
    bool v6 = memchr(pod->ip.p, ':', pod->ip.n) != NULL;
    strbuf_addf(&address, "%s%.*s%s:%d", v6 ? "[" : "", STR_ARG(pod->ip), v6 ? "]" : "", port);
    if (at < watch->targets_n) {
        struct kube_target_kept *old = &watch->targets[at];
        bool same = same_text(old->address, strbuf_str(&address)) &&
                    same_text(old->node, pod->node) && same_text(old->uid, pod->uid);
        old->mark = watch->targets_mark;
        if (same) {
            strbuf_release(&address);
            return;
        }
        drop_target(watch, at);
    }
    struct kube_target_kept fresh = {
        address.text,       str_dup(pod->node), str_dup(pod->namespace),
        str_dup(pod->name), str_dup(pod->uid),  watch->targets_mark};
    mem_push(watch->targets, watch->targets_n, watch->targets_room, fresh);
    watch->targets_changed = true;
}

void kube_targets_begin(struct kube_watch *watch)
{
    watch->targets_mark++;
}

void kube_targets_pod(struct kube_watch *watch, const struct kube_pod *pod, bool gone)
{
    const struct kube_target_selector *selector =
        watch->selectors_n ? selector_of(watch, pod) : NULL;
    if (!selector) /* one whose labels are taken off goes with the next list */
        return;
    size_t at = find_target(watch, pod);
    int port = port_of(selector, pod);
    bool is_one = !gone && port > 0 && is_address(pod->ip) && str_eq(pod->phase, STR("Running")) &&
                  pod->deletion == TIME_MIN;
    if (is_one && (at < watch->targets_n || watch->targets_n < KUBE_TARGETS_MAX))
        set_target(watch, at, pod, port);
    else if (!is_one && at < watch->targets_n && same_text(watch->targets[at].uid, pod->uid))
        drop_target(watch, at);
}

void kube_targets_end(struct kube_watch *watch)
{
    for (size_t i = watch->targets_n; i-- > 0;)
        if (watch->targets[i].mark != watch->targets_mark)
            drop_target(watch, i);
    if (watch->synced == TIME_MIN)
        watch->targets_changed = true; /* that there are none is told too */
}

static int by_address(const void *a, const void *b)
{
    const struct kube_target *x = a, *y = b;
    int order = str_cmp(x->address, y->address);
    return order ? order : str_cmp(x->uid, y->uid);
}

void kube_targets_tell(struct kube_watch *watch)
{
    if (!watch->targets_changed || !watch->sink.targets || watch->selectors_n == 0)
        return;
    struct kube_target *targets = mem_zalloc(watch->targets_n + 1, sizeof *targets);
    for (size_t i = 0; i < watch->targets_n; i++) {
        const struct kube_target_kept *kept = &watch->targets[i];
        targets[i] =
            (struct kube_target){str_of(kept->address), str_of(kept->node), str_of(kept->namespace),
                                 str_of(kept->pod), str_of(kept->uid)};
    }
    qsort(targets, watch->targets_n, sizeof *targets, by_address);
    watch->sink.targets(watch->sink.context, targets, watch->targets_n);
    watch->targets_changed = false;
    free(targets);
}
