/* Live ingest by scraping: an hour of a fleet's exporter pages to rows of the ledger on disk
 * (bench/ingest.h), without the network; and with it, what targets cost of a core and of memory.
 *
 *     bench_scrape [GPUS [PART]]                        decoded, kept, booked, whole (all of them)
 *     bench_scrape network [TARGETS [SECONDS [INTERVAL_MS]]]
 *     bench_scrape serve                                such pages for peers, until the input ends;
 *                                                       prints HOST:PORT
 *
 * A page has 8 GPUs and the ten metrics, with HELP and TYPE lines, in dcgm-exporter's order. Over
 * the network a child serves such pages under any path, keep-alive, as fast as it can; the parent
 * scrapes TARGETS of them (2,000; each with its own UUIDs, by its path) every INTERVAL_MS (15,000)
 * for SECONDS (30) after a first round, into a journal. Printed are CPU of a core and resident
 * memory a GPU of the scraping process alone. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ingest.h"
#include "source/scrape_impl.h"

#define PAGE_MAX ((size_t)64 << 10)

/* The page of a node. */
static size_t make_page(char *page, struct ingest *ingest, unsigned node, size_t step)
{
    size_t n = 0;
    for (size_t metric = 0; metric < INGEST_METRICS; metric++) {
        const char *name = ingest_metrics[metric];
        n += (size_t)sprintf(page + n, "# HELP %s A field of DCGM.\n# TYPE %s gauge\n", name, name);
        for (int gpu = 0; gpu < INGEST_NODE_GPUS; gpu++)
            n += (size_t)sprintf(
                page + n,
                "%s{gpu=\"%d\",UUID=\"GPU-%08x-0000-4000-8000-00000000000%d\",pci_bus_id="
                "\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\","
                "Hostname=\"gpu-node-%u\",DCGM_FI_DRIVER_VERSION=\"535.129.03\",container=\"main\","
                "namespace=\"research\",pod=\"train-%u\"} %.*f\n",
                name, gpu, node * 2654435761u, gpu, gpu + 16, gpu, node, node,
                metric == 7                ? 3
                : metric > 0 && metric < 5 ? 6
                                           : 0,
                ingest_value(ingest, metric, step));
    }
    return n;
}

/* ---- the child: a page for each request */

static void answer(int fd)
{
    static char page[PAGE_MAX], head[200], ask[4096];
    static struct ingest ingest;
    static size_t turn;
    ssize_t got = recv(fd, ask, sizeof ask - 1, 0);
    if (got <= 0) {
        close(fd);
        return;
    }
    ask[got] = 0;
    const char *slash = strstr(ask, "/node/");
    size_t n = make_page(page, &ingest, slash ? (unsigned)atoi(slash + 6) : 0, turn++);
    int head_n = snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          n);
    send(fd, head, (size_t)head_n, MSG_NOSIGNAL | MSG_MORE);
    for (size_t sent = 0; sent < n;) {
        ssize_t more = send(fd, page + sent, n - sent, MSG_NOSIGNAL);
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (more > 0)
            sent += (size_t)more;
        else if (poll(&room, 1, 1000) <= 0)
            return;
    }
}

static _Noreturn void serve(int listener)
{
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = listener}};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(set, events, 64, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd != listener) {
                answer(events[i].data.fd);
                continue;
            }
            int fd = accept(listener, NULL, NULL), on = 1;
            if (fd < 0)
                continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            event.data.fd = fd;
            epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
        }
    }
}

/* ---- the parent */

static double cpu_s(void)
{
    return measure_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static void set_targets(struct targets *targets, unsigned n, int port)
{
    struct target_found *found = mem_zalloc(n, sizeof *found);
    struct label(*labels)[3] = mem_zalloc(n, sizeof *labels);
    struct arena arena = {0};
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    for (unsigned i = 0; i < n; i++) {
        struct strbuf text = {0};
        strbuf_addf(&text, "/node/%u", i);
        labels[i][0] = (struct label){STR("__metrics_path__"), str_keep(&arena, strbuf_str(&text))};
        labels[i][1] = (struct label){STR("instance"), labels[i][0].value};
        labels[i][2] = (struct label){STR("pod"), STR("dcgm-exporter")};
        found[i] = (struct target_found){str_of(address), labels[i], 3};
        strbuf_release(&text);
    }
    targets_set(targets, "dcgm", "bench", found, n, NULL);
    arena_release(&arena);
    free(labels);
    free(found);
}

static void measure_scraper(unsigned n, int seconds, time_ms interval, int port, char *folder)
{
    struct live *live = live_new();
    struct journal_options options = {.folder = folder, .live = live};
    struct scrape_job job = {.name = "dcgm", .interval_ms = interval};
    struct journal *journal;
    struct targets *targets;
    struct scraper *scraper;
    long before = ingest_resident_kib();
    if (journal_open(&options, &journal, NULL) != ERR_OK ||
        targets_new(&job, 1, &targets, NULL) != ERR_OK)
        exit(1);
    set_targets(targets, n, port);
    struct scrape_options scrape = {.targets = targets, .journal = journal};
    if (scraper_start(&scrape, &scraper, NULL) != ERR_OK)
        exit(1);
    usleep((useconds_t)(interval + 2000) * 1000);
    struct scrape_stats a, b;
    scraper_stats(scraper, &a);
    double cpu = cpu_s(), from = measure_clock(CLOCK_MONOTONIC);
    sleep((unsigned)seconds);
    double wall = measure_clock(CLOCK_MONOTONIC) - from;
    cpu = cpu_s() - cpu;
    scraper_stats(scraper, &b);
    double scrapes = (double)(b.scrapes - a.scrapes), samples = (double)(b.samples - a.samples);
    printf("%u targets x %d GPUs each %.0f s: %.0f scrapes, %llu failed, %llu skipped, "
           "%.2f M samples kept\n",
           n, INGEST_NODE_GPUS, (double)interval / 1000, scrapes,
           (unsigned long long)(b.failures - a.failures),
           (unsigned long long)(b.skipped - a.skipped), samples / 1e6);
    printf("  CPU      %6.1f %% of a core, %.0f us a scrape of %.0f kB\n", 100 * cpu / wall,
           1e6 * cpu / scrapes, (double)(b.bytes - a.bytes) / scrapes / 1000);
    printf("  memory   %6.2f KiB a GPU of %ld KiB resident; of it layouts %.2f\n",
           (double)(ingest_resident_kib() - before) / n / INGEST_NODE_GPUS, ingest_resident_kib(),
           (double)b.memory_bytes / 1024 / n / INGEST_NODE_GPUS);
    scraper_stop(scraper);
    targets_free(targets);
    journal_close(journal);
    live_free(live);
}

/* A child that serves; its port. */
static pid_t start_server(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    struct rlimit files = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &files);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        exit(1);
    *ret_port = ntohs(address.sin_port);
    pid_t child = fork();
    if (child == 0)
        serve(listener);
    close(listener);
    return child;
}

static void end_server(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static int over_network(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
    int seconds = argc > 2 ? atoi(argv[2]) : 30, port;
    time_ms interval = argc > 3 ? atoi(argv[3]) : 15000;
    char folder[] = "/tmp/bench-scrape-XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    pid_t child = start_server(&port);
    measure_scraper(n, seconds, interval, port, folder);
    end_server(child);
    ingest_empty(folder);
    rmdir(folder);
    return 0;
}

static int serve_peers(void)
{
    int port;
    pid_t child = start_server(&port);
    printf("127.0.0.1:%d\n", port);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    end_server(child);
    return 0;
}

/* ---- without the network: bodies as they come from it */

struct bench {
    struct ingest ingest;
    size_t nodes;
    struct strbuf *pages; /* of a step, and the next */
    struct targets *targets;
    const struct target_list *list;
};

static void bench_begin(struct bench *bench, size_t gpus)
{
    char page[PAGE_MAX];
    struct scrape_job job = {.name = "dcgm", .interval_ms = INGEST_STEP_MS};
    ingest_begin(&bench->ingest, gpus);
    bench->nodes = (gpus + INGEST_NODE_GPUS - 1) / INGEST_NODE_GPUS;
    bench->pages = mem_zalloc(bench->nodes * INGEST_STEPS, sizeof *bench->pages);
    for (size_t i = 0; i < bench->nodes * INGEST_STEPS; i++) {
        size_t n = make_page(page, &bench->ingest, (unsigned)(i % bench->nodes), i / bench->nodes);
        strbuf_add(&bench->pages[i], (struct str){page, n});
    }
    if (targets_new(&job, 1, &bench->targets, NULL) != ERR_OK)
        exit(1);
    set_targets(bench->targets, (unsigned)bench->nodes, 9400);
    bench->list = targets_list(bench->targets);
}

static void bench_end(struct bench *bench)
{
    for (size_t i = 0; i < bench->nodes * INGEST_STEPS; i++)
        strbuf_release(&bench->pages[i]);
    free(bench->pages);
    target_list_release(bench->list);
    targets_free(bench->targets);
    ingest_end(&bench->ingest);
}

static uint32_t any_series(void *context, const struct label *labels, size_t n)
{
    (void)labels;
    (void)n;
    return ++*(uint32_t *)context;
}

static void no_samples(void *context, const uint32_t *id, const time_ms *t, const double *v,
                       size_t n)
{
    (void)context;
    (void)id;
    (void)t;
    (void)v;
    (void)n;
}

static void decode_all(void *context)
{
    struct bench *bench = context;
    uint32_t series = 0;
    struct promtext_sink sink = {.context = &series, .series = any_series, .samples = no_samples};
    struct promtext *text = promtext_new(PROMTEXT_AUTO, &sink);
    struct promtext_layout **layouts = mem_zalloc(bench->nodes, sizeof *layouts);
    for (size_t i = 0; i < bench->nodes * INGEST_STEPS; i++) {
        size_t node = i % bench->nodes;
        if (!layouts[node])
            layouts[node] = promtext_layout_new();
        promtext_use(text, layouts[node]);
        promtext_begin(text, (time_ms)i);
        promtext_feed(text, strbuf_str(&bench->pages[i]));
        promtext_finish(text);
        promtext_use(text, NULL);
    }
    for (size_t i = 0; i < bench->nodes; i++)
        promtext_layout_free(layouts[i]);
    free(layouts);
    promtext_free(text);
}

/* What the scraper's threads do with bodies, faster than any schedule. */
static void scrape_all(struct bench *bench)
{
    struct scraper scraper = {.journal = bench->ingest.journal, .sync_ms = SCRAPE_SYNC_MS};
    struct place **places = mem_zalloc(bench->nodes, sizeof(struct place *));
    pthread_mutex_init(&scraper.lock, NULL);
    scraper.text = place_decoder_new(&scraper);
    if (writer_start(&scraper, NULL) != ERR_OK)
        exit(1);
    for (size_t i = 0; i < bench->nodes * INGEST_STEPS; i++) {
        size_t node = i % bench->nodes;
        time_ms step = (time_ms)(i / bench->nodes), phase = (time_ms)(node * 25 / bench->nodes);
        if (!places[node])
            places[node] = place_new(&bench->list->targets[node]);
        while (!writer_batch(&scraper)) { /* the disk is behind */
            usleep(200);
            writer_hand_over(&scraper, false);
        }
        place_take(&scraper, places[node], strbuf_str(&bench->pages[i]), true,
                   bench->ingest.hour.from + step * INGEST_STEP_MS + phase * 1000);
    }
    writer_hand_over(&scraper, true);
    writer_stop(&scraper);
    for (size_t i = 0; i < bench->nodes; i++)
        place_free(places[i]);
    free(places);
    promtext_free(scraper.text);
    pthread_mutex_destroy(&scraper.lock);
}

static void keep(void *context)
{
    struct bench *bench = context;
    ingest_open(&bench->ingest, true);
    scrape_all(bench);
    ingest_close(&bench->ingest);
}

static void keep_and_book(void *context)
{
    struct bench *bench = context;
    ingest_open(&bench->ingest, true);
    scrape_all(bench);
    ingest_book(&bench->ingest);
    ingest_close(&bench->ingest);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "network") == 0)
        return over_network(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return serve_peers();
    struct bench bench = {0};
    const char *part = argc > 2 ? argv[2] : "decoded kept booked whole";
    bench_begin(&bench, argc > 1 ? strtoull(argv[1], NULL, 10) : 1000);
    double n = (double)(bench.nodes * INGEST_NODE_GPUS * INGEST_METRICS * INGEST_STEPS);
    if (strstr(part, "decoded"))
        measure("scrapes decoded", "sample", n, decode_all, &bench);
    if (strstr(part, "kept"))
        measure("scrapes kept", "sample", n, keep, &bench);
    else if (strstr(part, "booked"))
        keep(&bench);
    if (strstr(part, "booked"))
        measure("an hour of scrapes booked", "sample", n, ingest_book_alone, &bench.ingest);
    if (strstr(part, "whole"))
        measure("scrapes kept and booked", "sample", n, keep_and_book, &bench);
    fprintf(stderr, "%.2f bytes a sample in the journal, %llu samples to %llu rows\n",
            bench.ingest.journal_bytes, (unsigned long long)bench.ingest.samples,
            (unsigned long long)bench.ingest.rows);
    bench_end(&bench);
    return 0;
}
