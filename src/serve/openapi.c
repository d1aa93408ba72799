#include "serve/api_impl.h"

void api_openapi(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context, (void)request;
    strbuf_add(&answer->body, STR("{}\n"));
}
