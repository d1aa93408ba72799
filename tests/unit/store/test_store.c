/* The store against a plain model in memory: what was put in comes back, exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../lib/random_rows.h"
#include "store/store.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */

static struct error failure;
#define must(call)                                                                                 \
    do {                                                                                           \
        failure.text[0] = 0;                                                                       \
        if ((call) != ERR_OK)                                                                      \
            fail_msg("%s: %s", #call, failure.text);                                               \
    } while (0)

struct collected {
    struct row_batch all;
    size_t batches;
};
static bool collect(void *context, const struct row_batch *batch)
{
    struct collected *into = context;
    into->batches++;
    for (size_t i = 0; i < batch->rows_n; i++)
        mem_push(into->all.rows, into->all.rows_n, into->all.rows_room, batch->rows[i]);
    for (size_t i = 0; i < batch->node_hours_n; i++)
        mem_push(into->all.node_hours, into->all.node_hours_n, into->all.node_hours_room,
                 batch->node_hours[i]);
    for (size_t i = 0; i < batch->notes_n; i++)
        mem_push(into->all.notes, into->all.notes_n, into->all.notes_room, batch->notes[i]);
    return true;
}

static void a_row_comes_back_as_it_went_in(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct names *names = names_new();
    struct row_batch batch = {.names = names, .hours = {H0, H0 + 24 * HOUR_MS}};
    for (int h = 0; h < 24; h++)
        random_node_hour(&dice, &batch, H0 + h * HOUR_MS, NAME_NONE, names_put(names, STR("n1")));
    random_rows_sort(&batch);
    struct store *store;
    must(store_open(":memory:", STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    must(store_append(store, &batch, &failure));
    must(store_commit(store, NULL, &failure));
    struct collected got = {0};
    must(store_read_rows(store, batch.hours, collect, &got, &failure));
    assert_int_equal(got.all.rows_n, batch.rows_n);
    assert_int_equal(got.all.node_hours_n, batch.node_hours_n);
    for (size_t i = 0; i < batch.rows_n; i++)
        assert_true(same_row(&got.all.rows[i], &batch.rows[i]));
    for (size_t i = 0; i < batch.node_hours_n; i++)
        assert_true(same_node_hour(&got.all.node_hours[i], &batch.node_hours[i]));
    store_close(store);
    row_batch_release(&batch);
    row_batch_release(&got.all);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_comes_back_as_it_went_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
