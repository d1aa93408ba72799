#include "report/html.h"

#include "report/page.h"

#define MARK "@@DATA@@" /* web/build.mjs puts it where the data goes */

/* In JSON "<" is only ever part of a text, where \u003c is the same; without it neither a closing
 * tag nor a comment can begin inside the script element. */
static void add_json(struct strbuf *out, struct str json)
{
    while (json.n) {
        const char *sign = memchr(json.p, '<', json.n);
        size_t n = sign ? (size_t)(sign - json.p) : json.n;
        strbuf_add(out, (struct str){json.p, n});
        if (!sign)
            return;
        strbuf_add(out, STR("\\u003c"));
        json = (struct str){sign + 1, json.n - n - 1};
    }
}

enum err html_page(struct str name, const struct html_block *blocks, size_t n, struct strbuf *out,
                   struct error *err)
{
    struct strbuf page = {0};
    enum err code = page_unpack(name, &page, err);
    const char *mark = code == ERR_OK ? strstr(page.text, MARK) : NULL;
    if (code == ERR_OK) {
        invariant(mark);
        strbuf_add(out, (struct str){page.text, (size_t)(mark - page.text)});
        strbuf_addc(out, '{');
        for (size_t i = 0; i < n; i++) {
            strbuf_addf(out, "%s\n\"%s\": ", i ? "," : "", blocks[i].name);
            add_json(out, blocks[i].json.n ? blocks[i].json : STR("null"));
        }
        strbuf_add(out, STR("}"));
        strbuf_add(out, str_of(mark + sizeof MARK - 1));
    }
    strbuf_release(&page);
    return code;
}
