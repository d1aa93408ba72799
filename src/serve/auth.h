/* Who may ask what: bearer tokens, client certificates, identities from a reverse proxy.
 *
 * Invariants
 *  - Without any token, certificate authority or proxy the server answers everybody, and then
 *    listens on loopback only, unless allow_anonymous says otherwise: auth_check_listen().
 *  - A token is kept as its SHA-256 and compared in constant time. Tokens are made by us with 256
 *    bits from the system (auth_token_new), so that a slow hash would add nothing.
 *  - A view is part of the access of a request: it names teams and namespaces, and reads of the
 *    ledger for that request see the rows of these and nothing else (store/lens.h).
 *
 * An auth is filled by one thread, then read-only and shared by all; a reload makes another one. */
#ifndef GPUTALLY_SERVE_AUTH_H
#define GPUTALLY_SERVE_AUTH_H

#include "util/config_file.h"
#include "util/error.h"
#include "util/str.h"

/* X(ID, "word", "what it lets do") */
#define SCOPE_TABLE(X)                                                                             \
    X(READ, "read", "read the ledger and what follows from it")                                    \
    X(WRITE, "write", "send samples to the receiver")                                              \
    X(METRICS, "metrics", "read /metrics")
enum scope {
    SCOPE_NONE, /* no token is needed */
#define X(id, word, meaning) SCOPE_##id,
    SCOPE_TABLE(X)
#undef X
        SCOPE_COUNT
};
#define SCOPE_BIT(scope) (1u << (scope))
extern const char *const scope_words[SCOPE_COUNT];

/* What of the ledger is seen: rows of one of the teams, or of one of the namespaces. */
struct view_of {
    bool limited; /* false: everything */
    const struct str *teams, *namespaces;
    size_t teams_n, namespaces_n;
    uint64_t digest; /* of the above; 0 unlimited: part of every cache key */
};

struct access {
    struct str identity; /* name of the token, the certificate's or the proxy's; empty: anonymous */
    unsigned scopes;     /* SCOPE_BIT(…) */
    struct view_of view;
};

struct auth;
struct auth *auth_new(void);               /* no tokens: anonymous, with all scopes */
struct auth *auth_hold(struct auth *auth); /* one more owner; any thread */
void auth_free(struct auth *auth);         /* one less; the last one frees it. NULL is fine */

/* The section `access:` of the configuration (docs/access.md). Errors say where. */
enum err auth_read(struct auth *auth, struct config_node section, struct error *err);

/* May a server with this auth listen on that address? ERR_CONFIG says what to do where not. */
enum err auth_check_listen(const struct auth *auth, const char *listen, bool tls_client_ca,
                           struct error *err);

/* Is there a token, certificate or name of a proxy's that lets one write under this identity? */
bool auth_may_write(const struct auth *auth, struct str identity);

/* What a request shows of itself. Empty texts: not there. */
struct auth_proof {
    struct str authorization;  /* the header */
    struct str peer;           /* numeric address */
    struct str certificate_cn; /* of a client certificate that was verified */
    struct str (*header)(const void *connection, const char *name); /* several: joined by ", " */
    const void *connection;
};
/* The access that the proof gives. ret->scopes 0: none, and *ret_why says why ("no token",
 * "unknown token"). ret points into auth. Time does not depend on which token it is. */
void auth_decide(const struct auth *auth, const struct auth_proof *proof, struct access *ret,
                 const char **ret_why);

/* A new token ("gpt_" and 43 characters) and the text that stands for it in the configuration
 * ("sha256:…"). ERR_IO where the system gives no random bytes. */
#define AUTH_TOKEN_MAX 64
#define AUTH_HASH_MAX 80
enum err auth_token_new(char token[AUTH_TOKEN_MAX], char hash[AUTH_HASH_MAX], struct error *err);

#endif
