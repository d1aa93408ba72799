/* Certificates by file. What a handshake takes is a `loaded`, counted by its users, swapped as a
 * whole. */
#include "serve/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdlib.h>

#include "util/config_file.h"

#define PEM_MAX ((size_t)1 << 20)
#define CHAIN_MAX 16

struct loaded {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_n;
    gnutls_privkey_t key;
    gnutls_x509_trust_list_t clients;
};

struct tls {
    char *cert_path, *key_path, *ca_path;
    char *ca_pem; /* of the start: what clients are told */
    pthread_mutex_t lock;
    struct loaded *now;
    /* Sessions keep pointers into what they were given, and do not say when they let go: those
     * that were replaced stay. A renewal is a rare thing and some kilobytes. */
    struct loaded **old;
    size_t old_n, old_room;
};

static void loaded_free(struct loaded *loaded)
{
    if (!loaded)
        return;
    for (unsigned i = 0; i < loaded->chain_n; i++)
        gnutls_pcert_deinit(&loaded->chain[i]);
    if (loaded->key)
        gnutls_privkey_deinit(loaded->key);
    if (loaded->clients)
        gnutls_x509_trust_list_deinit(loaded->clients, 1);
    free(loaded);
}

static gnutls_datum_t datum(const struct strbuf *text)
{
    return (gnutls_datum_t){(unsigned char *)text->text, (unsigned)text->n};
}

static enum err load_chain(const struct tls *tls, struct loaded *loaded, struct error *err)
{
    struct strbuf text = {0};
    enum err code = file_text(tls->cert_path, PEM_MAX, &text, err);
    if (code != ERR_OK)
        return code;
    gnutls_datum_t pem = datum(&text);
    loaded->chain_n = CHAIN_MAX;
    int rc = gnutls_pcert_list_import_x509_raw(loaded->chain, &loaded->chain_n, &pem,
                                               GNUTLS_X509_FMT_PEM, 0);
    strbuf_release(&text);
    if (rc >= 0 && loaded->chain_n > 0)
        return ERR_OK;
    loaded->chain_n = 0;
    return error_set(err, ERR_CONFIG, "certificate %s: %s", tls->cert_path, gnutls_strerror(rc));
}

static enum err load_key(const struct tls *tls, struct loaded *loaded, struct error *err)
{
    struct strbuf text = {0};
    enum err code = file_text(tls->key_path, PEM_MAX, &text, err);
    if (code != ERR_OK) {
        error_prefix(err, "the certificate's key");
        return code;
    }
    gnutls_datum_t pem = datum(&text);
    int rc = gnutls_privkey_init(&loaded->key);
    if (rc >= 0)
        rc = gnutls_privkey_import_x509_raw(loaded->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_memset(text.text, 0, text.n);
    strbuf_release(&text);
    if (rc < 0)
        return error_set(err, ERR_CONFIG,
                         "key %s: %s It must be a private key in PEM, without a password",
                         tls->key_path, gnutls_strerror(rc));
    return ERR_OK;
}

/* A certificate that was renewed while its key was not, or the other way round. */
static enum err check_pair(const struct tls *tls, const struct loaded *loaded, struct error *err)
{
    unsigned char of_cert[64], of_key[64];
    size_t cert_n = sizeof of_cert, key_n = sizeof of_key;
    gnutls_pubkey_t public;
    int rc = gnutls_pubkey_init(&public);
    if (rc < 0)
        return error_set(err, ERR_CONFIG, "%s: %s", tls->key_path, gnutls_strerror(rc));
    rc = gnutls_pubkey_import_privkey(public, loaded->key, 0, 0);
    if (rc >= 0)
        rc = gnutls_pubkey_get_key_id(public, GNUTLS_KEYID_USE_SHA256, of_key, &key_n);
    if (rc >= 0)
        rc = gnutls_pubkey_get_key_id(loaded->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert,
                                      &cert_n);
    gnutls_pubkey_deinit(public);
    if (rc >= 0 && cert_n == key_n && memcmp(of_cert, of_key, key_n) == 0)
        return ERR_OK;
    return error_set(err, ERR_CONFIG, "key %s is not that of certificate %s", tls->key_path,
                     tls->cert_path);
}

static enum err load_clients(const struct tls *tls, struct loaded *loaded, struct strbuf *ret_pem,
                             struct error *err)
{
    if (!tls->ca_path)
        return ERR_OK;
    enum err code = file_text(tls->ca_path, PEM_MAX, ret_pem, err);
    if (code != ERR_OK) {
        error_prefix(err, "authorities of clients");
        return code;
    }
    gnutls_datum_t pem = datum(ret_pem);
    int rc = gnutls_x509_trust_list_init(&loaded->clients, 0);
    if (rc >= 0)
        rc = gnutls_x509_trust_list_add_trust_mem(loaded->clients, &pem, NULL, GNUTLS_X509_FMT_PEM,
                                                  0, 0);
    if (rc > 0)
        return ERR_OK;
    return error_set(err, ERR_CONFIG, "client authorities %s: %s", tls->ca_path,
                     rc < 0 ? gnutls_strerror(rc) : "no certificate is in it");
}

static enum err load(const struct tls *tls, struct loaded **ret, char **ret_pem, struct error *err)
{
    struct loaded *loaded = mem_zalloc(1, sizeof *loaded);
    struct strbuf pem = {0};
    enum err code = load_chain(tls, loaded, err);
    if (code == ERR_OK)
        code = load_key(tls, loaded, err);
    if (code == ERR_OK)
        code = check_pair(tls, loaded, err);
    if (code == ERR_OK)
        code = load_clients(tls, loaded, &pem, err);
    if (code == ERR_OK && ret_pem && tls->ca_path)
        *ret_pem = str_dup(strbuf_str(&pem));
    strbuf_release(&pem);
    if (code != ERR_OK) {
        loaded_free(loaded);
        return code;
    }
    *ret = loaded;
    return ERR_OK;
}

static char *copy(const char *path)
{
    return path ? str_dup(str_of(path)) : NULL;
}

enum err tls_new(const char *cert, const char *key, const char *client_ca, struct tls **ret,
                 struct error *err)
{
    if (!cert || !key)
        return error_set(err, ERR_CONFIG, "TLS needs a certificate and its key");
    struct tls *tls = mem_zalloc(1, sizeof *tls);
    pthread_mutex_init(&tls->lock, NULL);
    tls->cert_path = copy(cert);
    tls->key_path = copy(key);
    tls->ca_path = copy(client_ca);
    enum err code = load(tls, &tls->now, &tls->ca_pem, err);
    if (code != ERR_OK) {
        tls_free(tls);
        return code;
    }
    *ret = tls;
    return ERR_OK;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    loaded_free(tls->now);
    for (size_t i = 0; i < tls->old_n; i++)
        loaded_free(tls->old[i]);
    free(tls->old);
    free(tls->cert_path);
    free(tls->key_path);
    free(tls->ca_path);
    free(tls->ca_pem);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

enum err tls_reload(struct tls *tls, struct error *err)
{
    struct loaded *loaded = NULL;
    enum err code = load(tls, &loaded, NULL, err);
    if (code != ERR_OK)
        return code;
    pthread_mutex_lock(&tls->lock);
    mem_push(tls->old, tls->old_n, tls->old_room, tls->now);
    tls->now = loaded;
    pthread_mutex_unlock(&tls->lock);
    return ERR_OK;
}

const char *tls_client_ca_pem(const struct tls *tls)
{
    return tls->ca_pem;
}

int tls_certificate(struct tls *tls, void *pcerts, unsigned *pcerts_n, void *key)
{
    pthread_mutex_lock(&tls->lock);
    *(gnutls_pcert_st **)pcerts = tls->now->chain;
    *pcerts_n = tls->now->chain_n;
    *(gnutls_privkey_t *)key = tls->now->key;
    pthread_mutex_unlock(&tls->lock);
    return 0;
}

static const char *verify(struct tls *tls, gnutls_x509_crt_t *chain, unsigned n)
{
    unsigned problems = 0;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    pthread_mutex_lock(&tls->lock);
    int rc = gnutls_x509_trust_list_verify_crt2(tls->now->clients, chain, n, &purpose, 1, 0,
                                                &problems, NULL);
    pthread_mutex_unlock(&tls->lock);
    if (rc < 0)
        return "the client certificate cannot be checked";
    if (problems & GNUTLS_CERT_EXPIRED)
        return "the client certificate has expired";
    return problems ? "the client certificate is of no authority that is trusted here" : NULL;
}

bool tls_client(struct tls *tls, void *session, struct arena *arena, struct str *ret_cn,
                const char **ret_why)
{
    unsigned n = 0;
    const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &n);
    gnutls_x509_crt_t chain[CHAIN_MAX];
    char name[256];
    size_t name_n = sizeof name;
    *ret_why = "no client certificate";
    if (!raw || n == 0)
        return false;
    n = n > CHAIN_MAX ? CHAIN_MAX : n;
    unsigned made = 0;
    *ret_why = NULL;
    for (; made < n && !*ret_why; made++)
        if (gnutls_x509_crt_init(&chain[made]) < 0 ||
            gnutls_x509_crt_import(chain[made], &raw[made], GNUTLS_X509_FMT_DER) < 0)
            *ret_why = "the client certificate cannot be read";
    if (!*ret_why)
        *ret_why = verify(tls, chain, n);
    if (!*ret_why && gnutls_x509_crt_get_dn_by_oid(chain[0], GNUTLS_OID_X520_COMMON_NAME, 0, 0,
                                                   name, &name_n) < 0)
        *ret_why = "the client certificate has no common name";
    if (!*ret_why)
        *ret_cn = str_keep(arena, (struct str){name, name_n});
    for (unsigned i = 0; i < made; i++)
        gnutls_x509_crt_deinit(chain[i]);
    return !*ret_why;
}
