/* Small answers around a Kubernetes API: what an exec plugin prints, and what the API says of its
 * resources. Whole documents, parsed at once; the caller caps their length. Any thread. */
#ifndef GPUTALLY_WIRE_KUBE_ANSWERS_H
#define GPUTALLY_WIRE_KUBE_ANSWERS_H

#include "util/clock.h"
#include "util/error.h"
#include "util/str.h"

/* An ExecCredential (client.authentication.k8s.io/v1, v1beta1). Texts are the caller's to release;
 * secrets: wipe them. */
struct kube_credential {
    struct strbuf token, certificate, key; /* empty: not given */
    time_ms expires;                       /* TIME_MAX: not said */
};
/* version: the one that was asked for. ERR_PARSE where it is none, or gives nothing to log in by;
 * the text tells nothing of what it holds. */
enum err kube_credential_read(struct str json, struct str version, struct kube_credential *ret,
                              struct error *err);
void kube_credential_release(struct kube_credential *credential); /* wipes */

/* The resource of a kind in an APIResourceList (what GET /apis/GROUP/VERSION answers): its name in
 * paths ("rayclusters"). ERR_NOT_FOUND, ERR_PARSE. */
enum err kube_resource_find(struct str json, struct str kind, struct strbuf *ret_name,
                            bool *ret_namespaced, struct error *err);

/* Of an APIGroup (GET /apis/GROUP) the first of wanted[n] that it serves. ERR_NOT_FOUND, ERR_PARSE.
 */
enum err kube_version_find(struct str json, const char *const *wanted, size_t n,
                           const char **ret_version, struct error *err);

#endif
