/* Books of more nodes than are read at a time: what is put together from several threads stands in
 * one order, and adds up to what each node tells. */
#include "../../lib/hand_ledger.h"

#define NODES 150
#define WORKLOADS 7

static int hours_of(int node)
{
    return 1 + node % 5;
}

/* Node i: a GPU under workload i % 7 from the first hour on, and a free one. */
static void fill(struct ledger *ledger)
{
    char name[16], held[16], empty[16], pod[16], workload[16], owner[16];
    for (int k = 0; k < NODES; k++) {
        int i = k * 37 % NODES; /* names are known in another order than that of their texts */
        snprintf(name, sizeof name, "n-%03d", i);
        snprintf(held, sizeof held, "GPU-%03d-a", i);
        snprintf(empty, sizeof empty, "GPU-%03d-b", i);
        snprintf(pod, sizeof pod, "pod-%03d", i);
        snprintf(workload, sizeof workload, "Job/%d", i % WORKLOADS);
        snprintf(owner, sizeof owner, "team-%03d", i);
        node(ledger, name, CAPACITY_ON_DEMAND, 0);
        stays(ledger, (struct stay){.node = name,
                                    .device = held,
                                    .workload = workload,
                                    .pod = pod,
                                    .owner = owner,
                                    .type = WORKLOAD_TRAINING,
                                    .to = hours_of(i),
                                    .u = 50,
                                    .e = 50});
        stays(ledger,
              (struct stay){.node = name, .device = empty, .to = HOURS, .free_as = CATEGORY_EMPTY});
    }
}

/* Workload k by hand: the owner is that of its last row, of several the last in order of node. */
static void check_workload(const struct books *books, const struct book_workload *of, int k)
{
    int hours = 0, last = 0, owner = 0;
    size_t nodes = 0;
    char text[16];
    for (int i = k; i < NODES; i += WORKLOADS, nodes++) {
        hours += hours_of(i);
        owner = hours_of(i) >= last ? i : owner;
        last = hours_of(i) >= last ? hours_of(i) : last;
    }
    assert_int_equal(of->sum.cost, hours * 4 * USD);
    assert_true(of->sum.held_ns == (wide_t)hours * HOUR_MS * 1000000);
    assert_true(of->sum.u == (wide_t)hours * HOUR_MS * (NANO / 2));
    assert_int_equal(of->sum.hist_u_ns[10], (int64_t)hours * HOUR_MS * 1000000);
    assert_int_equal(of->sum.first, H0);
    assert_int_equal(of->sum.last, H0 + last * HOUR_MS);
    snprintf(text, sizeof text, "team-%03d", owner);
    assert_string_equal(names_text(books->names, of->owner).p, text);
    assert_int_equal(of->gpus_a_pod, 1);
    assert_int_equal(of->cells_n, nodes);
    for (size_t c = 0; c < of->cells_n; c++) {
        assert_ptr_equal(&books->workloads[books->cells[of->cells[c]].workload], of);
        assert_true(c == 0 || of->cells[c - 1] < of->cells[c]);
    }
}

static void books_of_many_nodes_are_those_of_each(void **state)
{
    struct ledger *ledger = *state;
    fill(ledger);
    findings_of(state);
    const struct books *books = ledger->books;
    assert_int_equal(books->nodes_n, NODES);
    assert_int_equal(books->cells_n, 2 * NODES);
    assert_int_equal(books->workloads_n, WORKLOADS);
    for (size_t n = 0; n < NODES; n++) {
        const struct book_node *of = &books->nodes[n];
        char text[16];
        snprintf(text, sizeof text, "n-%03d", (int)n);
        assert_string_equal(names_text(books->names, of->node).p, text);
        assert_int_equal(of->cells, 2 * n);
        assert_int_equal(of->cells_n, 2);
        for (size_t c = of->cells; c < of->cells + of->cells_n; c++)
            assert_int_equal(books->cells[c].node_index, n);
        assert_int_equal(of->category[CATEGORY_EMPTY], HOURS * 4 * USD);
    }
    for (int k = 0; k < WORKLOADS; k++) { /* in order of their first rows */
        char text[16];
        snprintf(text, sizeof text, "Job/%d", k);
        assert_string_equal(names_text(books->names, books->workloads[k].workload).p, text);
        check_workload(books, &books->workloads[k], k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(books_of_many_nodes_are_those_of_each, ledger_new,
                                        ledger_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
