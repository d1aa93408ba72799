/* serve: what the service is told comes from the configuration and, over it, from the command line
 * and the environment; all of them are read again by each reload. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/serve_load.h"
#include "report/page.h"

static enum err load(void *context, struct service_setup *ret, struct error *err)
{
    return serve_load(context, NULL, ret, err);
}

static void ready(void *context, const char *url)
{
    (void)context;
    struct page_file page;
    printf("gputally serves at %s\n", url);
    if (!page_file(STR("index.html"), &page))
        printf(
            "this build has no dashboard (GPUTALLY_WEB=OFF): the API is under %sapi/v1, described "
            "by %sapi/v1/openapi.json\n",
            url, url);
    fflush(stdout);
}

/* For tests only: GPUTALLY_TEST_CLOCK=TIME,SPEED plays a fleet's time, days of it in seconds. */
static enum err test_clock(struct error *err)
{
    const char *text = getenv("GPUTALLY_TEST_CLOCK");
    if (!text)
        return ERR_OK;
    const char *comma = strchr(text, ',');
    char *end = NULL;
    double speed = comma ? strtod(comma + 1, &end) : 0;
    time_ms base;
    if (!comma || *end || !(speed > 0) ||
        !time_parse((struct str){text, (size_t)(comma - text)}, &base))
        return error_set(err, ERR_USAGE, "GPUTALLY_TEST_CLOCK is TIME,SPEED");
    clock_pretend(base, speed);
    return ERR_OK;
}

int cmd_serve(const struct options *options)
{
    struct error err = {0};
    struct service_options service = {.load = load,
                                      .unload = serve_unload,
                                      .context = (void *)(uintptr_t)options,
                                      .ready = ready};
    enum err code = test_clock(&err);
    if (code == ERR_OK)
        code = service_run(&service, &err);
    return code == ERR_OK ? EXIT_DONE : fail(&err);
}
