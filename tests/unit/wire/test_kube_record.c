/* Records of a Kubernetes API: what is written comes back, and what is none is refused. */
#include "../../lib/unit.h"

#include <string.h>

#include "wire/kube_record.h"

static struct kube_pod read_back;
static size_t pods;

static void on_pod(void *context, const struct kube_pod *pod)
{
    (void)context;
    read_back = *pod;
    pods++;
}

static struct kube_pod full_pod(void)
{
    static const struct label labels[] = {{STR("app"), STR("a")}, {STR("team"), STR("blue")}};
    static const struct kube_quantity requests[] = {{STR("nvidia.com/gpu"), 2000},
                                                    {STR("cpu"), 100}};
    static const struct kube_container containers[] = {
        {STR("load"), true, false, NULL, 0, 0},
        {STR("proxy"), true, true, &requests[1], 1, 0},
        {STR("main"), false, false, requests, 2, 1500},
    };
    static const struct str claims[] = {STR("c1"), STR("c2")};
    return (struct kube_pod){
        .namespace = STR("ns"),
        .name = STR("a-1"),
        .uid = STR("u1"),
        .node = STR("n1"),
        .phase = STR("Running"),
        .owner_kind = STR("Job"),
        .owner_name = STR("a"),
        .owner_api = STR("batch/v1"),
        .owner_uid = STR("u0"),
        .priority_class = STR("high"),
        .created = 0, /* the epoch is a time */
        .scheduled = 1790000000123,
        .started = 1790000001000,
        .finished = TIME_MIN,
        .deletion = TIME_MIN,
        .deletion_grace_s = 0,
        .labels = labels,
        .labels_n = 2,
        .annotations = labels,
        .annotations_n = 1,
        .containers = containers,
        .containers_n = 3,
        .claims = claims,
        .claims_n = 2,
    };
}

static void a_pod_comes_back_as_it_was(void **state)
{
    (void)state;
    struct kube_pod pod = full_pod();
    struct strbuf object = {0}, again = {0}, bytes = {0};
    struct arena arena = {0};
    struct kube_sink sink = {.pod = on_pod};
    struct kube_record record = kube_record_of(KUBE_ACT_OBJECT, KUBE_KIND_POD, 1790000002000,
                                               STR("east")),
                       ret;
    kube_record_pod(&object, &pod);
    record.object = strbuf_str(&object);
    record.snapshot = true;
    record.first = 5;
    kube_record_write(&bytes, &record);
    assert_int_equal(kube_record_read(strbuf_str(&bytes), &ret, NULL), ERR_OK);
    assert_int_equal(ret.act, KUBE_ACT_OBJECT);
    assert_int_equal(ret.kind, KUBE_KIND_POD);
    assert_int_equal(ret.t, 1790000002000);
    assert_int_equal(ret.first, 5);
    assert_int_equal(ret.lacked, TIME_MIN);
    assert_true(ret.snapshot && str_eq(ret.cluster, STR("east")));
    pods = 0;
    assert_int_equal(kube_record_object(ret.kind, ret.object, &arena, &sink, NULL), ERR_OK);
    assert_int_equal(pods, 1);
    assert_int_equal(read_back.created, 0);
    assert_int_equal(read_back.scheduled, 1790000000123);
    assert_int_equal(read_back.finished, TIME_MIN);
    assert_int_equal(read_back.deletion_grace_s, 0);
    assert_int_equal(read_back.containers_n, 3);
    assert_true(read_back.containers[1].sidecar && !read_back.containers[2].init);
    assert_int_equal(read_back.containers[2].requests[0].milli, 2000);
    assert_int_equal(read_back.containers[2].cpu_limit_milli, 1500);
    assert_int_equal(read_back.containers[1].cpu_limit_milli, 0);
    assert_true(str_eq(read_back.claims[1], STR("c2")));
    assert_true(str_eq(read_back.owner_api, STR("batch/v1")));
    kube_record_pod(&again, &read_back);
    assert_true(str_eq(strbuf_str(&object), strbuf_str(&again)));
    strbuf_release(&object);
    strbuf_release(&again);
    strbuf_release(&bytes);
    arena_release(&arena);
}

static void every_cut_of_a_record_is_refused_or_lacks_its_end(void **state)
{
    (void)state;
    struct kube_pod pod = full_pod();
    struct strbuf object = {0};
    struct kube_sink sink = {.pod = on_pod};
    kube_record_pod(&object, &pod);
    pods = 0;
    size_t whole = 0;
    for (size_t n = 0; n < object.n; n++) {
        struct arena arena = {0};
        enum err e =
            kube_record_object(KUBE_KIND_POD, (struct str){object.text, n}, &arena, &sink, NULL);
        assert_true(e == ERR_OK || e == ERR_PARSE);
        whole += e == ERR_OK;
        arena_release(&arena);
    }
    assert_int_equal(pods, whole); /* nothing of a refused one is handed on */
    strbuf_release(&object);
}

static void labels_that_are_too_long_are_left_out(void **state)
{
    (void)state;
    char *text = mem_alloc(100000);
    memset(text, 'x', 100000);
    struct label labels[] = {{STR("big"), {text, 100000}}, {STR("team"), STR("blue")}};
    struct kube_pod pod = full_pod();
    struct strbuf object = {0};
    struct arena arena = {0};
    struct kube_sink sink = {.pod = on_pod};
    pod.labels = labels;
    kube_record_pod(&object, &pod);
    assert_int_equal(kube_record_object(KUBE_KIND_POD, strbuf_str(&object), &arena, &sink, NULL),
                     ERR_OK);
    assert_int_equal(read_back.labels_n, 1);
    assert_true(str_eq(read_back.labels[0].value, STR("blue")));
    strbuf_release(&object);
    arena_release(&arena);
    free(text);
}

static void what_is_no_record_is_refused(void **state)
{
    (void)state;
    struct kube_record ret;
    static const struct str none[] = {STR(""), STR("hello"), STR("\x08\x01"),
                                      STR("\x08\x01\x10\x02\x18\x01\x20\x05")};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(kube_record_read(none[i], &ret, NULL), ERR_PARSE);
    /* version 2 */
    assert_int_equal(kube_record_read(STR("\x08\x02\x10\x05\x18\x01\x20\x05"), &ret, NULL),
                     ERR_UNSUPPORTED);
    assert_int_equal(kube_record_read(STR("\x08\x01\x10\x05\x18\x01\x20\x05"), &ret, NULL), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_comes_back_as_it_was),
        cmocka_unit_test(every_cut_of_a_record_is_refused_or_lacks_its_end),
        cmocka_unit_test(labels_that_are_too_long_are_left_out),
        cmocka_unit_test(what_is_no_record_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
