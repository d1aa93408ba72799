/* The files of the page, packed into the binary. */
#include "serve/api.h"

const struct asset *assets_find(struct str path)
{
    (void)path;
    return NULL;
}

void assets_routes(struct http_server *server)
{
    (void)server;
}
