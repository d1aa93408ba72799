/* The demo's fleet: the same for the same options, sane at every instant, and its text the same
 * however it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/demo_text.h"

#define FROM_MS INT64_C(1795737600000) /* 2026-11-27T00:00:00Z, a Friday */

static struct demo_fleet *fleet_of(int gpus, int hours, uint64_t seed)
{
    struct demo_options options = {.gpus = gpus,
                                   .window = {FROM_MS, FROM_MS + hours * HOUR_MS},
                                   .step_ms = 60000,
                                   .seed = seed};
    return demo_fleet_new(&options);
}

/* The fleet's text of a span; the caller frees. */
static char *text_of(const struct demo_fleet *fleet, struct span span, size_t *ret_n)
{
    int fd = memfd_create("demo", 0);
    assert_int_equal(demo_text_write(fleet, span, span, fd, NULL), ERR_OK);
    off_t n = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)n + 1);
    assert_int_equal(pread(fd, text, (size_t)n, 0), n);
    text[n] = 0;
    close(fd);
    *ret_n = (size_t)n;
    return text;
}

static void the_same_options_give_the_same_text(void **state)
{
    (void)state;
    char *texts[3];
    size_t n[3];
    for (int i = 0; i < 3; i++) {
        struct demo_fleet *fleet = fleet_of(12, 3, i < 2 ? 1 : 2);
        texts[i] = text_of(fleet, fleet->options.window, &n[i]);
        demo_fleet_free(fleet);
    }
    assert_true(n[0] == n[1] && memcmp(texts[0], texts[1], n[0]) == 0);
    assert_false(n[0] == n[2] && memcmp(texts[0], texts[2], n[0]) == 0);
    for (int i = 0; i < 3; i++)
        free(texts[i]);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The sample lines of texts, sorted. */
static char **lines_of(char **texts, size_t texts_n, size_t *ret_n)
{
    char **lines = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < texts_n; i++) {
        for (char *rest = texts[i], *line; (line = strsep(&rest, "\n"));)
            if (*line && *line != '#')
                mem_push(lines, n, room, line);
    }
    qsort(lines, n, sizeof *lines, by_text);
    *ret_n = n;
    return lines;
}

static void spans_of_text_make_up_the_whole(void **state)
{
    (void)state;
    struct demo_fleet *fleet = fleet_of(64, 2, 3);
    struct span all = fleet->options.window;
    time_ms cut = all.from + 2777777;
    size_t n, whole_n, parts_n;
    char *whole[] = {text_of(fleet, all, &n)};
    char *parts[] = {text_of(fleet, (struct span){all.from, cut}, &n),
                     text_of(fleet, (struct span){cut + 1, all.to}, &n)};
    char **expected = lines_of(whole, 1, &whole_n), **got = lines_of(parts, 2, &parts_n);
    assert_true(whole_n > 10000);
    assert_int_equal(whole_n, parts_n);
    for (size_t i = 0; i < whole_n; i++)
        assert_string_equal(expected[i], got[i]);
    free(expected);
    free(got);
    free(whole[0]);
    free(parts[0]);
    free(parts[1]);
    demo_fleet_free(fleet);
}

static void gpus_are_rounded_up_to_whole_machines(void **state)
{
    (void)state;
    static const int cases[][2] = {{1, 4}, {4, 4}, {10, 12}, {64, 64}, {65, 68}, {1000, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct demo_fleet *fleet = fleet_of(cases[i][0], 1, 1);
        size_t gpus = 0;
        for (size_t k = 0; k < fleet->nodes_n; k++)
            gpus += fleet->nodes[k].devices_n;
        assert_int_equal(gpus, cases[i][1]);
        demo_fleet_free(fleet);
    }
}

static void a_slot_has_one_user_at_a_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct demo_fleet *fleet = fleet_of(64, 240, seed);
        for (size_t i = 0; i < fleet->nodes_n; i++) {
            const struct demo_node *node = &fleet->nodes[i];
            for (size_t k = 0; k < node->slots_n; k++) {
                const struct demo_slot *slot = node->slots[k];
                for (size_t s = 0; s < slot->spans_n; s++) {
                    struct span time = slot->spans[s].time;
                    assert_true(time.from < time.to && time.from >= node->up.from);
                    assert_true(s == 0 || time.from >= slot->spans[s - 1].time.to);
                    if (time.to != TIME_MAX)
                        assert_true(time.to <= node->up.to);
                }
            }
        }
        demo_fleet_free(fleet);
    }
}

static void readings_stay_in_their_ranges(void **state)
{
    (void)state;
    struct demo_fleet *fleet = fleet_of(64, 24, 5);
    for (size_t i = 0; i < fleet->nodes_n; i++) {
        for (size_t k = 0; k < fleet->nodes[i].slots_n; k++) {
            const struct demo_slot *slot = fleet->nodes[i].slots[k];
            for (size_t s = 0; s < slot->spans_n; s++) {
                const struct demo_span *span = &slot->spans[s];
                time_ms to = span->time.to < FROM_MS + DAY_MS ? span->time.to : FROM_MS + DAY_MS;
                time_ms t = span->time.from > FROM_MS ? span->time.from : FROM_MS;
                for (; t < to; t += 61001) {
                    struct demo_reading r;
                    demo_slot_read(fleet, slot, span, t, &r);
                    assert_in_range(r.util_percent, 0, 100);
                    assert_in_range(r.engine, 0, 1000000);
                    assert_in_range(r.sm, 0, r.engine);
                    assert_in_range(r.tensor, 0, r.sm);
                    assert_in_range(r.dram, 0, r.sm);
                    assert_in_range(r.memory_mib, 0, slot->memory_mib);
                }
            }
        }
    }
    demo_fleet_free(fleet);
}

/* Power is noisy by 3 % around a mean that is steady between knots, and the counter is that mean's
 * integral: over a day the sum of power x time is the counter's growth to 1 %. */
static void the_energy_counter_is_the_integral_of_power(void **state)
{
    (void)state;
    struct demo_fleet *fleet = fleet_of(8, 24, 6);
    for (size_t k = 0; k < fleet->nodes[0].devices_n; k++) {
        const struct demo_device *device = &fleet->nodes[0].devices[k];
        size_t cursor = 0;
        int64_t milliwatts, millijoules, first = 0, last = 0;
        double sum = 0;
        for (time_ms t = FROM_MS; t < FROM_MS + DAY_MS; t += 30000) {
            demo_device_read(fleet, device, t, &cursor, &milliwatts, &millijoules);
            assert_true(t == FROM_MS || millijoules > last);
            first = t == FROM_MS ? millijoules : first;
            last = millijoules;
            sum += (double)milliwatts * 30;
        }
        double grown = (double)(last - first);
        assert_true(sum > grown * 0.99 && sum < grown * 1.01);
    }
    demo_fleet_free(fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_options_give_the_same_text),
        cmocka_unit_test(spans_of_text_make_up_the_whole),
        cmocka_unit_test(gpus_are_rounded_up_to_whole_machines),
        cmocka_unit_test(a_slot_has_one_user_at_a_time),
        cmocka_unit_test(readings_stay_in_their_ranges),
        cmocka_unit_test(the_energy_counter_is_the_integral_of_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
