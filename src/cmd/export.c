/* export ledger: the rows themselves, written as they are read. export hours KIND: what stands
 * beside them, for whoever asks why a finding says what it says. */
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "fleet/intake.h"
#include "report/csv.h"
#include "report/ledger_rows.h"

#define EXPORT_BUFFER (256 * 1024)

enum what { WHAT_LEDGER, WHAT_MACHINE, WHAT_WORKLOAD, WHAT_NAMESPACE, WHAT_COUNT };
static const char *const hour_words[WHAT_COUNT] = {"ledger", "machine", "workload", "namespace"};

struct exporter {
    enum what what;
    struct strbuf text;
    bool json;
    const struct names *names;
    bool partial; /* a note says that data is missing */
    bool unpriced;
    enum err code;
    struct error *err;
};

static void flush(struct exporter *exporter)
{
    if (exporter->code == ERR_OK)
        exporter->code = output_write(strbuf_str(&exporter->text), exporter->err);
    strbuf_clear(&exporter->text);
}

static bool on_rows(void *context, const struct row_batch *batch)
{
    struct exporter *exporter = context;
    for (size_t i = 0; i < batch->rows_n && exporter->code == ERR_OK; i++) {
        const struct row *row = &batch->rows[i];
        exporter->unpriced |= (row->flags & FLAG_UNPRICED) != 0;
        if (exporter->json)
            ledger_json_row(&exporter->text, batch->names, row);
        else
            ledger_csv_row(&exporter->text, batch->names, row);
        if (exporter->text.n > EXPORT_BUFFER)
            flush(exporter);
    }
    for (size_t i = 0; i < batch->notes_n; i++)
        exporter->partial |= batch->notes[i].kind == NOTE_PARTIAL;
    return exporter->code == ERR_OK && !signals_caught();
}

/* ------------------------------------------------------------------ hours beside the rows */

static void put_text(struct strbuf *out, const struct names *names, name_t name)
{
    strbuf_addc(out, ',');
    csv_text(out, name == NAME_NONE ? STR("-") : names_text(names, name));
}

static void put_hour(struct strbuf *out, time_ms hour)
{
    char text[TIME_TEXT_MAX];
    strbuf_addf(out, "%s", time_format(hour, text));
}

static bool write_on(struct exporter *exporter)
{
    if (exporter->text.n > EXPORT_BUFFER)
        flush(exporter);
    return exporter->code == ERR_OK && !signals_caught();
}

#define number(exporter, value) strbuf_addf(&(exporter)->text, ",%lld", (long long)(value))

static bool on_machines(void *context, const struct machine_hour *hours, size_t n)
{
    static const char *const taints[] = {"unknown", "none", "present"};
    struct exporter *exporter = context;
    for (size_t i = 0; i < n; i++) {
        const struct machine_hour *hour = &hours[i];
        put_hour(&exporter->text, hour->hour);
        put_text(&exporter->text, exporter->names, hour->cluster);
        put_text(&exporter->text, exporter->names, hour->node);
        const int64_t numbers[] = {
            hour->cpu,       hour->cpu_seen_ms, hour->cpu_max,        hour->cpus,
            hour->net_bytes, hour->net_seen_ms, hour->requested_mcpu, hour->requested_memory_bytes,
            hour->cpu_pods,  hour->daemon_pods};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            number(exporter, numbers[k]);
        put_text(&exporter->text, exporter->names, hour->cpu_workloads);
        strbuf_addf(&exporter->text, ",%s\n", taints[hour->gpu_taint]);
    }
    return write_on(exporter);
}

static bool on_workloads(void *context, const struct workload_hour *hours, size_t n)
{
    struct exporter *exporter = context;
    for (size_t i = 0; i < n; i++) {
        const struct workload_hour *hour = &hours[i];
        put_hour(&exporter->text, hour->hour);
        put_text(&exporter->text, exporter->names, hour->cluster);
        put_text(&exporter->text, exporter->names, hour->namespace);
        put_text(&exporter->text, exporter->names, hour->workload);
        const int64_t numbers[] = {
            hour->cpu_mcpu_ms,     hour->cpu_seen_ms, hour->cpu_max_mcpu, hour->cpu_limit_mcpu,
            hour->serving_seen_ms, hour->running_ms,  hour->running_max,  hour->waiting_ms,
            hour->waiting_max,     hour->kv,          hour->kv_seen_ms,   hour->kv_max,
            hour->requests,        hour->tokens};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            number(exporter, numbers[k]);
        put_text(&exporter->text, exporter->names, hour->user);
        strbuf_addc(&exporter->text, '\n');
    }
    return write_on(exporter);
}

static bool on_namespaces(void *context, const struct namespace_hour *hours, size_t n)
{
    struct exporter *exporter = context;
    for (size_t i = 0; i < n; i++) {
        const struct namespace_hour *hour = &hours[i];
        put_hour(&exporter->text, hour->hour);
        put_text(&exporter->text, exporter->names, hour->cluster);
        put_text(&exporter->text, exporter->names, hour->namespace);
        const int64_t numbers[] = {hour->quotas_known,
                                   hour->gpu_quota,
                                   hour->priorities_known,
                                   hour->gpu_pods,
                                   hour->gpu_pods_without_priority,
                                   hour->pending_pods,
                                   hour->pending_gpus,
                                   hour->pending_largest,
                                   hour->pending_gpu_ms};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            number(exporter, numbers[k]);
        strbuf_addc(&exporter->text, '\n');
    }
    return write_on(exporter);
}

static enum err read_hours(struct flow *flow, struct exporter *exporter, struct error *err)
{
    exporter->names = store_names(flow->store);
    switch (exporter->what) {
    case WHAT_MACHINE:
        strbuf_add(&exporter->text,
                   STR("hour,cluster,node,cpu,cpu_seen_ms,cpu_max,cpus,net_bytes,net_seen_ms,"
                       "requested_mcpu,requested_memory_bytes,cpu_pods,daemon_pods,cpu_workloads,"
                       "gpu_taint\n"));
        return store_read_machine_hours(flow->store, flow->window, on_machines, exporter, err);
    case WHAT_WORKLOAD:
        strbuf_add(&exporter->text,
                   STR("hour,cluster,namespace,workload,cpu_mcpu_ms,cpu_seen_ms,cpu_max_mcpu,"
                       "cpu_limit_mcpu,serving_seen_ms,running_ms,running_max,waiting_ms,"
                       "waiting_max,kv,kv_seen_ms,kv_max,requests,tokens,user\n"));
        return store_read_workload_hours(flow->store, flow->window, on_workloads, exporter, err);
    default:
        strbuf_add(&exporter->text,
                   STR("hour,cluster,namespace,quotas_known,gpu_quota,priorities_known,gpu_pods,"
                       "gpu_pods_without_priority,pending_pods,pending_gpus,pending_largest,"
                       "pending_gpu_ms\n"));
        return store_read_namespace_hours(flow->store, flow->window, on_namespaces, exporter, err);
    }
}

static enum err check_hours(const struct options *options, struct exporter *exporter,
                            struct error *err)
{
    const char *kind = options->positional_n == 2 ? options->positional[1] : "";
    const char *format = options_text(options, OPTION_OUTPUT);
    if (format && strcmp(format, "csv") != 0)
        return options_refuse(options, OPTION_OUTPUT, err, "export hours writes csv, not '%s'",
                              format);
    for (int what = WHAT_MACHINE; what < WHAT_COUNT; what++)
        if (strcmp(kind, hour_words[what]) == 0) {
            exporter->what = (enum what)what;
            return ERR_OK;
        }
    return error_set(err, ERR_USAGE, "write %s export hours machine, workload or namespace",
                     options->program);
}

static enum err check(const struct options *options, struct exporter *exporter, struct error *err)
{
    bool *ret_json = &exporter->json;
    const char *what = options->positional_n ? options->positional[0] : NULL;
    const char *format = options_text(options, OPTION_OUTPUT);
    if (!what)
        return error_set(err, ERR_USAGE, "export what? Write %s export ledger", options->program);
    if (strcmp(what, "hours") == 0)
        return check_hours(options, exporter, err);
    if (strcmp(what, "ledger") != 0)
        return error_set(err, ERR_USAGE, "there is no '%s' to export: write %s export ledger", what,
                         options->program);
    if (options->positional_n > 1)
        return error_set(err, ERR_USAGE, "export ledger: unexpected argument '%s'",
                         options->positional[1]);
    *ret_json = format && strcmp(format, "json") == 0;
    if (format && !*ret_json && strcmp(format, "csv") != 0)
        return options_refuse(options, OPTION_OUTPUT, err,
                              "export ledger writes csv or json, not '%s'", format);
    return ERR_OK;
}

static enum err run(struct flow *flow, struct exporter *exporter, struct error *err)
{
    enum err code = flow_collect(flow, err);
    if (code != ERR_OK)
        return code;
    if (exporter->what == WHAT_LEDGER && !exporter->json)
        ledger_csv_header(&exporter->text);
    code = exporter->what == WHAT_LEDGER
               ? store_read_rows(flow->store, flow->window, on_rows, exporter, err)
               : read_hours(flow, exporter, err);
    if (code != ERR_OK)
        return code;
    flush(exporter);
    if (exporter->code == ERR_OK && signals_caught())
        return error_set(err, ERR_STOPPED, "stopped while writing the ledger");
    return exporter->code == ERR_OK ? output_finish(err) : exporter->code;
}

int cmd_export(const struct options *options)
{
    struct flow flow = {0};
    struct error err = {0};
    struct exporter exporter = {.err = &err};
    enum err code = check(options, &exporter, &err);
    if (code == ERR_OK)
        code = flow_open(options, &flow, &err);
    if (code == ERR_OK)
        code = run(&flow, &exporter, &err);
    strbuf_release(&exporter.text);
    flow_close(&flow);
    if (code != ERR_OK)
        return fail(&err);
    bool incomplete = exporter.partial || exporter.unpriced;
    return options_switch(options, OPTION_STRICT) && incomplete ? EXIT_INCOMPLETE : EXIT_DONE;
}
