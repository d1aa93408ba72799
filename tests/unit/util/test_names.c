#include <pthread.h>

#include "../../lib/unit.h"
#include "util/names.h"

static void the_empty_text_is_none(void **state)
{
    (void)state;
    struct names *names = names_new();
    assert_int_equal(names_put(names, STR_NONE), NAME_NONE);
    assert_int_equal(names_put(names, STR("")), NAME_NONE);
    assert_int_equal(names_count(names), 1);
    names_free(names);
    names_free(NULL);
}

static void equal_texts_have_one_id(void **state)
{
    (void)state;
    struct names *names = names_new();
    name_t a = names_put(names, STR("gpu-1")), b = names_put(names, STR("gpu-2"));
    assert_int_not_equal(a, b);
    assert_int_equal(names_put(names, STR("gpu-1")), a);
    assert_string_equal(names_text(names, b).p, "gpu-2");
    assert_int_equal(names_text(names, b).n, 5);
    names_free(names);
}

static void bytes_of_any_kind_are_kept(void **state)
{
    (void)state;
    struct names *names = names_new();
    struct str odd = {"a\0b\xff", 4};
    name_t id = names_put(names, odd), plain = names_put(names, STR("a"));
    assert_int_not_equal(id, plain);
    assert_true(str_eq(names_text(names, id), odd));
    names_free(names);
}

static void finding_does_not_put(void **state)
{
    (void)state;
    struct names *names = names_new();
    name_t id = 77;
    assert_false(names_find(names, STR("x"), &id));
    assert_int_equal(id, 77);
    name_t put = names_put(names, STR("x"));
    assert_true(names_find(names, STR("x"), &id));
    assert_int_equal(id, put);
    assert_int_equal(names_count(names), 2);
    names_free(names);
}

static void texts_never_move(void **state)
{
    (void)state;
    struct names *names = names_new();
    name_t first = names_put(names, STR("first"));
    const char *where = names_text(names, first).p;
    for (int i = 0; i < 50000; i++) {
        char text[32];
        snprintf(text, sizeof text, "text %d", i);
        name_t id = names_put(names, str_of(text));
        assert_true(str_eq(names_text(names, id), str_of(text)));
    }
    assert_ptr_equal(names_text(names, first).p, where);
    assert_int_equal(names_count(names), 50002);
    assert_true(names_bytes(names) > 50000 * 8);
    names_free(names);
}

#define THREADS 4
#define TEXTS 5000

struct putter {
    struct names *names;
    unsigned seed;
    name_t id[TEXTS];
};

static void *put_all(void *context)
{
    struct putter *putter = context;
    for (unsigned i = 0; i < TEXTS; i++) {
        unsigned which = (i * 7919u + putter->seed * 1237u) % TEXTS;
        char text[32];
        snprintf(text, sizeof text, "pod-%u", which);
        putter->id[which] = names_put(putter->names, str_of(text));
        if (!str_eq(names_text(putter->names, putter->id[which]), str_of(text)))
            return context;
    }
    return NULL;
}

static void threads_that_put_the_same_texts_get_the_same_ids(void **state)
{
    (void)state;
    static struct putter putters[THREADS];
    struct names *names = names_new();
    pthread_t ids[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        putters[i].names = names;
        putters[i].seed = i;
        assert_int_equal(pthread_create(&ids[i], NULL, put_all, &putters[i]), 0);
    }
    size_t bytes = 0; /* may be asked for meanwhile, and only grows */
    for (int i = 0; i < 1000; i++) {
        assert_true(names_bytes(names) >= bytes);
        bytes = names_bytes(names);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(ids[i], &wrong);
        assert_null(wrong);
        assert_memory_equal(putters[i].id, putters[0].id, sizeof putters[0].id);
    }
    assert_int_equal(names_count(names), TEXTS + 1);
    names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_empty_text_is_none),
        cmocka_unit_test(equal_texts_have_one_id),
        cmocka_unit_test(bytes_of_any_kind_are_kept),
        cmocka_unit_test(finding_does_not_put),
        cmocka_unit_test(texts_never_move),
        cmocka_unit_test(threads_that_put_the_same_texts_get_the_same_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
