/* The assembler takes the packed files in with .incbin, as fleet/data.c does with the tables: no
 * generated source, and the same with every compiler. CMake runs web/build.mjs when a source of the
 * page is newer than the result, names the folder of the result, and makes this file depend on it.
 */
#include "report/page.h"

#include <stdlib.h>
#include <zlib.h>

#ifdef GPUTALLY_PAGE_FOLDER

#define PAGE_FILE(symbol, path)                                                                    \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 16\n"                                                                         \
            ".globl page_" #symbol "\n"                                                            \
            ".hidden page_" #symbol "\n"                                                           \
            "page_" #symbol ":\n"                                                                  \
            ".incbin \"" GPUTALLY_PAGE_FOLDER "/" path "\"\n"                                      \
            ".globl page_" #symbol "_end\n"                                                        \
            ".hidden page_" #symbol "_end\n"                                                       \
            "page_" #symbol "_end:\n"                                                              \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char page_##symbol[], page_##symbol##_end[]

PAGE_FILE(index, "index.html.gz");
PAGE_FILE(others, "others.js.gz");
PAGE_FILE(plot, "plot.js.gz");
PAGE_FILE(report, "report.html.gz");
PAGE_FILE(script_hash, "index.script.hash");
PAGE_FILE(style_hash, "index.style.hash");

/* RFC 1952: a member ends in the length of what it holds, little-endian. */
static size_t plain_length(struct str gzip)
{
    const unsigned char *end = (const unsigned char *)gzip.p + gzip.n;
    return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

bool page_file(struct str name, struct page_file *ret)
{
    static const struct {
        const char *name, *mime, *from, *to;
    } files[] = {
        {"index.html", "text/html; charset=utf-8", page_index, page_index_end},
        {"others.js", "text/javascript; charset=utf-8", page_others, page_others_end},
        {"plot.js", "text/javascript; charset=utf-8", page_plot, page_plot_end},
        {"report.html", "text/html; charset=utf-8", page_report, page_report_end},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (str_eq(str_of(files[i].name), name)) {
            struct str gzip = {files[i].from, (size_t)(files[i].to - files[i].from)};
            *ret = (struct page_file){.name = files[i].name,
                                      .mime = files[i].mime,
                                      .gzip = gzip,
                                      .plain_n = plain_length(gzip)};
            if (i == 0) /* the other one says in itself what it allows */
                ret->script_hash = page_script_hash, ret->style_hash = page_style_hash;
            return true;
        }
    return false;
}

#else

bool page_file(struct str name, struct page_file *ret)
{
    (void)name;
    (void)ret;
    return false;
}

#endif

enum err page_check(struct error *err)
{
    struct page_file file;
    if (page_file(STR("index.html"), &file))
        return ERR_OK;
    return error_set(err, ERR_NOT_FOUND,
                     "this gputally was built without its page (GPUTALLY_WEB=OFF): --output "
                     "markdown, json or csv have the figures; cmake -DGPUTALLY_WEB=ON builds it "
                     "in, with Node 18 or later");
}

enum err page_unpack(struct str name, struct strbuf *out, struct error *err)
{
    struct page_file file;
    if (!page_file(name, &file))
        return page_check(err);
    char *plain = mem_alloc(file.plain_n + 1);
    z_stream stream = {.next_in = (z_const Bytef *)file.gzip.p,
                       .avail_in = (uInt)file.gzip.n,
                       .next_out = (Bytef *)plain,
                       .avail_out = (uInt)file.plain_n};
    bool sound = inflateInit2(&stream, 15 + 16) == Z_OK; /* 16: a gzip member */
    if (sound) {
        sound = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == file.plain_n;
        inflateEnd(&stream);
    }
    invariant(sound); /* it is part of the binary */
    strbuf_add(out, (struct str){plain, file.plain_n});
    free(plain);
    return ERR_OK;
}
