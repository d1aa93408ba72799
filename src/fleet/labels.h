/* How labels are spelled: one table of roles with every spelling, for the series of GPU exporters
 * and for the labels of nodes. The first spelling that is there wins. (inputs.md, section 2) */
#ifndef GPUTALLY_FLEET_LABELS_H
#define GPUTALLY_FLEET_LABELS_H

#include "fleet/prices.h"
#include "util/names.h"

/* X(NAME, spellings…): what a label of a GPU series means */
#define GPU_LABEL_TABLE(X)                                                                         \
    X(CLUSTER, "cluster")                                                                          \
    X(JOB, "job")                                                                                  \
    X(INSTANCE, "instance")                                                                        \
    X(NODE, "node", "nodename", "kubernetes_node")                                                 \
    X(HOSTNAME, "Hostname", "hostname")                                                            \
    X(UUID, "UUID", "uuid", "gpu_uuid", "serial_number")                                           \
    X(PCI, "pci_bus_id")                                                                           \
    X(INDEX, "gpu", "gpu_id", "minor_number")                                                      \
    X(MODEL, "modelName", "model_name", "card_model")                                              \
    X(GPU_INSTANCE, "GPU_I_ID")                                                                    \
    X(PROFILE, "GPU_I_PROFILE")                                                                    \
    X(PARTITION, "gpu_partition_id")                                                               \
    X(VGPU, "vgpu")                                                                                \
    X(POD, "pod")                                                                                  \
    X(NAMESPACE, "namespace")                                                                      \
    X(CONTAINER, "container")                                                                      \
    X(EXPORTED_POD, "exported_pod", "pod_name")                                                    \
    X(EXPORTED_NAMESPACE, "exported_namespace", "pod_namespace")                                   \
    X(EXPORTED_CONTAINER, "exported_container", "container_name")

enum gpu_label {
#define X(name, ...) GPU_LABEL_##name,
    GPU_LABEL_TABLE(X)
#undef X
        GPU_LABEL_COUNT
};

/* The values of a series' labels by what they mean, views of them; empty: not there. O(n). Any
 * thread. */
void gpu_labels_find(const struct label *labels, size_t n, struct str value[GPU_LABEL_COUNT]);
/* The same as names (NAME_NONE: not there). */
void gpu_labels_read(const struct label *labels, size_t n, struct names *names,
                     name_t value[GPU_LABEL_COUNT]);

/* Labels of a node, spelled by Kubernetes or by kube-state-metrics. */
struct node_attributes {
    struct str instance_type, region, pool;
    enum capacity_type capacity; /* CAPACITY_UNKNOWN where no label says so */
    int64_t replicas;            /* nvidia.com/gpu.replicas; 0: no such label */
};
struct node_attributes node_attributes_read(const struct label *labels, size_t n);

/* "aws:///us-east-1a/i-1" -> "aws"; gce is gcp. A view into a constant or provider_id. */
struct str cloud_of_provider(struct str provider_id);

/* Do two label names mean the same, with every byte that is not alphanumeric read as '_'? */
bool label_name_same(struct str a, struct str b);

#endif
