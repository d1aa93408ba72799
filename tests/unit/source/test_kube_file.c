/* Kubernetes lists as a source: files in, objects in an intake out. */
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "../../lib/unit.h"
#include "fleet/intake_data.h"
#include "fleet/settings.h"
#include "ledger/engine.h"
#include "source/kube_file.h"

struct fixture {
    struct names *names;
    struct settings settings;
    struct intake *intake;
    struct source *source;
    char folder[TEMPORARY_MAX];
    int files;
    const char *paths[8];
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    settings_defaults(&f->settings);
    f->names = names_new();
    f->intake = intake_new(&f->settings, f->names);
    temporary(f->folder, "kube_file");
    assert_non_null(mkdtemp(f->folder));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    source_free(f->source);
    intake_free(f->intake);
    names_free(f->names);
    for (int i = 0; i < f->files; i++) {
        unlink(f->paths[i]);
        free((char *)f->paths[i]);
    }
    rmdir(f->folder);
    free(f);
    return 0;
}

static void put_bytes(struct fixture *f, const void *bytes, size_t n)
{
    char path[TEMPORARY_MAX + 32];
    snprintf(path, sizeof path, "%s/%d.json", f->folder, f->files);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
    f->paths[f->files++] = strdup(path);
}

static void put(struct fixture *f, const char *text)
{
    put_bytes(f, text, strlen(text));
}

static enum err open_source(struct fixture *f)
{
    struct span extent;
    double an_hour;
    assert_int_equal(kube_file_source_new(f->paths, (size_t)f->files, "prod", &f->source, &f->err),
                     ERR_OK);
    return f->source->ops->survey(f->source, (struct span){0, HOUR_MS}, &extent, &an_hour, NULL,
                                  &f->err);
}

static enum err fetch(struct fixture *f)
{
    enum err rc = open_source(f);
    if (rc)
        return rc;
    struct fetch what = {.kube = {0, HOUR_MS}, .gpu = {0, HOUR_MS}};
    return f->source->ops->fetch(f->source, &what, f->intake, NULL, &f->err);
}

static void check(enum err rc, const struct fixture *f)
{
    if (rc)
        fail_msg("%s", f->err.text);
}

static void same(struct fixture *f, name_t name, const char *text)
{
    assert_string_equal(names_text(f->names, name).p, text);
}

#define POD(name, uid, more)                                                                       \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"" uid     \
    "\"}" more "}"
#define SLICE                                                                                      \
    "{\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"d\","        \
    "\"pool\":{\"name\":\"w\",\"generation\":2},\"devices\":[{\"name\":\"gpu-0\",\"attributes\":{" \
    "\"uuid\":{\"string\":\"GPU-0\"}}},{\"name\":\"mig-1\",\"attributes\":{\"uuid\":{\"string\":"  \
    "\"MIG-1\"},\"parentUUID\":{\"string\":\"GPU-1\"},\"profile\":{\"string\":\"3g.71gb\"}}}]}}"
#define CLAIM(name, device, pod, uid)                                                              \
    "{\"kind\":\"ResourceClaim\",\"metadata\":{\"namespace\":\"n\",\"name\":\"" name               \
    "\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":"     \
    "\"d\",\"pool\":\"w\",\"device\":\"" device                                                    \
    "\"}]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"" pod "\",\"uid\":\"" uid "\"}]}}"

static void objects_of_all_files_reach_the_intake(void **state)
{
    struct fixture *f = *state;
    put(f,
        "{\"kind\":\"NodeList\",\"items\":[{\"metadata\":{\"name\":\"gpu-1\"},\"status\":{"
        "\"capacity\":{\"nvidia.com/gpu\":\"8\"},\"allocatable\":{\"nvidia.com/gpu\":\"7\"}}}]}");
    put(f, "{\"items\":[" POD("a", "u1",
                              ",\"spec\":{\"nodeName\":\"gpu-1\",\"containers\":[{\"name\":\"m\","
                              "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]},"
                              "\"status\":{\"startTime\":\"1970-01-01T00:10:00Z\"}") "]}");
    put(f, "{\"kind\":\"Job\",\"metadata\":{\"namespace\":\"n\",\"name\":\"j\",\"ownerReferences\":"
           "[{\"kind\":\"JobSet\",\"name\":\"s\",\"controller\":true}]}}"
           "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"labels\":{\"team\":\"t\"}}}");
    check(fetch(f), f);
    assert_int_equal(f->intake->nodes_n, 1);
    same(f, f->intake->nodes[0].cluster, "prod");
    same(f, f->intake->nodes[0].name, "gpu-1");
    assert_int_equal(f->intake->nodes[0].capacity[0], 8);
    assert_int_equal(f->intake->nodes[0].allocatable[0], 7);
    assert_int_equal(f->intake->pods_n, 1);
    same(f, f->intake->pods[0].node, "gpu-1");
    assert_int_equal(f->intake->pods[0].since, 600000);
    assert_int_equal(f->intake->pods[0].requests[0].count, 2);
    assert_int_equal(f->intake->owners_n, 1);
    same(f, f->intake->owners[0].owner_kind, "JobSet");
    assert_int_equal(f->intake->namespaces_n, 1);
    same(f, f->intake->namespaces[0].labels[0].value, "t");
    assert_int_equal(f->intake->notes_n, 0);
}

static void a_second_slice_gets_the_same_objects_and_no_note_twice(void **state)
{
    struct fixture *f = *state;
    put(f, "{\"items\":[" POD("a", "u1", "") ",null]}");
    check(fetch(f), f);
    assert_int_equal(f->intake->notes_n, 1);
    unlink(f->paths[0]); /* they are not read again */
    struct fetch what = {.kube = {0, HOUR_MS}, .gpu = {0, HOUR_MS}};
    struct intake *second = intake_new(&f->settings, f->names);
    check(f->source->ops->fetch(f->source, &what, second, NULL, &f->err), f);
    assert_int_equal(second->pods_n, 1);
    assert_int_equal(second->notes_n, 0); /* told once */
    intake_free(second);
}

static void put_again(struct fixture *f, int i, const char *text)
{
    char path[TEMPORARY_MAX + 32];
    snprintf(path, sizeof path, "%s/new", f->folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    assert_int_equal(rename(path, f->paths[i]), 0);
}

/* The next run: what the source says of it, into an intake of its own. */
static void run_again(struct fixture *f)
{
    struct span extent;
    double an_hour;
    struct fetch what = {.kube = {0, HOUR_MS}, .gpu = {0, HOUR_MS}};
    check(f->source->ops->survey(f->source, what.kube, &extent, &an_hour, NULL, &f->err), f);
    intake_free(f->intake);
    f->intake = intake_new(&f->settings, f->names);
    check(f->source->ops->fetch(f->source, &what, f->intake, NULL, &f->err), f);
}

static void a_later_run_reads_files_that_changed(void **state)
{
    struct fixture *f = *state;
    put(f, "{\"items\":[" POD("a", "u1", "") "]}");
    put(f, "{\"items\":[" POD("b", "u2", "") ",null]}");
    check(fetch(f), f);
    assert_int_equal(f->intake->pods_n, 2);
    put_again(f, 0, "{\"items\":[" POD("c", "u3", "") "," POD("d", "u4", "") "]}");
    run_again(f);
    assert_int_equal(f->intake->pods_n, 3); /* b, c, d */
    for (size_t i = 0; i < 3; i++)
        assert_true(names_text(f->names, f->intake->pods[i].name).p[0] != 'a');
    assert_int_equal(f->intake->notes_n, 1);
    same(f, f->intake->nodes_n ? f->intake->nodes[0].cluster : f->intake->pods[0].cluster, "prod");
    run_again(f); /* as it was */
    assert_int_equal(f->intake->pods_n, 3);
    assert_int_equal(f->intake->notes_n, 0);
    put_again(f, 1, "{\"items\":[]}");
    run_again(f);
    assert_int_equal(f->intake->pods_n, 2);
}

static void files_that_could_not_be_read_are_read_whole_by_the_next_try(void **state)
{
    struct fixture *f = *state;
    struct fetch what = {.kube = {0, HOUR_MS}, .gpu = {0, HOUR_MS}};
    put(f, "{\"items\":[" POD("a", "u1", "") ",null]}");
    put(f, "{\"items\":[" POD("b", "u2", "") "]}");
    check(open_source(f), f);
    char *lost = strdup(f->paths[1]);
    unlink(lost);
    assert_int_not_equal(f->source->ops->fetch(f->source, &what, f->intake, NULL, &f->err), ERR_OK);
    put_again(f, 1, "{\"items\":[" POD("b", "u2", "") "]}");
    free(lost);
    run_again(f);
    assert_int_equal(f->intake->pods_n, 2);
    assert_int_equal(f->intake->notes_n, 1); /* of the first file, once */
}

static const struct object_pod *pod_named(struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->intake->pods_n; i++)
        if (str_eq(names_text(f->names, f->intake->pods[i].name), str_of(name)))
            return &f->intake->pods[i];
    fail_msg("no pod %s", name);
    return NULL;
}

static void claims_give_devices_whatever_the_order_of_files(void **state)
{
    struct fixture *f = *state;
    put(f, "{\"items\":[" POD("whole", "u1", "") "," POD("mig", "u2", "") "," POD(
               "done", "u3",
               ",\"spec\":{\"resourceClaims\":[{\"name\":\"x\","
               "\"resourceClaimName\":\"c1\"}]}") "," POD("other", "u4", "") "]}");
    put(f, CLAIM("c1", "gpu-0", "whole", "u1") CLAIM("c2", "mig-1", "mig", "u2"));
    put(f, SLICE);
    check(fetch(f), f);
    assert_int_equal(pod_named(f, "whole")->devices_n, 1);
    same(f, pod_named(f, "whole")->devices[0], "GPU-0");
    assert_int_equal(pod_named(f, "mig")->devices_n, 1);
    same(f, pod_named(f, "mig")->devices[0], "GPU-1/3g.71gb/MIG-1");
    assert_int_equal(pod_named(f, "done")->devices_n, 1); /* by its own spec */
    same(f, pod_named(f, "done")->devices[0], "GPU-0");
    assert_int_equal(pod_named(f, "other")->devices_n, 0);
}

static void a_device_that_no_slice_tells_of_is_noted(void **state)
{
    struct fixture *f = *state;
    put(f, POD("a", "u1", "") CLAIM("c", "gpu-7", "a", "u1"));
    check(fetch(f), f);
    assert_int_equal(pod_named(f, "a")->devices_n, 0);
    assert_int_equal(f->intake->notes_n, 1);
    assert_int_equal(f->intake->notes[0].kind, NOTE_PARTIAL);
    assert_non_null(strstr(names_text(f->names, f->intake->notes[0].text).p, "resourceslices"));
}

static void gpus_that_only_slices_publish_are_counted_in_the_capacity(void **state)
{
    struct fixture *f = *state;
#define CARDS(pool, generation, devices)                                                           \
    "{\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.nvidia." \
    "com\","                                                                                       \
    "\"nodeName\":\"w\",\"pool\":{\"name\":\"" pool "\",\"generation\":" generation                \
    "},\"devices\":[" devices "]}}"
#define CARD(name, uuid)                                                                           \
    "{\"name\":\"" name "\",\"attributes\":{\"uuid\":{\"string\":\"" uuid "\"}}}"
#define PART(name, uuid, parent)                                                                   \
    "{\"name\":\"" name "\",\"attributes\":{\"uuid\":{\"string\":\"" uuid                          \
    "\"},\"parentUUID\":{\"string\":\"" parent "\"}}}"
    put(f, "{\"kind\":\"Node\",\"metadata\":{\"name\":\"w\"},\"status\":{\"capacity\":{\"cpu\":"
           "\"4\"}}}"
           "{\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"},\"status\":{\"capacity\":{\"cpu\":"
           "\"4\"}}}" CARDS("w", "1", CARD("gpu-0", "GPU-0") "," CARD("gpu-9", "GPU-9"))
               CARDS("w", "2", CARD("gpu-0", "GPU-0") "," CARD("gpu-1", "GPU-1"))
                   CARDS("w", "2", PART("m0", "MIG-0", "GPU-2") "," PART("m1", "MIG-1", "GPU-2")));
    check(fetch(f), f);
    assert_int_equal(f->intake->nodes_n, 2);
    assert_int_equal(f->intake->nodes[0].capacity_n, 1); /* cards 0, 1 and 2; 9 is outdated */
    assert_int_equal(f->intake->nodes[0].capacity[0], 3);
    assert_int_equal(f->intake->nodes[0].allocatable[0], 3);
    assert_int_equal(f->intake->nodes[1].capacity_n, 0);
}

static void slices_of_an_older_generation_do_not_count(void **state)
{
    struct fixture *f = *state;
    put(f, POD("a", "u1", "") CLAIM("c", "gpu-0", "a", "u1") SLICE);
    put(f, "{\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"old\"},\"spec\":{\"driver\":\"d\","
           "\"pool\":{\"name\":\"w\",\"generation\":1},\"devices\":[{\"name\":\"gpu-0\",\"basic\":{"
           "\"attributes\":{\"uuid\":{\"string\":\"GPU-OLD\"}}}}]}}");
    check(fetch(f), f);
    same(f, pod_named(f, "a")->devices[0], "GPU-0");
}

static void the_later_of_two_lists_counts_and_a_known_end_stays(void **state)
{
    struct fixture *f = *state;
    put(f, "{\"items\":[" POD("a", "u1",
                              ",\"status\":{\"phase\":\"Succeeded\",\"containerStatuses\":[{"
                              "\"state\":{\"terminated\":{\"finishedAt\":\"1970-01-01T00:20:00Z\"}"
                              "}}]}") "," POD("b", "u2", ",\"spec\":{\"nodeName\":\"old\"}") "]}");
    put(f, "{\"items\":[" POD("b", "u2", ",\"spec\":{\"nodeName\":\"new\"}") "," POD(
               "a", "u1", ",\"status\":{\"phase\":\"Succeeded\"}") "," POD("b", "u3", "") "]}");
    check(fetch(f), f);
    assert_int_equal(f->intake->pods_n, 3); /* b with another uid is another pod */
    assert_int_equal(pod_named(f, "a")->until, 1200000);
    same(f, pod_named(f, "b")->node, "new");
}

static void broken_items_are_notes_and_only_the_first_are_named(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = {0};
    strbuf_add(&text, STR("{\"items\":["));
    for (int i = 0; i < 12; i++)
        strbuf_add(&text, STR("null,"));
    strbuf_add(&text, STR(POD("a", "u1", "") "]}"));
    put(f, text.text);
    strbuf_release(&text);
    check(fetch(f), f);
    assert_int_equal(f->intake->pods_n, 1);
    int64_t counted = 0;
    bool third = false;
    for (size_t i = 0; i < f->intake->notes_n; i++) {
        counted += f->intake->notes[i].count;
        same(f, f->intake->notes[i].subject, f->paths[0]);
        third = third || strstr(names_text(f->names, f->intake->notes[i].text).p, "item 3:");
    }
    assert_int_equal(counted, 12);
    assert_true(third);
    assert_true(f->intake->notes_n < 8);
}

static void packed_files_are_known_by_their_bytes(void **state)
{
    struct fixture *f = *state;
    static const char one[] = "{\"items\":[" POD("a", "u1", "") "]}";
    static const char two[] = POD("b", "u2", "");
    unsigned char packed[4096];
    char path[TEMPORARY_MAX + 32];
    snprintf(path, sizeof path, "%s/%d.json", f->folder, f->files);
    gzFile gz = gzopen(path, "wb"); /* two members, one after the other */
    gzwrite(gz, one, (unsigned)strlen(one));
    gzclose(gz);
    gz = gzopen(path, "ab");
    gzwrite(gz, two, (unsigned)strlen(two));
    gzclose(gz);
    f->paths[f->files++] = strdup(path);
    size_t n = ZSTD_compress(packed, sizeof packed, one, strlen(one), 3);
    size_t more = ZSTD_compress(packed + n, sizeof packed - n, POD("c", "u3", ""),
                                strlen(POD("c", "u3", "")), 3);
    put_bytes(f, packed, n + more);
    check(fetch(f), f);
    assert_int_equal(f->intake->pods_n, 3);
    pod_named(f, "b");
    pod_named(f, "c");
}

static void files_that_cannot_be_read_are_errors_that_name_them(void **state)
{
    struct fixture *f = *state;
    put(f, "apiVersion: v1\n");
    assert_int_equal(fetch(f), ERR_PARSE);
    assert_non_null(strstr(f->err.text, f->paths[0]));
    assert_non_null(strstr(f->err.text, "kubectl get"));
    source_free(f->source);
    f->source = NULL;
    unlink(f->paths[0]);
    assert_int_equal(open_source(f), ERR_IO);
    assert_non_null(strstr(f->err.text, f->paths[0]));
    source_free(f->source);
    f->source = NULL;
    const char *folder = f->folder;
    struct span extent;
    double an_hour;
    assert_int_equal(kube_file_source_new(&folder, 1, NULL, &f->source, &f->err), ERR_OK);
    assert_int_equal(f->source->ops->survey(f->source, (struct span){0, HOUR_MS}, &extent, &an_hour,
                                            NULL, &f->err),
                     ERR_IO);
    assert_non_null(strstr(f->err.text, "folder"));
}

static void a_cut_packed_file_is_an_error(void **state)
{
    struct fixture *f = *state;
    unsigned char packed[4096];
    static const char text[] = "{\"items\":[" POD("a", "u1", "") "]}";
    size_t n = ZSTD_compress(packed, sizeof packed, text, strlen(text), 3);
    put_bytes(f, packed, n - 5);
    assert_int_equal(fetch(f), ERR_PARSE);
    assert_non_null(strstr(f->err.text, "cut off"));
}

static void a_signal_stops_the_reading(void **state)
{
    struct fixture *f = *state;
    put(f, "{\"items\":[" POD("a", "u1", "") "]}");
    check(open_source(f), f);
    volatile int stop = 1;
    struct progress progress = {.stop = &stop};
    struct fetch what = {.kube = {0, HOUR_MS}, .gpu = {0, HOUR_MS}};
    assert_int_equal(f->source->ops->fetch(f->source, &what, f->intake, &progress, &f->err),
                     ERR_STOPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(objects_of_all_files_reach_the_intake),
        TEST(a_second_slice_gets_the_same_objects_and_no_note_twice),
        TEST(a_later_run_reads_files_that_changed),
        TEST(files_that_could_not_be_read_are_read_whole_by_the_next_try),
        TEST(claims_give_devices_whatever_the_order_of_files),
        TEST(a_device_that_no_slice_tells_of_is_noted),
        TEST(gpus_that_only_slices_publish_are_counted_in_the_capacity),
        TEST(slices_of_an_older_generation_do_not_count),
        TEST(the_later_of_two_lists_counts_and_a_known_end_stays),
        TEST(broken_items_are_notes_and_only_the_first_are_named),
        TEST(packed_files_are_known_by_their_bytes),
        TEST(files_that_cannot_be_read_are_errors_that_name_them),
        TEST(a_cut_packed_file_is_an_error),
        TEST(a_signal_stops_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
