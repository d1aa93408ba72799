/* Errors on standard error, and the exit status that they give. */
#include <unistd.h>

#include "cmd/cmd.h"
#include "report/text.h"

int fail(const struct error *err)
{
    struct strbuf text = {0};
    text_clean(&text, str_of(err->text));
    fprintf(stderr, "gputally: %s\n", text.text ? text.text : "failed");
    strbuf_release(&text);
    return err->code == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
