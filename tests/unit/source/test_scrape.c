/* The scraper against a small server in this process: what a good, a changing, a broken and a
 * vanished target leave in the journal. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "../../lib/journal_lab.h"
#include "source/scrape.h"

/* ---- a server: one page, one status, for all who ask */

struct server {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t lock;
    char page[4096];
    int status;
    size_t cut; /* bytes of the page that are not sent */
    atomic_int requests;
    atomic_bool ending;
};

static void answer(struct server *server, int fd)
{
    char ask[4096], out[6000];
    ssize_t got;
    struct timeval patience = {0, 100000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (!atomic_load(&server->ending)) {
        got = recv(fd, ask, sizeof ask, 0);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            continue;
        if (got <= 0)
            break;
        pthread_mutex_lock(&server->lock);
        size_t n = strlen(server->page);
        int head =
            snprintf(out, sizeof out,
                     "HTTP/1.1 %d X\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n",
                     server->status, n);
        memcpy(out + head, server->page, n);
        size_t cut = server->cut;
        pthread_mutex_unlock(&server->lock);
        send(fd, out, (size_t)head + n - cut, MSG_NOSIGNAL);
        atomic_fetch_add(&server->requests, 1);
        if (cut)
            break;
    }
    close(fd);
}

static void *run_server(void *context)
{
    struct server *server = context;
    while (!atomic_load(&server->ending)) {
        int fd = accept(server->listener, NULL, NULL);
        if (fd >= 0)
            answer(server, fd);
    }
    return NULL;
}

static void server_begin(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    *server = (struct server){.status = 200};
    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {0, 100000};
    setsockopt(server->listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, run_server, server), 0);
}

static void server_end(struct server *server)
{
    atomic_store(&server->ending, true);
    pthread_join(server->thread, NULL);
    close(server->listener);
    pthread_mutex_destroy(&server->lock);
}

/* Serve this from now on, and wait until it was scraped n times. */
static void serve(struct server *server, const char *page, int status, size_t cut, int n)
{
    pthread_mutex_lock(&server->lock);
    snprintf(server->page, sizeof server->page, "%s", page);
    server->status = status;
    server->cut = cut;
    pthread_mutex_unlock(&server->lock);
    int from = atomic_load(&server->requests);
    for (int i = 0; i < 2000 && atomic_load(&server->requests) < from + n; i++)
        usleep(5000);
    assert_true(atomic_load(&server->requests) >= from + n);
}

/* ---- what the journal has */

#define NAMES 32
struct seen {
    char *names[NAMES]; /* name{pod,node} */
    size_t samples[NAMES], stale[NAMES];
    double last[NAMES];
    size_t n;
};

static uint32_t on_series(void *context, const struct label *labels, size_t n)
{
    struct seen *seen = context;
    struct strbuf text = {0};
    static const char *const shown[] = {
        "__name__", "UUID", "pod", "namespace", "node", "instance", "exported_instance", "job"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        strbuf_addf(&text, "%s%.*s", i ? "|" : "",
                    STR_ARG(labels_get(labels, n, str_of(shown[i]))));
    seen->names[seen->n] = text.text;
    return (uint32_t)seen->n++;
}

static void on_samples(void *context, uint32_t number, const time_ms *t, const double *v, size_t n)
{
    struct seen *seen = context;
    (void)t;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        seen->samples[number]++;
        seen->stale[number] += bits == UINT64_C(0x7ff0000000000002);
        seen->last[number] = v[i];
    }
}

static size_t find(const struct seen *seen, const char *name)
{
    for (size_t i = 0; i < seen->n; i++)
        if (strcmp(seen->names[i], name) == 0)
            return i;
    for (size_t i = 0; i < seen->n; i++)
        print_message("%s\n", seen->names[i]);
    fail_msg("%s is not in the journal", name);
    return 0;
}

static struct seen read_all(struct journal *journal)
{
    struct seen seen = {0};
    struct journal_read read = {.kube = {TIME_MIN, TIME_MAX},
                                .gpu = {TIME_MIN, TIME_MAX},
                                .sink = {&seen, on_series, on_samples}};
    assert_int_equal(journal_sync(journal, NULL), ERR_OK);
    assert_int_equal(journal_read(journal, &read, NULL, NULL), ERR_OK);
    return seen;
}

static void seen_release(struct seen *seen)
{
    for (size_t i = 0; i < seen->n; i++)
        free(seen->names[i]);
}

/* ---- a laboratory */

struct scraping {
    struct lab lab;
    struct server server;
    struct journal *journal;
    struct live *live;
    struct targets *targets;
    struct scraper *scraper;
};

static void scraping_begin(struct scraping *scraping, size_t body_max)
{
    const struct label labels[] = {{STR("instance"), STR("gpu-1")},
                                   {STR("node"), STR("gpu-1")},
                                   {STR("pod"), STR("dcgm-x")},
                                   {STR("namespace"), STR("gpu-operator")}};
    struct scrape_job job = {
        .name = "dcgm", .interval_ms = 1000, .timeout_ms = 500, .body_max = body_max};
    char address[32];
    lab_begin(&scraping->lab);
    server_begin(&scraping->server);
    scraping->live = live_new();
    scraping->journal = lab_open(&scraping->lab, (struct journal_options){.live = scraping->live});
    assert_int_equal(targets_new(&job, 1, &scraping->targets, NULL), ERR_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", scraping->server.port);
    struct target_found found = {str_of(address), labels, 4};
    assert_int_equal(targets_set(scraping->targets, "dcgm", "test", &found, 1, NULL), ERR_OK);
    /* Twenty scrapes a second. */
    struct scrape_options options = {
        .targets = scraping->targets, .journal = scraping->journal, .sync_ms = 50, .speed = 20};
    assert_int_equal(scraper_start(&options, &scraping->scraper, NULL), ERR_OK);
}

static struct seen scraping_end(struct scraping *scraping)
{
    scraper_stop(scraping->scraper);
    struct seen seen = read_all(scraping->journal);
    targets_free(scraping->targets);
    journal_close(scraping->journal);
    live_free(scraping->live);
    server_end(&scraping->server);
    lab_end(&scraping->lab);
    return seen;
}

#define GPU0 "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-0\",pod=\"a\",instance=\"x\"} "
#define GPU1 "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\"} "
#define SEEN_GPU0 "DCGM_FI_DEV_GPU_UTIL|GPU-0|a||gpu-1|gpu-1|x|dcgm"
#define SEEN_GPU1 "DCGM_FI_DEV_GPU_UTIL|GPU-1|||gpu-1|gpu-1||dcgm"
#define SEEN_UP "up||dcgm-x|gpu-operator|gpu-1|gpu-1||dcgm"

static void series_come_and_go_as_in_prometheus(void **state)
{
    (void)state;
    struct scraping scraping;
    scraping_begin(&scraping, 0);
    serve(&scraping.server, "# TYPE x gauge\n" GPU0 "40\n" GPU1 "41\ngo_goroutines 7\nbad line\n",
          200, 0, 4);
    serve(&scraping.server, GPU1 "42\n", 200, 0, 4); /* GPU-0 is gone */
    size_t n;
    struct scrape_state *states = scraper_states(scraping.scraper, &n);
    assert_int_equal(n, 1);
    assert_true(states[0].up);
    assert_string_equal(states[0].job, "dcgm");
    assert_string_equal(states[0].instance, "gpu-1");
    assert_string_equal(states[0].error, "");
    free(states);
    struct scrape_stats stats;
    scraper_stats(scraping.scraper, &stats);
    assert_int_equal(stats.up, 1);
    assert_true(stats.ignored >= 3 && stats.bad_lines >= 3);
    struct seen seen = scraping_end(&scraping);
    size_t gpu0 = find(&seen, SEEN_GPU0), gpu1 = find(&seen, SEEN_GPU1), up = find(&seen, SEEN_UP);
    assert_int_equal(seen.n, 3);
    assert_int_equal(seen.stale[gpu0], 1);
    assert_true(seen.samples[gpu0] >= 4);
    assert_int_equal(seen.stale[gpu1], 0);
    assert_true(seen.last[gpu1] == 42);
    assert_true(seen.samples[gpu1] >= 7 && seen.samples[gpu1] == seen.samples[up]);
    assert_true(seen.last[up] == 1);
    seen_release(&seen);
}

static void an_answer_that_is_none_makes_all_stale_and_up_0(void **state)
{
    (void)state;
    static const struct {
        int status;
        size_t cut;
        const char *says;
    } cases[] = {{500, 0, "HTTP status 500"}, {200, 5, "transfer closed"}, {302, 0, "302"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scraping scraping;
        size_t n;
        scraping_begin(&scraping, 0);
        serve(&scraping.server, GPU1 "41\n", 200, 0, 3);
        serve(&scraping.server, GPU1 "99\n", cases[i].status, cases[i].cut, 4);
        struct scrape_state *states = scraper_states(scraping.scraper, &n);
        assert_false(states[0].up);
        assert_non_null(strstr(states[0].error, cases[i].says));
        assert_true(states[0].failures >= 2);
        free(states);
        struct seen seen = scraping_end(&scraping);
        size_t gpu1 = find(&seen, SEEN_GPU1), up = find(&seen, SEEN_UP);
        assert_int_equal(seen.stale[gpu1], 1); /* once */
        assert_true(seen.last[gpu1] != 99);
        assert_true(seen.last[up] == 0);
        seen_release(&seen);
    }
}

static void a_body_over_the_limit_is_no_answer(void **state)
{
    (void)state;
    struct scraping scraping;
    size_t n;
    scraping_begin(&scraping, 100);
    serve(&scraping.server, GPU0 "1\n" GPU1 "41\n" GPU1 "41\n", 200, 0, 3);
    struct scrape_state *states = scraper_states(scraping.scraper, &n);
    assert_non_null(strstr(states[0].error, "longer than 100 bytes"));
    free(states);
    struct seen seen = scraping_end(&scraping);
    assert_int_equal(seen.n, 1); /* up */
    seen_release(&seen);
}

static void a_target_that_is_gone_ends_and_another_begins(void **state)
{
    (void)state;
    struct scraping scraping;
    struct scrape_stats stats;
    scraping_begin(&scraping, 0);
    serve(&scraping.server, GPU1 "41\n", 200, 0, 3);
    assert_int_equal(targets_set(scraping.targets, "dcgm", "test", NULL, 0, NULL), ERR_OK);
    for (int i = 0; i < 1000; i++) {
        scraper_stats(scraping.scraper, &stats);
        if (stats.targets == 0)
            break;
        usleep(5000);
    }
    assert_int_equal(stats.targets, 0);
    struct seen seen = scraping_end(&scraping);
    assert_int_equal(seen.stale[find(&seen, SEEN_GPU1)], 1);
    assert_int_equal(seen.stale[find(&seen, SEEN_UP)], 1);
    seen_release(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_come_and_go_as_in_prometheus),
        cmocka_unit_test(an_answer_that_is_none_makes_all_stale_and_up_0),
        cmocka_unit_test(a_body_over_the_limit_is_no_answer),
        cmocka_unit_test(a_target_that_is_gone_ends_and_another_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
