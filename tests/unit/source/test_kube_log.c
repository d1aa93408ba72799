/* The log of what was seen of a Kubernetes API: what it gives back after an end, a torn tail,
 * damage and a full folder. */
#include "../../lib/unit.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/kube_log.h"

#define T0 INT64_C(1790000000000)
#define CLUSTER ((struct str){"east", 4})

struct place {
    char folder[TEMPORARY_MAX];
    struct kube_history *history;
    struct kube_log *log;
};

static void open_log(struct place *place)
{
    struct error err;
    place->history = kube_history_new();
    if (kube_log_open(place->folder, place->history, &place->log, &err) != ERR_OK)
        fail_msg("%s", err.text);
}

static void close_log(struct place *place)
{
    kube_log_close(place->log);
    kube_history_free(place->history);
}

static int set_up(void **state)
{
    static struct place place;
    temporary(place.folder, "kube-log");
    assert_non_null(mkdtemp(place.folder));
    open_log(&place);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    close_log(place);
    DIR *folder = opendir(place->folder);
    struct dirent *entry;
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    return rmdir(place->folder);
}

static void tell(struct place *place, const struct kube_record *record)
{
    struct strbuf bytes = {0};
    struct error err;
    kube_record_write(&bytes, record);
    assert_int_equal(kube_history_add(place->history, strbuf_str(&bytes), NULL, &err), ERR_OK);
    assert_int_equal(kube_log_append(place->log, record->t, strbuf_str(&bytes), &err), ERR_OK);
    strbuf_release(&bytes);
}

static void tell_namespace(struct place *place, enum kube_act act, time_ms t, const char *name)
{
    struct strbuf object = {0};
    struct kube_namespace ns = {.name = str_of(name)};
    struct kube_record record = kube_record_of(act, KUBE_KIND_NAMESPACE, t, CLUSTER);
    kube_record_namespace(&object, &ns);
    record.object = strbuf_str(&object);
    tell(place, &record);
    strbuf_release(&object);
}

static void tell_list(struct place *place, time_ms t, int n)
{
    struct kube_record record = kube_record_of(KUBE_ACT_LIST, KUBE_KIND_NAMESPACE, t, CLUSTER);
    char name[32];
    tell(place, &record);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "ns-%d", i);
        tell_namespace(place, KUBE_ACT_OBJECT, t, name);
    }
    record.act = KUBE_ACT_LISTED;
    tell(place, &record);
}

static size_t objects(const struct place *place)
{
    return kube_history_size(place->history).objects;
}

static void sync_log(struct place *place)
{
    struct error err;
    assert_int_equal(kube_log_sync(place->log, &err), ERR_OK);
}

static uint64_t bytes_of(const struct place *place)
{
    struct kube_log_stats stats;
    kube_log_stats(place->log, &stats);
    return stats.bytes;
}

/* The path of its only file. */
static void file_of(const struct place *place, char *ret, size_t room)
{
    DIR *folder = opendir(place->folder);
    struct dirent *entry;
    ret[0] = '\0';
    while ((entry = readdir(folder)))
        if (strncmp(entry->d_name, "kube-", 5) == 0)
            snprintf(ret, room, "%s/%.40s", place->folder, entry->d_name);
    closedir(folder);
}

static void what_was_appended_comes_back(void **state)
{
    struct place *place = *state;
    tell_list(place, T0, 20);
    sync_log(place);
    tell_namespace(place, KUBE_ACT_DELETED, T0 + 5, "ns-3");
    close_log(place);
    open_log(place);
    struct span extent;
    assert_int_equal(objects(place), 20);
    assert_true(kube_history_extent(place->history, &extent));
    assert_int_equal(extent.from, T0);
    assert_int_equal(extent.to, T0 + 5 + 1);
}

/* The test's time limit is the only one. */
static void the_last_record_is_on_disk_soon_though_none_follows(void **state)
{
    struct place *place = *state;
    struct timespec pause = {0, 20 * 1000000};
    tell_list(place, T0, 20);
    sync_log(place);
    uint64_t before = bytes_of(place);
    tell_namespace(place, KUBE_ACT_OBJECT, T0 + 5, "late");
    while (bytes_of(place) == before)
        nanosleep(&pause, NULL);
}

/* ---- a disk that takes its time: it is done when the test says so */

static struct disk {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool slow; /* syncs wait */
    int waiting;
} disk = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};

/* In place of the C library's. */
int fdatasync(int fd)
{
    pthread_mutex_lock(&disk.lock);
    disk.waiting++;
    pthread_cond_broadcast(&disk.changed);
    while (disk.slow)
        pthread_cond_wait(&disk.changed, &disk.lock);
    disk.waiting--;
    pthread_mutex_unlock(&disk.lock);
    return fsync(fd);
}

static void make_disk(bool slow)
{
    pthread_mutex_lock(&disk.lock);
    disk.slow = slow;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static void until_somebody_waits_for_the_disk(void)
{
    pthread_mutex_lock(&disk.lock);
    while (!disk.waiting)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

static void *sync_beside(void *context)
{
    sync_log(context);
    return NULL;
}

/* While it begins a file, and while it goes on with one. It hangs where somebody waits. */
static void nobody_waits_for_the_disk(void **state)
{
    struct place *place = *state;
    char name[32];
    for (int round = 0; round < 2; round++) {
        pthread_t syncing;
        tell_list(place, T0 + round * 1000, 20);
        make_disk(true);
        pthread_create(&syncing, NULL, sync_beside, place);
        until_somebody_waits_for_the_disk();
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "round-%d-%d", round, i);
            tell_namespace(place, KUBE_ACT_OBJECT, T0 + round * 1000 + i, name);
        }
        kube_log_release(place->log, T0);
        bytes_of(place);
        make_disk(false);
        pthread_join(syncing, NULL);
    }
    close_log(place);
    open_log(place);
    assert_int_equal(objects(place), 220);
}

/* What no disk takes waits, and is there once one takes it. */
static void what_was_refused_is_written_later(void **state)
{
    struct place *place = *state;
    struct error err;
    struct kube_log_stats stats;
    tell_list(place, T0, 20);
    sync_log(place);
    struct rlimit was, none = {.rlim_cur = 0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    none.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    tell_namespace(place, KUBE_ACT_OBJECT, T0 + 5, "late");
    enum err first = kube_log_sync(place->log, &err), second = kube_log_sync(place->log, &err);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_int_equal(first, ERR_IO);
    assert_int_equal(second, ERR_IO); /* a new file cannot begin either */
    kube_log_stats(place->log, &stats);
    assert_true(stats.failures >= 2 && stats.why[0] && !stats.dropped);
    sync_log(place);
    kube_log_stats(place->log, &stats);
    assert_string_equal(stats.why, "");
    assert_int_equal(stats.files, 2);
    close_log(place);
    open_log(place);
    assert_int_equal(objects(place), 21);
}

static void a_torn_tail_is_cut_and_what_stood_before_stays(void **state)
{
    struct place *place = *state;
    char path[TEMPORARY_MAX + 64];
    struct stat info;
    struct kube_log_stats stats;
    tell_list(place, T0, 20);
    sync_log(place);
    tell_namespace(place, KUBE_ACT_OBJECT, T0 + 5, "late");
    close_log(place);
    file_of(place, path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 3), 0);
    open_log(place);
    kube_log_stats(place->log, &stats);
    assert_int_equal(objects(place), 20);
    assert_int_equal(stats.damaged, 1);
    assert_true(stats.cut_bytes > 0);
    tell_namespace(place, KUBE_ACT_OBJECT, T0 + 9, "later");
    close_log(place);
    open_log(place);
    assert_int_equal(objects(place), 21);
}

static void a_file_after_a_damaged_one_says_what_holds(void **state)
{
    struct place *place = *state;
    char path[TEMPORARY_MAX + 64];
    tell_list(place, T0, 20);
    sync_log(place);
    file_of(place, path, sizeof path);
    close_log(place);
    open_log(place);
    tell_namespace(place, KUBE_ACT_OBJECT, T0 + 5, "late"); /* a new file: its snapshot has all */
    close_log(place);
    FILE *file = fopen(path, "r+b");
    assert_int_equal(fseek(file, 40, SEEK_SET), 0);
    assert_int_equal(fputc('#', file), '#');
    fclose(file);
    open_log(place);
    struct kube_log_stats stats;
    kube_log_stats(place->log, &stats);
    assert_int_equal(stats.damaged, 1);
    assert_int_equal(objects(place), 21);
}

static void files_go_once_their_hours_are_booked(void **state)
{
    struct place *place = *state;
    struct kube_log_stats stats;
    tell_list(place, T0, 20);
    close_log(place);
    open_log(place);
    tell_namespace(place, KUBE_ACT_OBJECT, T0 + 5, "late");
    sync_log(place);
    kube_log_stats(place->log, &stats);
    assert_int_equal(stats.files, 2);
    kube_log_release(place->log, T0); /* long before the second file began */
    kube_log_stats(place->log, &stats);
    assert_int_equal(stats.files, 2);
    kube_log_release(place->log, clock_now() + 1000);
    kube_log_stats(place->log, &stats);
    assert_int_equal(stats.files, 1);
    close_log(place);
    open_log(place);
    assert_int_equal(objects(place), 21);
}

static void no_file_begins_in_the_middle_of_a_list(void **state)
{
    struct place *place = *state;
    struct kube_log_stats stats;
    struct kube_record record = kube_record_of(KUBE_ACT_LIST, KUBE_KIND_NAMESPACE, T0, CLUSTER);
    tell(place, &record);
    tell_namespace(place, KUBE_ACT_OBJECT, T0, "a");
    sync_log(place);
    kube_log_stats(place->log, &stats);
    assert_int_equal(stats.files, 0);
    record.act = KUBE_ACT_LISTED;
    tell(place, &record);
    sync_log(place);
    kube_log_stats(place->log, &stats);
    assert_int_equal(stats.files, 1);
    close_log(place);
    open_log(place);
    assert_int_equal(objects(place), 1);
}

static void one_process_at_a_time(void **state)
{
    struct place *place = *state;
    struct kube_log *second;
    struct error err;
    struct kube_history *history = kube_history_new();
    assert_int_equal(kube_log_open(place->folder, history, &second, &err), ERR_LOCKED);
    kube_history_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_appended_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_record_is_on_disk_soon_though_none_follows, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nobody_waits_for_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_refused_is_written_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_torn_tail_is_cut_and_what_stood_before_stays, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_file_after_a_damaged_one_says_what_holds, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(files_go_once_their_hours_are_booked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_file_begins_in_the_middle_of_a_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_process_at_a_time, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
