/* The rows of the idle scan's tables: private to report/idle*.c. */
#ifndef GPUTALLY_REPORT_IDLE_ROWS_H
#define GPUTALLY_REPORT_IDLE_ROWS_H

#include "report/idle.h"

/* A GPU (device set) or all GPUs of a node. */
struct idle_row {
    const struct idle_node *node;
    const struct idle_device *device; /* NULL: the node */
    const struct idle_since *since;
    const struct idle_run *longest;
    const struct idle_recent *recent;
    enum idle_verdict verdict;
    bool advice; /* it has stood still for long enough to be stopped */
};
/* Findings, dearest first; all: every GPU in the order of the scan. The caller frees. */
struct idle_row *idle_rows(const struct idle_scan *scan, bool all, size_t *ret_n);
/* The highest daily mean of the row's GPUs over days with enough data; -1 none. */
int64_t idle_row_mean(const struct idle_row *row, size_t days_n, enum view_signal signal);
/* Held time of up time, 1e-9; -1 never up. */
int64_t idle_row_held(const struct idle_row *row, size_t days_n);

/* Did CPU or network of the node fail on a day with enough data: somebody works there. */
bool idle_host_works(const struct idle_node *node, size_t days_n);

/* idle_cpu.c: nodes whose work is on the CPU, and what could do it instead. */
size_t idle_cpu_nodes(const struct idle_scan *scan);
void idle_cpu_text(const struct idle_report *report, struct strbuf *out);
void idle_cpu_markdown(const struct idle_report *report, struct strbuf *out);

/* idle_machine.c: parts of the JSON that both documents have: a name or null; "unchecked": [...];
 * the fields that a node and the whole begin with, and a comma. */
void idle_json_name(struct strbuf *out, const struct view *view, name_t name);
void idle_json_unchecked(struct strbuf *out, const struct idle_device *device);
void idle_json_node_head(struct strbuf *out, const struct idle_report *report,
                         const struct idle_node *node);
void idle_json_head(struct strbuf *out, const struct idle_report *report);

void idle_report_json(const struct idle_report *report, struct strbuf *out);
void idle_report_csv(const struct idle_report *report, struct strbuf *out);

#endif
