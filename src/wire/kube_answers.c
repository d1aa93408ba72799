#include "wire/kube_answers.h"

#include "wire/kube_objects_impl.h"

static const json_t *status_of(const json_t *credential, struct str version)
{
    if (!str_eq(text_at(credential, "kind"), STR("ExecCredential")) ||
        !str_eq(text_at(credential, "apiVersion"), version))
        return NULL;
    return json_object_get(credential, "status");
}

enum err kube_credential_read(struct str json, struct str version, struct kube_credential *ret,
                              struct error *err)
{
    enum err e = ERR_OK;
    json_t *credential = json_loadb(json.p, json.n, 0, NULL);
    const json_t *status = status_of(credential, version);
    struct str token = text_at(status, "token");
    struct str certificate = text_at(status, "clientCertificateData");
    struct str key = text_at(status, "clientKeyData");
    struct str expires = text_at(status, "expirationTimestamp");
    time_ms until = TIME_MAX;
    if (!credential)
        e = error_set(err, ERR_PARSE, "it printed no JSON");
    else if (!status)
        e = error_set(err, ERR_PARSE, "it printed no ExecCredential of version %.*s with a status",
                      STR_ARG(version));
    else if (expires.n && !time_parse(expires, &until))
        e = error_set(err, ERR_PARSE, "its expirationTimestamp is no time");
    else if (!token.n && !(certificate.n && key.n))
        e = error_set(err, ERR_PARSE, "its status has no token, and no certificate with its key");
    if (e == ERR_OK) {
        *ret = (struct kube_credential){.expires = until};
        strbuf_add(&ret->token, token);
        if (certificate.n && key.n) {
            strbuf_add(&ret->certificate, certificate);
            strbuf_add(&ret->key, key);
        }
    }
    json_decref(credential);
    return e;
}

void kube_credential_release(struct kube_credential *credential)
{
    struct strbuf *const texts[] = {&credential->token, &credential->certificate, &credential->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i]->text)
            explicit_bzero(texts[i]->text, texts[i]->room);
        strbuf_release(texts[i]);
    }
}

enum err kube_resource_find(struct str json, struct str kind, struct strbuf *ret_name,
                            bool *ret_namespaced, struct error *err)
{
    json_t *list = json_loadb(json.p, json.n, 0, NULL), *resources;
    size_t n = array_size_at(list, "resources", &resources);
    enum err e =
        json_is_array(resources)
            ? error_set(err, ERR_NOT_FOUND, "the API has no kind %.*s there", STR_ARG(kind))
            : error_set(err, ERR_PARSE, "the API's list of resources is none");
    for (size_t i = 0; i < n; i++) {
        const json_t *resource = json_array_get(resources, i);
        struct str name = text_at(resource, "name");
        if (!str_eq(text_at(resource, "kind"), kind) || name.n == 0 || memchr(name.p, '/', name.n))
            continue; /* pods/status is of kind Pod too */
        strbuf_add(ret_name, name);
        *ret_namespaced = true_at(resource, "namespaced");
        e = ERR_OK;
        break;
    }
    json_decref(list);
    return e;
}

enum err kube_version_find(struct str json, const char *const *wanted, size_t n,
                           const char **ret_version, struct error *err)
{
    json_t *group = json_loadb(json.p, json.n, 0, NULL), *versions;
    size_t served = array_size_at(group, "versions", &versions);
    enum err e = json_is_array(versions)
                     ? error_set(err, ERR_NOT_FOUND, "the API serves no version that is known here")
                     : error_set(err, ERR_PARSE, "the API's answer is no group of resources");
    for (size_t k = 0; e != ERR_OK && k < n; k++)
        for (size_t i = 0; e != ERR_OK && i < served; i++)
            if (str_eq(text_at(json_array_get(versions, i), "version"), str_of(wanted[k]))) {
                *ret_version = wanted[k];
                e = ERR_OK;
            }
    json_decref(group);
    return e;
}
