/* Where a Kubernetes API is and how to log in there: in a cluster by the pod's service account,
 * elsewhere by a kubeconfig file.
 *
 *     in a cluster   KUBERNETES_SERVICE_HOST and _PORT; token, ca.crt (and namespace) below
 *                    /var/run/secrets/kubernetes.io/serviceaccount
 *     kubeconfig     one file of clusters, users and contexts: certificates, keys and CAs by file
 * or as *-data, tokens, token files, user and password, exec plugins
 *
 * Tokens rotate: token files are read again for each request, and an exec plugin runs again when
 * what it gave has expired or was refused (401). An exec plugin is a command of the kubeconfig's
 * author and so is off unless allowed; it is run by argv without a shell, with limits on time and
 * output. Certificate checks are left out only where the file says insecure-skip-tls-verify, and
 * kube_access_warning() then says so. No secret gets into a text.
 *
 * Sources: kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig and
 * reference/config-api/client-authentication.v1. An access is shared by threads. */
#ifndef GPUTALLY_SOURCE_KUBE_ACCESS_H
#define GPUTALLY_SOURCE_KUBE_ACCESS_H

#include "util/clock.h"
#include "util/error.h"

#define KUBE_ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"
#define KUBE_EXEC_TIMEOUT_MS ((time_ms)30 * 1000)
#define KUBE_EXEC_OUTPUT_MAX ((size_t)256 << 10) /* bytes that a plugin may print */

struct kube_access_options {
    const char *kubeconfig; /* file; NULL: in a cluster */
    const char *context;    /* of the kubeconfig; NULL: its current-context */
    bool allow_exec;        /* may the kubeconfig's exec plugin be run? */
    /* for tests; NULL: as above and from the environment */
    const char *account_folder, *host, *port;
};

struct kube_access;
/* ERR_CONFIG (with file, line and column) where the kubeconfig is none or names what is not there;
 * ERR_USAGE where this is no pod and no kubeconfig was given, or a plugin is not allowed; ERR_IO.
 */
enum err kube_access_new(const struct kube_access_options *options, struct kube_access **ret,
                         struct error *err);
void kube_access_free(struct kube_access *access); /* NULL is fine */

const char *kube_access_url(const struct kube_access *access); /* without credentials */
/* What people should know of it ("certificates of … are not checked: …"); NULL: nothing. */
const char *kube_access_warning(const struct kube_access *access);

#endif
