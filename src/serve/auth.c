/* Access: the section `access:` of the configuration, and what a request may.
 *
 * A request shows at most one of: a bearer token; a client certificate (verified by tls.c); a name
 * in a header, from the address of a reverse proxy that is listed. The first that is there decides,
 * so that a wrong token does not fall back to something weaker. */
#include "serve/auth.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "serve/auth_impl.h"

#define HASH_BYTES AUTH_HASH_BYTES
#define TOKEN_BYTES 32

const char *const scope_words[SCOPE_COUNT] = {"none",
#define X(id, word, meaning) word,
                                              SCOPE_TABLE(X)
#undef X
};

struct auth *auth_new(void)
{
    struct auth *auth = mem_zalloc(1, sizeof *auth);
    atomic_init(&auth->owners, 1);
    return auth;
}

struct auth *auth_hold(struct auth *auth)
{
    atomic_fetch_add(&auth->owners, 1);
    return auth;
}

void auth_free(struct auth *auth)
{
    if (!auth || atomic_fetch_sub(&auth->owners, 1) > 1)
        return;
    arena_release(&auth->arena);
    free(auth->grants);
    free(auth);
}

enum err auth_check_listen(const struct auth *auth, const char *listen, bool tls_client_ca,
                           struct error *err)
{
    if (http_listen_is_loopback(listen) || auth->allow_anonymous || auth->grants_n ||
        (tls_client_ca && auth->wants_certificate))
        return ERR_OK;
    return error_set(err, ERR_CONFIG,
                     "%s is not a loopback address, and everybody could read the ledger there: "
                     "make a token with gputally config token and put it under access: tokens:, "
                     "or say allow_anonymous: true under access:",
                     listen);
}

/* ---- tokens ---- */

static void hex(const unsigned char *bytes, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static void hash_of(struct str text, unsigned char ret[HASH_BYTES])
{
    invariant(gnutls_hash_fast(GNUTLS_DIG_SHA256, text.p, text.n, ret) == 0);
}

enum err auth_token_new(char token[AUTH_TOKEN_MAX], char hash[AUTH_HASH_MAX], struct error *err)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char random[TOKEN_BYTES + 1] = {0}, hashed[HASH_BYTES];
    if (gnutls_rnd(GNUTLS_RND_KEY, random, TOKEN_BYTES) != 0)
        return error_set(err, ERR_IO, "the system gives no random bytes");
    size_t n = 4;
    memcpy(token, "gpt_", n);
    for (size_t bit = 0; bit < 8 * TOKEN_BYTES; bit += 6) {
        unsigned pair = (unsigned)random[bit / 8] << 8 | random[bit / 8 + 1];
        token[n++] = digits[pair >> (10 - bit % 8) & 63];
    }
    token[n] = 0;
    hash_of(str_of(token), hashed);
    memcpy(hash, "sha256:", 7);
    hex(hashed, HASH_BYTES, hash + 7);
    gnutls_memset(random, 0, sizeof random);
    return ERR_OK;
}

/* ---- deciding ---- */

/* Every token is compared, whichever fits, and in constant time. */
static const struct grant *by_token(const struct auth *auth, struct str token)
{
    unsigned char hash[HASH_BYTES];
    const struct grant *found = NULL;
    hash_of(token, hash);
    for (size_t i = 0; i < auth->grants_n; i++) {
        const struct grant *grant = &auth->grants[i];
        bool fits = gnutls_memcmp(hash, grant->hash, HASH_BYTES) == 0;
        if (fits && grant->kind == GRANT_TOKEN)
            found = grant;
    }
    return found;
}

static const struct grant *by_name(const struct auth *auth, enum grant_kind kind, struct str name)
{
    for (size_t i = 0; i < auth->grants_n; i++) {
        const struct grant *grant = &auth->grants[i];
        if (grant->kind == kind && str_glob(grant->name, name))
            return grant;
    }
    return NULL;
}

bool auth_may_write(const struct auth *auth, struct str identity)
{
    bool may = false;
    for (size_t i = 0; i < auth->grants_n; i++) {
        const struct grant *grant = &auth->grants[i];
        bool named = grant->kind == GRANT_TOKEN ? str_eq(grant->name, identity)
                                                : str_glob(grant->name, identity);
        may |= named && (grant->scopes & SCOPE_BIT(SCOPE_WRITE));
    }
    return may;
}

static void give(const struct grant *grant, struct str identity, struct access *ret)
{
    *ret = (struct access){.identity = identity, .scopes = grant->scopes, .view = grant->view};
}

static bool is_proxy(const struct auth *auth, struct str peer)
{
    for (size_t i = 0; i < auth->proxies_n; i++)
        if (address_in(peer, &auth->proxies[i]))
            return true;
    return false;
}

static bool anonymous(const struct auth *auth, struct access *ret)
{
    if (auth->grants_n && !auth->allow_anonymous)
        return false;
    *ret = (struct access){.scopes = ~0u};
    if (auth->grants_n) /* with tokens, only those write */
        ret->scopes = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_METRICS);
    return true;
}

void auth_decide(const struct auth *auth, const struct auth_proof *proof, struct access *ret,
                 const char **ret_why)
{
    const struct grant *grant = NULL;
    struct str given = proof->authorization, identity = STR_NONE;
    *ret = (struct access){0};
    *ret_why = NULL;
    if (given.n && auth->grants_n) {
        struct str head = STR("Bearer ");
        if (given.n <= head.n || !str_eq_nocase((struct str){given.p, head.n}, head)) {
            *ret_why = "Authorization is no bearer token";
            return;
        }
        grant = by_token(auth, (struct str){given.p + head.n, given.n - head.n});
        *ret_why = grant ? NULL : "unknown token";
        if (grant)
            give(grant, grant->name, ret);
        return;
    }
    if (auth->proxies_n && auth->proxy_header.n && is_proxy(auth, proof->peer))
        identity = proof->header(proof->connection, auth->proxy_header.p);
    if (identity.n && memmem(identity.p, identity.n, ", ", 2)) {
        *ret_why = "the proxy's header names several";
        return;
    }
    if (identity.n && (grant = by_name(auth, GRANT_PROXY, identity))) {
        give(grant, identity, ret);
        return;
    }
    if (identity.n) {
        *ret_why = "the proxy's name has no rights here";
        return;
    }
    if (proof->certificate_cn.n) {
        grant = by_name(auth, GRANT_CERTIFICATE, proof->certificate_cn);
        *ret_why = grant ? NULL : "the certificate's name has no rights here";
        if (grant)
            give(grant, proof->certificate_cn, ret);
        return;
    }
    if (!anonymous(auth, ret))
        *ret_why = "no token";
}
