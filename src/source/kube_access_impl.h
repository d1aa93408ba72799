/* What the files of the access share. Seen by src/source/kube_*.c only.
 *
 *     kube_access.c   in a cluster; the site and the token of each request
 *     kubeconfig.c    the file
 *     kube_exec.c     the plugin: run by argv, with limits */
#ifndef GPUTALLY_SOURCE_KUBE_ACCESS_IMPL_H
#define GPUTALLY_SOURCE_KUBE_ACCESS_IMPL_H

#include <pthread.h>

#include "source/http.h"
#include "source/kube_access.h"
#include "wire/kube_answers.h"

#define KUBE_PEM_MAX ((size_t)1 << 20)          /* bytes of a certificate, key or CA */
#define KUBE_EXEC_EARLY_MS ((time_ms)60 * 1000) /* a plugin runs again so long before expiry */
#define KUBE_EXEC_PAUSE_MS ((time_ms)10 * 1000) /* … and after a failure not before that */
#define KUBE_EXEC_WORDS_MAX 256

/* An exec plugin of a kubeconfig. */
struct kube_exec {
    char **argv; /* NULL-terminated; argv[0] is a path or a name to be found in PATH */
    size_t argc, argv_room;
    char **env; /* NAME=VALUE, added to ours */
    size_t env_n, env_room;
    char *version; /* client.authentication.k8s.io/v1 */
    char *hint;    /* what to install where it is not there */
    char *info;    /* KUBERNETES_EXEC_INFO; NULL: none */
};
void kube_exec_release(struct kube_exec *exec);
/* Run it: what it printed is added to ret. ERR_IO, ERR_LIMIT (too slow, too much). One thread. */
enum err kube_exec_run(const struct kube_exec *exec, time_ms timeout_ms, size_t output_max,
                       struct strbuf *ret, struct error *err);

struct kube_access {
    char *url, *connect_to, *proxy, *warning;
    bool insecure;
    char *ca_file, *cert_file, *key_file;
    struct strbuf ca_pem, cert_pem, key_pem;
    char *token, *token_file, *user, *password;
    char *impersonate; /* a header; NULL: none */
    struct kube_exec exec;
    bool has_exec;

    pthread_mutex_t lock; /* of what the plugin gave */
    struct kube_credential credential;
    bool has_credential;
    time_ms failed;      /* when the plugin last failed; TIME_MIN */
    uint64_t generation; /* counts certificates that the plugin gave */
};

/* Fill an access from a kubeconfig. ERR_CONFIG, ERR_IO, ERR_USAGE. */
enum err kubeconfig_read(struct kube_access *access, const struct kube_access_options *options,
                         struct error *err);

/* A site for requests with these limits; certificates of a plugin are asked for here. It lives no
 * longer than the access. */
enum err kube_access_site(struct kube_access *access, time_ms connect_ms, time_ms idle_ms,
                          struct http_site **ret, struct error *err);
/* Grows when sites have to be made again: a plugin gave another certificate. */
uint64_t kube_access_generation(struct kube_access *access);
/* The API refused the login (401): what a plugin gave is not used again. */
void kube_access_refused(struct kube_access *access);

#endif
