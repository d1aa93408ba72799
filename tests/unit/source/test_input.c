/* Bytes of files, plain and packed. */
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "../../lib/unit.h"
#include "source/input.h"

#define LONG_BYTES ((size_t)3 << 20) /* more than any buffer inside */

struct fixture {
    char path[TEMPORARY_MAX];
    char *text; /* LONG_BYTES, of which no two stretches are alike */
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    uint32_t x = 1;
    temporary(f->path, "input");
    close(mkstemp(f->path));
    f->text = malloc(LONG_BYTES);
    for (size_t i = 0; i < LONG_BYTES; i++)
        f->text[i] = (char)((x = x * 1664525u + 1013904223u) >> 26);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    free(f->text);
    free(f);
    return 0;
}

static void write_file(struct fixture *f, const void *bytes, size_t n)
{
    FILE *file = fopen(f->path, "wb");
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* Reads all in pieces of `piece`; the outcome, and in *ret_got how much of text came rightly. */
static enum err read_all(struct fixture *f, size_t piece, size_t *ret_got)
{
    struct input *in;
    enum err rc = input_open(f->path, &in, &f->err);
    if (rc)
        return rc;
    char *buf = malloc(piece);
    size_t n = 1, got = 0;
    while (rc == ERR_OK && n > 0) {
        rc = input_read(in, buf, piece, &n, &f->err);
        if (rc)
            break;
        assert_true(n <= piece && got + n <= LONG_BYTES);
        assert_memory_equal(buf, f->text + got, n);
        got += n;
    }
    free(buf);
    input_close(in);
    *ret_got = got;
    return rc;
}

static void expect_all(struct fixture *f, size_t wanted)
{
    size_t got;
    for (size_t piece = 1000; piece < LONG_BYTES; piece *= 37) {
        enum err rc = read_all(f, piece, &got);
        if (rc)
            fail_msg("%s", f->err.text);
        assert_int_equal(got, wanted);
    }
}

static void plain_bytes_come_as_they_lie(void **state)
{
    struct fixture *f = *state;
    write_file(f, f->text, LONG_BYTES);
    expect_all(f, LONG_BYTES);
}

static void short_and_empty_files_are_files(void **state)
{
    struct fixture *f = *state;
    for (size_t n = 0; n <= 4; n++) {
        write_file(f, f->text, n);
        expect_all(f, n);
    }
}

static void gzip_members_follow_each_other(void **state)
{
    struct fixture *f = *state;
    gzFile gz = gzopen(f->path, "wb1");
    gzwrite(gz, f->text, (unsigned)(LONG_BYTES / 2));
    gzclose(gz);
    gz = gzopen(f->path, "ab1");
    gzwrite(gz, f->text + LONG_BYTES / 2, (unsigned)(LONG_BYTES / 2));
    gzclose(gz);
    expect_all(f, LONG_BYTES);
}

static size_t pack(struct fixture *f, char *packed, size_t room)
{
    size_t n = ZSTD_compress(packed, room, f->text, LONG_BYTES / 2, 1);
    return n + ZSTD_compress(packed + n, room - n, f->text + LONG_BYTES / 2, LONG_BYTES / 2, 1);
}

static void zstd_frames_follow_each_other(void **state)
{
    struct fixture *f = *state;
    char *packed = malloc(2 * LONG_BYTES);
    write_file(f, packed, pack(f, packed, 2 * LONG_BYTES));
    expect_all(f, LONG_BYTES);
    free(packed);
}

static void what_is_cut_off_gives_its_beginning_and_an_error(void **state)
{
    struct fixture *f = *state;
    char *packed = malloc(2 * LONG_BYTES);
    size_t n = pack(f, packed, 2 * LONG_BYTES), got;
    write_file(f, packed, n - 1000);
    assert_int_equal(read_all(f, 65536, &got), ERR_PARSE);
    assert_non_null(strstr(f->err.text, "cut off"));
    assert_non_null(strstr(f->err.text, f->path));
    assert_true(got >= LONG_BYTES / 2);
    gzFile gz = gzopen(f->path, "wb1");
    gzwrite(gz, f->text, (unsigned)LONG_BYTES);
    gzclose(gz);
    FILE *file = fopen(f->path, "rb");
    n = fread(packed, 1, 2 * LONG_BYTES, file);
    fclose(file);
    write_file(f, packed, n / 2);
    assert_int_equal(read_all(f, 65536, &got), ERR_PARSE);
    assert_non_null(strstr(f->err.text, "cut off"));
    assert_true(got > LONG_BYTES / 4);
    free(packed);
}

static void broken_packing_is_an_error_and_no_crash(void **state)
{
    struct fixture *f = *state;
    static const char gzip[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03 this is no deflate";
    static const char zstd[] = "\x28\xb5\x2f\xfd this is no frame of anything at all";
    size_t got;
    write_file(f, gzip, sizeof gzip - 1);
    assert_int_equal(read_all(f, 4096, &got), ERR_PARSE);
    assert_non_null(strstr(f->err.text, "gzip"));
    write_file(f, zstd, sizeof zstd - 1);
    assert_int_equal(read_all(f, 4096, &got), ERR_PARSE);
    assert_non_null(strstr(f->err.text, "zstd"));
}

static void a_missing_file_is_named(void **state)
{
    struct fixture *f = *state;
    size_t got;
    unlink(f->path);
    assert_int_equal(read_all(f, 4096, &got), ERR_IO);
    assert_non_null(strstr(f->err.text, f->path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(plain_bytes_come_as_they_lie),
        TEST(short_and_empty_files_are_files),
        TEST(gzip_members_follow_each_other),
        TEST(zstd_frames_follow_each_other),
        TEST(what_is_cut_off_gives_its_beginning_and_an_error),
        TEST(broken_packing_is_an_error_and_no_crash),
        TEST(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
