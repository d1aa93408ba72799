/* What goes wrong outside: crashes, full disks, other files, other versions, other writers. What
 * was committed stays, and the message says what to do. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../lib/ledger_file.h"
#include "../../lib/random_rows.h"
#include "store/scan.h"
#include "store/store.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */

#define says(word)                                                                                 \
    do {                                                                                           \
        if (!strstr(failure.text, word))                                                           \
            fail_msg("\"%s\" does not say \"%s\"", failure.text, word);                            \
    } while (0)

/* Commit number n books hours [3n, 3n + 3) of a few nodes, and every third one books hours of the
 * commit before again: always the same rows for the same seed and n. */
static void book(struct store *store, struct names *names, uint64_t seed, int n)
{
    struct dice dice = {seed + (uint64_t)n * 977};
    struct row_batch batch = {.names = names};
    int first = n % 3 == 2 ? 3 * n - 2 : 3 * n;
    must(store_begin(store, &failure));
    struct span all = {H0 + first * HOUR_MS, H0 + (3 * n + 3) * HOUR_MS};
    must(store_clear_hours(store, all, &failure));
    for (int node = 0; node < 5; node++) {
        char text[32];
        snprintf(text, sizeof text, "node-%d", node);
        row_batch_clear(&batch);
        batch.hours = all;
        for (time_ms hour = all.from; hour < all.to; hour += HOUR_MS)
            random_node_hour(&dice, &batch, hour, NAME_NONE, names_put(names, str_of(text)));
        random_rows_sort(&batch);
        must(store_append(store, &batch, &failure));
    }
    struct store_progress progress = {STR("all"), all.to, STR("carry"), STR_NONE};
    must(store_commit(store, &progress, &failure));
    row_batch_release(&batch);
}

static bool collect(void *context, const struct row_batch *batch)
{
    struct row_batch *into = context;
    for (size_t i = 0; i < batch->rows_n; i++)
        mem_push(into->rows, into->rows_n, into->rows_room, batch->rows[i]);
    for (size_t i = 0; i < batch->node_hours_n; i++)
        mem_push(into->node_hours, into->node_hours_n, into->node_hours_room, batch->node_hours[i]);
    return true;
}

static int commits_in(struct store *store)
{
    struct arena arena = {0};
    struct store_progress progress;
    enum err code = store_read_progress(store, STR("all"), &arena, &progress, &failure);
    arena_release(&arena);
    if (code == ERR_NOT_FOUND)
        return 0;
    must(code);
    return (int)((progress.watermark - H0) / HOUR_MS / 3);
}

static void add_part(void *context, const struct scan_part *part)
{
    figures_add(context, part->figures);
}
static void no_node(void *context, const struct scan_node *node)
{
    (void)context, (void)node;
}
static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

/* The store has exactly what so many commits leave, rows and sums. */
static void assert_holds(struct store *store, struct names *names, uint64_t seed, int commits)
{
    struct store *model;
    struct span all = {H0, H0 + 3 * (commits + 2) * HOUR_MS}, recorded;
    struct row_batch want = {.names = names}, got = {.names = names};
    struct figures sums = {0}, want_sums = {0};
    must(store_open(":memory:", STORE_WRITE, names, &model, &failure));
    for (int n = 0; n < commits; n++)
        book(model, names, seed, n);
    must(store_read_rows(model, all, collect, &want, &failure));
    must(store_read_rows(store, all, collect, &got, &failure));
    assert_int_equal(got.rows_n, want.rows_n);
    for (size_t i = 0; i < got.rows_n; i++)
        assert_true(same_row(&got.rows[i], &want.rows[i]));
    for (size_t i = 0; i < want.rows_n; i++)
        figures_add_row(&want_sums, &want.rows[i]);
    struct scan scan = {.hours = all,
                        .detail = SCAN_TEAMS,
                        .context = &sums,
                        .part = add_part,
                        .node = no_node,
                        .note = no_note};
    must(store_scan(store, &scan, &recorded, &failure));
    assert_memory_equal(&sums, &want_sums, sizeof sums);
    must(store_verify(store, NULL, &failure));
    store_close(model);
    row_batch_release(&want);
    row_batch_release(&got);
}

static void a_kill_at_any_moment_loses_nothing_committed(void **state)
{
    (void)state;
    uint64_t seed = dice_seed();
    struct dice dice = {seed};
    struct names *names = names_new();
    int done = 0;
    for (int round = 0; round < 12; round++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
            struct store *store;
            must(store_open(path, STORE_WRITE, names, &store, &failure));
            for (int n = commits_in(store);; n++) {
                book(store, names, seed, n);
                if (write(pipes[1], &n, sizeof n) != sizeof n)
                    _exit(1);
            }
        }
        close(pipes[1]);
        usleep((useconds_t)dice_below(&dice, 120000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (int n; read(pipes[0], &n, sizeof n) == sizeof n;)
            done = n + 1;
        close(pipes[0]);
        struct store *store; /* the lock went with its process */
        must(store_open(path, STORE_WRITE, names, &store, &failure));
        int commits = commits_in(store);
        assert_in_range(commits, done, done + 1);
        assert_holds(store, names, seed, commits);
        store_close(store);
        done = commits;
    }
    names_free(names);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_says_so_and_keeps_what_was_committed(void **state)
{
    (void)state;
    uint64_t seed = dice_seed();
    struct names *names = names_new();
    struct store *store;
    signal(SIGXFSZ, SIG_IGN);
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    for (int n = 0; n < 3; n++)
        book(store, names, seed, n);
    for (int more = 0; more < 3; more++) { /* too small for the WAL, now or later */
        struct row_batch batch = {.names = names, .hours = {H0 + 20 * HOUR_MS, H0 + 40 * HOUR_MS}};
        struct dice dice = {seed};
        for (int h = 20; h < 40; h++)
            random_node_hour(&dice, &batch, H0 + h * HOUR_MS, NAME_NONE,
                             names_put(names, STR("a new node")));
        limit_file_size((rlim_t)more * 65536 + 4096);
        must(store_begin(store, &failure));
        enum err code = store_append(store, &batch, &failure);
        if (!code)
            code = store_commit(store, NULL, &failure);
        else
            store_rollback(store);
        limit_file_size(RLIM_INFINITY);
        assert_int_equal(code, ERR_STORE);
        says("no room left");
        says("committed before is kept");
        row_batch_release(&batch);
        assert_holds(store, names, seed, 3);
    }
    book(store, names, seed, 3); /* and it goes on when there is room again */
    assert_holds(store, names, seed, 4);
    store_close(store);
    must(store_open(path, STORE_READ, names, &store, &failure));
    assert_holds(store, names, seed, 4);
    store_close(store);
    names_free(names);
}

static void a_second_writer_is_told_who_writes(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct store *store, *other;
    char pid[32];
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    assert_int_equal(store_open(path, STORE_WRITE, names, &other, &failure), ERR_LOCKED);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    says(pid);
    must(store_open(path, STORE_READ, names, &other, &failure)); /* readers are welcome */
    store_close(other);
    store_close(store);
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    store_close(store);
    char lock[TEMPORARY_MAX + 64];
    snprintf(lock, sizeof lock, "%s.lock", path);
    assert_int_equal(access(lock, F_OK), -1);
    names_free(names);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void execute(const char *sql)
{
    sqlite3 *db;
    sqlite3_open(path, &db);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void refuse(enum store_mode mode, enum err code, const char *word)
{
    struct names *names = names_new();
    struct store *store = NULL;
    assert_int_equal(store_open(path, mode, names, &store, &failure), code);
    assert_null(store);
    says(word);
    names_free(names);
}

static void a_file_that_is_no_ledger_is_refused_untouched(void **state)
{
    (void)state;
    refuse(STORE_READ, ERR_NOT_FOUND, "there is no database");
    write_file("hour,cluster,node\n1,2,3\n and so on, for longer than a header of SQLite is, "
               "which has 100 bytes, so that it is looked at as one\n");
    struct stat before, after;
    stat(path, &before);
    refuse(STORE_READ, ERR_STORE, "not a gputally database");
    refuse(STORE_WRITE, ERR_STORE, "not a gputally database");
    stat(path, &after);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    unlink(path);
    execute("CREATE TABLE theirs(x)");
    refuse(STORE_READ, ERR_STORE, "another program");
    refuse(STORE_WRITE, ERR_STORE, "another program");
    char where[TEMPORARY_MAX + 64];
    snprintf(where, sizeof where, "%s/no/such/folder.db", folder);
    struct names *names = names_new();
    struct store *store;
    assert_int_equal(store_open(where, STORE_WRITE, names, &store, &failure), ERR_IO);
    says("No such file");
    names_free(names);
}

static void a_newer_schema_is_refused_and_an_empty_file_is_filled(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    store_close(store);
    execute("PRAGMA user_version = 1000");
    refuse(STORE_READ, ERR_STORE, "newer gputally");
    refuse(STORE_WRITE, ERR_STORE, "newer gputally");
    unlink(path);
    write_file("");
    refuse(STORE_READ, ERR_NOT_FOUND, "nothing has been collected");
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    store_close(store);
    names_free(names);
}

/* Every byte of a block, roll-up or page may be another: an error or other figures, no crash. */
static void damaged_bytes_give_errors_and_never_crash(void **state)
{
    (void)state;
    uint64_t seed = dice_seed();
    struct dice dice = {seed};
    struct names *names = names_new();
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    for (int n = 0; n < 9; n++)
        book(store, names, seed, n);
    store_close(store);
    FILE *file = fopen(path, "rb");
    static char whole[4 << 20], broken[4 << 20];
    size_t n = fread(whole, 1, sizeof whole, file);
    fclose(file);
    assert_in_range(n, 65536, sizeof whole - 1);
    int refused = 0;
    for (int round = 0; round < 300; round++) {
        memcpy(broken, whole, n);
        for (uint64_t hits = 1 + dice_below(&dice, 20); hits > 0; hits--)
            broken[100 + dice_below(&dice, n - 100)] = (char)dice_next(&dice);
        file = fopen(path, "wb");
        fwrite(broken, 1, n, file);
        fclose(file);
        struct names *others = names_new();
        struct row_batch got = {.names = others};
        struct figures sums = {0};
        struct span all = {H0, H0 + 60 * HOUR_MS}, recorded;
        struct scan scan = {.hours = all,
                            .detail = SCAN_TEAMS,
                            .context = &sums,
                            .part = add_part,
                            .node = no_node,
                            .note = no_note};
        enum err code = store_open(path, STORE_READ, others, &store, &failure);
        if (!code) {
            code = store_read_rows(store, all, collect, &got, &failure);
            code = store_scan(store, &scan, &recorded, &failure) || code ? ERR_STORE : ERR_OK;
            code = store_verify(store, NULL, &failure) || code ? ERR_STORE : ERR_OK;
            store_close(store);
        }
        refused += code != ERR_OK;
        row_batch_release(&got);
        names_free(others);
    }
    assert_in_range(refused, 30, 300); /* the rest hit holes of pages */
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_kill_at_any_moment_loses_nothing_committed, empty_folder),
        cmocka_unit_test_setup(a_full_disk_says_so_and_keeps_what_was_committed, empty_folder),
        cmocka_unit_test_setup(a_second_writer_is_told_who_writes, empty_folder),
        cmocka_unit_test_setup(a_file_that_is_no_ledger_is_refused_untouched, empty_folder),
        cmocka_unit_test_setup(a_newer_schema_is_refused_and_an_empty_file_is_filled, empty_folder),
        cmocka_unit_test_setup(damaged_bytes_give_errors_and_never_crash, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
