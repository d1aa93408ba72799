/* Certificates of the server and authorities of its clients, by file, changed without a restart.
 *
 * A handshake takes what was loaded last; connections that stand keep what they began with. All
 * files are read and checked before any of them takes effect. Any thread. */
#ifndef GPUTALLY_SERVE_TLS_H
#define GPUTALLY_SERVE_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"
#include "util/memory.h"
#include "util/str.h"

struct tls;
/* client_ca NULL: no client certificates are asked for. ERR_CONFIG names the file. */
enum err tls_new(const char *cert, const char *key, const char *client_ca, struct tls **ret,
                 struct error *err);
void tls_free(struct tls *tls); /* NULL is fine */
enum err tls_reload(struct tls *tls, struct error *err);

/* Authorities as PEM: what is sent as a hint when a certificate is asked for. NULL: none. */
const char *tls_client_ca_pem(const struct tls *tls);
/* The current certificate for a handshake, as gnutls_certificate_retrieve_function2 gives it:
 * pcerts is gnutls_pcert_st **, key gnutls_privkey_t *. 0, or -1 where there is none. */
int tls_certificate(struct tls *tls, void *pcerts, unsigned *pcerts_n, void *key);

/* The common name of the client's certificate where it verifies; false where it does not, and
 * *ret_why says why. session: gnutls_session_t. */
bool tls_client(struct tls *tls, void *session, struct arena *arena, struct str *ret_cn,
                const char **ret_why);

#endif
