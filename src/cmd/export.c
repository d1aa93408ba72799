/* export ledger: the rows themselves, written as they are read. */
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/output.h"
#include "fleet/intake.h"
#include "report/ledger_rows.h"

#define EXPORT_BUFFER (256 * 1024)

struct exporter {
    struct strbuf text;
    bool json;
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

static enum err check(const struct options *options, bool *ret_json, struct error *err)
{
    const char *what = options->positional_n ? options->positional[0] : NULL;
    const char *format = options_text(options, OPTION_OUTPUT);
    if (!what)
        return error_set(err, ERR_USAGE, "export what? Write %s export ledger", options->program);
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
    if (!exporter->json)
        ledger_csv_header(&exporter->text);
    code = store_read_rows(flow->store, flow->window, on_rows, exporter, err);
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
    enum err code = check(options, &exporter.json, &err);
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
