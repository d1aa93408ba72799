/* Kubernetes lists in files as a source: what `kubectl get … -A -o json` prints, beside telemetry
 * from elsewhere. Exact facts of nodes, pods, owners and namespaces without an API connection.
 *
 * A list says what was there when it was made and stands for the whole window: its nodes are up and
 * its pods run throughout, but for what their own times say (fleet/objects.h). Files are read in
 * the order given, .gz and .zst too, "-" is standard input; all of them are one cluster's.
 *
 * A ResourceClaim names its device through a ResourceSlice, and the pod that it is reserved for may
 * stand in another file. So a fetch reads all files before it hands on any pod that has a claim. */
#ifndef GPUTALLY_SOURCE_KUBE_FILE_H
#define GPUTALLY_SOURCE_KUBE_FILE_H

#include "source/source.h"

/* paths[n] and cluster (NULL or "": none) are copied. Opens nothing yet; a file that is missing,
 * unreadable or no JSON is an error of survey and of fetch. source_free() frees. */
enum err kube_file_source_new(const char *const *paths, size_t n, const char *cluster,
                              struct source **ret, struct error *err);

#endif
