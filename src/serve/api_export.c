/* /export/ledger: the rows themselves, written as they are read, on a thread of the stream. */
#include <stdlib.h>

#include "query/window.h"
#include "report/ledger_rows.h"
#include "serve/api_impl.h"

#define PIECE_BYTES (64 * 1024)

struct export
{
    struct store *store;
    struct api_names *names;
    struct store_lens lens;
    struct arena arena;
    bool limited, json;
    struct span window;
    struct http_stream *to;
    struct strbuf text;
    bool gone;
};

static void export_free(void *context)
{
    struct export *export = context;
    store_close(export->store);
    api_names_release(export->names);
    store_lens_release(&export->lens);
    arena_release(&export->arena);
    strbuf_release(&export->text);
    free(export);
}

static bool on_rows(void *context, const struct row_batch *batch)
{
    struct export *export = context;
    for (size_t i = 0; i < batch->rows_n && !export->gone; i++) {
        if (export->json)
            ledger_json_row(&export->text, batch->names, &batch->rows[i]);
        else
            ledger_csv_row(&export->text, batch->names, &batch->rows[i]);
        if (export->text.n > PIECE_BYTES) {
            export->gone = !http_stream_write(export->to, strbuf_str(&export->text));
            strbuf_clear(&export->text);
        }
    }
    return !export->gone;
}

static void export_write(void *context, struct http_stream *to)
{
    struct export *export = context;
    struct error err = {0};
    export->to = to;
    if (!export->json)
        ledger_csv_header(&export->text);
    if (store_read_rows(export->store, export->window, on_rows, export, &err) != ERR_OK)
        http_stream_fail(to); /* half a ledger must not look like a whole one */
    else if (!export->gone)
        http_stream_write(to, strbuf_str(&export->text));
}

static enum err read_parameters(struct api *api, const struct http_request *request,
                                struct export *export, struct error *err)
{
    struct str format = http_parameter(request, "format"),
               window = http_parameter(request, "window");
    struct str tz = http_parameter(request, "tz");
    bool widened;
    for (size_t i = 0; i < request->query_n; i++) {
        struct str name = request->query[i].name;
        if (!str_eq(name, STR("format")) && !str_eq(name, STR("window")) &&
            !str_eq(name, STR("tz")))
            return error_set(err, ERR_USAGE, "there is no parameter \"%.*s\"", STR_ARG(name));
    }
    export->json = str_eq(format, STR("json"));
    if (format.n && !export->json && !str_eq(format, STR("csv")))
        return error_set(err, ERR_USAGE, "format is csv or json, not \"%.*s\"", STR_ARG(format));
    enum err code = store_extent(export->store, &export->window, err);
    if (code != ERR_OK || !window.n)
        return code;
    pthread_rwlock_rdlock(&api->settings_lock);
    code = window_parse(window, tz.n ? tz.p : api->settings.tz, clock_now(), &export->window,
                        &widened, err);
    pthread_rwlock_unlock(&api->settings_lock);
    return code;
}

void api_export(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct api *api = context;
    struct error err = {0};
    struct export *export = mem_zalloc(1, sizeof *export);
    enum err code = api_open_store(api, &export->store, &export->names, &err);
    bool missing = code == ERR_NOT_FOUND;
    if (code == ERR_OK)
        code = read_parameters(api, request, export, &err);
    missing |= code == ERR_NOT_FOUND;
    if (code != ERR_OK) {
        if (missing)
            http_answer_error(answer, 503, "unavailable", "nothing is collected yet",
                              "/readyz says when there is something");
        else
            http_answer_failed(answer, &err);
        export_free(export);
        return;
    }
    if (request->access->view.limited) {
        struct view_of view = request->access->view;
        api_lens(&view, export->names->names, &export->arena, &export->lens);
        store_set_lens(export->store, &export->lens);
    }
    answer->content_type = export->json ? "application/x-ndjson" : "text/csv; charset=utf-8";
    http_answer_header(answer, "Content-Disposition",
                       export->json ? STR("attachment; filename=\"ledger.jsonl\"")
                                    : STR("attachment; filename=\"ledger.csv\""));
    answer->stream = export_write;
    answer->stream_free = export_free;
    answer->stream_context = export;
}
