/* /healthz: the process answers. /readyz: what it needs is there, each with its reason. */
#include "serve/api_impl.h"

#define CHECKS_MAX 64

void api_healthz(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context, (void)request;
    answer->content_type = "text/plain; charset=utf-8";
    answer->cache_control = "no-store";
    strbuf_add(&answer->body, STR("ok\n"));
}

static void check_database(struct api *api, struct health_check *ret)
{
    struct store *store = NULL;
    struct api_names *names = NULL;
    struct error err = {0};
    *ret = (struct health_check){.name = "database", .ok = true};
    if (api_open_store(api, &store, &names, &err) != ERR_OK) {
        ret->ok = false; /* the text names a file of this machine: the log has it */
        snprintf(ret->why, sizeof ret->why, "%s",
                 err.code == ERR_NOT_FOUND ? "nothing is collected yet"
                                           : "it cannot be read; the log says why");
        return;
    }
    store_close(store);
    api_names_release(names);
}

/* Who has a token sees which check failed and why; everybody sees whether one did. */
void api_readyz(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct api *api = context;
    struct health_check checks[CHECKS_MAX];
    size_t n = 1;
    check_database(api, &checks[0]);
    if (api->options.checks)
        n += api->options.checks(api->options.context, checks + 1, CHECKS_MAX - 1);
    bool ok = true, may_see = (request->access->scopes & SCOPE_BIT(SCOPE_READ)) &&
                              !request->access->view.limited;
    for (size_t i = 0; i < n; i++)
        ok &= checks[i].ok;
    answer->status = ok ? 200 : 503;
    answer->cache_control = "no-store";
    strbuf_addf(&answer->body, "{\"ready\": %s, \"checks\": [", ok ? "true" : "false");
    for (size_t i = 0; i < n && may_see; i++) {
        strbuf_add(&answer->body, str_of(i ? ", {\"name\": " : "{\"name\": "));
        api_put_string(&answer->body, str_of(checks[i].name));
        strbuf_addf(&answer->body, ", \"ok\": %s, \"why\": ", checks[i].ok ? "true" : "false");
        api_put_or_null(&answer->body, checks[i].ok ? STR_NONE : str_of(checks[i].why));
        strbuf_addc(&answer->body, '}');
    }
    strbuf_add(&answer->body, STR("]}\n"));
}
