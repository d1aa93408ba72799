/* Private to serve/auth*.c. */
#ifndef GPUTALLY_SERVE_AUTH_IMPL_H
#define GPUTALLY_SERVE_AUTH_IMPL_H

#include <stdatomic.h>

#include "serve/auth.h"
#include "util/memory.h"

#define AUTH_HASH_BYTES 32
#define AUTH_PROXIES_MAX 64

enum grant_kind { GRANT_TOKEN, GRANT_CERTIFICATE, GRANT_PROXY };

struct grant {
    enum grant_kind kind;
    struct str name; /* of the token; or a pattern of common names or of the proxy's names */
    unsigned char hash[AUTH_HASH_BYTES]; /* GRANT_TOKEN */
    unsigned scopes;
    struct view_of view;
};

/* An address or a network, IPv4 ones mapped. */
struct network {
    unsigned char bytes[16];
    int bits;
};
bool network_parse(struct str text, struct network *ret);
bool address_in(struct str address, const struct network *network);

struct auth {
    atomic_int owners;
    bool allow_anonymous, wants_certificate;
    struct grant *grants;
    size_t grants_n, grants_room;
    struct str proxy_header; /* NUL-terminated */
    struct network proxies[AUTH_PROXIES_MAX];
    size_t proxies_n;
    struct arena arena;
};

bool http_listen_is_loopback(const char *listen); /* http_listen.c */

#endif
