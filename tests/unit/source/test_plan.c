/* The plan: whatever is halved, grown and taken by how many threads, every ms of each metric is
 * read once, in order, and by one thread at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "source/plan.h"

static const struct wanted_metric metrics[3] = {
    {"a", "", METRIC_GROUP_KUBE}, {"b", "", METRIC_GROUP_GPU}, {"c", "", METRIC_GROUP_GPU}};

static void one_piece_a_metric_where_answers_are_streams(void **state)
{
    (void)state;
    struct plan_lane lanes[2] = {{&metrics[0], 0, 7 * DAY_MS}, {&metrics[1], 100, 200}};
    struct plan *plan = plan_new(lanes, 2, TIME_MAX, 0);
    struct piece piece, other;
    assert_true(plan_take(plan, &piece));
    assert_ptr_equal(piece.metric, &metrics[0]);
    assert_int_equal(piece.first, 0);
    assert_int_equal(piece.last, 7 * DAY_MS);
    assert_true(plan_take(plan, &other));
    assert_int_equal(other.last, 200);
    plan_done(plan, &other, 1);
    assert_true(plan_progress(plan) == 0.5);
    plan_done(plan, &piece, 1000000);
    assert_true(plan_finished(plan));
    assert_false(plan_take(plan, &piece));
    plan_free(plan);
}

static void pieces_grow_while_answers_are_small(void **state)
{
    (void)state;
    struct plan_lane lane = {&metrics[0], 0, 100 * HOUR_MS - 1};
    struct plan *plan = plan_new(&lane, 1, HOUR_MS, 1000);
    struct piece piece;
    assert_true(plan_take(plan, &piece));
    assert_int_equal(piece.last - piece.first + 1, HOUR_MS);
    plan_done(plan, &piece, 10); /* room for 100 times as much: grows by 4 at most */
    assert_true(plan_take(plan, &piece));
    assert_int_equal(piece.first, HOUR_MS);
    assert_int_equal(piece.last - piece.first + 1, 4 * HOUR_MS);
    plan_done(plan, &piece, 900); /* about right: stays */
    assert_true(plan_take(plan, &piece));
    assert_int_equal(piece.last - piece.first + 1, 4 * HOUR_MS);
    plan_done(plan, &piece, 5000); /* too many: halves */
    assert_true(plan_take(plan, &piece));
    assert_int_equal(piece.last - piece.first + 1, 2 * HOUR_MS);
    plan_free(plan);
}

static void a_piece_that_is_too_large_comes_again_in_halves(void **state)
{
    (void)state;
    struct plan_lane lane = {&metrics[0], 0, 8 * PLAN_STEP_MIN_MS - 1};
    struct plan *plan = plan_new(&lane, 1, TIME_MAX, 0);
    struct piece piece;
    for (int length = 8; length > 1; length /= 2) {
        assert_true(plan_take(plan, &piece));
        assert_int_equal(piece.first, 0);
        assert_int_equal(piece.last - piece.first + 1, length * PLAN_STEP_MIN_MS);
        assert_true(plan_halve(plan, &piece));
    }
    assert_true(plan_take(plan, &piece));
    assert_int_equal(piece.last - piece.first + 1, PLAN_STEP_MIN_MS);
    assert_false(plan_halve(plan, &piece));
    plan_free(plan);
}

static void a_stopped_plan_gives_nothing(void **state)
{
    (void)state;
    struct plan_lane lane = {&metrics[0], 0, 10};
    struct plan *plan = plan_new(&lane, 1, TIME_MAX, 0);
    struct piece piece;
    plan_stop(plan);
    assert_false(plan_take(plan, &piece));
    assert_false(plan_finished(plan));
    plan_free(plan);
}

#define LENGTH (200 * PLAN_STEP_MIN_MS)
struct shared {
    struct plan *plan;
    time_ms next[3];
    atomic_int in_lane[3], wrong;
    unsigned seed;
};

static void *take_pieces(void *context)
{
    struct shared *shared = context;
    unsigned random = __atomic_add_fetch(&shared->seed, 1, __ATOMIC_RELAXED);
    struct piece piece;
    while (plan_take(shared->plan, &piece)) {
        size_t lane = piece.lane;
        if (atomic_fetch_add(&shared->in_lane[lane], 1) != 0 || piece.first != shared->next[lane])
            atomic_fetch_add(&shared->wrong, 1);
        int dice = rand_r(&random) % 4;
        if (dice == 0) {
            atomic_fetch_sub(&shared->in_lane[lane], 1);
            if (plan_halve(shared->plan, &piece))
                continue;
            atomic_fetch_add(&shared->in_lane[lane], 1);
        }
        shared->next[lane] = piece.last + 1;
        atomic_fetch_sub(&shared->in_lane[lane], 1);
        plan_done(shared->plan, &piece, (uint64_t)(dice * 400));
    }
    return NULL;
}

static void every_ms_is_read_once_by_one_thread_at_a_time(void **state)
{
    (void)state;
    unsigned seed = 20261130;
    printf("seed %u\n", seed);
    for (int round = 0; round < 50; round++) {
        struct plan_lane lanes[3];
        for (int i = 0; i < 3; i++)
            lanes[i] = (struct plan_lane){&metrics[i], i * 7, LENGTH + i};
        struct shared shared = {.plan = plan_new(lanes, 3, 10 * PLAN_STEP_MIN_MS, 1000),
                                .next = {0, 7, 14},
                                .seed = seed + (unsigned)round * 100};
        pthread_t threads[5];
        for (int i = 0; i < 5; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_pieces, &shared), 0);
        for (int i = 0; i < 5; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(shared.wrong, 0);
        assert_true(plan_finished(shared.plan));
        for (int i = 0; i < 3; i++)
            assert_int_equal(shared.next[i], LENGTH + i + 1);
        plan_free(shared.plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_piece_a_metric_where_answers_are_streams),
        cmocka_unit_test(pieces_grow_while_answers_are_small),
        cmocka_unit_test(a_piece_that_is_too_large_comes_again_in_halves),
        cmocka_unit_test(a_stopped_plan_gives_nothing),
        cmocka_unit_test(every_ms_is_read_once_by_one_thread_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
