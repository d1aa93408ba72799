/* Notes are kept as texts, not in the dictionary: they are few, and many of them never come again.
 */
#include "store/internal.h"

static void bind_name(struct store *store, sqlite3_stmt *statement, int index, name_t name)
{
    struct str text = names_text(store->names, name);
    sqlite3_bind_text(statement, index, text.p, (int)text.n, SQLITE_STATIC);
}

enum err notes_put(struct store *store, const struct note *notes, size_t n, struct error *err)
{
    enum err code = ERR_OK;
    for (size_t i = 0; i < n && !code; i++) {
        sqlite3_stmt *put = db_statement(store, STATEMENT_NOTE_PUT, err);
        if (!put)
            return ERR_STORE;
        sqlite3_bind_int64(put, 1, notes[i].kind);
        bind_name(store, put, 2, notes[i].subject);
        bind_name(store, put, 3, notes[i].text);
        sqlite3_bind_int64(put, 4, notes[i].from);
        sqlite3_bind_int64(put, 5, notes[i].to);
        sqlite3_bind_int64(put, 6, notes[i].count);
        bind_name(store, put, 7, store->book);
        code = db_run(store, put, "writing a note", err);
    }
    return code;
}

enum err notes_clear(struct store *store, struct span hours, struct error *err)
{
    static const enum statement steps[] = {STATEMENT_NOTES_DROP, STATEMENT_NOTES_CUT_TAIL,
                                           STATEMENT_NOTES_CUT_HEAD};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sqlite3_stmt *step = db_statement(store, steps[i], err);
        if (!step)
            return ERR_STORE;
        sqlite3_bind_int64(step, 1, hours.from);
        sqlite3_bind_int64(step, 2, hours.to);
        if (store->all_books)
            sqlite3_bind_null(step, 3);
        else
            bind_name(store, step, 3, store->book);
        enum err code = db_run(store, step, "clearing notes", err);
        if (code)
            return code;
    }
    return ERR_OK;
}

enum err notes_read(struct store *store, struct span hours, struct row_batch *ret,
                    struct error *err)
{
    if (store->lens) /* they speak of everybody */
        return ERR_OK;
    sqlite3_stmt *get = db_statement(store, STATEMENT_NOTES_OF, err);
    if (!get)
        return ERR_STORE;
    sqlite3_bind_int64(get, 1, hours.from);
    sqlite3_bind_int64(get, 2, hours.to);
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW) {
        struct note note = {.kind = sqlite3_column_int(get, 0),
                            .subject = names_put(store->names, db_text(get, 1)),
                            .text = names_put(store->names, db_text(get, 2)),
                            .count = sqlite3_column_int64(get, 3),
                            .from = sqlite3_column_int64(get, 4),
                            .to = sqlite3_column_int64(get, 5)};
        mem_push(ret->notes, ret->notes_n, ret->notes_room, note);
    }
    enum err code = rc == SQLITE_DONE ? ERR_OK : db_fail(store, rc, "reading notes", err);
    sqlite3_reset(get);
    return code;
}
