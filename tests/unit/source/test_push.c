/* What senders are answered: 2xx once it is on disk, 4xx for what they should drop, 5xx and 429 for
 * what they should send again. */
#include <errno.h>

#include "../../lib/journal_lab.h"
#include "source/push.h"
#include "wire/protobuf.h"
#include "wire/snappy_block.h"

static time_ms lab_now(void *context)
{
    (void)context;
    return LAB_T0;
}

struct receiver {
    struct lab lab;
    struct journal *journal;
    struct push *push;
    struct live *live;
};

static void receiver_begin(struct receiver *receiver, const struct journal_io *io,
                           struct push_options options)
{
    static const struct label cluster[] = {{STR("cluster"), STR("prod")}};
    lab_begin(&receiver->lab);
    receiver->live = live_new();
    receiver->journal =
        lab_open(&receiver->lab, (struct journal_options){.io = io, .live = receiver->live});
    struct push_route route = {
        .tenant = STR("a"), .journal = receiver->journal, .labels = cluster, .labels_n = 1};
    options.routes = &route;
    options.routes_n = 1;
    options.now = lab_now;
    receiver->push = push_new(&options);
}

static void receiver_end(struct receiver *receiver)
{
    push_free(receiver->push);
    journal_close(receiver->journal);
    live_free(receiver->live);
    lab_end(&receiver->lab);
}

/* ---- requests */

static void put_series(struct strbuf *message, const struct label *labels, size_t n, time_ms t,
                       double v)
{
    struct strbuf series = {0}, part = {0};
    for (size_t i = 0; i < n; i++) {
        strbuf_clear(&part);
        protobuf_put_bytes(&part, 1, labels[i].name);
        protobuf_put_bytes(&part, 2, labels[i].value);
        protobuf_put_bytes(&series, 1, strbuf_str(&part));
    }
    strbuf_clear(&part);
    protobuf_put_double(&part, 1, v);
    protobuf_put_uint64(&part, 2, (uint64_t)t);
    protobuf_put_bytes(&series, 2, strbuf_str(&part));
    protobuf_put_bytes(message, 1, strbuf_str(&series));
    strbuf_release(&series);
    strbuf_release(&part);
}

/* GPU i's utilisation, with labels that tell replicas apart. */
static void put_gpu(struct strbuf *message, const char *gpu, const char *replica, time_ms t,
                    double v)
{
    struct label labels[] = {{STR("UUID"), str_of(gpu)},
                             {STR("__name__"), STR("DCGM_FI_DEV_GPU_UTIL")},
                             {STR("node"), STR("gpu-1")},
                             {STR("pod"), STR("train")},
                             {STR("prometheus_replica"), str_of(replica)}};
    put_series(message, labels, 5, t, v);
}

static struct push_answer send_as(struct push *push, struct strbuf *message,
                                  struct push_request request)
{
    struct strbuf body = {0};
    struct push_answer answer;
    snappy_block_encode(strbuf_str(message), &body);
    request.body = strbuf_str(&body);
    push_write(push, &request, &answer);
    strbuf_release(&body);
    strbuf_clear(message);
    return answer;
}

#define HEADERS                                                                                    \
    .content_encoding = STR("snappy"), .content_type = STR("application/x-protobuf"),              \
    .version = STR("0.1.0")

static struct push_answer send(struct push *push, struct strbuf *message)
{
    return send_as(push, message, (struct push_request){.tenant = STR("a"), HEADERS});
}

/* ---- tests */

static size_t samples_in(struct receiver *receiver, const char *gpu, time_ms t)
{
    struct lab_seen seen = {0};
    struct journal_read read = {.kube = {TIME_MIN, TIME_MAX},
                                .gpu = {TIME_MIN, TIME_MAX},
                                .sink = {&seen, lab_on_series, lab_on_samples}};
    size_t n = 0;
    assert_int_equal(journal_read(receiver->journal, &read, NULL, NULL), ERR_OK);
    for (size_t i = 0; i < seen.n; i++)
        n += seen.samples[i].series == strtoul(gpu, NULL, 10) && seen.samples[i].t == t;
    free(seen.samples);
    return n;
}

static void a_good_request_is_204_and_on_disk(void **state)
{
    (void)state;
    struct receiver receiver;
    struct strbuf message = {0};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    put_gpu(&message, "1", "x", LAB_T0 - 30000, 40);
    put_gpu(&message, "2", "x", LAB_T0 - 30000, 41);
    struct push_answer answer = send(receiver.push, &message);
    assert_int_equal(answer.status, 204);
    assert_string_equal(answer.text, "");
    assert_int_equal(samples_in(&receiver, "1", LAB_T0 - 30000), 1);
    /* Again, now that the series are known, and earlier than before. */
    put_gpu(&message, "1", "x", LAB_T0 - 60000, 40);
    assert_int_equal(send(receiver.push, &message).status, 204);
    assert_int_equal(samples_in(&receiver, "1", LAB_T0 - 60000), 1);
    struct journal_stats stats;
    journal_stats(receiver.journal, &stats);
    assert_int_equal(stats.series, 2);
    assert_int_equal(stats.unsynced_bytes, 0);
    strbuf_release(&message);
    receiver_end(&receiver);
}

static void replicas_are_one_series(void **state)
{
    (void)state;
    struct receiver receiver;
    struct strbuf message = {0};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    put_gpu(&message, "1", "a", LAB_T0, 40);
    put_gpu(&message, "1", "b", LAB_T0 + 7000, 40);
    assert_int_equal(send(receiver.push, &message).status, 204);
    struct journal_stats stats;
    journal_stats(receiver.journal, &stats);
    assert_int_equal(stats.series, 1);
    assert_int_equal(stats.samples, 2);
    strbuf_release(&message);
    receiver_end(&receiver);
}

/* A label set alone is a message too; before any sample there is no memory of samples. */
static void series_without_samples_are_taken(void **state)
{
    (void)state;
    struct receiver receiver;
    struct strbuf message = {0}, series = {0}, part = {0};
    static const struct label labels[] = {{STR("UUID"), STR("1")},
                                          {STR("__name__"), STR("DCGM_FI_DEV_GPU_UTIL")}};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    for (size_t i = 0; i < 2; i++) {
        strbuf_clear(&part);
        protobuf_put_bytes(&part, 1, labels[i].name);
        protobuf_put_bytes(&part, 2, labels[i].value);
        protobuf_put_bytes(&series, 1, strbuf_str(&part));
    }
    for (int request = 0; request < 2; request++) { /* not known, known */
        protobuf_put_bytes(&message, 1, strbuf_str(&series));
        assert_int_equal(send(receiver.push, &message).status, 204);
    }
    strbuf_release(&part);
    strbuf_release(&series);
    strbuf_release(&message);
    receiver_end(&receiver);
}

static void metrics_that_nobody_wants_are_counted(void **state)
{
    (void)state;
    struct receiver receiver;
    struct push_stats stats;
    struct strbuf message = {0};
    const struct label labels[] = {{STR("__name__"), STR("go_goroutines")}};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    for (int i = 0; i < 2; i++) {
        put_series(&message, labels, 1, LAB_T0, 1);
        assert_int_equal(send(receiver.push, &message).status, 204);
    }
    push_stats(receiver.push, &stats);
    assert_int_equal(stats.ignored_samples, 2);
    assert_int_equal(stats.samples, 0);
    assert_int_equal(stats.answers_2xx, 2);
    assert_int_equal(stats.last_ok, LAB_T0);
    strbuf_release(&message);
    receiver_end(&receiver);
}

/* Nothing helps these: the good part is kept, and the sender is told to drop the rest. */
static void what_can_never_be_kept_is_400_and_the_rest_is_stored(void **state)
{
    (void)state;
    struct receiver receiver;
    struct push_stats stats;
    struct strbuf message = {0};
    const struct label twice[] = {
        {STR("__name__"), STR("up")}, {STR("pod"), STR("a")}, {STR("pod"), STR("b")}};
    receiver_begin(&receiver, NULL,
                   (struct push_options){.oldest_ms = HOUR_MS, .future_ms = 60000});
    put_gpu(&message, "1", "x", LAB_T0 - HOUR_MS - 1, 1);
    put_gpu(&message, "2", "x", LAB_T0 - HOUR_MS, 1);
    put_gpu(&message, "3", "x", LAB_T0 + 60001, 1);
    put_series(&message, twice, 3, LAB_T0, 1);
    struct push_answer answer = send(receiver.push, &message);
    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(answer.text, "1 samples are stored"));
    assert_non_null(strstr(answer.text, "1 too old"));
    assert_non_null(strstr(answer.text, "a label name stands twice: series up"));
    assert_int_equal(samples_in(&receiver, "2", LAB_T0 - HOUR_MS), 1);
    push_stats(receiver.push, &stats);
    assert_int_equal(stats.samples, 1);
    assert_int_equal(stats.too_old, 1);
    assert_int_equal(stats.in_future, 1);
    assert_int_equal(stats.bad_series, 1);
    strbuf_release(&message);
    receiver_end(&receiver);
}

static void bytes_that_are_no_request_are_400(void **state)
{
    (void)state;
    struct receiver receiver;
    struct push_answer answer;
    struct strbuf message = {0};
    receiver_begin(&receiver, NULL, (struct push_options){.body_max = 1000, .decoded_max = 5000});
    struct push_request request = {.tenant = STR("a"), .body = STR("no snappy at all"), HEADERS};
    push_write(receiver.push, &request, &answer);
    assert_int_equal(answer.status, 400);
    strbuf_add(&message, STR("\x0a\x7f"));
    assert_int_equal(send(receiver.push, &message).status, 400);
    for (int i = 0; i < 200; i++)
        put_gpu(&message, "1", "x", LAB_T0, 1);
    assert_int_equal(send(receiver.push, &message).status, 413);
    static char large[1001];
    request.body = (struct str){large, sizeof large};
    push_write(receiver.push, &request, &answer);
    assert_int_equal(answer.status, 413);
    strbuf_release(&message);
    receiver_end(&receiver);
}

/* A series of one sample whose other bytes are no labels: a second sample with a stamp of another
 * size, an exemplar in front, a label that is cut. What ends like a known series is none. */
static void series_that_only_end_as_usual_are_read_over(void **state)
{
    (void)state;
    struct receiver receiver;
    struct strbuf message = {0}, series = {0}, part = {0}, label = {0};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    put_gpu(&message, "1", "x", LAB_T0 - 30000, 40);
    assert_int_equal(send(receiver.push, &message).status, 204);
    protobuf_put_bytes(&label, 1, STR("UUID"));
    protobuf_put_bytes(&label, 2, STR("2"));
    protobuf_put_bytes(&series, 1, strbuf_str(&label));
    strbuf_clear(&label);
    protobuf_put_bytes(&label, 1, STR("__name__"));
    protobuf_put_bytes(&label, 2, STR("DCGM_FI_DEV_GPU_UTIL"));
    protobuf_put_bytes(&series, 1, strbuf_str(&label));
    strbuf_clear(&label);
    protobuf_put_bytes(&label, 1, STR("node"));
    protobuf_put_bytes(&label, 2, STR("gpu-1"));
    protobuf_put_bytes(&series, 1, strbuf_str(&label));
    size_t labels_n = series.n;
    protobuf_put_double(&part, 1, 50);
    protobuf_put_uint64(&part, 2, 1); /* 1970: too old, and a sample all the same */
    protobuf_put_bytes(&series, 2, strbuf_str(&part));
    size_t short_n = series.n;
    strbuf_clear(&part);
    protobuf_put_double(&part, 1, 51);
    protobuf_put_uint64(&part, 2, (uint64_t)LAB_T0 - 15000);
    protobuf_put_bytes(&series, 2, strbuf_str(&part));
    put_gpu(&message, "1", "x", LAB_T0 - 15000, 41);
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    struct push_answer answer = send(receiver.push, &message);
    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(answer.text, "2 samples are stored; refused for good: 1 too old"));
    assert_int_equal(samples_in(&receiver, "2", LAB_T0 - 15000), 1);
    /* The labels cut in the middle: no request, and nothing of it is kept. */
    memmove(series.text + labels_n - 3, series.text + short_n, series.n - short_n);
    series.n -= short_n - labels_n + 3;
    put_gpu(&message, "1", "x", LAB_T0, 42);
    protobuf_put_bytes(&message, 1, strbuf_str(&series));
    assert_int_equal(send(receiver.push, &message).status, 400);
    assert_int_equal(samples_in(&receiver, "1", LAB_T0), 0);
    put_gpu(&message, "1", "x", LAB_T0, 42);
    assert_int_equal(send(receiver.push, &message).status, 204);
    assert_int_equal(samples_in(&receiver, "1", LAB_T0), 1);
    strbuf_release(&message);
    strbuf_release(&series);
    strbuf_release(&part);
    strbuf_release(&label);
    receiver_end(&receiver);
}

static void other_protocols_are_415(void **state)
{
    (void)state;
    static const struct {
        struct str encoding, type, version;
        int status;
    } cases[] = {
        {STR("snappy"), STR("application/x-protobuf"), STR("0.1.0"), 204},
        {STR("Snappy"), STR("application/x-protobuf; charset=utf-8"), STR(""), 204},
        {STR(""), STR(""), STR(""), 204},
        {STR("snappy"), STR("application/x-protobuf;proto=prometheus.WriteRequest"), STR(""), 204},
        {STR("zstd"), STR("application/x-protobuf"), STR("0.1.0"), 415},
        {STR("snappy"), STR("application/x-protobuf;proto=io.prometheus.write.v2.Request"),
         STR("2.0.0"), 415},
        {STR("snappy"), STR("application/x-protobuf"), STR("2.0.0"), 415},
        {STR("snappy"), STR("application/json"), STR(""), 415},
    };
    struct receiver receiver;
    struct strbuf message = {0};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_gpu(&message, "1", "x", LAB_T0 + (time_ms)i, 1);
        struct push_request request = {.tenant = STR("a"),
                                       .content_encoding = cases[i].encoding,
                                       .content_type = cases[i].type,
                                       .version = cases[i].version};
        assert_int_equal(send_as(receiver.push, &message, request).status, cases[i].status);
    }
    put_gpu(&message, "1", "x", LAB_T0, 1);
    assert_int_equal(
        send_as(receiver.push, &message, (struct push_request){.tenant = STR("b"), HEADERS}).status,
        404);
    strbuf_release(&message);
    receiver_end(&receiver);
}

/* ---- several senders at once */

#define SENDERS 4
#define FIRST_SERIES 1000

struct sender {
    struct push *push;
    pthread_barrier_t *begin;
    struct random random;
    unsigned nth;
    /* What was acknowledged. */
    struct sent {
        unsigned series;
        time_ms t;
    } * sent;
    size_t n, room;
};

static void put_number(struct strbuf *message, unsigned series, time_ms t)
{
    char uuid[16];
    snprintf(uuid, sizeof uuid, "%04u", series); /* labels of one length, whichever series */
    put_gpu(message, uuid, "x", t, lab_value(series, t));
}

static void run_senders(struct push *push, struct sender senders[SENDERS], void *(*run)(void *))
{
    pthread_t threads[SENDERS];
    pthread_barrier_t begin;
    struct random random = random_new();
    pthread_barrier_init(&begin, NULL, SENDERS);
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){
            .push = push, .begin = &begin, .random = {random_next(&random)}, .nth = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run, &senders[i]), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begin);
}

static void *send_first(void *context)
{
    struct sender *sender = context;
    struct strbuf message = {0};
    for (unsigned i = 0; i < FIRST_SERIES; i++)
        put_number(&message, sender->nth * FIRST_SERIES + i, LAB_T0);
    pthread_barrier_wait(sender->begin);
    assert_int_equal(send(sender->push, &message).status, 204);
    strbuf_release(&message);
    return NULL;
}

struct named {
    unsigned last, changes;
};

/* Series of one time are named in order of their numbers. */
static uint32_t on_named(void *context, const struct label *labels, size_t n)
{
    struct named *named = context;
    unsigned owner =
        (unsigned)strtoul(labels_get(labels, n, STR("UUID")).p, NULL, 10) / FIRST_SERIES;
    named->changes += owner != named->last;
    named->last = owner;
    return JOURNAL_SKIP;
}

static void numbers_of_one_request_follow_each_other(void **state)
{
    (void)state;
    struct receiver receiver;
    struct sender senders[SENDERS];
    struct named named = {.last = SENDERS};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    run_senders(receiver.push, senders, send_first);
    struct journal_read read = {.kube = {TIME_MIN, TIME_MAX},
                                .gpu = {TIME_MIN, TIME_MAX},
                                .sink = {&named, on_named, lab_on_samples}};
    assert_int_equal(journal_read(receiver.journal, &read, NULL, NULL), ERR_OK);
    assert_int_equal(named.changes, SENDERS);
    receiver_end(&receiver);
}

/* Change what a sender sends a little, as fleets do: two change places, one is gone, one is new. */
static void change_order(struct random *random, unsigned *order, size_t *n, size_t all)
{
    size_t i = (size_t)random_below(random, (int64_t)*n),
           k = (size_t)random_below(random, (int64_t)all);
    unsigned one = order[i];
    if (random_below(random, 3) == 0 && *n < all)
        ++*n; /* the ones behind are those that are not sent */
    else if (random_below(random, 3) == 0 && *n > 1)
        order[i] = order[--*n], order[*n] = one;
    else
        order[i] = order[k], order[k] = one;
}

#define ALL_SERIES 60
#define TURNS 60

static void *send_changing(void *context)
{
    struct sender *sender = context;
    struct strbuf message = {0};
    unsigned order[ALL_SERIES];
    size_t n = ALL_SERIES / 2;
    for (unsigned i = 0; i < ALL_SERIES; i++) /* the same series as the others', other times */
        order[i] = i;
    pthread_barrier_wait(sender->begin);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (int64_t more = random_below(&sender->random, 4); more-- > 0;)
            change_order(&sender->random, order, &n, ALL_SERIES);
        for (size_t i = 0; i < n; i++) {
            struct sent sent = {order[i], LAB_T0 - HOUR_MS + turn * 30000 + sender->nth * 1000};
            put_number(&message, sent.series, sent.t);
            mem_push(sender->sent, sender->n, sender->room, sent);
        }
        assert_int_equal(send(sender->push, &message).status, 204);
    }
    strbuf_release(&message);
    return NULL;
}

static int by_series(const void *a, const void *b)
{
    const struct sent *x = a, *y = b;
    return x->series != y->series ? (x->series > y->series) - (x->series < y->series)
                                  : (x->t > y->t) - (x->t < y->t);
}

/* Every sample that was acknowledged is there, once, with its own value. */
static void whatever_order_senders_send_in_all_of_it_is_kept(void **state)
{
    (void)state;
    struct receiver receiver;
    struct sender senders[SENDERS];
    struct sent *all = NULL, *got = NULL;
    size_t n = 0, room = 0, got_n = 0, got_room = 0;
    receiver_begin(&receiver, NULL, (struct push_options){0});
    run_senders(receiver.push, senders, send_changing);
    for (size_t i = 0; i < SENDERS; i++) {
        for (size_t k = 0; k < senders[i].n; k++)
            mem_push(all, n, room, senders[i].sent[k]);
        free(senders[i].sent);
    }
    struct lab_seen seen = lab_read(receiver.journal, TIME_MIN, TIME_MAX);
    for (size_t i = 0; i < seen.n; i++)
        mem_push(got, got_n, got_room, ((struct sent){seen.samples[i].series, seen.samples[i].t}));
    assert_int_equal(got_n, n);
    qsort(all, n, sizeof *all, by_series);
    qsort(got, n, sizeof *got, by_series);
    for (size_t i = 0; i < n; i++)
        assert_true(all[i].series == got[i].series && all[i].t == got[i].t);
    struct journal_stats stats;
    journal_stats(receiver.journal, &stats);
    assert_true(stats.series <= ALL_SERIES);
    free(seen.samples);
    free(all);
    free(got);
    receiver_end(&receiver);
}

/* ---- a disk that is full for a while */

static bool disk_full;
static ssize_t full_write(void *context, int fd, const void *bytes, size_t n, off_t at)
{
    (void)context;
    errno = ENOSPC;
    return disk_full ? -1 : pwrite(fd, bytes, n, at);
}

static void a_full_disk_is_503_until_there_is_room(void **state)
{
    (void)state;
    struct receiver receiver;
    struct push_stats stats;
    struct strbuf message = {0};
    struct journal_io io = journal_io_system;
    io.write = full_write;
    receiver_begin(&receiver, &io, (struct push_options){0});
    for (int i = 0; i < 3; i++) {
        disk_full = i == 1;
        put_gpu(&message, "1", "x", LAB_T0 + i * 1000, 1);
        put_gpu(&message, i ? "3" : "2", "x", LAB_T0 + i * 1000, 1);
        struct push_answer answer = send(receiver.push, &message);
        assert_int_equal(answer.status, disk_full ? 503 : 204);
        assert_int_equal(answer.retry_after_s > 0, disk_full);
    }
    assert_int_equal(samples_in(&receiver, "3", LAB_T0 + 2000), 1);
    push_stats(receiver.push, &stats);
    assert_int_equal(stats.answers_5xx, 1);
    assert_int_equal(stats.samples, 4);
    push_stop(receiver.push);
    put_gpu(&message, "1", "x", LAB_T0 + 9000, 1);
    assert_int_equal(send(receiver.push, &message).status, 503);
    strbuf_release(&message);
    receiver_end(&receiver);
}

/* ---- the latest values */

static void what_is_pushed_is_seen_at_once(void **state)
{
    (void)state;
    struct receiver receiver;
    struct strbuf message = {0};
    receiver_begin(&receiver, NULL, (struct push_options){0});
    put_gpu(&message, "2", "x", LAB_T0 - 30000, 41);
    put_gpu(&message, "1", "x", LAB_T0 - 30000, 40);
    put_gpu(&message, "1", "x", LAB_T0 - 60000, 99); /* late */
    assert_int_equal(send(receiver.push, &message).status, 204);
    const struct live_snapshot *snapshot = live_snapshot(receiver.live, 0);
    assert_int_equal(snapshot->n, 2);
    assert_int_equal(snapshot->newest, LAB_T0 - 30000);
    assert_string_equal(snapshot->gpus[0].uuid, "1");
    assert_string_equal(snapshot->gpus[0].cluster, "prod");
    assert_string_equal(snapshot->gpus[0].node, "gpu-1");
    assert_string_equal(snapshot->gpus[0].pod, "train");
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_UTIL], 400000000); /* 40 % */
    assert_int_equal(snapshot->gpus[0].value[SIGNAL_POWER], SIGNAL_ABSENT);
    live_snapshot_release(snapshot);
    strbuf_release(&message);
    receiver_end(&receiver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_request_is_204_and_on_disk),
        cmocka_unit_test(replicas_are_one_series),
        cmocka_unit_test(series_without_samples_are_taken),
        cmocka_unit_test(metrics_that_nobody_wants_are_counted),
        cmocka_unit_test(what_can_never_be_kept_is_400_and_the_rest_is_stored),
        cmocka_unit_test(bytes_that_are_no_request_are_400),
        cmocka_unit_test(series_that_only_end_as_usual_are_read_over),
        cmocka_unit_test(other_protocols_are_415),
        cmocka_unit_test(numbers_of_one_request_follow_each_other),
        cmocka_unit_test(whatever_order_senders_send_in_all_of_it_is_kept),
        cmocka_unit_test(a_full_disk_is_503_until_there_is_room),
        cmocka_unit_test(what_is_pushed_is_seen_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
