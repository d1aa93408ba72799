/* Splits a stream of JSON documents into items, without parsing them: the elements of each
 * document's top-level array "items", or the document itself where it has none.
 *
 *     {"kind":"List","items":[ITEM, ITEM, …]}    a list
 *     ITEM                                       a single object
 *     [DOCUMENT, DOCUMENT, …]                    an array around documents is looked through
 *     DOCUMENT DOCUMENT …                        concatenated, with or without white space
 *
 * Bytes come in pieces of any size; memory is that of the largest item, whatever the stream's
 * length. What is wrong inside an item (a bracket too many or too few, a raw newline in a string)
 * stays inside it where brackets or line ends allow to find the next one: the item is handed on as
 * it is (without the white space between its tokens), for a parser to refuse. One thread; never
 * blocks; no I/O. */
#ifndef GPUTALLY_WIRE_JSON_ITEMS_H
#define GPUTALLY_WIRE_JSON_ITEMS_H

#include <stdint.h>

#include "util/str.h"

#define JSON_ITEM_MAX                                                                              \
    ((size_t)16 << 20)          /* bytes of an item; a larger one is skipped and reported */
#define JSON_ITEM_DEPTH_MAX 512 /* brackets that are told apart; deeper ones only counted */
#define JSON_LIST_KIND_MAX 64   /* bytes of a list's "kind" that are kept */

struct json_item {
    struct str text;   /* valid during the call; empty where it was too large */
    struct str kind;   /* the list's own "kind" where it stood before the items; may be empty */
    uint64_t document; /* from 1 */
    uint64_t index;    /* in the list, from 1; 0: the document is the item */
    uint64_t offset;   /* in the stream, of its first byte */
    const char
        *broken; /* why it cannot be whole (too large, cut off, stray text); NULL: it may be */
};

/* A document that was a list has ended: rest is the document without its items (`"items":[]`). */
struct json_list {
    struct str rest;
    uint64_t document, items, offset;
};

struct json_items_sink {
    void *context;
    /* Keys whose objects and arrays nobody needs, wherever they stand in a list's items: `null` is
     * handed on in their place (texts and numbers stay). Not copied. */
    const struct str *unwanted;
    size_t unwanted_n;
    void (*item)(void *context, const struct json_item *item);
    void (*list)(void *context, const struct json_list *list); /* may be NULL */
};

struct json_items;
struct json_items *json_items_new(const struct json_items_sink *sink);
void json_items_feed(struct json_items *items, const char *p, size_t n);
/* The stream has ended: an unfinished item or document is handed on as broken. */
void json_items_end(struct json_items *items);
void json_items_free(struct json_items *items); /* NULL is fine */

#endif
