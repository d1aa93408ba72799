/* Any bytes as records, one after the other (a length byte pair in front of each): into a history,
 * out of it to an intake, and through a snapshot into another history, which then says the same. */
#include <stdlib.h>

#include "fleet/intake_data.h"
#include "source/kube_history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum err feed(void *context, time_ms t, struct str record, struct error *err)
{
    (void)t;
    return kube_history_add(context, record, NULL, err);
}

static enum err count(void *context, time_ms t, struct str record, struct error *err)
{
    (void)t, (void)err;
    *(size_t *)context += record.n;
    return ERR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_history *history = kube_history_new(), *copy = kube_history_new();
    struct kube_history *third = kube_history_new();
    struct error err;
    for (size_t at = 0; at + 2 <= size;) {
        size_t n = (size_t)data[at] | (size_t)data[at + 1] << 8;
        n = n < size - at - 2 ? n : size - at - 2;
        char *bytes = malloc(n + 1);
        memcpy(bytes, data + at + 2, n);
        kube_history_add(history, (struct str){bytes, n}, NULL, &err);
        free(bytes);
        at += 2 + n;
    }
    struct settings settings;
    settings_defaults(&settings);
    struct names *names = names_new();
    struct intake *intake = intake_new(&settings, names);
    kube_history_deliver(history, (struct span){0, 24 * HOUR_MS}, intake);
    size_t once = 0, again = 0, thrice = 0;
    invariant(kube_history_snapshot(history, count, &once, NULL) == ERR_OK);
    invariant(kube_history_snapshot(history, feed, copy, &err) == ERR_OK);
    invariant(kube_history_snapshot(copy, count, &again, NULL) == ERR_OK);
    invariant(kube_history_snapshot(copy, feed, third, &err) == ERR_OK);
    invariant(kube_history_snapshot(third, count, &thrice, NULL) == ERR_OK);
    /* What has no uid and came back within the same ms is one object in the copy. */
    invariant(again <= once && again == thrice);
    kube_history_forget(history, 12 * HOUR_MS);
    kube_history_deliver(history, (struct span){12 * HOUR_MS, 24 * HOUR_MS}, intake);
    intake_free(intake);
    names_free(names);
    kube_history_free(history);
    kube_history_free(copy);
    kube_history_free(third);
    return 0;
}
