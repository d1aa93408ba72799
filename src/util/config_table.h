/* A mapping of a configuration read by a table: each key with a function and the place of its value
 * in a struct. A key that the table does not have is an error with the word that was probably
 * meant; one without a value (null) leaves the default. One thread. */
#ifndef GPUTALLY_UTIL_CONFIG_TABLE_H
#define GPUTALLY_UTIL_CONFIG_TABLE_H

#include "util/config_file.h"
#include "util/memory.h"

#define CONFIG_KEYS_MAX 64

struct config_reading {
    struct arena *arena; /* texts that are read live there */
    void *context;       /* the caller's, for readers of its own */
};
/* Reads a node into what is at `at`; ERR_CONFIG with the node's place. */
typedef enum err (*config_read_fn)(const struct config_reading *reading, void *at,
                                   struct config_node node, struct error *err);
struct config_key {
    const char *name;
    config_read_fn read; /* NULL: the key is read elsewhere */
    size_t at;           /* in the struct */
};

/* Every pair of the mapping, in its order, into the struct at `base`. Nothing where the node is not
 * there; ERR_CONFIG where it is no mapping. n <= CONFIG_KEYS_MAX. */
enum err config_read_table(const struct config_reading *reading, struct config_node map,
                           const struct config_key *keys, size_t n, void *base, struct error *err);
#define CONFIG_READ_TABLE(reading, map, keys, base, err)                                           \
    config_read_table(reading, map, keys, sizeof(keys) / sizeof *(keys), base, err)

/* values[k] gets the value of names[k], for what needs several at once. The map is a mapping or
 * nothing. */
enum err config_read_values(struct config_node map, const char *const *names, size_t n,
                            struct config_node *values, struct error *err);
/* Which of the names a key is; ERR_CONFIG where it is none. */
enum err config_find_key(struct config_node key, const char *const *names, size_t n, size_t *ret,
                         struct error *err);
/* Each item of a list. */
enum err config_read_list(const struct config_reading *reading, struct config_node list,
                          config_read_fn each, void *at, struct error *err);

/* Readers of values. Texts are not empty. */
enum err config_into_text(const struct config_reading *reading, void *at, struct config_node node,
                          struct error *err); /* const char * */
enum err config_into_str(const struct config_reading *reading, void *at, struct config_node node,
                         struct error *err); /* struct str */
enum err config_into_path(const struct config_reading *reading, void *at, struct config_node node,
                          struct error *err); /* const char *: relative to the file's folder */
enum err config_into_duration(const struct config_reading *reading, void *at,
                              struct config_node node,
                              struct error *err); /* time_ms, with a unit */
enum err config_into_bool(const struct config_reading *reading, void *at, struct config_node node,
                          struct error *err); /* bool */
enum err config_into_ratio(const struct config_reading *reading, void *at, struct config_node node,
                           struct error *err); /* int64_t, 1e-9 */
enum err config_into_money(const struct config_reading *reading, void *at, struct config_node node,
                           struct error *err); /* money_t */

#endif
