/* The page with the first answers inside, so that it stands after one request.
 *
 * It holds figures, so that it goes by the rules of the API: it is of the state that the ledger is
 * in now, is given to who may read everything and to nobody else, and is stored nowhere on the way.
 * Who has a view, or a token that a browser does not send with an address, gets the page without,
 * and the page asks. */
#include <pthread.h>
#include <stdlib.h>

#include "report/html.h"
#include "serve/api_impl.h"

#define BLOCKS_MOST 16
#define BLOCK_BYTES_MOST ((size_t)64 << 10) /* a larger answer is asked for by whoever wants it */
#define API "/api/v1/"

struct api_page_draft {
    struct api *api;
    struct strbuf names[BLOCKS_MOST], texts[BLOCKS_MOST];
    size_t n;
};

struct api_page_draft *api_page_draft_new(struct api *api)
{
    struct api_page_draft *draft = mem_zalloc(1, sizeof *draft);
    draft->api = api;
    return draft;
}

void api_page_begin(struct api_page_draft *draft)
{
    for (size_t i = 0; i < draft->n; i++) {
        strbuf_release(&draft->names[i]);
        strbuf_release(&draft->texts[i]);
    }
    draft->n = 0;
}

void api_page_draft_free(struct api_page_draft *draft)
{
    api_page_begin(draft);
    free(draft);
}

void api_page_add(struct api_page_draft *draft, const struct http_request *request,
                  struct str answer)
{
    invariant(draft->n < BLOCKS_MOST && str_starts(request->path, STR(API)));
    if (answer.n > BLOCK_BYTES_MOST)
        return;
    struct strbuf *name = &draft->names[draft->n];
    strbuf_addf(name, "%.*s", STR_ARG(request->path));
    for (size_t i = 0; i < request->query_n; i++)
        strbuf_addf(name, "%c%.*s=%.*s", i ? '&' : '?', STR_ARG(request->query[i].name),
                    STR_ARG(request->query[i].value));
    strbuf_add(&draft->texts[draft->n++], answer);
}

void api_page_show(const struct api_page_draft *draft, uint64_t generation, time_ms hour)
{
    struct api *api = draft->api;
    struct html_block blocks[BLOCKS_MOST];
    struct strbuf plain = {0}, gzip = {0};
    struct error none = {0};
    for (size_t i = 0; i < draft->n; i++)
        blocks[i] = (struct html_block){draft->names[i].text + sizeof API - 1,
                                        strbuf_str(&draft->texts[i])};
    if (html_page(STR("index.html"), blocks, draft->n, &plain, &none) != ERR_OK)
        return; /* a build without the page */
    http_pack(strbuf_str(&plain), &gzip);
    struct cached *page = cached_new(&plain, &gzip);
    pthread_mutex_lock(&api->page_lock);
    struct cached *old = api->page;
    api->page = page;
    api->page_generation = generation;
    api->page_hour = hour;
    pthread_mutex_unlock(&api->page_lock);
    cached_release(old);
}

bool api_page_give(struct api *api, const struct http_request *request, struct http_answer *answer)
{
    const struct access *access = request->access;
    if (access->view.limited || !(access->scopes & SCOPE_BIT(SCOPE_READ)))
        return false;
    uint64_t generation = api_generation(api);
    pthread_mutex_lock(&api->page_lock);
    bool current = api->page && api->page_generation == generation &&
                   api->page_hour == hour_floor(clock_now());
    struct cached *page = current ? cached_hold(api->page) : NULL;
    pthread_mutex_unlock(&api->page_lock);
    if (!page)
        return false;
    api_give_cached(answer, page);
    answer->cache_control = "private, no-store";
    return true;
}
