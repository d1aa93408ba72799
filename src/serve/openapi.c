/* The OpenAPI 3.1 document: paths from the table of endpoints, figures from their table, all other
 * schemas from openapi_schemas.json, which the assembler takes in as it is. Made once. */
#include <stdlib.h>

#include "report/figure.h"
#include "serve/api_impl.h"

__asm__(".pushsection .rodata\n"
        ".globl openapi_schemas\n"
        ".hidden openapi_schemas\n"
        "openapi_schemas:\n"
        ".incbin \"" GPUTALLY_SERVE_FOLDER "/openapi_schemas.json\"\n"
        ".globl openapi_schemas_end\n"
        ".hidden openapi_schemas_end\n"
        "openapi_schemas_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const char openapi_schemas[], openapi_schemas_end[];

static const struct {
    const char *name, *meaning;
    unsigned takes;
    bool several;
} commons[] = {
    {"window",
     "7d, 24h, today, yesterday, week, lastweek, month, lastmonth, or FROM,TO in RFC "
     "3339; the last 7 days of the ledger",
     TAKES_WINDOW, false},
    {"tz", "time zone in which days begin, such as Europe/Berlin", TAKES_WINDOW, false},
    {"by", "group by these keys, comma-joined", TAKES_BY, false},
    {"filter", "KEY=VALUE or KEY!=VALUE, * and ? allowed; may be given several times", TAKES_FILTER,
     true},
    {"sort", "order by this figure, or by name", TAKES_SORT, false},
    {"limit", "the first N rows", TAKES_LIMIT, false},
};

static void add_parameter(struct strbuf *out, size_t n, const char *name, const char *meaning,
                          bool needed, bool several)
{
    strbuf_addf(out, "%s{\"name\": \"%s\", \"in\": \"query\", \"required\": %s, \"schema\": ",
                n ? ", " : "", name, needed ? "true" : "false");
    strbuf_add(out, several ? STR("{\"type\": \"array\", \"items\": {\"type\": \"string\"}}")
                            : STR("{\"type\": \"string\"}"));
    strbuf_add(out, STR(", \"description\": "));
    api_put_string(out, str_of(meaning));
    strbuf_addc(out, '}');
}

static void add_parameters(struct strbuf *out, const struct api_endpoint *endpoint)
{
    size_t n = 0;
    strbuf_add(out, STR("\"parameters\": ["));
    for (size_t i = 0; i < sizeof commons / sizeof *commons; i++)
        if (endpoint->takes & commons[i].takes)
            add_parameter(out, n++, commons[i].name, commons[i].meaning, false, commons[i].several);
    for (const struct api_parameter *p = endpoint->parameters; p && p->name; p++)
        add_parameter(out, n++, p->name, p->meaning, p->needed, false);
    strbuf_add(out, STR("], "));
}

/* schema NULL: text of that type. */
static void add_answers(struct strbuf *out, const char *type, const char *schema)
{
    strbuf_addf(out,
                "\"responses\": {\"200\": {\"description\": \"the answer\", \"content\": "
                "{\"%s\": {\"schema\": ",
                type);
    if (schema)
        strbuf_addf(out, "{\"$ref\": \"#/components/schemas/%s\"}", schema);
    else
        strbuf_add(out, STR("{\"type\": \"string\"}"));
    strbuf_add(out, STR("}}}, \"304\": {\"description\": \"as If-None-Match names it\"}, "
                        "\"default\": {\"description\": \"an error\", \"content\": "
                        "{\"application/json\": {\"schema\": "
                        "{\"$ref\": \"#/components/schemas/Error\"}}}}}"));
}

static void begin_path(struct strbuf *out, const char *pattern, const char *summary, bool first)
{
    strbuf_addf(out, "%s\n  \"%s\": {\"get\": {\"summary\": ", first ? "" : ",", pattern);
    api_put_string(out, str_of(summary));
    strbuf_add(out, STR(", "));
}

/* What api_routes adds beside the endpoints. */
static const struct {
    const char *pattern, *summary, *type, *schema;
} plain[] = {
    {"/healthz", "the process answers", "text/plain", NULL},
    {"/readyz", "what the service needs is there", "application/json", "Ready"},
    {"/api/v1/openapi.json", "this document", "application/json", NULL},
};

static void add_paths(struct strbuf *out)
{
    static const struct api_parameter export_parameters[] = {
        {"format", false, "csv or json (an object a line); csv"}, {0}};
    static const struct api_endpoint export = {.takes = TAKES_WINDOW,
                                               .parameters = export_parameters};
    for (size_t i = 0; i < api_endpoints_n; i++) {
        const struct api_endpoint *endpoint = &api_endpoints[i];
        begin_path(out, endpoint->pattern, endpoint->summary, i == 0);
        add_parameters(out, endpoint);
        add_answers(out, endpoint->content_type ? "text/plain" : "application/json",
                    endpoint->schema);
        strbuf_add(out, STR("}}"));
    }
    begin_path(out, "/api/v1/export/ledger", "the rows of the ledger, as they are read", false);
    add_parameters(out, &export);
    add_answers(out, "text/csv", NULL);
    strbuf_add(out, STR("}}"));
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        begin_path(out, plain[i].pattern, plain[i].summary, false);
        strbuf_add(out, STR("\"security\": [], "));
        add_answers(out, plain[i].type, plain[i].schema);
        strbuf_add(out, STR("}}"));
    }
}

/* The receiver is the service's (feed.c); who reads the document wants to know of it. */
#define WRITE_PATH                                                                                 \
    ",\n  \"/api/v1/write\": {\"post\": {\"summary\": \"samples of Prometheus remote write 1.0, "  \
    "snappy and protobuf; scope write\", \"parameters\": [], \"requestBody\": {\"required\": "     \
    "true, "                                                                                       \
    "\"content\": {\"application/x-protobuf\": {}}}, \"responses\": {\"204\": {\"description\": "  \
    "\"on disk\"}, \"400\": {\"description\": \"not to be sent again\"}, \"503\": "                \
    "{\"description\": \"to be sent again\"}}}}"

static void add_figures(struct strbuf *out)
{
    strbuf_add(out, STR("\"Figures\": {\"type\": \"object\", \"properties\": {"));
    for (int i = 0; i < FIGURE_COUNT; i++) {
        const struct figure *figure = &figure_defs[i];
        strbuf_addf(out, "%s\n   \"%s\": {", i ? "," : "", figure->name);
        if (figure->unit == UNIT_MONEY)
            strbuf_add(out, STR("\"anyOf\": [{\"$ref\": \"#/components/schemas/Money\"}, "
                                "{\"type\": \"null\"}]"));
        else
            strbuf_addf(out, "\"type\": [\"%s\", \"null\"]",
                        figure->unit == UNIT_BYTES || figure->unit == UNIT_COUNT ? "integer"
                                                                                 : "number");
        strbuf_add(out, STR(", \"description\": "));
        api_put_string(out, str_of(figure->meaning));
        strbuf_addc(out, '}');
    }
    strbuf_add(out, STR("}, \"required\": ["));
    for (int i = 0; i < FIGURE_COUNT; i++)
        strbuf_addf(out, "%s\"%s\"", i ? ", " : "", figure_defs[i].name);
    strbuf_add(out, STR("]},\n"));
}

void openapi_document(struct strbuf *out)
{
    struct str schemas = {openapi_schemas, (size_t)(openapi_schemas_end - openapi_schemas)};
    strbuf_add(out, STR("{\"openapi\": \"3.1.0\",\n \"info\": {\"title\": \"gputally\", "
                        "\"version\": \"" GPUTALLY_VERSION "\", \"description\": \"The ledger of "
                        "GPU money over HTTP\"},\n \"security\": [{\"token\": []}],\n "
                        "\"paths\": {"));
    add_paths(out);
    strbuf_add(out, STR(WRITE_PATH));
    strbuf_add(out, STR("\n },\n \"components\": {\"securitySchemes\": {\"token\": {\"type\": "
                        "\"http\", \"scheme\": \"bearer\"}},\n  \"schemas\": {\n"));
    add_figures(out);
    const char *open = memchr(schemas.p, '{', schemas.n);
    strbuf_add(out, (struct str){open + 1, schemas.n - (size_t)(open + 1 - schemas.p)});
    strbuf_add(out, STR(" }}\n"));
}

void api_openapi(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)request;
    const struct api *api = context;
    answer->fixed = strbuf_str(&api->openapi);
    answer->fixed_gzip = strbuf_str(&api->openapi_gzip);
    answer->fixed_size = api->openapi.n;
}
