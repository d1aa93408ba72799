/* A page with its data inside: a report as one HTML file, to be mailed and opened without a
 * network, and the dashboard with its first answers. The data is a JSON object of blocks, each what
 * a machine format prints; the page's script reads them where a server would be asked otherwise
 * (docs/dashboard.md).
 *
 * Names in the data come from strangers: nothing in it can end the element that it stands in. */
#ifndef GPUTALLY_REPORT_HTML_H
#define GPUTALLY_REPORT_HTML_H

#include "util/error.h"
#include "util/str.h"

struct html_block {
    const char *name; /* "findings"; nothing that JSON escapes */
    struct str json;  /* a whole JSON value; empty: null */
};
/* name: "report.html" or "index.html". ERR_NOT_FOUND: this build has no page. O(bytes). */
enum err html_page(struct str name, const struct html_block *blocks, size_t n, struct strbuf *out,
                   struct error *err);

#endif
