/* A YAML file (JSON is a subset) as a tree whose every node knows its line and column, so that what
 * is wrong with a configuration is said with its place: "config.yaml:4:3: unknown key …".
 *
 * Built on libyaml's documents: aliases are nodes that are reached twice, and nothing is expanded.
 * A document is immutable and may be read by any thread; texts live as long as it. Files over
 * CONFIG_FILE_MAX bytes, more than CONFIG_DEPTH_MAX levels or CONFIG_ANCHORS_MAX anchors, keys that
 * are no scalars, a key twice in one mapping and more than one document in a file are ERR_CONFIG.
 */
#ifndef GPUTALLY_UTIL_CONFIG_FILE_H
#define GPUTALLY_UTIL_CONFIG_FILE_H

#include "util/clock.h"
#include "util/error.h"
#include "util/money.h"
#include "util/str.h"

#define CONFIG_FILE_MAX ((size_t)4 << 20)
#define CONFIG_DEPTH_MAX 32
#define CONFIG_ANCHORS_MAX 1000
#define CONFIG_DIRECTIVES_MAX 100

enum config_kind { CONFIG_NOTHING, CONFIG_SCALAR, CONFIG_LIST, CONFIG_MAP };

struct config_file;
/* A node by value; doc NULL: there is none (asking it for anything gives nothing). */
struct config_node {
    const struct config_file *file;
    int id;
};

enum err config_file_read(const char *path, struct config_file **ret, struct error *err);
/* name: what messages call it. */
enum err config_file_parse(const char *name, struct str text, struct config_file **ret,
                           struct error *err);
void config_file_free(struct config_file *file); /* NULL is fine */
struct str config_file_name(const struct config_file *file);
uint64_t config_file_digest(const struct config_file *file);    /* of its text; 0 where NULL */
struct config_node config_root(const struct config_file *file); /* of an empty file: nothing */

enum config_kind config_kind(struct config_node node);
/* A plain null, ~ or empty scalar counts as CONFIG_NOTHING. */
struct str config_text(struct config_node node); /* STR_NONE unless it is a scalar */
size_t config_count(struct config_node node);    /* items of a list, pairs of a map */
struct config_node config_item(struct config_node node, size_t i);
struct config_node config_pair(struct config_node node, size_t i, struct config_node *ret_value);
struct config_node config_get(struct config_node node, struct str key); /* nothing where absent */
int config_line(struct config_node node);                               /* from 1 */
int config_column(struct config_node node);                             /* from 1 */

/* "FILE:LINE:COLUMN: FORMAT", ERR_CONFIG. */
enum err config_error(struct config_node node, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The error for a key that is not one of keys: "unknown key 'pricess': did you mean 'prices'?", or
 * the list of what is known where nothing is near. */
enum err config_unknown_key(struct config_node key, const char *const *keys, size_t n,
                            struct error *err);
/* Scalars of a kind; what does not fit is an error that says what would. */
enum err config_as_text(struct config_node node, struct str *ret, struct error *err);
enum err config_as_bool(struct config_node node, bool *ret, struct error *err);
enum err config_as_int(struct config_node node, int64_t min, int64_t max, int64_t *ret,
                       struct error *err);
enum err config_as_money(struct config_node node, money_t max, money_t *ret, struct error *err);
enum err config_as_time(struct config_node node, time_ms *ret, struct error *err);
/* A duration with a unit; a bare number is one of `bare` (0: refused). */
enum err config_as_duration(struct config_node node, time_ms bare, time_ms *ret, struct error *err);
/* 0..1 or percent ("10%") -> 1e-9 */
enum err config_as_ratio(struct config_node node, int64_t *ret, struct error *err);

/* A scalar as a path: relative to the folder of its file. Appends. */
void config_file_path(struct config_node node, struct strbuf *ret);

/* The whole of a file of at most max bytes, appended to ret. ERR_IO, ERR_LIMIT. */
enum err file_text(const char *path, size_t max, struct strbuf *ret, struct error *err);

/* "30s", "5m", "1h30m", "2d", "500ms", "1.5h" -> ms; a bare number is of unit `bare` (0: refused).
 * At most 100 years. False on anything else. */
bool duration_parse(struct str text, time_ms bare, time_ms *ret);
/* Decimal text -> integer of 10^-places, exact; false where it has more places, is negative, no
 * number or above max. */
bool decimal_parse(struct str text, int places, int64_t max, int64_t *ret);
/* The same of "12.5", "12.5%" or "12.5 %". */
bool percent_parse(struct str text, int places, int64_t max, int64_t *ret);

#endif
