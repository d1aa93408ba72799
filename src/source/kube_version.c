/* Has the server gone back? etcd that was restored from a backup goes on from the backup's version,
 * and a watch from a version that is still to come says nothing until it has come, not even by a
 * bookmark: what was told after the backup would stay for ever. So whenever a watch ended badly, or
 * ended without a word, the server is asked for its version (a list of one object) before the next
 * watch begins; and a bookmark or object whose version runs back is taken for the same. Where it
 * has gone back, the list is asked anew.
 *
 * Versions are decimal numbers that grow (Kubernetes 1.35 says so, and all before did it); what is
 * no number is not compared. What this cannot see is a server that has gone back and grown beyond
 * our version between two questions: its versions go on as if nothing had been, and neither a
 * version nor an object tells one history from the other. So everything is listed anew once a day,
 * which ends what the lost history left behind. */
#include <ctype.h>
#include <string.h>

#include "source/kube_watch_impl.h"

static size_t digits(const char *text)
{
    size_t n = 0;
    while (isdigit((unsigned char)text[n]))
        n++;
    return text[n] ? 0 : n;
}

bool kube_version_is_before(const char *a, const char *b)
{
    while (*a == '0' && a[1])
        a++;
    while (*b == '0' && b[1])
        b++;
    size_t n = digits(a), m = digits(b);
    if (!n || !m)
        return false;
    return n != m ? n < m : strcmp(a, b) < 0;
}

struct peek {
    const char *path;
    struct kube_reader *reader;
    uint64_t bytes;
    char version[KUBE_VERSION_TEXT_MAX];
};

static void on_list(void *context, struct str version, struct str more)
{
    struct peek *peek = context;
    (void)more;
    if (version.n < sizeof peek->version)
        snprintf(peek->version, sizeof peek->version, "%.*s", STR_ARG(version));
}

static enum err begin(void *context, const struct http_answer *answer, struct error *err)
{
    (void)context, (void)answer, (void)err;
    return ERR_OK;
}

static enum err piece(void *context, struct str bytes, struct error *err)
{
    struct peek *peek = context;
    peek->bytes += bytes.n;
    if (peek->bytes > KUBE_PAGE_BYTES_MAX)
        return error_set(err, ERR_LIMIT, "an object of %s is longer than 1 GiB", peek->path);
    kube_reader_feed(peek->reader, bytes.p, bytes.n);
    return ERR_OK;
}

static enum err finish(void *context, struct error *err)
{
    struct peek *peek = context;
    struct kube_counts counts;
    enum err e = kube_reader_end(peek->reader, &counts, err);
    if (e == ERR_OK && !peek->version[0])
        e = error_set(err, ERR_PROTOCOL, "the list of %s has no version", peek->path);
    return e;
}

enum err kube_version_look(struct kube_follower *f, struct http_answer *answer, struct error *err)
{
    struct peek peek = {.path = f->path};
    struct kube_sink sink = {.context = &peek, .list = on_list};
    const char *headers[] = {f->resource->metadata ? KUBE_METADATA_LIST : KUBE_WHOLE};
    struct http_request request = {
        .path = f->path,
        .query = STR("limit=1"),
        .headers = headers,
        .headers_n = 1,
        .begin = begin,
        .piece = piece,
        .finish = finish,
        .context = &peek,
    };
    struct http_client *client = http_client_new(f->list_site, &f->watch->stop);
    peek.reader = kube_reader_new(&sink);
    enum err e = http_ask(client, &request, answer, err);
    kube_reader_free(peek.reader);
    http_client_free(client);
    if (e == ERR_OK && kube_version_is_before(peek.version, f->version))
        kube_version_went_back(f, peek.version);
    return e;
}

void kube_version_went_back(struct kube_follower *f, const char *to)
{
    kube_note(
        f->watch,
        "the Kubernetes API went back from version %s of %s to %s, as after a restore of etcd: "
        "all is listed anew",
        f->version, f->resource->plural, to);
    f->version[0] = '\0';
}
