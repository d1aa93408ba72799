/* SQLite's own means, with what a user of them forgets: the copy is verified, and takes its name
 * only when it is whole. */
#include "store/maintain.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

static enum err refuse_existing(const char *path, struct error *err)
{
    if (access(path, F_OK) != 0)
        return ERR_OK;
    return error_set(err, ERR_USAGE, "%s is there already: name a file that is not", path);
}

static int64_t bytes_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : 0;
}

/* All pages in one step: a reader's snapshot, whatever the writer does meanwhile. */
static enum err copy_pages(struct store *from, const char *to, struct error *err)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(
        to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_backup *backup = rc ? NULL : sqlite3_backup_init(db, "main", from->db, "main");
    if (backup) {
        rc = sqlite3_backup_step(backup, -1);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        int finished = sqlite3_backup_finish(backup);
        rc = rc ? rc : finished;
    } else if (!rc) {
        rc = sqlite3_errcode(db);
    }
    enum err code = ERR_OK;
    if (rc) {
        int why = sqlite3_system_errno(db);
        bool full = (rc & 0xff) == SQLITE_FULL || why == ENOSPC || why == EDQUOT || why == EFBIG;
        code = error_set(err, ERR_STORE, "writing %s: %s", to,
                         full  ? "no room left on the disk"
                         : why ? strerror(why)
                               : sqlite3_errstr(rc));
    }
    sqlite3_close_v2(db);
    return code;
}

static enum err verify_copy(const char *path, struct error *err)
{
    struct names *names = names_new();
    struct store *store;
    enum err code = store_open(path, STORE_READ, names, &store, err);
    if (!code) {
        code = store_verify(store, NULL, err);
        store_close(store);
    }
    names_free(names);
    return code;
}

static void remove_parts(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct strbuf part = {0};
        strbuf_addf(&part, "%s%s", path, ends[i]);
        unlink(part.text);
        strbuf_release(&part);
    }
}

enum err store_backup(const char *path, const char *to, struct error *err)
{
    struct names *names = names_new();
    struct strbuf making = {0};
    struct store *store = NULL;
    strbuf_addf(&making, "%s.part", to);
    enum err code = refuse_existing(to, err);
    if (!code)
        code = store_open(path, STORE_READ, names, &store, err);
    if (!code) {
        remove_parts(making.text); /* of a backup that was killed */
        code = copy_pages(store, making.text, err);
        store_close(store);
        if (!code)
            code = verify_copy(making.text, err);
        if (!code && rename(making.text, to) != 0)
            code = error_set(err, ERR_IO, "naming %s: %s", to, strerror(errno));
        remove_parts(making.text);
    }
    strbuf_release(&making);
    names_free(names);
    return code;
}

enum err store_add_hour_sums(const char *path, struct error *err)
{
    struct names *names = names_new();
    struct store *store;
    enum err code = store_open(path, STORE_WRITE, names, &store, err);
    if (!code) {
        code = days_add_hour_sums(store, err);
        store_close(store);
    }
    names_free(names);
    return code;
}

enum err store_vacuum(const char *path, int64_t *ret_before, int64_t *ret_after, struct error *err)
{
    struct names *names = names_new();
    struct store *store;
    if (access(path, F_OK) != 0) {
        names_free(names);
        return error_set(err, ERR_NOT_FOUND, "there is no database %s", path);
    }
    int64_t before = bytes_of(path);
    enum err code = store_open(path, STORE_WRITE, names, &store, err);
    if (!code) {
        days_add_hour_sums(store, NULL); /* of days that were written before there were any */
        int rc =
            sqlite3_exec(store->db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
        if (rc)
            code = db_fail(store, rc, "writing it anew", err);
        store_close(store);
    }
    names_free(names);
    if (!code) {
        *ret_before = before;
        *ret_after = bytes_of(path);
    }
    return code;
}
