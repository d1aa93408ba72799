/* A server that has the demo's fleet, as a Prometheus has it: remote read in streamed XOR chunks of
 * 120 samples. It lets the whole report be measured at any size without loading hundreds of
 * millions of samples into a real server first; what it serves is made while it is asked for.
 *
 *     bench_fleet_server GPUS DAYS STEP_S [SEED]
 *
 * prints its URL and the window, serves until standard input ends, and then prints the CPU seconds
 * that serving took. Only what gputally asks is answered: names of metrics, counts, remote read. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cmd/demo_text.h"
#include "cmd/demo_writer.h"
#include "util/error.h"
#include "wire/crc32c.h"
#include "wire/protobuf.h"
#include "wire/snappy_block.h"

#define CHUNK_SAMPLES 120
#define FRAME_BYTES ((size_t)1 << 20)
#define REQUEST_MAX ((size_t)1 << 20)
#define BODY_MAX ((size_t)1 << 20)
#define LABELS_MAX 32
#define END_MS INT64_C(1796083200000) /* 2026-12-01T00:00:00Z */

static struct demo_fleet *fleet;
static atomic_ullong served_samples;

/* ---- XOR chunks ---- */

/* Bits from the high end; at most 7 are held after a call. */
struct bits {
    uint8_t *at;
    uint64_t held;
    int n; /* bits held */
};

static void put_bits(struct bits *bits, uint64_t value, int n)
{
    if (n > 32) {
        put_bits(bits, value >> 32, n - 32);
        n = 32;
    }
    bits->held = bits->held << n | (value & ((UINT64_C(1) << n) - 1));
    for (bits->n += n; bits->n >= 8; bits->n -= 8)
        *bits->at++ = (uint8_t)(bits->held >> (bits->n - 8));
}

static void finish_bits(struct bits *bits)
{
    if (bits->n > 0)
        put_bits(bits, 0, 8 - bits->n);
}

static void put_varint_bits(struct bits *bits, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_bits(bits, (value & 0x7f) | 0x80, 8);
    put_bits(bits, value, 8);
}

struct encoder {
    struct bits bits;
    int64_t t, delta;
    uint64_t v;
    int leading, trailing; /* of the last window; leading 255: none */
    size_t n;
};

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static void encode_value(struct encoder *e, uint64_t v)
{
    uint64_t x = v ^ e->v;
    e->v = v;
    if (x == 0) {
        put_bits(&e->bits, 0, 1);
        return;
    }
    int leading = __builtin_clzll(x), trailing = __builtin_ctzll(x);
    leading = leading > 31 ? 31 : leading;
    if (e->leading != 255 && leading >= e->leading && trailing >= e->trailing) {
        put_bits(&e->bits, 2, 2);
        put_bits(&e->bits, x >> e->trailing, 64 - e->leading - e->trailing);
        return;
    }
    e->leading = leading;
    e->trailing = trailing;
    int significant = 64 - leading - trailing;
    put_bits(&e->bits, 3, 2);
    put_bits(&e->bits, (uint64_t)leading, 5);
    put_bits(&e->bits, (uint64_t)significant & 63, 6);
    put_bits(&e->bits, x >> trailing, significant);
}

static void encode_dod(struct bits *bits, int64_t dod)
{
    if (dod == 0)
        put_bits(bits, 0, 1);
    else if (dod >= -8191 && dod <= 8192)
        put_bits(bits, 2, 2), put_bits(bits, (uint64_t)dod & 0x3fff, 14);
    else if (dod >= -65535 && dod <= 65536)
        put_bits(bits, 6, 3), put_bits(bits, (uint64_t)dod & 0x1ffff, 17);
    else
        put_bits(bits, 15, 4), put_bits(bits, (uint64_t)dod, 64);
}

static void encode(struct encoder *e, int64_t t, double value)
{
    uint64_t v = bits_of(value);
    if (e->n == 0) {
        put_varint_bits(&e->bits, (uint64_t)t << 1); /* zigzag of a positive number */
        put_bits(&e->bits, v, 64);
        e->v = v;
        e->leading = 255;
    } else {
        int64_t delta = t - e->t;
        if (e->n == 1)
            put_varint_bits(&e->bits, (uint64_t)delta);
        else
            encode_dod(&e->bits, delta - e->delta);
        e->delta = delta;
        encode_value(e, v);
    }
    e->t = t;
    e->n++;
}

/* ---- an answer ---- */

struct answer {
    int fd;
    struct strbuf frame; /* ChunkedReadResponse so far */
    struct strbuf series, chunk, label;
    bool failed;
};

static void send_all(struct answer *answer, const void *p, size_t n)
{
    for (const char *at = p; n > 0 && !answer->failed;) {
        ssize_t sent = send(answer->fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0 && errno != EINTR)
            answer->failed = true;
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
        }
    }
}

/* The frame in hand as one HTTP chunk. */
static void send_frame(struct answer *answer)
{
    struct strbuf head = {0};
    uint32_t crc = crc32c(0, strbuf_str(&answer->frame));
    uint8_t big[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
                      (uint8_t)crc};
    char size[24];
    if (answer->frame.n == 0)
        return;
    protobuf_put_varint(&head, answer->frame.n);
    strbuf_add(&head, (struct str){(char *)big, 4});
    int n = snprintf(size, sizeof size, "%zx\r\n", head.n + answer->frame.n);
    send_all(answer, size, (size_t)n);
    send_all(answer, head.text, head.n);
    send_all(answer, answer->frame.text, answer->frame.n);
    send_all(answer, "\r\n", 2);
    strbuf_clear(&answer->frame);
    strbuf_release(&head);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Labels of a head `name{a="b",…} `, whose values have no escapes. */
static size_t split_head(struct str head, struct label *labels)
{
    const char *p = memchr(head.p, '{', head.n), *end = head.p + head.n;
    size_t n = 0;
    labels[n++] = (struct label){STR("__name__"), {head.p, (size_t)(p - head.p)}};
    while (p && ++p < end && *p != '}' && n < LABELS_MAX) {
        const char *equals = memchr(p, '=', (size_t)(end - p));
        const char *close = memchr(equals + 2, '"', (size_t)(end - equals - 2));
        if (close > equals + 2)
            labels[n++] = (struct label){{p, (size_t)(equals - p)},
                                         {equals + 2, (size_t)(close - equals - 2)}};
        p = close + 1;
        if (*p == '}')
            break;
    }
    qsort(labels, n, sizeof *labels, by_name);
    return n;
}

static void begin_series(struct answer *answer, struct str head)
{
    struct label labels[LABELS_MAX];
    size_t n = split_head(head, labels);
    strbuf_clear(&answer->series);
    for (size_t i = 0; i < n; i++) {
        strbuf_clear(&answer->label);
        protobuf_put_bytes(&answer->label, 1, labels[i].name);
        protobuf_put_bytes(&answer->label, 2, labels[i].value);
        protobuf_put_bytes(&answer->series, 1, strbuf_str(&answer->label));
    }
}

static void put_chunk(struct answer *answer, const struct demo_grid *grid, size_t from, size_t to,
                      struct demo_values values, double unit)
{
    uint8_t data[4 + CHUNK_SAMPLES * 24];
    struct encoder encoder = {.bits = {.at = data + 2}};
    data[0] = (uint8_t)((to - from) >> 8);
    data[1] = (uint8_t)(to - from);
    for (size_t k = from; k < to; k++) {
        time_ms t = grid->first + (time_ms)k * grid->step;
        encode(&encoder, t, (double)values.at(values.context, t) / unit);
    }
    finish_bits(&encoder.bits);
    size_t n = (size_t)(encoder.bits.at - data);
    strbuf_clear(&answer->chunk);
    protobuf_put_uint64(&answer->chunk, 1, (uint64_t)(grid->first + (time_ms)from * grid->step));
    protobuf_put_uint64(&answer->chunk, 2,
                        (uint64_t)(grid->first + (time_ms)(to - 1) * grid->step));
    protobuf_put_uint64(&answer->chunk, 3, 1);
    protobuf_put_bytes(&answer->chunk, 4, (struct str){(char *)data, n});
    protobuf_put_bytes(&answer->series, 2, strbuf_str(&answer->chunk));
    atomic_fetch_add(&served_samples, to - from);
}

static void serve_series(struct demo_writer *w, const struct demo_grid *grid, size_t from,
                         size_t to, struct demo_values values)
{
    struct answer *answer = w->context;
    double unit = 1;
    for (int i = 0; i < values.places; i++)
        unit *= 10;
    begin_series(answer, strbuf_str(&w->head));
    while (from < to) {
        size_t edge = from / CHUNK_SAMPLES * CHUNK_SAMPLES + CHUNK_SAMPLES;
        size_t end = edge < to ? edge : to;
        put_chunk(answer, grid, from, end, values, unit);
        from = end;
    }
    protobuf_put_bytes(&answer->frame, 1, strbuf_str(&answer->series));
    if (answer->frame.n >= FRAME_BYTES)
        send_frame(answer);
    if (answer->failed)
        w->error = EPIPE;
}

/* ---- remote read ---- */

/* The metric and the times of a ReadRequest's first query. */
static bool read_request(struct str body, char *metric, size_t room, struct span *ret)
{
    struct strbuf plain = {0};
    struct protobuf_field field, inner, leaf;
    bool found = false;
    if (snappy_block_decode(body, BODY_MAX, &plain, NULL) != ERR_OK)
        return false;
    struct protobuf_reader request = protobuf_reader(strbuf_str(&plain));
    while (protobuf_next(&request, &field)) {
        if (field.number != 1)
            continue;
        struct protobuf_reader query = protobuf_reader(field.bytes);
        while (protobuf_next(&query, &inner)) {
            if (inner.number == 1)
                ret->from = (time_ms)inner.value;
            if (inner.number == 2)
                ret->to = (time_ms)inner.value;
            if (inner.number != 3)
                continue;
            struct str name = STR_NONE, value = STR_NONE;
            struct protobuf_reader matcher = protobuf_reader(inner.bytes);
            while (protobuf_next(&matcher, &leaf)) {
                name = leaf.number == 2 ? leaf.bytes : name;
                value = leaf.number == 3 ? leaf.bytes : value;
            }
            if (str_eq(name, STR("__name__")) && value.n < room) {
                snprintf(metric, room, "%.*s", STR_ARG(value));
                found = true;
            }
        }
    }
    strbuf_release(&plain);
    return found;
}

/* Counters are families without their suffix in the text, and have it as series. */
static void family_of(char *metric)
{
    size_t n = strlen(metric);
    if (strncmp(metric, "vllm:", 5) == 0 && n > 6 && strcmp(metric + n - 6, "_total") == 0)
        metric[n - 6] = 0;
}

static void serve_read(int fd, struct str body)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                               "Content-Type: application/x-streamed-protobuf; "
                               "proto=prometheus.ChunkedReadResponse\r\n\r\n";
    struct answer answer = {.fd = fd};
    struct demo_writer w;
    char metric[128];
    struct span time = {0};
    send_all(&answer, head, sizeof head - 1);
    if (read_request(body, metric, sizeof metric, &time)) {
        family_of(metric);
        demo_writer_init(&w, fleet, -1);
        w.kube = w.gpu = (struct span){time.from, time.to + 1};
        w.only = metric;
        w.series = serve_series;
        w.context = &answer;
        demo_write_gpus(&w);
        demo_write_kube(&w);
        demo_write_serving(&w);
        demo_writer_release(&w);
    }
    send_frame(&answer);
    send_all(&answer, "0\r\n\r\n", 5);
    strbuf_release(&answer.frame);
    strbuf_release(&answer.series);
    strbuf_release(&answer.chunk);
    strbuf_release(&answer.label);
}

/* ---- the little HTTP that is needed ---- */

static void serve_text(int fd, int status, const char *text)
{
    struct answer answer = {.fd = fd};
    char head[200];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     status, strlen(text));
    send_all(&answer, head, (size_t)n);
    send_all(&answer, text, strlen(text));
}

static void serve_query(int fd, const char *request)
{
    char text[256];
    double per_hour = 3600.0 * 1000 / (double)fleet->options.step_ms;
    bool rate = strstr(request, "count_over_time") != NULL;
    double value = rate ? per_hour : demo_text_samples_an_hour(fleet) / per_hour;
    snprintf(text, sizeof text,
             "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":"
             "{},\"value\":[1,\"%.0f\"]}]}}",
             value);
    serve_text(fd, 200, text);
}

static void serve_names(int fd)
{
    serve_text(fd, 200,
               "{\"status\":\"success\",\"data\":[\"DCGM_FI_DEV_FB_FREE\",\"DCGM_FI_DEV_FB_USED\","
               "\"DCGM_FI_DEV_GPU_UTIL\",\"DCGM_FI_DEV_POWER_USAGE\","
               "\"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION\",\"DCGM_FI_DEV_XID_ERRORS\","
               "\"DCGM_FI_PROF_DRAM_ACTIVE\",\"DCGM_FI_PROF_GR_ENGINE_ACTIVE\","
               "\"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE\",\"DCGM_FI_PROF_SM_ACTIVE\",\"kube_job_owner\","
               "\"kube_node_created\",\"kube_node_info\",\"kube_node_labels\","
               "\"kube_node_spec_unschedulable\",\"kube_node_status_allocatable\","
               "\"kube_node_status_capacity\",\"kube_pod_completion_time\","
               "\"kube_pod_container_resource_requests\",\"kube_pod_info\",\"kube_pod_labels\","
               "\"kube_pod_owner\",\"kube_pod_start_time\",\"kube_pod_status_phase\","
               "\"kube_replicaset_owner\",\"vllm:generation_tokens_total\","
               "\"vllm:prompt_tokens_total\",\"vllm:request_success_total\"]}");
}

static void serve_one(int fd, const char *request, struct str body)
{
    if (strstr(request, "/api/v1/read"))
        serve_read(fd, body);
    else if (strstr(request, "/api/v1/label/__name__/values"))
        serve_names(fd);
    else if (strstr(request, "/api/v1/query"))
        serve_query(fd, request);
    else
        serve_text(fd, 404, "{\"status\":\"error\",\"errorType\":\"not_found\",\"error\":\"?\"}");
}

/* Requests of one connection, until it closes. Bodies of queries stand behind the head too, so
 * that they are found by a search in the text. */
static void *serve_connection(void *context)
{
    int fd = (int)(intptr_t)context;
    char *bytes = malloc(REQUEST_MAX + 1);
    size_t n = 0;
    for (;;) {
        ssize_t got = recv(fd, bytes + n, REQUEST_MAX - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        bytes[n] = 0;
        char *end = strstr(bytes, "\r\n\r\n");
        if (!end)
            continue;
        char *length = strcasestr(bytes, "\r\ncontent-length:");
        size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
        size_t head = (size_t)(end + 4 - bytes);
        if (strcasestr(bytes, "expect: 100-continue") && n == head && body > 0)
            send(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
        if (n < head + body)
            continue;
        serve_one(fd, bytes, (struct str){bytes + head, body});
        memmove(bytes, bytes + head + body, n - head - body + 1);
        n -= head + body;
    }
    free(bytes);
    close(fd);
    return NULL;
}

static void *accept_all(void *context)
{
    int server = (int)(intptr_t)context, one = 1;
    for (;;) {
        int fd = accept(server, NULL, NULL);
        pthread_t thread;
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
        else
            close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX], line[64];
    pthread_t thread;
    if (argc < 4) {
        fprintf(stderr, "usage: %s GPUS DAYS STEP_S [SEED]\n", argv[0]);
        return 2;
    }
    struct demo_options options = {
        .gpus = atoi(argv[1]),
        .window = {END_MS - (time_ms)(atof(argv[2]) * 24) * HOUR_MS, END_MS},
        .step_ms = (time_ms)atoi(argv[3]) * 1000,
        .seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1};
    signal(SIGPIPE, SIG_IGN);
    fleet = demo_fleet_new(&options);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0 || bind(server, (struct sockaddr *)&address, size) != 0 ||
        listen(server, 64) != 0 || getsockname(server, (struct sockaddr *)&address, &size) != 0 ||
        pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)server) != 0) {
        perror("listening");
        return 1;
    }
    printf("http://127.0.0.1:%d %s,%s\n", ntohs(address.sin_port),
           time_format(options.window.from, from), time_format(options.window.to, to));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        ;
    printf("%llu samples, %.3f s of CPU\n", (unsigned long long)atomic_load(&served_samples),
           (double)clock() / CLOCKS_PER_SEC);
    return 0;
}
