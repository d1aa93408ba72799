/* Nodes that are booked by groups have the books that they have in one go, byte for byte: rows,
 * hours, notes and the carry. */
#include <string.h>

#include "../../lib/unit.h"
#include "fleet/intake_data.h"
#include "fleet_fixture.h"

#define NODES 6
#define GPUS 10
#define PODS 8
#define STEPS 200 /* of 30 s */
#define HOURS 2

/* Every strip packs what it can at once, and every node is a group of its own. */
static void pack_all(struct fleet *fleet, const char *folder)
{
    intake_by_time(fleet->intake, folder);
    fleet->intake->packing.budget_bytes = 0;
    fleet->intake->packing.used = true;
}

struct books {
    struct row *rows;
    struct node_hour *hours;
    struct note *notes;
    size_t rows_n, hours_n, notes_n;
    struct strbuf carry;
};

static void take_books(struct fleet *fleet, struct books *ret)
{
    *ret = (struct books){fleet->rows,    fleet->hours,   fleet->notes, fleet->rows_n,
                          fleet->hours_n, fleet->notes_n, fleet->carry};
    fleet->rows = NULL;
    fleet->hours = NULL;
    fleet->notes = NULL;
    fleet->rows_room = fleet->hours_room = fleet->notes_room = 0;
    fleet->carry = (struct strbuf){0};
    fleet_forget_rows(fleet);
}

static void release(struct books *books)
{
    free(books->rows);
    free(books->hours);
    free(books->notes);
    strbuf_release(&books->carry);
}

static void assert_same_books(const struct fleet *fleet, const struct books *a,
                              const struct books *b)
{
    assert_int_equal(a->rows_n, b->rows_n);
    for (size_t i = 0; i < a->rows_n; i++)
        if (memcmp(&a->rows[i], &b->rows[i], sizeof *a->rows) != 0)
            fail_msg("row %zu differs: %s %s %s", i, fleet_text(fleet, a->rows[i].key.node),
                     fleet_text(fleet, a->rows[i].key.device),
                     fleet_text(fleet, a->rows[i].key.pod));
    assert_int_equal(a->hours_n, b->hours_n);
    for (size_t i = 0; i < a->hours_n; i++) {
        assert_int_equal(a->hours[i].node, b->hours[i].node);
        assert_int_equal(a->hours[i].up_ms, b->hours[i].up_ms);
        assert_int_equal(a->hours[i].booked, b->hours[i].booked);
        assert_int_equal(a->hours[i].gpus, b->hours[i].gpus);
    }
    assert_int_equal(a->notes_n, b->notes_n);
    for (size_t i = 0; i < a->notes_n; i++) {
        assert_int_equal(a->notes[i].kind, b->notes[i].kind);
        assert_int_equal(a->notes[i].subject, b->notes[i].subject);
        assert_int_equal(a->notes[i].count, b->notes[i].count);
    }
    assert_int_equal(a->carry.n, b->carry.n);
    assert_memory_equal(a->carry.text, b->carry.text, a->carry.n);
}

/* ------------------------------------------------------------------ random fleets */

struct gpu {
    int node, index, pod; /* pod -1: none */
    int instance;         /* 0: whole */
    bool down, frozen, ratio, mute;
    double energy;
};

static void gpu_labels(const struct gpu *gpu, int number, char text[256])
{
    int n = snprintf(text, 256, "UUID=GPU-%d,gpu=%d,Hostname=n%d,instance=n%d:9400,job=dcgm",
                     number, gpu->index, gpu->node, gpu->node);
    if (gpu->pod >= 0)
        n += snprintf(text + n, 256 - (size_t)n, ",namespace=ns,pod=p%d,container=c", gpu->pod);
    if (gpu->instance)
        snprintf(text + n, 256 - (size_t)n, ",GPU_I_ID=%d,GPU_I_PROFILE=1g.10gb", gpu->instance);
}

/* It moves, its holder comes or goes, it falls silent, it is split, its exporter freezes. */
static void change(struct random *random, struct gpu *gpu)
{
    switch (random_below(random, 60)) {
    case 0:
        gpu->node = (int)random_below(random, NODES);
        break;
    case 1:
    case 2:
    case 3:
        gpu->pod = (int)random_below(random, PODS + 1) - 1;
        break;
    case 4:
        gpu->down = !gpu->down;
        break;
    case 5:
        gpu->instance = gpu->instance ? 0 : 1 + (int)random_below(random, 7);
        break;
    case 6:
        gpu->frozen = !gpu->frozen;
        break;
    case 7:
        gpu->index = (int)random_below(random, 4);
        break;
    default:
        break;
    }
}

static void scrape(struct fleet *fleet, struct random *random, struct gpu *gpu, int number,
                   time_ms at)
{
    char labels[256];
    gpu_labels(gpu, number, labels);
    double busy = gpu->mute ? -1 : (double)random_below(random, 101);
    gpu->energy += gpu->frozen ? 0 : 1e6;
    fleet_sample(fleet, "DCGM_FI_DEV_GPU_UTIL", labels, at, gpu->ratio ? busy / 100 : busy);
    if (gpu->mute)
        return;
    fleet_sample(fleet, "DCGM_FI_PROF_SM_ACTIVE", labels, at, busy / 100);
    fleet_sample(fleet, "DCGM_FI_DEV_POWER_USAGE", labels, at, 300);
    fleet_sample(fleet, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, at, gpu->energy);
    if (number == 0)
        fleet_sample(fleet, "DCGM_FI_DEV_XID_ERRORS", labels, at, at > HOUR_MS ? 79 : 0);
}

/* Some nodes are recorded, some follow from samples; pods are where Kubernetes says, which is not
 * always where labels show them; some are known from labels alone. */
static void record(struct fleet *fleet, struct random *random)
{
    char text[128];
    for (int i = 0; i < NODES; i += 2) {
        snprintf(text, sizeof text, "node=n%d", i);
        fleet_record(fleet, "kube_node_info", text, -30, STEPS / 2, 1);
    }
    for (int i = 0; i < PODS - 1; i++) {
        int node = (int)random_below(random, NODES);
        int from = (int)random_below(random, 60) - 20, to = from + (int)random_below(random, 120);
        snprintf(text, sizeof text, "node=n%d,namespace=ns,pod=p%d,uid=u%d", node, i, i);
        fleet_record(fleet, "kube_pod_info", text, from, to, 1);
        snprintf(text, sizeof text,
                 "node=n%d,namespace=ns,pod=p%d,uid=u%d,container=c,resource=nvidia_com_gpu,"
                 "unit=integer",
                 node, i, i);
        if (i % 3)
            fleet_record(fleet, "kube_pod_container_resource_requests", text, from, to, 2);
    }
}

static void feed(struct fleet *fleet, uint64_t seed)
{
    struct random random = {seed};
    struct gpu gpus[GPUS];
    record(fleet, &random);
    for (int i = 0; i < GPUS; i++)
        gpus[i] = (struct gpu){.node = i % NODES,
                               .index = i / NODES,
                               .pod = (int)random_below(&random, PODS + 1) - 1,
                               .ratio = i == 7,
                               .mute = i == 8};
    for (int step = -40; step < STEPS; step++)
        for (int i = 0; i < GPUS; i++) {
            time_ms at = step * SCRAPE_MS + i;
            change(&random, &gpus[i]);
            if (gpus[i].down)
                continue;
            scrape(fleet, &random, &gpus[i], i, at);
            if (random_below(&random, 50) == 0) /* late, or again */
                scrape(fleet, &random, &gpus[i], i, at - SCRAPE_MS * random_below(&random, 100));
        }
}

static void groups_change_nothing(void **state)
{
    (void)state;
    struct random random = random_new();
    for (int round = 0; round < 25; round++) {
        struct fleet f;
        struct books whole, groups;
        uint64_t seed = random_next(&random);
        fleet_open(&f, GPU_PRICE);
        feed(&f, seed);
        fleet_book(&f, 0, HOURS - round % 2);
        take_books(&f, &whole);
        pack_all(&f, round % 3 ? "/tmp" : NULL);
        feed(&f, seed);
        f.threads = 1 + round % 3;
        fleet_book(&f, 0, HOURS - round % 2);
        take_books(&f, &groups);
        assert_true(whole.rows_n > NODES);
        assert_same_books(&f, &whole, &groups);
        release(&whole);
        release(&groups);
        fleet_close(&f);
    }
}

/* ------------------------------------------------------------------ by hand */

#define A "UUID=GPU-a,gpu=0"

/* It is on n1, then on n2, which no record names and which is booked apart, then on n1 again: on
 * n1 it fills the ends of the node's life, and is not there in between. */
static void a_gpu_that_was_elsewhere_was_not_here(void **state)
{
    (void)state;
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    pack_all(&f, NULL);
    fleet_record(&f, "kube_node_info", "node=n1", -30, 90, 1);
    fleet_gpu(&f, A ",Hostname=n1,node=n1", 5, 20, 100, 0.5);
    fleet_gpu(&f, A ",Hostname=n2,node=n2", 25, 35, 100, 0.5);
    fleet_gpu(&f, A ",Hostname=n1,node=n1", 40, 55, 100, 0.5);
    fleet_book(&f, 0, 1);
    int64_t on[3] = {0};
    for (size_t i = 0; i < f.rows_n; i++)
        on[fleet_text(&f, f.rows[i].key.node)[1] - '0'] += f.rows[i].gpu_num;
    assert_int_equal(on[1], (20 + 20) * MINUTE_MS); /* [0, 20) and [40, 60) */
    assert_int_equal(on[2], 10 * MINUTE_MS);
    fleet_close(&f);
}

/* The pod is on n1, and labels show it on a GPU of n2 too, later: it keeps its GPU of n1 by the
 * stamp of the later one as if both were at hand. n1 is booked first. */
static void a_pod_that_labels_show_on_another_node_is_known_there(void **state)
{
    (void)state;
    struct books books[2];
    struct fleet f;
    fleet_open(&f, GPU_PRICE);
    for (int packed = 0; packed < 2; packed++) {
        if (packed)
            pack_all(&f, NULL);
        fleet_record(&f, "kube_node_info", "node=n1", -30, 90, 1);
        fleet_record(&f, "kube_node_info", "node=n2", -30, 90, 1);
        fleet_record(&f, "kube_pod_info", "node=n1,namespace=ns,pod=p,uid=u", -30, 90, 1);
        fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=n1,namespace=ns,pod=p,container=c", 20, 30, 100,
                  0.5);
        fleet_gpu(&f, "UUID=GPU-a,gpu=0,Hostname=n1", 30, 60, 100, 0.5);
        fleet_gpu(&f, "UUID=GPU-b,gpu=0,Hostname=n2,namespace=ns,pod=p,container=c", 5, 20, 100,
                  0.5);
        fleet_gpu(&f, "UUID=GPU-b,gpu=0,Hostname=n2", 20, 60, 100, 0.5);
        fleet_book(&f, 0, 1);
        /* Before minute 20 its first place is the one on n2, so that it holds nothing on n1. */
        assert_int_equal(fleet_row(&f, 0, "GPU-a", "p")->held_ms, 40 * MINUTE_MS);
        take_books(&f, &books[packed]);
    }
    assert_same_books(&f, &books[0], &books[1]);
    release(&books[0]);
    release(&books[1]);
    fleet_close(&f);
}

static void keep_nothing(void *context, const struct row_batch *batch)
{
    (void)context, (void)batch;
}

static void rows_that_cannot_be_read_back_end_the_booking(void **state)
{
    (void)state;
    for (int threads = 1; threads < 3; threads++) {
        struct fleet f;
        struct error err = {0};
        fleet_open(&f, GPU_PRICE);
        pack_all(&f, NULL);
        fleet_gpu(&f, A ",Hostname=n1", 0, 60, 100, 0.5);
        fleet_gpu(&f, "UUID=GPU-b,gpu=0,Hostname=n2", 0, 60, 100, 0.5);
        assert_true(f.intake->strips[1]->packed.bytes > 0);
        f.intake->strips[1]->packed.at++;
        struct engine_options options = {&f.settings, f.prices, f.owners, threads, NULL};
        struct span hours = {T0, T0 + HOUR_MS};
        assert_int_equal(engine_book(f.intake, hours, &options, keep_nothing, NULL, &f.carry, &err),
                         ERR_IO);
        assert_int_equal(err.code, ERR_IO);
        assert_non_null(strstr(err.text, "cannot be read back"));
        fleet_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_change_nothing),
        cmocka_unit_test(a_gpu_that_was_elsewhere_was_not_here),
        cmocka_unit_test(a_pod_that_labels_show_on_another_node_is_known_there),
        cmocka_unit_test(rows_that_cannot_be_read_back_end_the_booking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
