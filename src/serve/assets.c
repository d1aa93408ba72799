/* The page: its files as they are packed into the binary (report/page.h). Everybody may load them,
 * they hold no figures; the page asks for a token where the API wants one. Who may read everything
 * without one has the page with its first figures (api_page.c). */
#define XXH_NO_INLINE_HINTS 1
#include <xxhash.h>

#include "report/page.h"
#include "serve/api.h"

static void allow_inside(const struct page_file *file, struct http_answer *answer)
{
    answer->script_hash = file->script_hash;
    answer->style_hash = file->style_hash;
}

static void send_file(struct str name, struct http_answer *answer)
{
    struct page_file file;
    /* the one that is not for a server: without its data it shows nothing */
    if (str_eq(name, STR("report.html")) || !page_file(name, &file)) {
        bool any = page_file(STR("index.html"), &file);
        http_answer_error(answer, 404, "not_found",
                          any ? "there is no such file"
                              : "this gputally was built without its page",
                          any ? NULL
                              : "the API is under /api/v1, described by /api/v1/openapi.json; "
                                "cmake -DGPUTALLY_WEB=ON builds the page in");
        return;
    }
    XXH128_hash_t hash = XXH3_128bits(file.gzip.p, file.gzip.n);
    answer->content_type = file.mime;
    answer->fixed_gzip = file.gzip;
    answer->fixed_size = file.plain_n;
    answer->digest[0] = hash.high64;
    answer->digest[1] = hash.low64;
    allow_inside(&file, answer);
}

static void handle_root(void *context, const struct http_request *request,
                        struct http_answer *answer)
{
    struct page_file file;
    if (!page_file(STR("index.html"), &file) || !api_page_give(context, request, answer)) {
        send_file(STR("index.html"), answer);
        return;
    }
    answer->content_type = file.mime;
    allow_inside(&file, answer);
}

static void handle_file(void *context, const struct http_request *request,
                        struct http_answer *answer)
{
    (void)context;
    send_file(request->rest, answer);
}

void assets_routes(struct api *api, struct http_server *server)
{
    struct http_route route = {.pattern = "/",
                               .methods = HTTP_BIT(HTTP_GET),
                               .scope = SCOPE_NONE,
                               .unseen = true,
                               .handle = handle_root,
                               .context = api};
    http_route_add(server, &route);
    route.pattern = "/assets/*";
    route.handle = handle_file;
    route.where = HTTP_AT_ONCE;
    http_route_add(server, &route);
}
