/* Places: a node of a cluster in a book, as the small number that stands in the keys of blocks. */
#include <stdlib.h>

#include "store/internal.h"

static size_t slot_of(const struct places *places, struct place place, name_t book)
{
    const uint64_t mix = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = (((uint64_t)place.cluster << 32 | place.node) * mix + book) * mix;
    size_t at = (size_t)(hash >> 20) & places->mask;
    while (places->table[at]) {
        uint32_t i = places->table[at] - 1;
        const struct place *known = &places->items[i];
        if (known->cluster == place.cluster && known->node == place.node &&
            places->books[i] == book)
            break;
        at = (at + 1) & places->mask;
    }
    return at;
}

static void index_all(struct places *places, size_t mask)
{
    free(places->table);
    places->table = mem_zalloc(mask + 1, sizeof *places->table);
    places->mask = mask;
    for (size_t i = 0; i < places->n; i++)
        places->table[slot_of(places, places->items[i], places->books[i])] = (uint32_t)i + 1;
}

static void learn(struct places *places, struct place place, name_t book)
{
    mem_push(places->items, places->n, places->room, place);
    mem_push(places->books, places->books_n, places->books_room, book);
    if (places->n * 2 > places->mask)
        index_all(places, places->mask ? places->mask * 2 + 1 : 63);
    else
        places->table[slot_of(places, place, book)] = (uint32_t)places->n;
}

enum err places_refresh(struct store *store, struct error *err)
{
    struct places *places = &store->places;
    sqlite3_stmt *statement = db_statement(store, STATEMENT_PLACES_AFTER, err);
    if (!statement)
        return ERR_STORE;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)places->n);
    enum err code = ERR_OK;
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct place place;
        name_t book;
        if (sqlite3_column_int64(statement, 0) != (sqlite3_int64)places->n + 1 ||
            !dictionary_get(store, (uint64_t)sqlite3_column_int64(statement, 1), &place.cluster) ||
            !dictionary_get(store, (uint64_t)sqlite3_column_int64(statement, 2), &place.node) ||
            !dictionary_get(store, (uint64_t)sqlite3_column_int64(statement, 3), &book)) {
            code = db_corrupt(store, "nodes are missing", err);
            break;
        }
        learn(places, place, book);
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading nodes", err);
    sqlite3_reset(statement);
    if (!code && !store->writing)
        places->committed_n = places->n;
    return code;
}

enum err places_put(struct store *store, struct place place, uint32_t *ret, struct error *err)
{
    struct places *places = &store->places;
    if (places->n) {
        *ret = places->table[slot_of(places, place, store->book)];
        if (*ret)
            return ERR_OK;
    }
    if (places->n + 1 >= 1u << PLACE_BITS)
        return error_set(err, ERR_LIMIT, "%s: more than %u nodes are in it", store->path,
                         (1u << PLACE_BITS) - 2);
    uint32_t cluster, node, book;
    enum err code = dictionary_put(store, place.cluster, &cluster, err);
    if (!code)
        code = dictionary_put(store, place.node, &node, err);
    if (!code)
        code = dictionary_put(store, store->book, &book, err);
    sqlite3_stmt *statement = code ? NULL : db_statement(store, STATEMENT_PLACE_ADD, err);
    if (!statement)
        return code ? code : ERR_STORE;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)places->n + 1);
    sqlite3_bind_int64(statement, 2, cluster);
    sqlite3_bind_int64(statement, 3, node);
    sqlite3_bind_int64(statement, 4, book);
    code = db_run(store, statement, "writing a node", err);
    if (code)
        return code;
    learn(places, place, store->book);
    *ret = (uint32_t)places->n;
    return ERR_OK;
}

bool places_get(const struct store *store, int64_t id, struct place *ret)
{
    if (id < 1 || (uint64_t)id > store->places.n)
        return false;
    *ret = store->places.items[id - 1];
    return true;
}

bool places_is_written(const struct store *store, int64_t id)
{
    if (store->all_books || id < 1 || (uint64_t)id > store->places.n)
        return true;
    return store->places.books[id - 1] == store->book;
}

void places_committed(struct store *store)
{
    store->places.committed_n = store->places.n;
}

void places_rolled_back(struct store *store)
{
    struct places *places = &store->places;
    if (places->n == places->committed_n)
        return;
    places->n = places->books_n = places->committed_n;
    index_all(places, places->mask);
}

void places_release(struct store *store)
{
    free(store->places.items);
    free(store->places.books);
    free(store->places.table);
    store->places = (struct places){0};
}
