/* Files of targets, in the form of Prometheus's file_sd_configs:
 *
 *     - targets: ["gpu-1:9400", "gpu-2:9400"]
 *       labels: {rack: a1}
 *
 * JSON is a subset of the YAML that is read. A file is read again when its time, size or inode has
 * changed. One that is bad, or is gone while it is being replaced, keeps saying what it said: only
 * a file that can be read, or is not there at two looks in a row, takes targets away. */
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "source/targets_impl.h"
#include "util/config_file.h"
#include "wire/utf8.h"

bool address_is_good(struct str address)
{
    if (address.n == 0 || address.n > ADDRESS_MAX)
        return false;
    for (size_t i = 0; i < address.n; i++) {
        unsigned char c = (unsigned char)address.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("/?#@\\\"<>{}|^`", c))
            return false;
    }
    return true;
}

bool scheme_is_good(struct str scheme)
{
    return str_eq(scheme, STR("http")) || str_eq(scheme, STR("https"));
}

static enum err read_labels(struct config_node node, struct label *labels, size_t *ret_n,
                            struct error *err)
{
    size_t n = config_count(node);
    if (config_kind(node) == CONFIG_NOTHING)
        return ERR_OK;
    if (config_kind(node) != CONFIG_MAP)
        return config_error(node, err, "labels are a mapping: {rack: a1}");
    if (n > TARGETS_LABELS_MAX)
        return config_error(node, err, "more than %d labels", TARGETS_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct config_node value;
        labels[i].name = config_text(config_pair(node, i, &value));
        labels[i].value = config_text(value);
        if (config_kind(value) != CONFIG_SCALAR && config_kind(value) != CONFIG_NOTHING)
            return config_error(value, err, "the value of a label is a text");
        if (labels[i].name.n == 0 || !utf8_valid(labels[i].name) || !utf8_valid(labels[i].value))
            return config_error(value, err, "a label has no name, or is not UTF-8");
    }
    *ret_n = n;
    return ERR_OK;
}

static enum err read_group(struct config_node group, struct found *found, struct error *err)
{
    struct label labels[TARGETS_LABELS_MAX];
    size_t labels_n = 0;
    struct config_node targets = config_get(group, STR("targets"));
    if (config_kind(group) != CONFIG_MAP || config_kind(targets) != CONFIG_LIST)
        return config_error(group, err,
                            "a group has a list of targets: {targets: [\"gpu-1:9400\"]}");
    enum err e = read_labels(config_get(group, STR("labels")), labels, &labels_n, err);
    for (size_t i = 0; e == ERR_OK && i < config_count(targets); i++) {
        struct str address = config_text(config_item(targets, i));
        if (!address_is_good(address))
            e = config_error(config_item(targets, i), err, "'%.*s' is no target: give HOST:PORT",
                             (int)(address.n < 100 ? address.n : 100), address.p);
        else if (found->n == TARGETS_MAX)
            e = config_error(config_item(targets, i), err, "more than %u targets", TARGETS_MAX);
        else
            found_add(found, address, labels, labels_n);
    }
    return e;
}

static enum err read_file(const char *path, struct found *ret, struct error *err)
{
    struct config_file *file;
    struct found found = {0};
    enum err e = config_file_read(path, &file, err);
    if (e != ERR_OK)
        return e;
    struct config_node root = config_root(file);
    if (config_kind(root) != CONFIG_LIST && config_kind(root) != CONFIG_NOTHING)
        e = config_error(root, err, "a list of groups is expected: [{targets: [\"gpu-1:9400\"]}]");
    for (size_t i = 0; e == ERR_OK && i < config_count(root); i++)
        e = read_group(config_item(root, i), &found, err);
    config_file_free(file);
    if (e == ERR_OK)
        *ret = found;
    else
        target_found_release(&found);
    return e;
}

static void file_release(struct listed_file *file)
{
    free(file->path);
    free(file->bad);
    target_found_release(&file->found);
}

static struct listed_file *file_at(struct pattern *pattern, const char *path)
{
    for (size_t i = 0; i < pattern->n; i++)
        if (strcmp(pattern->files[i].path, path) == 0)
            return &pattern->files[i];
    struct listed_file file = {.path = str_dup(str_of(path))};
    mem_push(pattern->files, pattern->n, pattern->room, file);
    return &pattern->files[pattern->n - 1];
}

/* True where the file says something new. */
static bool look_at_file(struct listed_file *file)
{
    struct stat status;
    struct found found;
    struct error err;
    if (stat(file->path, &status) < 0)
        return false;
    if (status.st_mtim.tv_sec == file->changed.tv_sec &&
        status.st_mtim.tv_nsec == file->changed.tv_nsec && (uint64_t)status.st_size == file->size &&
        (uint64_t)status.st_ino == file->inode)
        return false;
    file->changed = status.st_mtim;
    file->size = (uint64_t)status.st_size;
    file->inode = (uint64_t)status.st_ino;
    free(file->bad);
    file->bad = NULL;
    if (read_file(file->path, &found, &err) != ERR_OK) {
        file->bad = str_dup(str_of(err.text));
        return false;
    }
    target_found_release(&file->found);
    file->found = found;
    return true;
}

/* Files that were not there at this look and the one before are forgotten. */
static bool forget_gone(struct pattern *pattern)
{
    size_t kept = 0;
    bool changed = false;
    for (size_t i = 0; i < pattern->n; i++) {
        struct listed_file *file = &pattern->files[i];
        if (file->missed > 1) {
            changed |= file->found.n > 0;
            file_release(file);
        } else {
            pattern->files[kept++] = *file;
        }
    }
    pattern->n = kept;
    return changed;
}

bool pattern_look(struct pattern *pattern, struct targets_stats *stats)
{
    glob_t paths;
    bool changed = false;
    for (size_t i = 0; i < pattern->n; i++)
        pattern->files[i].missed++;
    int result = glob(pattern->path, 0, NULL, &paths);
    for (size_t i = 0; result == 0 && i < paths.gl_pathc; i++) {
        struct listed_file *file = file_at(pattern, paths.gl_pathv[i]);
        file->missed = 0;
        changed |= look_at_file(file);
    }
    if (result == 0)
        globfree(&paths);
    changed |= forget_gone(pattern);
    if (pattern->n == 0 && !strpbrk(pattern->path, "*?[")) {
        stats->bad_files++;
        snprintf(stats->bad, sizeof stats->bad, "%s: there is no such file", pattern->path);
    }
    for (size_t i = 0; i < pattern->n; i++) {
        const struct listed_file *file = &pattern->files[i];
        stats->files++;
        stats->bad_files += file->bad != NULL;
        if (file->bad)
            snprintf(stats->bad, sizeof stats->bad, "%s", file->bad);
    }
    return changed;
}

void pattern_each(const struct pattern *pattern,
                  void (*each)(void *context, const struct found *found), void *context)
{
    for (size_t i = 0; i < pattern->n; i++)
        each(context, &pattern->files[i].found);
}

void pattern_release(struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->n; i++)
        file_release(&pattern->files[i]);
    free(pattern->files);
    free(pattern->path);
}
