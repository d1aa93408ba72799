/* Scraping a fleet: what targets cost of a core and of memory.
 *
 *     bench_scrape [TARGETS] [SECONDS] [INTERVAL_MS]
 *
 * A child serves the page of a node with 8 GPUs under any path, keep-alive, as fast as it can; the
 * parent scrapes TARGETS of them (2,000; each with its own UUIDs, by its path) every INTERVAL_MS
 * (15,000) for SECONDS (30) after a first round, into a journal. Prints CPU of a core and resident
 * memory a GPU of the scraping process alone. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "measure.h"
#include "source/scrape.h"

#define GPUS 8
#define FAMILIES 20
#define PAGE_MAX ((size_t)128 << 10)

/* ---- the child: a page for each request */

static size_t make_page(char *page, unsigned node, unsigned turn)
{
    size_t n = 0;
    for (int family = 0; family < FAMILIES; family++) {
        static const char *const names[FAMILIES] = {"DCGM_FI_DEV_GPU_UTIL",
                                                    "DCGM_FI_DEV_MEM_COPY_UTIL",
                                                    "DCGM_FI_DEV_FB_USED",
                                                    "DCGM_FI_DEV_FB_FREE",
                                                    "DCGM_FI_DEV_POWER_USAGE",
                                                    "DCGM_FI_DEV_XID_ERRORS",
                                                    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                                                    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                                                    "DCGM_FI_PROF_DRAM_ACTIVE",
                                                    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
                                                    "DCGM_FI_DEV_SM_CLOCK",
                                                    "DCGM_FI_DEV_MEM_CLOCK",
                                                    "DCGM_FI_DEV_MEMORY_TEMP",
                                                    "DCGM_FI_DEV_GPU_TEMP",
                                                    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
                                                    "DCGM_FI_DEV_ENC_UTIL",
                                                    "DCGM_FI_DEV_DEC_UTIL",
                                                    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
                                                    "DCGM_FI_PROF_PCIE_TX_BYTES",
                                                    "DCGM_FI_PROF_PCIE_RX_BYTES"};
        n += (size_t)sprintf(page + n, "# HELP %s A field of DCGM.\n# TYPE %s gauge\n",
                             names[family], names[family]);
        for (int gpu = 0; gpu < GPUS; gpu++)
            n += (size_t)sprintf(
                page + n,
                "%s{gpu=\"%d\",UUID=\"GPU-%08x-0000-4000-8000-00000000000%d\",pci_bus_id="
                "\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\","
                "Hostname=\"gpu-node-%u\",DCGM_FI_DRIVER_VERSION=\"535.129.03\",container=\"main\","
                "namespace=\"research\",pod=\"train-%u\"} %u.%u\n",
                names[family], gpu, node * 2654435761u, gpu, gpu + 16, gpu, node, node,
                (turn * 7 + (unsigned)gpu) % 100, turn % 1000);
    }
    return n;
}

static void answer(int fd)
{
    static char page[PAGE_MAX], head[200], ask[4096];
    static unsigned turn;
    ssize_t got = recv(fd, ask, sizeof ask - 1, 0);
    if (got <= 0) {
        close(fd);
        return;
    }
    ask[got] = 0;
    const char *slash = strstr(ask, "/node/");
    size_t n = make_page(page, slash ? (unsigned)atoi(slash + 6) : 0, turn++);
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

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

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

static void empty_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static void measure_scraper(unsigned n, int seconds, time_ms interval, int port, char *folder)
{
    struct live *live = live_new();
    struct journal_options options = {.folder = folder, .live = live};
    struct scrape_job job = {.name = "dcgm", .interval_ms = interval};
    struct journal *journal;
    struct targets *targets;
    struct scraper *scraper;
    long before = resident_kib();
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
           n, GPUS, (double)interval / 1000, scrapes, (unsigned long long)(b.failures - a.failures),
           (unsigned long long)(b.skipped - a.skipped), samples / 1e6);
    printf("  CPU      %6.1f %% of a core, %.0f us a scrape of %.0f kB\n", 100 * cpu / wall,
           1e6 * cpu / scrapes, (double)(b.bytes - a.bytes) / scrapes / 1000);
    printf("  memory   %6.2f KiB a GPU of %ld KiB resident; of it layouts %.2f\n",
           (double)(resident_kib() - before) / n / GPUS, resident_kib(),
           (double)b.memory_bytes / 1024 / n / GPUS);
    scraper_stop(scraper);
    targets_free(targets);
    journal_close(journal);
    live_free(live);
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
    int seconds = argc > 2 ? atoi(argv[2]) : 30;
    time_ms interval = argc > 3 ? atoi(argv[3]) : 15000;
    char folder[] = "/tmp/bench-scrape-XXXXXX";
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    struct rlimit files = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &files);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 || !mkdtemp(folder))
        return 1;
    pid_t child = fork();
    if (child == 0)
        serve(listener);
    close(listener);
    measure_scraper(n, seconds, interval, ntohs(address.sin_port), folder);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    empty_folder(folder);
    return 0;
}
