/* libyaml composes the document; this file reads the file, checks what libyaml lets pass (depth,
 * keys twice, keys that are no scalars) and gives typed access with places.
 *
 * libcyaml, which fills structs by a schema, says what is wrong without line and column and cannot
 * say which key was meant; the configuration promises both, so the readers walk this tree. */
#include "util/config_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include <yaml.h>

struct config_file {
    yaml_document_t document;
    bool loaded;
    char *name;
    uint64_t digest;
};

static yaml_node_t *node_of(struct config_node node)
{
    if (!node.file || !node.id)
        return NULL;
    return yaml_document_get_node((yaml_document_t *)(uintptr_t)&node.file->document, node.id);
}

void config_file_free(struct config_file *file)
{
    if (!file)
        return;
    if (file->loaded)
        yaml_document_delete(&file->document);
    free(file->name);
    free(file);
}

struct str config_file_name(const struct config_file *file)
{
    return str_of(file->name);
}

uint64_t config_file_digest(const struct config_file *file)
{
    return file ? file->digest : 0;
}

struct config_node config_root(const struct config_file *file)
{
    yaml_document_t *document = (yaml_document_t *)(uintptr_t)&file->document;
    bool some = file->loaded && yaml_document_get_root_node(document);
    return (struct config_node){some ? file : NULL, some ? 1 : 0};
}

enum err config_error(struct config_node node, struct error *err, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!node.file)
        return error_set(err, ERR_CONFIG, "%s", text);
    return error_set(err, ERR_CONFIG, "%s:%d:%d: %s", node.file->name, config_line(node),
                     config_column(node), text);
}

static int pair_order(const void *a, const void *b)
{
    const struct config_node *x = a, *y = b;
    int order = str_cmp(config_text(*x), config_text(*y));
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* Keys are scalars, and each stands once. */
static enum err check_keys(struct config_node map, struct error *err)
{
    enum err result = ERR_OK;
    size_t n = config_count(map);
    struct config_node *keys = mem_zalloc(n, sizeof *keys);
    for (size_t i = 0; i < n && !result; i++) {
        keys[i] = config_pair(map, i, NULL);
        if (node_of(keys[i])->type != YAML_SCALAR_NODE)
            result = config_error(keys[i], err, "a key has to be a plain text");
    }
    if (!result && n)
        qsort(keys, n, sizeof *keys, pair_order);
    for (size_t i = 1; i < n && !result; i++)
        if (str_eq(config_text(keys[i - 1]), config_text(keys[i])))
            result = config_error(keys[i], err, "key '%.*s' stands here twice: keep one of them",
                                  STR_ARG(config_text(keys[i])));
    free(keys);
    return result;
}

static enum err check(const struct config_file *file, struct error *err)
{
    int n = (int)(file->document.nodes.top - file->document.nodes.start);
    enum err result = ERR_OK;
    for (int id = 1; id <= n && !result; id++) {
        struct config_node node = {file, id};
        if (config_kind(node) == CONFIG_MAP)
            result = check_keys(node, err);
    }
    return result;
}

static enum err parser_error(const yaml_parser_t *parser, const char *name, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s:%zu:%zu: not readable as YAML: %s%s%s", name,
                     parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                     parser->problem ? parser->problem : "out of memory",
                     parser->context ? ", " : "", parser->context ? parser->context : "");
}

static bool has_anchor(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.anchor;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.anchor;
    return event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor;
}

/* Lines that begin like a directive. */
static int directives(struct str text)
{
    int n = 0;
    for (const char *p = text.p, *end = text.p + text.n; p && p < end;) {
        n += *p == '%';
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    return n;
}

/* libyaml takes time in the square of the depth and of the directives to scan, and of the anchors
 * to compose, so all are looked at before anything is composed. */
static enum err check_shape(struct str text, const char *name, struct error *err)
{
    yaml_parser_t parser;
    yaml_event_t event;
    yaml_event_type_t type = YAML_NO_EVENT;
    int depth = 0, anchors = 0;
    enum err result = ERR_OK;
    if (directives(text) > CONFIG_DIRECTIVES_MAX)
        return error_set(err, ERR_CONFIG, "%s: more than %d lines begin with %%", name,
                         CONFIG_DIRECTIVES_MAX);
    if (!yaml_parser_initialize(&parser))
        return error_set(err, ERR_LIMIT, "%s: out of memory", name);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
    while (!result && type != YAML_STREAM_END_EVENT) {
        if (!yaml_parser_parse(&parser, &event)) {
            result = parser_error(&parser, name, err);
            break;
        }
        type = event.type;
        depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
        depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
        if (depth > CONFIG_DEPTH_MAX)
            result =
                error_set(err, ERR_CONFIG, "%s:%zu:%zu: nested deeper than %d levels", name,
                          event.start_mark.line + 1, event.start_mark.column + 1, CONFIG_DEPTH_MAX);
        anchors += has_anchor(&event);
        if (anchors > CONFIG_ANCHORS_MAX)
            result = error_set(err, ERR_CONFIG, "%s:%zu:%zu: more than %d anchors", name,
                               event.start_mark.line + 1, event.start_mark.column + 1,
                               CONFIG_ANCHORS_MAX);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return result;
}

static enum err load(yaml_parser_t *parser, struct config_file *file, struct error *err)
{
    yaml_document_t more;
    if (!yaml_parser_load(parser, &file->document))
        return parser_error(parser, file->name, err);
    file->loaded = true;
    if (!yaml_document_get_root_node(&file->document))
        return ERR_OK;
    if (!yaml_parser_load(parser, &more))
        return parser_error(parser, file->name, err);
    const yaml_node_t *second = yaml_document_get_root_node(&more);
    enum err result = ERR_OK;
    if (second)
        result =
            error_set(err, ERR_CONFIG, "%s:%zu:1: a second document begins: keep one in a file",
                      file->name, second->start_mark.line + 1);
    yaml_document_delete(&more);
    return result ? result : check(file, err);
}

enum err config_file_parse(const char *name, struct str text, struct config_file **ret,
                           struct error *err)
{
    yaml_parser_t parser;
    if (text.n > CONFIG_FILE_MAX)
        return error_set(err, ERR_LIMIT, "%s: larger than %zu MiB", name, CONFIG_FILE_MAX >> 20);
    enum err result = check_shape(text, name, err);
    if (result)
        return result;
    if (!yaml_parser_initialize(&parser))
        return error_set(err, ERR_LIMIT, "%s: out of memory", name);
    struct config_file *file = mem_zalloc(1, sizeof *file);
    file->name = str_dup(str_of(name));
    file->digest = XXH3_64bits(text.p, text.n);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
    result = load(&parser, file, err);
    yaml_parser_delete(&parser);
    if (result)
        config_file_free(file);
    else
        *ret = file;
    return result;
}

enum err file_text(const char *path, size_t max, struct strbuf *ret, struct error *err)
{
    FILE *in = fopen(path, "rbe");
    if (!in)
        return error_set(err, ERR_IO, "cannot open %s: %s", path, strerror(errno));
    char block[16384];
    size_t n;
    enum err result = ERR_OK;
    while (!result && (n = fread(block, 1, sizeof block, in)) > 0) {
        strbuf_add(ret, (struct str){block, n});
        if (ret->n > max)
            result = error_set(err, ERR_LIMIT, "%s: larger than %zu MiB", path, max >> 20);
    }
    if (!result && ferror(in))
        result = error_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    fclose(in);
    return result;
}

enum err config_file_read(const char *path, struct config_file **ret, struct error *err)
{
    struct strbuf text = {0};
    enum err result = file_text(path, CONFIG_FILE_MAX, &text, err);
    if (!result)
        result = config_file_parse(path, strbuf_str(&text), ret, err);
    strbuf_release(&text);
    return result;
}

enum config_kind config_kind(struct config_node node)
{
    const yaml_node_t *at = node_of(node);
    if (!at || at->type == YAML_NO_NODE)
        return CONFIG_NOTHING;
    if (at->type == YAML_SEQUENCE_NODE)
        return CONFIG_LIST;
    if (at->type == YAML_MAPPING_NODE)
        return CONFIG_MAP;
    struct str text = config_text(node);
    bool null = at->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                (text.n == 0 || str_eq(text, STR("~")) || str_eq_nocase(text, STR("null")));
    return null ? CONFIG_NOTHING : CONFIG_SCALAR;
}

struct str config_text(struct config_node node)
{
    const yaml_node_t *at = node_of(node);
    if (!at || at->type != YAML_SCALAR_NODE)
        return STR_NONE;
    return (struct str){(const char *)at->data.scalar.value, at->data.scalar.length};
}

size_t config_count(struct config_node node)
{
    const yaml_node_t *at = node_of(node);
    if (at && at->type == YAML_SEQUENCE_NODE)
        return (size_t)(at->data.sequence.items.top - at->data.sequence.items.start);
    if (at && at->type == YAML_MAPPING_NODE)
        return (size_t)(at->data.mapping.pairs.top - at->data.mapping.pairs.start);
    return 0;
}

struct config_node config_item(struct config_node node, size_t i)
{
    const yaml_node_t *at = node_of(node);
    if (!at || at->type != YAML_SEQUENCE_NODE || i >= config_count(node))
        return (struct config_node){0};
    return (struct config_node){node.file, at->data.sequence.items.start[i]};
}

struct config_node config_pair(struct config_node node, size_t i, struct config_node *ret_value)
{
    const yaml_node_t *at = node_of(node);
    if (!at || at->type != YAML_MAPPING_NODE || i >= config_count(node))
        return (struct config_node){0};
    yaml_node_pair_t pair = at->data.mapping.pairs.start[i];
    if (ret_value)
        *ret_value = (struct config_node){node.file, pair.value};
    return (struct config_node){node.file, pair.key};
}

struct config_node config_get(struct config_node node, struct str key)
{
    struct config_node value;
    for (size_t i = 0; i < config_count(node); i++)
        if (config_kind(node) == CONFIG_MAP &&
            str_eq(config_text(config_pair(node, i, &value)), key))
            return value;
    return (struct config_node){0};
}

int config_line(struct config_node node)
{
    const yaml_node_t *at = node_of(node);
    return at ? (int)at->start_mark.line + 1 : 0;
}

int config_column(struct config_node node)
{
    const yaml_node_t *at = node_of(node);
    return at ? (int)at->start_mark.column + 1 : 0;
}
