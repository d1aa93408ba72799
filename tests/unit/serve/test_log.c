/* Lines of the log: what the world sends cannot forge one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/log.h"
#include "serve/notify.h"

static int ends[2];
static char line[8192];

static int open_pipe(void **state)
{
    (void)state;
    return pipe(ends);
}
static int close_pipe(void **state)
{
    (void)state;
    return close(ends[0]) | close(ends[1]);
}

/* What was written, without the time in front. */
static const char *written(void)
{
    ssize_t n = read(ends[0], line, sizeof line - 1);
    assert_true(n > 0);
    line[n] = 0;
    const char *rest = strstr(line, "level");
    assert_non_null(rest);
    return rest;
}

static void fields_are_logfmt(void **state)
{
    (void)state;
    struct log log = {.fd = ends[1], .level = LOG_INFO};
    log_line(&log, LOG_WARN, "cannot read a source", log_text("cluster", STR("prod")),
             log_text("error", STR("it says \"no\"")), log_number("again_in_s", 8));
    assert_string_equal(written(), "level=warn msg=\"cannot read a source\" cluster=prod "
                                   "error=\"it says \\\"no\\\"\" again_in_s=8\n");
    assert_memory_equal(line, "ts=20", 5);
}

static void fields_are_json(void **state)
{
    (void)state;
    struct log log = {.fd = ends[1], .level = LOG_INFO, .format = LOG_JSON};
    log_line(&log, LOG_ERROR, "booked", log_text("cluster", STR("")), log_number("rows", -1));
    assert_string_equal(written(),
                        "level\":\"error\",\"msg\":\"booked\",\"cluster\":\"\",\"rows\":-1}\n");
    assert_memory_equal(line, "{\"ts\":\"20", 9);
}

static void a_text_cannot_forge_a_line(void **state)
{
    (void)state;
    struct log log = {.fd = ends[1], .level = LOG_INFO};
    log_line(&log, LOG_INFO, "refused", log_text("path", STR("/x\nts=1 level=info msg=fine")),
             log_text("peer", STR("a=b")), log_text("esc", STR("\x1b[2J")));
    assert_string_equal(written(), "level=info msg=refused path=\"/x\\nts=1 level=info msg=fine\" "
                                   "peer=\"a=b\" esc=\"\\u001b[2J\"\n");
}

static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    struct log log = {.fd = ends[1], .level = LOG_INFO};
    char text[LOG_TEXT_MAX + 100];
    memset(text, 'a', sizeof text);
    memcpy(text + LOG_TEXT_MAX - 1, "\xc3\xa9", 2); /* the cap is inside of it */
    log_line(&log, LOG_INFO, "m", log_text("t", (struct str){text, sizeof text}));
    const char *got = strstr(written(), "t=\"");
    assert_non_null(got);
    assert_int_equal(strspn(got + 3, "a"), LOG_TEXT_MAX - 1);
    assert_string_equal(got + 3 + LOG_TEXT_MAX - 1, "…\"\n");
}

static void lines_below_the_level_are_left_out(void **state)
{
    (void)state;
    struct log log = {.fd = ends[1], .level = LOG_ERROR};
    log_say(&log, LOG_WARN, "quiet");
    log_say(&log, LOG_ERROR, "loud");
    assert_string_equal(written(), "level=error msg=loud\n");
}

static void words_are_known(void **state)
{
    (void)state;
    enum log_level level;
    enum log_format format;
    assert_true(log_level_of(STR("debug"), &level) && level == LOG_DEBUG);
    assert_false(log_level_of(STR("DEBUG"), &level));
    assert_true(log_format_of(STR("json"), &format) && format == LOG_JSON);
    assert_false(log_format_of(STR("xml"), &format));
}

/* ---- systemd ---- */

static int listen_at(const char *path, char first)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    address.sun_path[0] = first;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, first ? sizeof address : size), 0);
    return fd;
}

static void systemd_hears_by_file_and_by_abstract_name(void **state)
{
    (void)state;
    char path[64], text[64] = "";
    for (int abstract = 0; abstract < 2; abstract++) {
        snprintf(path, sizeof path, "%s/gputally-notify-%d", abstract ? "@" : "/tmp", getpid());
        int fd = listen_at(path, abstract ? 0 : '/');
        setenv("NOTIFY_SOCKET", path, 1);
        assert_true(notify_send("READY=1"));
        ssize_t n = recv(fd, text, sizeof text - 1, 0);
        assert_int_equal(n, 7);
        assert_memory_equal(text, "READY=1", 7);
        close(fd);
        unlink(path);
        assert_false(notify_send("READY=1")); /* nobody listens any more */
    }
    setenv("NOTIFY_SOCKET", "relative", 1);
    assert_false(notify_send("READY=1"));
    unsetenv("NOTIFY_SOCKET");
    assert_false(notify_send("READY=1"));
}

static void the_watchdog_is_for_this_process(void **state)
{
    (void)state;
    char pid[24];
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(notify_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "3000000", 1);
    assert_int_equal(notify_watchdog_ms(), 3000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(notify_watchdog_ms(), 0);
    snprintf(pid, sizeof pid, "%d", getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(notify_watchdog_ms(), 3000);
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(notify_watchdog_ms(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pipe, close_pipe)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fields_are_logfmt),
        TEST(fields_are_json),
        TEST(a_text_cannot_forge_a_line),
        TEST(a_long_text_is_cut_between_characters),
        TEST(lines_below_the_level_are_left_out),
        TEST(words_are_known),
        TEST(systemd_hears_by_file_and_by_abstract_name),
        TEST(the_watchdog_is_for_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
