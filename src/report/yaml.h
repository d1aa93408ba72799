/* YAML as it is written by hand: comments, keys and scalars that stay what they are, whatever a
 * stranger called his pod. Everything appended is valid for YAML 1.1 and 1.2 readers. */
#ifndef GPUTALLY_REPORT_YAML_H
#define GPUTALLY_REPORT_YAML_H

#include "util/str.h"

/* "# text", each line of it, with `indent` more blanks after the '#'. Lines are wrapped at 96
 * columns, unless they are indented: those are commands. What YAML would not take (controls, broken
 * UTF-8, its own line ends) comes as '?'. */
void yaml_comment(struct strbuf *out, size_t indent, struct str text);
/* A scalar: plain where that is a text to every reader, else in double quotes. */
void yaml_scalar(struct strbuf *out, struct str text);
/* "key: value\n" after `indent` blanks; key is one of our own. */
void yaml_pair(struct strbuf *out, size_t indent, const char *key, struct str value);
/* "a:\n  b:\n    c: VALUE\n" for the path "a.b.c"; the value is written as it is. */
void yaml_path(struct strbuf *out, const char *path, const char *value);
/* The maps of a path alone, and how deep its inside stands. */
size_t yaml_open(struct strbuf *out, const char *path);

#endif
