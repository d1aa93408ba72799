/* The journal on a disk that fails, under many threads, and under kill -9: nothing that was
 * acknowledged is lost, and it goes on where the disk does. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "../../lib/journal_lab.h"

/* ---- a disk that fails at chosen calls */

enum { CALL_CREATE, CALL_WRITE, CALL_SYNC, CALL_COUNT };

struct disk {
    int fail_from[CALL_COUNT], fail_to[CALL_COUNT]; /* calls by number, from 0 */
    atomic_int calls[CALL_COUNT];
    int code;
    bool short_writes;
    atomic_int syncs;
    useconds_t sync_us;
};

static bool fails(struct disk *disk, int call)
{
    int number = atomic_fetch_add(&disk->calls[call], 1);
    errno = disk->code;
    return number >= disk->fail_from[call] && number < disk->fail_to[call];
}

static int lab_create(void *context, int folder, const char *name)
{
    return fails(context, CALL_CREATE) ? -1 : journal_io_system.create(NULL, folder, name);
}

static ssize_t lab_pwrite(void *context, int fd, const void *bytes, size_t n, off_t at)
{
    struct disk *disk = context;
    if (fails(disk, CALL_WRITE)) {
        /* Some of it may have got there. */
        (void)!pwrite(fd, bytes, n / 2, at);
        errno = disk->code;
        return -1;
    }
    if (disk->short_writes && n > 7)
        n = 7;
    return pwrite(fd, bytes, n, at);
}

static int lab_sync(void *context, int fd)
{
    struct disk *disk = context;
    atomic_fetch_add(&disk->syncs, 1);
    if (disk->sync_us)
        usleep(disk->sync_us);
    else if (fails(disk, CALL_SYNC))
        return -1;
    return journal_io_system.sync(NULL, fd);
}

static int lab_truncate(void *context, int fd, off_t size)
{
    (void)context;
    return journal_io_system.truncate(NULL, fd, size);
}

static int lab_unlink(void *context, int folder, const char *name)
{
    (void)context;
    return journal_io_system.unlink(NULL, folder, name);
}

static struct journal_io disk_io(struct disk *disk)
{
    return (struct journal_io){.context = disk,
                               .create = lab_create,
                               .write = lab_pwrite,
                               .sync = lab_sync,
                               .truncate = lab_truncate,
                               .unlink = lab_unlink};
}

/* Commit i has series 0 to 2 at T0 + i s. Twenty commits on a disk that fails at some calls: what
 * was acknowledged is there, now and after opening again, and the last commits went through. */
static void commits_on(struct disk *disk)
{
    struct lab lab;
    lab_begin(&lab);
    struct journal_io io = disk_io(disk);
    struct journal *journal = lab_open(&lab, (struct journal_options){.io = &io});
    struct journal_batch *batch = journal_batch_new(journal);
    bool good[20];
    for (int i = 0; i < 20; i++)
        good[i] = lab_put(batch, 0, 3, LAB_T0 + i * 1000, true) == ERR_OK;
    assert_true(good[19]);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_string_equal(stats.failing, "");
    journal_batch_free(batch);
    for (int round = 0; round < 2; round++) {
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        for (int i = 0; i < 20; i++)
            for (unsigned s = 0; s < 3 && good[i]; s++)
                assert_true(lab_has(&seen, s, LAB_T0 + i * 1000));
        assert_int_equal(seen.stats.nameless_samples, 0);
        free(seen.samples);
        journal_close(journal);
        if (round == 0)
            journal = lab_open(&lab, (struct journal_options){0});
    }
    lab_end(&lab);
}

static void a_disk_that_fails_anywhere_loses_nothing_acknowledged(void **state)
{
    (void)state;
    static const int codes[] = {ENOSPC, EIO, EROFS, EDQUOT};
    for (int call = 0; call < CALL_COUNT; call++)
        for (int from = 0; from < 12; from++)
            for (int n = 1; n <= 4; n += 3) {
                struct disk disk = {.code = codes[from % 4]};
                disk.fail_from[call] = from;
                disk.fail_to[call] = from + n;
                commits_on(&disk);
            }
}

static void short_writes_are_finished(void **state)
{
    (void)state;
    struct disk disk = {.short_writes = true};
    commits_on(&disk);
}

static void a_full_disk_is_said_with_what_to_do(void **state)
{
    (void)state;
    struct lab lab;
    struct error err = {0};
    struct disk disk = {.code = ENOSPC};
    disk.fail_to[CALL_WRITE] = 1000;
    struct journal_io io = disk_io(&disk);
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){.io = &io});
    struct journal_batch *batch = journal_batch_new(journal);
    time_ms t = LAB_T0;
    double v = lab_value(0, t);
    journal_begin(batch);
    journal_add(batch, lab_series(batch, 0, false), &t, &v, 1);
    assert_int_equal(journal_commit(batch, true, &err), ERR_IO);
    assert_non_null(strstr(err.text, lab.folder));
    assert_non_null(strstr(err.text, "free some space"));
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_string_equal(stats.failing, err.text);
    assert_int_equal(stats.failed_commits, 1);
    assert_int_equal(stats.samples, 0);
    journal_batch_free(batch);
    journal_close(journal);
    lab_end(&lab);
}

/* ---- threads */

#define THREADS 8
#define COMMITS 40

struct receiver {
    pthread_t thread;
    struct journal *journal;
    unsigned number;
};

static void *receive(void *context)
{
    struct receiver *receiver = context;
    struct journal_batch *batch = journal_batch_new(receiver->journal);
    for (int i = 0; i < COMMITS; i++) {
        /* A series of its own, and one that all name at once. */
        time_ms t = LAB_T0 + (time_ms)receiver->number * 100 + i * 1000;
        double own = lab_value(receiver->number + 1, t), shared = lab_value(0, t);
        journal_begin(batch);
        journal_add(batch, lab_series(batch, receiver->number + 1, false), &t, &own, 1);
        journal_add(batch, lab_series(batch, 0, false), &t, &shared, 1);
        if (journal_commit(batch, true, NULL) != ERR_OK)
            abort();
    }
    journal_batch_free(batch);
    return NULL;
}

static void many_receivers_share_fsyncs_and_lose_nothing(void **state)
{
    (void)state;
    struct lab lab;
    struct disk disk = {.sync_us = 2000};
    struct journal_io io = disk_io(&disk);
    struct receiver receivers[THREADS];
    lab_begin(&lab);
    /* Small segments: many are begun and sealed meanwhile. */
    struct journal *journal =
        lab_open(&lab, (struct journal_options){.io = &io, .segment_bytes = 8000});
    for (unsigned i = 0; i < THREADS; i++) {
        receivers[i] = (struct receiver){.journal = journal, .number = i};
        assert_int_equal(pthread_create(&receivers[i].thread, NULL, receive, &receivers[i]), 0);
    }
    for (int i = 0; i < 20; i++) { /* reading while it is appended to */
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        assert_int_equal(seen.stats.nameless_samples + seen.stats.damaged_frames, 0);
        free(seen.samples);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(receivers[i].thread, NULL);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, THREADS * COMMITS * 2);
    free(seen.samples);
    assert_true(atomic_load(&disk.syncs) < THREADS * COMMITS * 3 / 4);
    journal_close(journal);
    lab_end(&lab);
}

static void *commit_batch(void *context)
{
    return (void *)(intptr_t)journal_commit(context, true, NULL);
}

/* Whoever comes first waits for all that were announced, and nobody for one that gave up. */
static void commits_that_were_announced_share_one_fsync(void **state)
{
    (void)state;
    struct lab lab;
    struct disk disk = {0};
    struct journal_io io = disk_io(&disk);
    struct journal_batch *batches[THREADS], *gives_up;
    pthread_t threads[THREADS];
    lab_begin(&lab);
    struct journal *journal =
        lab_open(&lab, (struct journal_options){.io = &io, .company_ms = DAY_MS});
    gives_up = journal_batch_new(journal);
    journal_announce(gives_up);
    for (unsigned i = 0; i < THREADS; i++) {
        time_ms t = LAB_T0;
        double v = lab_value(i, t);
        batches[i] = journal_batch_new(journal);
        journal_announce(batches[i]);
        journal_announce(batches[i]); /* twice is once */
        journal_begin(batches[i]);
        journal_add(batches[i], lab_series(batches[i], i, false), &t, &v, 1);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, commit_batch, batches[i]), 0);
        if (i == 0)
            usleep(1000); /* it may wait already */
    }
    journal_begin(gives_up);
    journal_abandon(gives_up);
    for (unsigned i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_int_equal((intptr_t)result, ERR_OK);
    }
    assert_int_equal(atomic_load(&disk.syncs), 2); /* the folder's, when the file was made */
    for (unsigned i = 0; i < THREADS; i++)
        journal_batch_free(batches[i]);
    journal_batch_free(gives_up);
    struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
    assert_int_equal(seen.n, THREADS);
    free(seen.samples);
    journal_close(journal);
    lab_end(&lab);
}

static void who_was_announced_and_does_not_come_holds_nobody_up(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    struct journal *journal = lab_open(&lab, (struct journal_options){.company_ms = 5});
    struct journal_batch *late = journal_batch_new(journal), *batch = journal_batch_new(journal);
    journal_announce(late);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lab_put(batch, 0, 3, LAB_T0 + i * 1000, true), ERR_OK);
    journal_batch_free(late);
    journal_batch_free(batch);
    journal_close(journal);
    lab_end(&lab);
}

/* ---- kill -9 */

/* Commits for ever; writes the number of each to the pipe once it is acknowledged. */
static _Noreturn void child(const struct lab *lab, int pipe_fd, int from)
{
    struct journal_options options = {
        .folder = lab->folder, .segment_bytes = 3000, .cap_age_ms = LAB_AGE_MS};
    struct journal *journal;
    if (journal_open(&options, &journal, NULL) != ERR_OK)
        _exit(1);
    struct journal_batch *batch = journal_batch_new(journal);
    for (int i = from;; i++) {
        if (lab_put(batch, (unsigned)i % 50, 4, LAB_T0 + i * 1000, true) != ERR_OK ||
            write(pipe_fd, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    (void)state;
    struct random random = random_new();
    struct lab lab;
    lab_begin(&lab);
    int acknowledged = -1, began[12];
    for (int round = 0; round < 12; round++) {
        int ends[2], number;
        assert_int_equal(pipe(ends), 0);
        began[round] = acknowledged + 2; /* the one that was in hand may be there or not */
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            child(&lab, ends[1], began[round]);
        close(ends[1]);
        usleep((useconds_t)random_below(&random, 20000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        acknowledged = began[round] - 1;
        while (read(ends[0], &number, sizeof number) == sizeof number)
            acknowledged = number;
        close(ends[0]);
        struct journal *journal = lab_open(&lab, (struct journal_options){0});
        struct lab_seen seen = lab_read(journal, TIME_MIN, TIME_MAX);
        for (int before = 0; before <= round; before++)
            for (int i = began[before];
                 i < (before < round ? began[before + 1] - 1 : acknowledged + 1); i++)
                for (unsigned s = 0; s < 4; s++)
                    assert_true(lab_has(&seen, (unsigned)i % 50 + s, LAB_T0 + i * 1000));
        assert_int_equal(seen.stats.nameless_samples + seen.stats.damaged_frames, 0);
        free(seen.samples);
        journal_close(journal);
    }
    assert_true(acknowledged > 50);
    lab_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_that_fails_anywhere_loses_nothing_acknowledged),
        cmocka_unit_test(short_writes_are_finished),
        cmocka_unit_test(a_full_disk_is_said_with_what_to_do),
        cmocka_unit_test(many_receivers_share_fsyncs_and_lose_nothing),
        cmocka_unit_test(commits_that_were_announced_share_one_fsync),
        cmocka_unit_test(who_was_announced_and_does_not_come_holds_nobody_up),
        cmocka_unit_test(what_was_acknowledged_survives_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
