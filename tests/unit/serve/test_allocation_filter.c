/* OpenCost's filter language. What is taken and what is not follows its grammar (core/pkg/filter);
 * the filters are those of its own tests, with fields that the ledger has. */
#include "serve/allocation_filter.h"

#include "../../lib/unit.h"

static struct arena arena;
static struct strbuf out;
static struct error err;

/* (all A B), (any A B), key=glob, key!=glob */
static void print(const struct conditions *conditions, size_t at)
{
    const struct query_condition *condition = &conditions->items[at];
    if (condition->test == QUERY_FITS) {
        strbuf_addf(&out, "%s%s%.*s", key_words[condition->filter.key],
                    condition->filter.negate ? "!=" : "=", STR_ARG(condition->filter.value));
        return;
    }
    strbuf_add(&out, condition->test == QUERY_ALL ? STR("(all") : STR("(any"));
    for (size_t i = at + 1; i <= at + condition->inside; i += 1 + conditions->items[i].inside) {
        strbuf_addc(&out, ' ');
        print(conditions, i);
    }
    strbuf_addc(&out, ')');
}

static const char *parsed(const char *text)
{
    struct conditions conditions = {0};
    strbuf_clear(&out);
    if (allocation_filter(str_of(text), &arena, &conditions, &err))
        strbuf_addf(&out, "refused: %s", err.text);
    else if (conditions.n)
        print(&conditions, 0);
    free(conditions.items);
    return strbuf_str(&out).n ? out.text : "";
}

#define is(text, tree) assert_string_equal(parsed(text), tree)
#define refused(text, why)                                                                         \
    do {                                                                                           \
        const char *said = parsed(text);                                                           \
        if (strncmp(said, "refused", 7) != 0 || !strstr(said, why))                                \
            fail_msg("%s: %s", text, said);                                                        \
    } while (0)

static void comparisons(void **state)
{
    (void)state;
    is("  \t\n ", "");
    is("namespace: \"kubecost\"", "(all (any namespace=kubecost))");
    is("((namespace: \"kubecost\"))", "(all (all (all (any namespace=kubecost))))");
    is("namespace:\"a\",\"b\"", "(all (any namespace=a namespace=b))");
    is("node!:\"a\",\"b\"", "(all (all node!=a node!=b))");
    is("pod~:\"x\"", "(all (any pod=*x*))");
    is("pod!~:\"x\"", "(all (all pod!=*x*))");
    is("pod<~:\"x\"", "(all (any pod=x*))");
    is("pod!<~:\"x\"", "(all (all pod!=x*))");
    is("pod~>:\"x\"", "(all (any pod=*x))");
    is("pod!~>:\"x\"", "(all (all pod!=*x))");
    is("node:\"node a b c\" , \"node 12 3\"\n+\n\rnamespace : \"k\"",
       "(all (any node=node a b c node=node 12 3) (any namespace=k))");
    is("namespace:kubecost", "(all (any namespace=kubecost))"); /* without quotes */
}

static void groups(void **state)
{
    (void)state;
    is("namespace:\"k\" + cluster:\"c\" + (node:\"n\" | pod:\"p\")",
       "(all (any namespace=k) (any cluster=c) (any (any node=n) (any pod=p)))");
    is("namespace:\"k\" | (cluster:\"c\" + pod:\"p\") | namespace:\"b\",\"t\"",
       "(any (any namespace=k) (all (any cluster=c) (any pod=p)) (any namespace=b namespace=t))");
    is("(namespace:\"k\" | cluster<~:\"cluster-\") + label[team]:\"search\"",
       "(all (any (any namespace=k) (any cluster=cluster-*)) (any team=search))");
    is("namespace:\"k\" | ((pod:\"p\" | (cluster:\"c\" + node:\"n\")) + cluster~:\"l\")",
       "(any (any namespace=k) (all (any (any pod=p) (all (any cluster=c) (any node=n))) "
       "(any cluster=*l*)))");
}

/* Ours are Kind/name with capitals; theirs name, kind:name and kinds in lower case. */
static void fields_are_those_of_the_ledger(void **state)
{
    (void)state;
    is("controllerName:\"rank\"", "(all (any workload=*/rank))");
    is("controllerName<~:\"rank\"", "(all (any workload=*/rank*))");
    is("controller:\"job:rank\"", "(all (any workload=[Jj][Oo][Bb]/rank))");
    is("controllerKind:\"job\"", "(all (any kind=[Jj][Oo][Bb]))");
    is("namespace:\"__unallocated__\"", "(all (any namespace=-))");
    is("pod:\"a*b?[c]\"", "(all (any pod=a[*]b[?][[]c]))"); /* literally */
    refused("services~:\"foo\"", "the ledger has no \"services\"");
    refused("label[app]:\"x\"", "the ledger has no \"label[app]\"");
    refused("nameSpaces:\"x\"", "there are cluster, node, namespace");
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    (void)state;
    refused("()", "at byte 2");
    refused("namespace.:\"kubecost\"", "at byte 10");
    refused("(namespace:\"kubecost\"))", "a ) without its (");
    refused("((namespace:\"kubecost\")", "a ) is missing");
    refused("namespace:\"k\" | pod:\"p\" + cluster:\"c\"", "+ and | do not mix");
    refused("namespace:\"k\" + pod:\"p\" | cluster:\"c\"", "+ and | do not mix");
    refused("namespace:\"k\" pod:\"p\"", "%2B");
    refused("namespace:\"k", "closing quote");
    refused("namespace:", "at its end");
    refused("namespace:\"a\",", "a value");
    refused("namespace:\"a\"+", "at its end: a field");
    refused("namespace=\"a\"", "none of : !:");
    refused("label[team:\"a\"", "a ] is missing");
}

static void depth_and_number_have_caps(void **state)
{
    struct strbuf text = {0};
    (void)state;
    for (int i = 0; i < 100; i++)
        strbuf_addc(&text, '(');
    refused(text.text, "too deep");
    strbuf_clear(&text);
    strbuf_add(&text, STR("pod:"));
    for (int i = 0; i < 2000; i++)
        strbuf_add(&text, i ? STR(",a") : STR("a"));
    refused(text.text, "too many values");
    while (text.n <= ALLOCATION_FILTER_BYTES_MAX)
        strbuf_addc(&text, 'a');
    refused(text.text, "longer than");
    strbuf_release(&text);
}

static void lists_of_before(void **state)
{
    struct conditions conditions = {0};
    (void)state;
    strbuf_clear(&out);
    assert_true(allocation_filter_list("filterNamespaces", STR("kube-*,web"), &arena, &conditions));
    print(&conditions, 0);
    assert_string_equal(out.text, "(any namespace=kube-* namespace=web)");
    assert_false(allocation_filter_list("filterLabels", STR("app:x"), &arena, &conditions));
    free(conditions.items);
}

static int done(void **state)
{
    (void)state;
    arena_release(&arena);
    strbuf_release(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons),
        cmocka_unit_test(groups),
        cmocka_unit_test(fields_are_those_of_the_ledger),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(depth_and_number_have_caps),
        cmocka_unit_test(lists_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
