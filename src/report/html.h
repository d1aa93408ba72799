/* A report as one HTML file: the page application with its data inside, to be mailed and opened
 * without a network. The data is a JSON object of blocks, each what a machine format prints; the
 * page's script reads them where a server would be asked otherwise (docs/dashboard.md).
 *
 * Names in the data come from strangers: nothing in it can end the element that it stands in. */
#ifndef GPUTALLY_REPORT_HTML_H
#define GPUTALLY_REPORT_HTML_H

#include "util/error.h"
#include "util/str.h"

struct html_block {
    const char *name; /* "findings" */
    struct str json;  /* a whole JSON value; empty: null */
};
/* ERR_NOT_FOUND: this build has no page. O(bytes). */
enum err html_report(const struct html_block *blocks, size_t n, struct strbuf *out,
                     struct error *err);

#endif
