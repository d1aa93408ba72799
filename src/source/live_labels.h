/* Labels of a GPU's series as the live view reads them: which device, and who holds it. Views into
 * the labels, or into room. Any thread. */
#ifndef GPUTALLY_SOURCE_LIVE_LABELS_H
#define GPUTALLY_SOURCE_LIVE_LABELS_H

#include "fleet/signals.h"
#include "util/str.h"

enum live_identity {
    LIVE_ID_CLUSTER,
    LIVE_ID_NODE,
    LIVE_ID_UUID, /* as the ledger calls the device, but for devices without one */
    LIVE_ID_INSTANCE,
    LIVE_ID_INDEX,
    LIVE_ID_MODEL,
    LIVE_ID_PROFILE,
    LIVE_ID_COUNT
};
enum live_holding { LIVE_HELD_NAMESPACE, LIVE_HELD_POD, LIVE_HELD_CONTAINER, LIVE_HELD_COUNT };

struct live_labels {
    struct str id[LIVE_ID_COUNT], held[LIVE_HELD_COUNT], job;
    bool bare;    /* held is of labels that may be the exporter's own */
    bool renamed; /* held is of labels that Prometheus renamed (exported_pod) */
};
void live_labels_read(const struct label *labels, size_t n, enum exporter_family exporter,
                      struct strbuf *room, struct live_labels *ret);

#endif
