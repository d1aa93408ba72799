/* What was put aside comes back, from the file or from memory. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/unit.h"
#include "fleet/spill.h"

#define PIECES 500
#define PIECE_MAX 5000

static size_t fill(struct random *random, char *bytes, size_t most)
{
    size_t n = (size_t)random_below(random, (int64_t)most) + 1;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)random_next(random);
    return n;
}

/* Pieces that are more than any buffer, read back now and then; one is larger than all others. */
static void put_and_get(struct spill *spill, uint64_t seed)
{
    static char bytes[1 << 20];
    static struct spill_ref refs[PIECES];
    struct strbuf got = {0};
    struct random in = {seed};
    for (int i = 0; i < PIECES; i++) {
        size_t n = fill(&in, bytes, i == PIECES / 2 ? sizeof bytes : PIECE_MAX);
        refs[i] = spill_put(spill, (struct str){bytes, n});
        assert_true(spill_get(spill, refs[i], &got));
        assert_int_equal(got.n, n);
        assert_memory_equal(got.text, bytes, n);
    }
    struct random out = {seed};
    for (int i = 0; i < PIECES; i++) {
        size_t n = fill(&out, bytes, i == PIECES / 2 ? sizeof bytes : PIECE_MAX);
        assert_true(spill_get(spill, refs[i], &got));
        assert_int_equal(got.n, n);
        assert_memory_equal(got.text, bytes, n);
    }
    strbuf_release(&got);
}

static void all_comes_back(void **state)
{
    (void)state;
    struct random random = random_new();
    static const char *const folders[] = {"/tmp", NULL, "/dev/null/nowhere", "/proc"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        struct spill *spill = spill_new(folders[i]);
        put_and_get(spill, random_next(&random));
        spill_free(spill);
    }
    spill_free(NULL);
}

static void nothing_is_left_in_the_folder(void **state)
{
    (void)state;
    char folder[TEMPORARY_MAX];
    temporary(folder, "test-spill");
    assert_non_null(mkdtemp(folder));
    struct spill *spill = spill_new(folder);
    put_and_get(spill, 1);
    assert_int_equal(rmdir(folder), 0); /* it is empty while the file is used */
    put_and_get(spill, 2);
    spill_free(spill);
}

/* As where a disk is full: files may have 600 kB. */
static void what_the_disk_does_not_take_stays_in_memory(void **state)
{
    (void)state;
    struct rlimit before, small = {600000, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct spill *spill = spill_new("/tmp");
    put_and_get(spill, 3);
    spill_free(spill);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_back),
        cmocka_unit_test(nothing_is_left_in_the_folder),
        cmocka_unit_test(what_the_disk_does_not_take_stays_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
