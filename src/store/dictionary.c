/* Names on disk have ids of their own, since those of `struct names` differ from run to run. */
#include <stdlib.h>

#include "store/internal.h"

static void learn(struct dictionary *dictionary, name_t name)
{
    mem_push(dictionary->of_disk, dictionary->n, dictionary->room, name);
    if (name >= dictionary->to_room) {
        size_t room = dictionary->to_room * 2 > name + 1u ? dictionary->to_room * 2 : name + 64u;
        dictionary->to_disk = mem_realloc(dictionary->to_disk, room, sizeof *dictionary->to_disk);
        memset(dictionary->to_disk + dictionary->to_room, 0,
               (room - dictionary->to_room) * sizeof *dictionary->to_disk);
        dictionary->to_room = room;
    }
    dictionary->to_disk[name] = (uint32_t)dictionary->n;
}

enum err dictionary_refresh(struct store *store, struct error *err)
{
    struct dictionary *dictionary = &store->dictionary;
    sqlite3_stmt *statement = db_statement(store, STATEMENT_NAMES_AFTER, err);
    if (!statement)
        return ERR_STORE;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)dictionary->n);
    enum err code = ERR_OK;
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (sqlite3_column_int64(statement, 0) != (sqlite3_int64)dictionary->n + 1) {
            code = db_corrupt(store, "names are missing", err);
            break;
        }
        learn(dictionary, names_put(store->names, db_text(statement, 1)));
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(store, rc, "reading names", err);
    sqlite3_reset(statement);
    if (!code && !store->writing)
        dictionary->committed_n = dictionary->n;
    return code;
}

enum err dictionary_put(struct store *store, name_t name, uint32_t *ret, struct error *err)
{
    struct dictionary *dictionary = &store->dictionary;
    if (name == NAME_NONE) {
        *ret = 0;
        return ERR_OK;
    }
    if (name < dictionary->to_room && dictionary->to_disk[name]) {
        *ret = dictionary->to_disk[name];
        return ERR_OK;
    }
    if (!store->writing)
        return db_corrupt(store, "a name is missing", err);
    sqlite3_stmt *statement = db_statement(store, STATEMENT_NAME_ADD, err);
    if (!statement)
        return ERR_STORE;
    struct str text = names_text(store->names, name);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)dictionary->n + 1);
    sqlite3_bind_text(statement, 2, text.p, (int)text.n, SQLITE_STATIC);
    enum err code = db_run(store, statement, "writing a name", err);
    if (code)
        return code;
    learn(dictionary, name);
    *ret = (uint32_t)dictionary->n;
    return ERR_OK;
}

bool dictionary_get(const struct store *store, uint64_t disk, name_t *ret)
{
    if (disk > store->dictionary.n)
        return false;
    *ret = disk ? store->dictionary.of_disk[disk - 1] : NAME_NONE;
    return true;
}

void dictionary_committed(struct store *store)
{
    store->dictionary.committed_n = store->dictionary.n;
}

void dictionary_rolled_back(struct store *store)
{
    struct dictionary *dictionary = &store->dictionary;
    while (dictionary->n > dictionary->committed_n)
        dictionary->to_disk[dictionary->of_disk[--dictionary->n]] = 0;
}

void dictionary_release(struct store *store)
{
    free(store->dictionary.of_disk);
    free(store->dictionary.to_disk);
    store->dictionary = (struct dictionary){0};
}
