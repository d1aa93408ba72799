/* Kubernetes objects in JSON. Each test feeds the text whole and byte by byte, and writes what the
 * callbacks got as lines, which are compared with what the text says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/json_items.h"
#include "wire/kube_objects.h"

struct told {
    struct strbuf text;
    struct kube_counts counts;
    enum err rc;
    struct error err;
};

static void say_time(struct strbuf *out, const char *what, time_ms t)
{
    char buf[TIME_TEXT_MAX];
    if (t != TIME_MIN)
        strbuf_addf(out, " %s=%s", what, time_format(t, buf));
}

static void say(struct strbuf *out, const char *what, struct str value)
{
    if (value.n)
        strbuf_addf(out, " %s=%.*s", what, STR_ARG(value));
}

static void say_labels(struct strbuf *out, const char *what, const struct label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, " %s:%.*s=%.*s", what, STR_ARG(labels[i].name), STR_ARG(labels[i].value));
}

static void say_amounts(struct strbuf *out, const char *what, const struct kube_quantity *q,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, " %s:%.*s=%lldm", what, STR_ARG(q[i].resource), (long long)q[i].milli);
}

static void on_node(void *context, const struct kube_node *node)
{
    struct strbuf *out = context;
    strbuf_addf(out, "node %.*s", STR_ARG(node->name));
    say(out, "provider", node->provider_id);
    say(out, "ip", node->internal_ip);
    say_time(out, "created", node->created);
    if (node->unschedulable)
        strbuf_add(out, STR(" cordoned"));
    say_labels(out, "label", node->labels, node->labels_n);
    for (size_t i = 0; i < node->taints_n; i++)
        strbuf_addf(out, " taint:%.*s=%.*s:%.*s", STR_ARG(node->taints[i].key),
                    STR_ARG(node->taints[i].value), STR_ARG(node->taints[i].effect));
    say_amounts(out, "capacity", node->capacity, node->capacity_n);
    say_amounts(out, "allocatable", node->allocatable, node->allocatable_n);
    strbuf_addc(out, '\n');
}

static void on_pod(void *context, const struct kube_pod *pod)
{
    struct strbuf *out = context;
    strbuf_addf(out, "pod %.*s/%.*s", STR_ARG(pod->namespace), STR_ARG(pod->name));
    say(out, "uid", pod->uid);
    say(out, "node", pod->node);
    say(out, "phase", pod->phase);
    if (pod->owner_kind.n)
        strbuf_addf(out, " owner=%.*s/%.*s", STR_ARG(pod->owner_kind), STR_ARG(pod->owner_name));
    say_time(out, "created", pod->created);
    say_time(out, "scheduled", pod->scheduled);
    say_time(out, "started", pod->started);
    say_time(out, "finished", pod->finished);
    say_time(out, "deletion", pod->deletion);
    if (pod->deletion_grace_s >= 0)
        strbuf_addf(out, " grace=%llds", (long long)pod->deletion_grace_s);
    say_labels(out, "label", pod->labels, pod->labels_n);
    say_labels(out, "annotation", pod->annotations, pod->annotations_n);
    for (size_t i = 0; i < pod->containers_n; i++) {
        const struct kube_container *c = &pod->containers[i];
        strbuf_addf(out, " %s%.*s(",
                    c->sidecar ? "sidecar "
                    : c->init  ? "init "
                               : "",
                    STR_ARG(c->name));
        say_amounts(out, "wants", c->requests, c->requests_n);
        if (c->cpu_limit_milli)
            strbuf_addf(out, " cpu-limit:%lldm", (long long)c->cpu_limit_milli);
        strbuf_addc(out, ')');
    }
    for (size_t i = 0; i < pod->claims_n; i++)
        say(out, "claim", pod->claims[i]);
    strbuf_addc(out, '\n');
}

static void on_owner(void *context, const struct kube_owner *o)
{
    strbuf_addf(context, "owner %.*s %.*s/%.*s of %.*s/%.*s\n", STR_ARG(o->namespace),
                STR_ARG(o->kind), STR_ARG(o->name), STR_ARG(o->owner_kind), STR_ARG(o->owner_name));
}

static void on_namespace(void *context, const struct kube_namespace *ns)
{
    strbuf_addf(context, "namespace %.*s", STR_ARG(ns->name));
    say_labels(context, "label", ns->labels, ns->labels_n);
    say_labels(context, "annotation", ns->annotations, ns->annotations_n);
    strbuf_addc(context, '\n');
}

static void on_slice(void *context, const struct kube_slice *slice)
{
    strbuf_addf(context, "slice %.*s/%.*s generation %lld", STR_ARG(slice->driver),
                STR_ARG(slice->pool), (long long)slice->generation);
    for (size_t i = 0; i < slice->devices_n; i++) {
        strbuf_addf(context, " %.*s(", STR_ARG(slice->devices[i].name));
        say(context, "uuid", slice->devices[i].uuid);
        say(context, "parent", slice->devices[i].parent_uuid);
        say(context, "profile", slice->devices[i].profile);
        say(context, "product", slice->devices[i].product);
        strbuf_addc(context, ')');
    }
    strbuf_addc(context, '\n');
}

static void on_claim(void *context, const struct kube_claim *claim)
{
    strbuf_addf(context, "claim %.*s/%.*s", STR_ARG(claim->namespace), STR_ARG(claim->name));
    for (size_t i = 0; i < claim->allocations_n; i++)
        strbuf_addf(context, " %.*s/%.*s/%.*s", STR_ARG(claim->allocations[i].driver),
                    STR_ARG(claim->allocations[i].pool), STR_ARG(claim->allocations[i].device));
    for (size_t i = 0; i < claim->consumers_n; i++)
        strbuf_addf(context, " for %.*s(%.*s)", STR_ARG(claim->consumers[i].name),
                    STR_ARG(claim->consumers[i].uid));
    strbuf_addc(context, '\n');
}

static void on_fault(void *context, const struct kube_fault *fault)
{
    strbuf_addf(context, "%s %.*s\n", fault->lost ? "lost" : "fault", STR_ARG(fault->text));
}

static struct told read_in_pieces(struct str text, size_t piece)
{
    struct told told = {0};
    struct kube_sink sink = {
        .context = &told.text,
        .node = on_node,
        .pod = on_pod,
        .owner = on_owner,
        .namespace = on_namespace,
        .slice = on_slice,
        .claim = on_claim,
        .fault = on_fault,
    };
    struct kube_reader *reader = kube_reader_new(&sink);
    for (size_t at = 0; at < text.n; at += piece)
        kube_reader_feed(reader, text.p + at, text.n - at < piece ? text.n - at : piece);
    told.rc = kube_reader_end(reader, &told.counts, &told.err);
    kube_reader_free(reader);
    return told;
}

/* Reads in pieces of every small size and whole; the outcome must not depend on it. */
static struct told read_text(const char *text)
{
    struct told whole = read_in_pieces(str_of(text), SIZE_MAX / 2);
    for (size_t piece = 1; piece <= 7; piece += 2) {
        struct told pieces = read_in_pieces(str_of(text), piece);
        if (!str_eq(strbuf_str(&whole.text), strbuf_str(&pieces.text)) || whole.rc != pieces.rc)
            fail_msg("pieces of %zu:\n%.*swhole:\n%.*s", piece, STR_ARG(strbuf_str(&pieces.text)),
                     STR_ARG(strbuf_str(&whole.text)));
        assert_memory_equal(&whole.counts, &pieces.counts, sizeof whole.counts);
        strbuf_release(&pieces.text);
    }
    return whole;
}

static void expect(const char *text, const char *lines)
{
    struct told told = read_text(text);
    if (told.rc)
        fail_msg("%s", told.err.text);
    if (!str_eq(strbuf_str(&told.text), str_of(lines)))
        fail_msg("got:\n%.*swanted:\n%s", STR_ARG(strbuf_str(&told.text)), lines);
    strbuf_release(&told.text);
}

static void expect_refusal(const char *text, const char *part)
{
    struct told told = read_text(text);
    assert_int_equal(told.rc, ERR_PARSE);
    if (!strstr(told.err.text, part))
        fail_msg("\"%s\" does not say \"%s\"", told.err.text, part);
    strbuf_release(&told.text);
}

#define POD(name) "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\"}}"

static void a_node_gives_what_the_ledger_needs(void **state)
{
    (void)state;
    expect("{\"kind\":\"Node\",\"metadata\":{\"name\":\"gpu-1\",\"creationTimestamp\":"
           "\"2026-06-01T00:00:00Z\",\"labels\":{\"node.kubernetes.io/instance-type\":\"x2\"}},"
           "\"spec\":{\"providerID\":\"aws:///a/i-1\",\"unschedulable\":true,\"taints\":[{\"key\":"
           "\"nvidia.com/gpu\",\"value\":\"true\",\"effect\":\"NoSchedule\"}]},\"status\":{"
           "\"capacity\":{\"nvidia.com/gpu\":\"8\",\"cpu\":\"191450m\"},\"allocatable\":{"
           "\"nvidia.com/gpu\":7},\"addresses\":[{\"type\":\"Hostname\",\"address\":\"gpu-1\"},"
           "{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"},{\"type\":\"InternalIP\","
           "\"address\":\"fd00::1\"}]}}",
           "node gpu-1 provider=aws:///a/i-1 ip=10.0.0.1 created=2026-06-01T00:00:00Z cordoned "
           "label:node.kubernetes.io/instance-type=x2 taint:nvidia.com/gpu=true:NoSchedule "
           "capacity:nvidia.com/gpu=8000m capacity:cpu=191450m "
           "allocatable:nvidia.com/gpu=7000m\n");
}

static void a_pod_gives_its_life_requests_and_controller(void **state)
{
    (void)state;
    expect("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"u1\","
           "\"labels\":{\"team\":\"x\"},\"annotations\":{\"note\":\"y\"},\"ownerReferences\":["
           "{\"kind\":\"Node\",\"name\":\"no\"},{\"kind\":\"Job\",\"name\":\"j\",\"controller\":"
           "true}],\"creationTimestamp\":\"2026-06-01T00:00:00Z\"},\"spec\":{\"nodeName\":\"n1\","
           "\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\""
           ",\"memory\":\"1Gi\",\"cpu\":\"1500m\"},\"requests\":{\"memory\":\"512Mi\","
           "\"cpu\":1}}},{\"name\":\"log\"}],"
           "\"initContainers\":[{\"name\":\"warm\",\"resources\":{\"requests\":{"
           "\"nvidia.com/gpu\":\"1\"}}},{\"name\":\"proxy\",\"restartPolicy\":\"Always\"}]},"
           "\"status\":{\"phase\":\"Running\",\"startTime\":\"2026-06-01T00:00:20Z\","
           "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":"
           "\"2026-06-01T00:00:10Z\"}]}}",
           "pod ml/a uid=u1 node=n1 phase=Running owner=Job/j created=2026-06-01T00:00:00Z "
           "scheduled=2026-06-01T00:00:10Z started=2026-06-01T00:00:20Z label:team=x "
           "annotation:note=y init warm( wants:nvidia.com/gpu=1000m) sidecar proxy() "
           "main( wants:memory=536870912000m wants:cpu=1000m wants:nvidia.com/gpu=2000m "
           "cpu-limit:1500m) log()\n");
}

#define ENDED(time) "{\"state\":{\"terminated\":{\"finishedAt\":\"2026-06-01T" time "Z\"}}}"
#define LIFE(meta, spec, status)                                                                   \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"" meta "},\"spec\":{"       \
    "\"containers\":[{\"name\":\"x\"},{\"name\":\"y\"}]" spec "},\"status\":{" status "}}"

static void a_pod_is_finished_when_its_last_container_is(void **state)
{
    (void)state;
    /* Succeeded: the latest end counts, sidecars too */
    expect(LIFE("", "",
                "\"phase\":\"Succeeded\",\"containerStatuses\":[" ENDED("01:00:00") "," ENDED(
                    "01:20:00") "],\"initContainerStatuses\":[" ENDED("01:20:05") "]"),
           "pod n/a phase=Succeeded finished=2026-06-01T01:20:05Z x() y()\n");
    /* one container of two has ended: it runs on */
    expect(LIFE("", ",\"restartPolicy\":\"Never\"",
                "\"phase\":\"Running\",\"containerStatuses\":[" ENDED(
                    "01:00:00") ",{\"state\":{\"running\":{}}}]"),
           "pod n/a phase=Running x() y()\n");
    /* both have ended, and nothing starts them again */
    expect(LIFE("", ",\"restartPolicy\":\"Never\"",
                "\"phase\":\"Running\",\"containerStatuses\":[" ENDED("01:00:00") "," ENDED(
                    "01:10:00") "]"),
           "pod n/a phase=Running finished=2026-06-01T01:10:00Z x() y()\n");
    /* between two restarts */
    expect(LIFE("", ",\"restartPolicy\":\"Always\"",
                "\"phase\":\"Running\",\"containerStatuses\":[" ENDED("01:00:00") "," ENDED(
                    "01:10:00") "]"),
           "pod n/a phase=Running x() y()\n");
    /* being deleted */
    expect(LIFE(",\"deletionTimestamp\":\"2026-06-01T02:00:00Z\",\"deletionGracePeriodSeconds\":30",
                "",
                "\"phase\":\"Running\",\"containerStatuses\":[" ENDED("01:59:40") "," ENDED(
                    "01:59:50") "]"),
           "pod n/a phase=Running finished=2026-06-01T01:59:50Z deletion=2026-06-01T02:00:00Z "
           "grace=30s x() y()\n");
    /* evicted: no container says when */
    expect(LIFE("", "",
                "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"conditions\":[{\"type\":\"Ready\","
                "\"status\":\"False\",\"reason\":\"PodFailed\",\"lastTransitionTime\":"
                "\"2026-06-01T03:00:00Z\"}]"),
           "pod n/a phase=Failed finished=2026-06-01T03:00:00Z x() y()\n");
    expect(LIFE("", "", "\"phase\":\"Failed\""), "pod n/a phase=Failed x() y()\n");
}

static void other_kinds_give_their_controller(void **state)
{
    (void)state;
    expect("{\"kind\":\"List\",\"items\":[{\"kind\":\"Job\",\"metadata\":{\"namespace\":\"e\","
           "\"name\":\"j\",\"ownerReferences\":[{\"kind\":\"JobSet\",\"name\":\"s\","
           "\"controller\":true}]}},{\"kind\":\"RayCluster\",\"metadata\":{\"namespace\":\"r\","
           "\"name\":\"c\",\"ownerReferences\":[{\"kind\":\"RayJob\",\"name\":\"t\","
           "\"controller\":false}]}},{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"v\","
           "\"labels\":{\"team\":\"vision\"},\"annotations\":{\"a\":\"b\"}}}]}",
           "owner e Job/j of JobSet/s\n"
           "namespace v label:team=vision annotation:a=b\n");
}

static void slices_and_claims_of_both_api_versions_are_read(void **state)
{
    (void)state;
    expect("{\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":"
           "\"gpu.nvidia.com\",\"pool\":{\"name\":\"w\",\"generation\":3},\"devices\":[{\"name\":"
           "\"gpu-0\",\"attributes\":{\"uuid\":{\"string\":\"GPU-0\"},\"productName\":{"
           "\"string\":\"H200\"}}},{\"name\":\"gpu-1\",\"basic\":{\"attributes\":{"
           "\"gpu.nvidia.com/uuid\":{\"string\":\"MIG-1\"},\"parentUUID\":{\"string\":\"GPU-1\"},"
           "\"profile\":{\"string\":\"3g.71gb\"}}}}]}}"
           "{\"kind\":\"ResourceClaim\",\"metadata\":{\"namespace\":\"s\",\"name\":\"c\"},"
           "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"g\",\"driver\":"
           "\"gpu.nvidia.com\",\"pool\":\"w\",\"device\":\"gpu-0\"},{\"request\":\"mon\","
           "\"driver\":\"gpu.nvidia.com\",\"pool\":\"w\",\"device\":\"gpu-1\",\"adminAccess\":"
           "true}]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"u\"}]}}"
           "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"s\",\"name\":\"p\"},\"spec\":{"
           "\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimName\":\"c\"},{\"name\":\"b\","
           "\"resourceClaimTemplateName\":\"t\"}]},\"status\":{\"resourceClaimStatuses\":[{"
           "\"name\":\"b\",\"resourceClaimName\":\"p-b-x7\"}],\"extendedResourceClaimStatus\":{"
           "\"resourceClaimName\":\"p-ext\"}}}",
           "slice gpu.nvidia.com/w generation 3 gpu-0( uuid=GPU-0 product=H200) "
           "gpu-1( uuid=MIG-1 parent=GPU-1 profile=3g.71gb)\n"
           "claim s/c gpu.nvidia.com/w/gpu-0 for p(u)\n"
           "pod s/p claim=c claim=p-b-x7 claim=p-ext\n");
}

static void every_way_to_lay_objects_out_is_understood(void **state)
{
    (void)state;
    const char *two = "pod n/a\npod n/b\n";
    expect("{\"kind\":\"List\",\"items\":[" POD("a") "," POD("b") "]}", two);
    expect("{\"items\":[" POD("a") "," POD("b") "],\"kind\":\"List\"}", two);
    expect(POD("a") POD("b"), two);
    expect(POD("a") "\r\n\n" POD("b") "\n", two);
    expect("[" POD("a") ",\n" POD("b") "]", two);
    expect("[{\"items\":[" POD("a") "]},{\"items\":[" POD("b") "]}]", two);
    expect("\xef\xbb\xbf{ \"items\" : [ " POD("a") " , " POD("b") " ] }", two);
    expect("\x1e" POD("a") "\n\x1e" POD("b") "\n", two);
    expect(
        "{\"kind\":\"List\",\"items\":[{\"kind\":\"List\",\"items\":[" POD("a") "," POD("b") "]}]}",
        two);
    expect("{\"kind\":\"List\",\"items\":[]}", "");
    expect("{\"kind\":\"List\",\"items\":null}{\"items\":[" POD("a") "]}", "pod n/a\n");
}

static void items_of_an_api_list_have_the_kind_of_the_list(void **state)
{
    (void)state;
    expect("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"x\":[{\"items\":[1]}]},"
           "\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}]}",
           "pod n/a\n");
    /* the kind behind the items: the shape tells */
    expect("{\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},\"spec\":{"
           "\"containers\":[]}}],\"kind\":\"PodList\"}",
           "pod n/a\n");
}

static void what_nobody_needs_is_passed_over_by_its_key(void **state)
{
    (void)state;
    /* brackets and quotes inside do not matter, texts under such keys stay, and so does what
     * follows */
    expect("{\"items\":[{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
           "\"managedFields\":[{\"f:x\":{\"} ]\":[[]]}}] , \"labels\":{\"env\":\"prod\","
           "\"args\" : \"x\"}},\"spec\":{\"volumes\":[],\"containers\":[{\"env\":[{\"name\":"
           "\"name\",\"value\":\"}{\\\"\"}],\"name\":\"m\",\"args\":[\"command\",[{}]],"
           "\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}}]}",
           "pod n/a label:env=prod label:args=x m( wants:nvidia.com/gpu=1000m)\n");
}

static void broken_items_are_named_by_their_place_and_the_rest_stays(void **state)
{
    (void)state;
    struct told told = read_text("{\"items\":[" POD(
        "a") ",{\"kind\":\"Pod\"},null,{\"kind\" \"Pod\"},{\"kind\":"
             "\"Pod\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\",\"labels\":[1],"
             "\"creationTimestamp\":\"soon\"},\"spec\":7,\"status\":\"x\"}," POD("b") "]}");
    assert_int_equal(told.rc, ERR_OK);
    assert_string_equal(told.text.text, "pod n/a\n"
                                        "lost item 2 (Pod): has no name\n"
                                        "lost item 3: not an object\n"
                                        "lost item 4: is no JSON: ':' expected near '\"Pod\"'\n"
                                        "fault item 5 (Pod n/c): creationTimestamp is no time\n"
                                        "pod n/c\n"
                                        "pod n/b\n");
    assert_int_equal(told.counts.items, 3);
    assert_int_equal(told.counts.lost, 3);
    assert_int_equal(told.counts.faults, 1);
    strbuf_release(&told.text);
}

static struct told read_with_fault(const char *text, const char *pods)
{
    struct told told = read_text(text);
    assert_int_equal(told.rc, ERR_OK);
    struct strbuf found = {0};
    for (const char *p = strstr(told.text.text, "pod n/"); p; p = strstr(p + 6, "pod n/"))
        strbuf_addc(&found, p[6]);
    if (!str_eq(strbuf_str(&found), str_of(pods)))
        fail_msg("%s: pods %s in\n%s", text, found.text ? found.text : "-", told.text.text);
    assert_true(told.counts.lost > 0);
    strbuf_release(&found);
    return told;
}

static void a_lost_bracket_or_quote_costs_its_own_item(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "{\"kind\":\"Pod\",\"x\":1]}",          /* a bracket of the wrong kind */
        "{\"kind\":\"Pod\",\"x\":[1,{\"y\":2}", /* one that is never closed, in one line */
        "{\"kind\":\"Pod\",\"x\":\"no end\n}",  /* a quote that is lost */
        "{\"kind\":\"Pod\",\"x\":\"bad \\q\"}", /* an escape that is none */
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct strbuf text = {0};
        strbuf_addf(&text, "{\"items\":[" POD("a") ",\n%s,\n" POD("b") "]}", broken[i]);
        struct told told = read_with_fault(text.text, i == 1 ? "a" : "ab");
        strbuf_release(&told.text);
        strbuf_release(&text);
    }
}

static void a_cut_file_keeps_what_came_before(void **state)
{
    (void)state;
    static const char *const cut[] = {
        "{\"items\":[" POD("a") ",{\"kind\":\"Pod\",\"meta",
        "{\"items\":[" POD("a") ",",
        "{\"items\":[" POD("a") "]",
        POD("a") "{\"kind\":\"Pod\"",
    };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        struct told told = read_with_fault(cut[i], "a");
        if (!strstr(told.text.text, "cut off"))
            fail_msg("%s: %s", cut[i], told.text.text);
        strbuf_release(&told.text);
    }
}

static void a_list_that_goes_on_elsewhere_is_told(void **state)
{
    (void)state;
    struct told told = read_with_fault("{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"abc\"},"
                                       "\"items\":[" POD("a") "]}",
                                       "a");
    assert_non_null(strstr(told.text.text, "metadata.continue"));
    strbuf_release(&told.text);
}

static void what_is_no_kubernetes_json_is_refused_with_advice(void **state)
{
    (void)state;
    expect_refusal("", "is empty");
    expect_refusal(" \n", "kubectl get");
    expect_refusal("apiVersion: v1\nkind: List\n", "no JSON object");
    expect_refusal("<html><body>502</body></html>", "kubectl get");
    expect_refusal("{\"status\":\"success\",\"data\":{}}", "no kind");
    expect_refusal("{", "cut off");
}

static void an_item_over_the_cap_is_lost_alone(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, STR("{\"items\":[{\"kind\":\"Pod\",\"big\":\""));
    for (size_t i = 0; i < JSON_ITEM_MAX / 64; i++)
        strbuf_add(&text, STR("0123456789012345678901234567890123456789012345678901234567890123"));
    strbuf_add(&text, STR("\"}," POD("b") "]}"));
    struct told told = read_in_pieces(strbuf_str(&text), 1 << 16);
    assert_int_equal(told.rc, ERR_OK);
    assert_string_equal(told.text.text, "lost item 1: larger than 16 MiB\npod n/b\n");
    strbuf_release(&told.text);
    strbuf_release(&text);
}

static void deep_nesting_is_refused_and_not_followed(void **state)
{
    (void)state;
    struct strbuf text = {0};
    strbuf_add(&text, STR("{\"items\":[{\"kind\":\"Pod\",\"deep\":"));
    for (int i = 0; i < 100000; i++)
        strbuf_addc(&text, '[');
    for (int i = 0; i < 100000; i++)
        strbuf_addc(&text, ']');
    strbuf_add(&text, STR("}," POD("b") "]}"));
    struct told told = read_in_pieces(strbuf_str(&text), 1 << 16);
    assert_int_equal(told.rc, ERR_OK);
    assert_int_equal(told.counts.lost, 1);
    assert_int_equal(told.counts.pods, 1);
    strbuf_release(&told.text);
    strbuf_release(&text);
}

static void check_quantity(const char *text, int64_t milli)
{
    int64_t got = -1;
    if (!kube_quantity_parse(str_of(text), &got))
        fail_msg("%s is refused", text);
    if (got != milli)
        fail_msg("%s: %lld, wanted %lld", text, (long long)got, (long long)milli);
}

static void quantities_are_read_as_kubernetes_writes_them(void **state)
{
    (void)state;
    check_quantity("0", 0);
    check_quantity("2", 2000);
    check_quantity("100m", 100);
    check_quantity("0.1", 100);
    check_quantity(".5", 500);
    check_quantity("5.", 5000);
    check_quantity("+3", 3000);
    check_quantity("1k", 1000000);
    check_quantity("1Ki", 1024000);
    check_quantity("16Gi", INT64_C(17179869184000));
    check_quantity("1.5Gi", INT64_C(1610612736000));
    check_quantity("1e3", 1000000);
    check_quantity("12E2", 1200000);
    check_quantity("5e-1", 500);
    check_quantity("9P", INT64_C(9000000000000000000));
}

static void quantities_out_of_form_or_range_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "-1",
                                      ".",
                                      "m",
                                      "1 ",
                                      "1x",
                                      "1kk",
                                      "0x1",
                                      "1e",
                                      "1e+",
                                      "e3",
                                      "1.2.3",
                                      "NaN",
                                      "Inf",
                                      "1e9999",
                                      "9Ei",
                                      "12345678901234567890",
                                      "10P",
                                      "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t milli;
        if (kube_quantity_parse(str_of(bad[i]), &milli))
            fail_msg("\"%s\" is taken for %lld thousandths", bad[i], (long long)milli);
    }
}

static void quantities_below_a_thousandth_round_up(void **state)
{
    (void)state;
    check_quantity("1n", 1);
    check_quantity("1500u", 2);
    check_quantity("0.0001", 1);
    check_quantity("0u", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_gives_what_the_ledger_needs),
        cmocka_unit_test(a_pod_gives_its_life_requests_and_controller),
        cmocka_unit_test(a_pod_is_finished_when_its_last_container_is),
        cmocka_unit_test(other_kinds_give_their_controller),
        cmocka_unit_test(slices_and_claims_of_both_api_versions_are_read),
        cmocka_unit_test(every_way_to_lay_objects_out_is_understood),
        cmocka_unit_test(items_of_an_api_list_have_the_kind_of_the_list),
        cmocka_unit_test(what_nobody_needs_is_passed_over_by_its_key),
        cmocka_unit_test(broken_items_are_named_by_their_place_and_the_rest_stays),
        cmocka_unit_test(a_lost_bracket_or_quote_costs_its_own_item),
        cmocka_unit_test(a_cut_file_keeps_what_came_before),
        cmocka_unit_test(a_list_that_goes_on_elsewhere_is_told),
        cmocka_unit_test(what_is_no_kubernetes_json_is_refused_with_advice),
        cmocka_unit_test(an_item_over_the_cap_is_lost_alone),
        cmocka_unit_test(deep_nesting_is_refused_and_not_followed),
        cmocka_unit_test(quantities_are_read_as_kubernetes_writes_them),
        cmocka_unit_test(quantities_out_of_form_or_range_are_refused),
        cmocka_unit_test(quantities_below_a_thousandth_round_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
