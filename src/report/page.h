/* The page application as it is in the binary: what web/build.mjs made of web/src, packed with
 * gzip. The server sends it file by file; an HTML report is one of the files with data put in.
 *
 * A build without Node (GPUTALLY_WEB=OFF) has no page: there is no file. Any thread. */
#ifndef GPUTALLY_REPORT_PAGE_H
#define GPUTALLY_REPORT_PAGE_H

#include "util/error.h"
#include "util/str.h"

struct page_file {
    const char *name; /* "index.html", "others.js", "plot.js"; "report.html" is not for a server */
    const char *mime; /* "text/html; charset=utf-8" */
    struct str gzip;  /* lives for ever */
    size_t plain_n;   /* unpacked, bytes */
    /* What stands inside of index.html, as a content-security policy allows it: "'sha256-…'". NULL
     * in all others. */
    const char *script_hash, *style_hash;
};
bool page_file(struct str name, struct page_file *ret); /* false: there is none */

/* ERR_NOT_FOUND: this build has none, said with what to do. */
enum err page_check(struct error *err);

/* The file unpacked, at the end of `out`. ERR_NOT_FOUND: there is none. */
enum err page_unpack(struct str name, struct strbuf *out, struct error *err);

#endif
