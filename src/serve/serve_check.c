/* The keys that name files are a table; sections are walked as they stand in the file, so that what
 * is missing has the line and column of who names it. What is in the files is looked at by the code
 * that will use them. */
#include "serve/serve_check.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/targets.h"
#include "util/config_file.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)

typedef enum err (*check_fn)(struct config_node node, const char *path, struct error *err);

/* ---- one file or folder ---- */

static enum err unreadable(struct config_node node, const char *path, const char *why,
                           struct error *err)
{
    return config_error(
        node, err, "cannot read %s: %s: put it there, or name a file that the service may read",
        path, why);
}

static enum err check_file(struct config_node node, const char *path, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int why = fd < 0 || fstat(fd, &status) < 0 ? errno : 0;
    if (!why && S_ISDIR(status.st_mode))
        why = EISDIR;
    if (fd >= 0)
        close(fd);
    return why ? unreadable(node, path, strerror(why), err) : ERR_OK;
}

static enum err text_of(struct config_node node, const char *path, struct strbuf *ret,
                        struct error *err)
{
    struct error why = {0};
    enum err code = check_file(node, path, err);
    if (!code && file_text(path, FILE_BYTES_MAX, ret, &why))
        code = config_error(node, err, "%s", why.text);
    return code;
}

static enum err check_secret(struct config_node node, const char *path, struct error *err)
{
    struct strbuf text = {0};
    enum err code = text_of(node, path, &text, err);
    if (!code && strspn(text.n ? text.text : "", " \t\r\n") == text.n)
        code = config_error(node, err, "%s is empty: write the secret into it", path);
    if (text.n)
        explicit_bzero(text.text, text.n);
    strbuf_release(&text);
    return code;
}

static enum err check_authorities(struct config_node node, const char *path, struct error *err)
{
    struct strbuf text = {0};
    gnutls_x509_trust_list_t list;
    enum err code = text_of(node, path, &text, err);
    if (!code && gnutls_x509_trust_list_init(&list, 0) == 0) {
        gnutls_datum_t pem = {(unsigned char *)text.text, (unsigned)text.n};
        if (gnutls_x509_trust_list_add_trust_mem(list, &pem, NULL, GNUTLS_X509_FMT_PEM, 0, 0) <= 0)
            code = config_error(node, err, "%s has no certificate in PEM", path);
        gnutls_x509_trust_list_deinit(list, 1);
    }
    strbuf_release(&text);
    return code;
}

/* What the service makes where it is not there: its folder must be. */
static enum err check_place(struct config_node node, const char *path, bool folder,
                            struct error *err)
{
    struct stat status;
    if (stat(path, &status) == 0) {
        if (!S_ISDIR(status.st_mode) == !folder)
            return ERR_OK;
        return config_error(node, err, "%s is %s: name %s", path, folder ? "a file" : "a folder",
                            folder ? "a folder" : "a file");
    }
    const char *slash = strrchr(path, '/');
    struct strbuf above = {0};
    strbuf_add(&above, slash ? (struct str){path, (size_t)(slash - path)} : STR("."));
    if (slash == path)
        strbuf_addc(&above, '/');
    int why = stat(above.text, &status) < 0 ? errno : S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
    enum err code = why ? config_error(node, err, "%s cannot be made in %s: %s: make that folder",
                                       slash ? slash + 1 : path, above.text, strerror(why))
                        : ERR_OK;
    strbuf_release(&above);
    return code;
}

static enum err check_new_file(struct config_node node, const char *path, struct error *err)
{
    return check_place(node, path, false, err);
}

static enum err check_folder(struct config_node node, const char *path, struct error *err)
{
    return check_place(node, path, true, err);
}

/* Of kube-json. */
static enum err check_list_file(struct config_node node, const char *path, struct error *err)
{
    return check_file(node, path, err);
}

/* Of a scrape: in the form of file_sd. A pattern may match nothing yet. */
static enum err check_targets(struct config_node node, const char *path, struct error *err)
{
    struct scrape_job job = {.name = "check", .files = &path, .files_n = 1};
    struct targets *targets;
    struct targets_stats stats;
    enum err code = targets_new(&job, 1, &targets, err);
    if (code)
        return code;
    targets_stats(targets, &stats);
    targets_free(targets);
    return stats.bad_files ? config_error(node, err, "%s", stats.bad) : ERR_OK;
}

/* ---- sections ---- */

static const struct file_key {
    const char *name;
    check_fn check;
} file_keys[] = {
    {"db", check_new_file},
    {"journal", check_folder},
    {"state", check_new_file},
    {"cert", check_file},
    {"key", check_file},
    {"client_ca", check_authorities},
    {"bearer_token_file", check_secret},
    {"password_file", check_secret},
    {"secret_file", check_secret},
    {"url_file", check_secret},
    {"client_cert", check_file},
    {"client_key", check_file},
    {"ca_file", check_authorities},
    {"kubeconfig", check_file},
    {"files", check_list_file},
};

static enum err check_value(check_fn check, struct config_node value, struct error *err)
{
    struct strbuf path = {0};
    if (config_kind(value) != CONFIG_SCALAR)
        return ERR_OK;
    config_file_path(value, &path);
    enum err code = check(value, path.text, err);
    strbuf_release(&path);
    return code;
}

static enum err check_map(struct config_node map, struct error *err)
{
    bool scraped = str_eq(config_text(config_get(map, STR("kind"))), STR("scrape"));
    enum err code = ERR_OK;
    for (size_t k = 0; k < sizeof file_keys / sizeof *file_keys && !code; k++) {
        const struct file_key *key = &file_keys[k];
        struct config_node value = config_get(map, str_of(key->name));
        check_fn check = scraped && key->check == check_list_file ? check_targets : key->check;
        bool list = config_kind(value) == CONFIG_LIST;
        for (size_t i = 0; i < (list ? config_count(value) : 1) && !code; i++)
            code = check_value(check, list ? config_item(value, i) : value, err);
    }
    return code;
}

static enum err check_list(struct config_node list, struct error *err)
{
    enum err code = ERR_OK;
    for (size_t i = 0; i < config_count(list) && !code; i++)
        code = check_map(config_item(list, i), err);
    return code;
}

enum err serve_check_files(const struct config *config, struct error *err)
{
    struct config_node serve = config->sections[CONFIG_SERVE_SECTION];
    struct config_node alerts = config->sections[CONFIG_ALERTS_SECTION];
    enum err code = check_map(serve, err);
    if (!code)
        code = check_map(config_get(serve, STR("tls")), err);
    if (!code)
        code = check_list(config->sections[CONFIG_SOURCES_SECTION], err);
    if (!code)
        code = check_map(alerts, err);
    return code ? code : check_list(config_get(alerts, STR("receivers")), err);
}
