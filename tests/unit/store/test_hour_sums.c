/* Sums of hours: what a window that cuts days is answered from. */
#include <sys/stat.h>

#include "../../lib/ledger_file.h"
#include "../../lib/random_rows.h"
#include "store/hour_sums.h"
#include "store/maintain.h"

#define H0 (INT64_C(1795996800000)) /* 2026-11-30T00:00Z */
#define DAY0 (H0 / DAY_MS)
#define NODES 5
#define GPUS 8 /* a node */

static void execute(const char *sql)
{
    sqlite3 *db;
    sqlite3_open(path, &db);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* Five nodes of eight $2 GPUs, all of one team, for so many hours of the day; the last GPU of each
 * node has rows from 12:00 on only, the node's price is $16 whatever has rows. */
static void book(int hours, int nodes)
{
    struct names *names = names_new();
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    must(store_begin(store, &failure));
    for (int n = 0; n < nodes; n++) {
        struct row_batch batch = {.names = names, .hours = {H0, H0 + DAY_MS}};
        char text[32];
        snprintf(text, sizeof text, "node-%d", n);
        for (int h = 0; h < hours; h++) {
            struct node_hour hour = {.hour = H0 + h * HOUR_MS,
                                     .node = names_put(names, str_of(text)),
                                     .price = 16 * NANO,
                                     .booked = 16 * NANO,
                                     .up_ms = HOUR_MS,
                                     .gpus = GPUS};
            mem_push(batch.node_hours, batch.node_hours_n, batch.node_hours_room, hour);
            int gpus = h < 12 ? GPUS - 1 : GPUS;
            for (int g = 0; g < gpus; g++) {
                char gpu[32];
                snprintf(gpu, sizeof gpu, "GPU-%d-%d", n, g);
                struct row row;
                memset(&row, 0, sizeof row);
                row.key.hour = hour.hour;
                row.key.node = hour.node;
                row.key.device = names_put(names, str_of(gpu));
                row.facts.owner = names_put(names, STR("search"));
                row.share_den = 1;
                row.gpu_num = HOUR_MS;
                row.cost = gpus < GPUS && g == 0 ? 4 * NANO : 2 * NANO;
                row.category[CATEGORY_EMPTY] = row.cost;
                mem_push(batch.rows, batch.rows_n, batch.rows_room, row);
            }
        }
        must(store_append(store, &batch, &failure));
        row_batch_release(&batch);
    }
    must(store_commit(store, NULL, &failure));
    store_close(store);
    names_free(names);
}

struct seen {
    struct figures figures;
    uint64_t node_hours, gpus, parts;
    money_t booked;
    uint32_t hours; /* that parts say to be of */
};

static void on_part(void *context, const struct scan_part *part)
{
    struct seen *seen = context;
    figures_add(&seen->figures, part->figures);
    seen->parts++;
    seen->hours |= 1u << ((part->key->hour - H0) / HOUR_MS);
}
static void on_node(void *context, const struct scan_node *node)
{
    struct seen *seen = context;
    seen->node_hours += node->hours;
    seen->booked += node->booked;
    seen->gpus += node->devices_n;
}
static void no_note(void *context, const struct note *note)
{
    (void)context, (void)note;
}

static enum err look(int from, int to, enum scan_detail detail, struct seen *ret)
{
    struct names *names = names_new();
    struct store *store;
    struct span recorded;
    *ret = (struct seen){0};
    struct scan scan = {.hours = {H0 + from * HOUR_MS, H0 + to * HOUR_MS},
                        .detail = detail,
                        .context = ret,
                        .part = on_part,
                        .node = on_node,
                        .note = no_note};
    enum err code = store_open(path, STORE_READ, names, &store, &failure);
    if (!code) {
        code = store_scan(store, &scan, &recorded, &failure);
        store_close(store);
    }
    names_free(names);
    return code;
}

static bool are_there(void)
{
    struct names *names = names_new();
    struct store *store;
    bool there;
    must(store_open(path, STORE_READ, names, &store, &failure));
    must(hour_sums_are_there(store, DAY0, &there, &failure));
    store_close(store);
    names_free(names);
    return there;
}

static enum err verify(void)
{
    struct names *names = names_new();
    struct store *store;
    must(store_open(path, STORE_READ, names, &store, &failure));
    enum err code = store_verify(store, NULL, &failure);
    store_close(store);
    names_free(names);
    return code;
}

/* Days that should have sums of hours and have none. */
static size_t without(void)
{
    struct names *names = names_new();
    struct store *store;
    size_t days = 99;
    must(store_open(path, STORE_READ, names, &store, &failure));
    must(store_verify(store, &days, &failure));
    store_close(store);
    names_free(names);
    return days;
}

/* Hand: from 10:00 to 13:00 five nodes cost 3 x 5 x $16 = $240; GPU-hours are 5 x (7 + 7 + 8) =
 * 110; 40 GPUs have rows, of 10:00 to 12:00 alone 35. */
static void assert_three_hours(const struct seen *seen)
{
    assert_int_equal(seen->figures.cost, 240 * NANO);
    assert_int_equal(seen->figures.category[CATEGORY_EMPTY], 240 * NANO);
    assert_int_equal(seen->figures.rows, 110);
    assert_true(seen->figures.gpu_ns == (wide_t)110 * 3600 * NANO);
    assert_int_equal(seen->booked, 240 * NANO);
    assert_int_equal(seen->node_hours, 15);
    assert_int_equal(seen->gpus, 40);
}

static void a_cut_day_is_answered_without_its_blocks(void **state)
{
    (void)state;
    struct seen seen;
    book(24, NODES);
    must(verify());
    assert_true(are_there());
    execute("DELETE FROM block");
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
    must(look(10, 13, SCAN_HOURS, &seen));
    assert_three_hours(&seen);
    assert_int_equal(seen.hours, 7u << 10);
    assert_int_equal(seen.parts, 3);
    must(look(10, 12, SCAN_TEAMS, &seen));
    assert_int_equal(seen.gpus, 35);
    must(look(0, 24, SCAN_HOURS, &seen)); /* 12 x 35 + 12 x 40 */
    assert_int_equal(seen.figures.rows, 900);
    assert_int_equal(seen.hours, 0xffffff);
    must(look(10, 13, SCAN_SERIES, &seen)); /* which sums of hours do not tell apart */
    assert_int_equal(seen.figures.rows, 0);
}

/* 24 hours with one sum each: 32 rows for each are 768 rows. */
static void few_rows_have_no_sums_of_hours(void **state)
{
    (void)state;
    struct seen seen;
    book(24, 4); /* 720 rows */
    assert_false(are_there());
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_int_equal(seen.figures.cost, 192 * NANO);
    book(24, NODES); /* 900 */
    assert_true(are_there());
    must(verify());
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
}

/* A day that loses rows loses hours' sums, or all of them. */
static void sums_of_hours_go_with_their_rows(void **state)
{
    (void)state;
    struct seen seen;
    struct names *names = names_new();
    struct store *store;
    book(24, NODES);
    must(store_open(path, STORE_WRITE, names, &store, &failure));
    must(store_retain(store, H0 + 12 * HOUR_MS, &failure)); /* 480 rows, 12 sums: 40 each */
    assert_true(are_there());
    must(look(0, 13, SCAN_HOURS, &seen));
    assert_int_equal(seen.figures.cost, 80 * NANO);
    assert_int_equal(seen.hours, 1u << 12);
    assert_int_equal(seen.node_hours, 5);
    must(store_verify(store, NULL, &failure));
    must(store_retain(store, H0 + DAY_MS, &failure));
    assert_false(are_there());
    store_close(store);
    names_free(names);
}

static void a_database_of_before_is_read_by_blocks_and_gets_them_by_vacuum(void **state)
{
    (void)state;
    struct seen seen;
    int64_t before, after;
    book(24, NODES);
    execute("DROP TABLE hour_sums; PRAGMA user_version = 4");
    struct names *names = names_new();
    struct store *store;
    must(store_open(path, STORE_WRITE, names, &store, &failure)); /* brings it to today's schema */
    store_close(store);
    names_free(names);
    assert_false(are_there());
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
    assert_int_equal(without(), 1);
    must(store_vacuum(path, &before, &after, &failure));
    assert_true(are_there());
    assert_int_equal(without(), 0);
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
}

static void days_that_lack_them_are_counted_and_get_them(void **state)
{
    (void)state;
    struct seen seen;
    book(24, NODES);
    assert_int_equal(without(), 0);
    execute("DELETE FROM hour_sums");
    assert_int_equal(without(), 1);
    must(store_add_hour_sums(path, &failure));
    assert_true(are_there());
    assert_int_equal(without(), 0);
    execute("DELETE FROM block");
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
}

static void repair_makes_them_anew(void **state)
{
    (void)state;
    char to[TEMPORARY_MAX + 64];
    struct store_repaired repaired;
    const struct store_repair options = {0};
    struct seen seen;
    book(24, NODES);
    execute("UPDATE hour_sums SET data = x'00'");
    assert_int_equal(verify(), ERR_STORE);
    snprintf(to, sizeof to, "%s/repaired.db", folder);
    must(store_repair(path, to, &options, &repaired, &failure));
    assert_int_equal(repaired.dropped, 0);
    assert_int_equal(rename(to, path), 0);
    must(verify());
    assert_true(are_there());
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
}

static void what_is_missing_is_an_error_or_read_from_blocks(void **state)
{
    (void)state;
    struct seen seen;
    char sql[96];
    book(24, NODES);
    snprintf(sql, sizeof sql, "DELETE FROM hour_sums WHERE key = %lld",
             (long long)(DAY0 * 32 + 1 + 11));
    execute(sql);
    assert_int_equal(look(10, 13, SCAN_TEAMS, &seen), ERR_STORE);
    assert_non_null(strstr(failure.text, "missing"));
    must(look(12, 13, SCAN_TEAMS, &seen)); /* not of what is asked for */
    assert_int_equal(seen.figures.cost, 80 * NANO);
    assert_int_equal(verify(), ERR_STORE);
    snprintf(sql, sizeof sql, "DELETE FROM hour_sums WHERE key = %lld", (long long)(DAY0 * 32));
    execute(sql);
    must(look(10, 13, SCAN_TEAMS, &seen));
    assert_three_hours(&seen);
    assert_int_equal(verify(), ERR_STORE);
}

/* Every byte of every value may be another: never a crash, and verify finds each. */
static void a_changed_byte_is_found(void **state)
{
    (void)state;
    struct dice dice = {dice_seed()};
    struct seen seen;
    book(24, NODES);
    for (int round = 0; round < 60; round++) {
        char sql[256];
        int64_t key = DAY0 * 32 + (int64_t)dice_below(&dice, 25);
        execute("CREATE TABLE IF NOT EXISTS sound AS SELECT * FROM hour_sums");
        /* 1 + a random byte's place, by a number that is taken modulo the length */
        snprintf(sql, sizeof sql,
                 "UPDATE hour_sums SET data = CAST(substr(data, 1, %llu %% length(data)) || "
                 "x'%02x' || substr(data, 2 + %llu %% length(data)) AS BLOB) WHERE key = %lld",
                 (unsigned long long)round * 7, (unsigned)dice_below(&dice, 256),
                 (unsigned long long)round * 7, (long long)key);
        execute(sql);
        look(3, 20, SCAN_TEAMS, &seen);
        look(3, 20, SCAN_HOURS, &seen);
        bool same = false;
        sqlite3 *db;
        sqlite3_stmt *count;
        sqlite3_open(path, &db);
        sqlite3_prepare_v2(db, "SELECT count(*) FROM hour_sums JOIN sound USING(key, data)", -1,
                           &count, NULL);
        if (sqlite3_step(count) == SQLITE_ROW)
            same = sqlite3_column_int(count, 0) == 25;
        sqlite3_finalize(count);
        sqlite3_close(db);
        assert_int_equal(verify() == ERR_OK, same);
        execute("DELETE FROM hour_sums; INSERT INTO hour_sums SELECT * FROM sound");
    }
    must(verify());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(name, empty_folder)
        test(a_cut_day_is_answered_without_its_blocks),
        test(few_rows_have_no_sums_of_hours),
        test(sums_of_hours_go_with_their_rows),
        test(a_database_of_before_is_read_by_blocks_and_gets_them_by_vacuum),
        test(days_that_lack_them_are_counted_and_get_them),
        test(repair_makes_them_anew),
        test(what_is_missing_is_an_error_or_read_from_blocks),
        test(a_changed_byte_is_found),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
