/* The demo's sink, numbers and lines. */
#include "cmd/demo_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define KUBE_EVERY_MS ((time_ms)120000) /* kube-state-metrics is scraped less often */

char *demo_put_number(char *p, uint64_t v)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

char *demo_put_fixed(char *p, uint64_t v, int places)
{
    uint64_t unit = 1;
    for (int i = 0; i < places; i++)
        unit *= 10;
    p = demo_put_number(p, v / unit);
    *p++ = '.';
    for (v %= unit; places > 0; places--) {
        unit /= 10;
        *p++ = (char)('0' + v / unit);
        v %= unit;
    }
    return p;
}

static void grid_init(struct demo_grid *grid, struct span window, time_ms offset, time_ms step,
                      bool with_stamps)
{
    time_ms first = window.from + offset;
    *grid = (struct demo_grid){.first = first, .step = step};
    grid->n = first > window.to ? 0 : (size_t)((window.to - first) / step) + 1;
    if (!with_stamps)
        return;
    grid->stamps = mem_alloc((grid->n + 1) * DEMO_STAMP_BYTES);
    for (size_t k = 0; k < grid->n; k++) {
        char text[DEMO_NUMBER_MAX + 2];
        char *end = demo_put_fixed(text + 1, (uint64_t)(first + (time_ms)k * step), 3);
        text[0] = ' ';
        *end = '\n';
        memcpy(grid->stamps[k], text, DEMO_STAMP_BYTES);
    }
}

/* The first scrape at or after t. */
static size_t grid_index(const struct demo_grid *grid, time_ms t)
{
    if (t <= grid->first)
        return 0;
    if (t > grid->first + (time_ms)grid->n * grid->step)
        return grid->n;
    return (size_t)((t - grid->first + grid->step - 1) / grid->step);
}

void demo_writer_init(struct demo_writer *w, const struct demo_fleet *fleet, int fd)
{
    const struct demo_options *options = &fleet->options;
    time_ms kube_step = options->step_ms > KUBE_EVERY_MS ? options->step_ms : KUBE_EVERY_MS;
    *w = (struct demo_writer){.fleet = fleet, .fd = fd};
    w->bytes = mem_alloc(DEMO_SINK_BYTES);
    w->grids = mem_zalloc(fleet->nodes_n, sizeof *w->grids);
    for (size_t i = 0; i < fleet->nodes_n; i++)
        grid_init(&w->grids[i], options->window, fleet->nodes[i].offset_ms, options->step_ms,
                  fd >= 0);
    time_ms offset = (time_ms)(demo_hash(options->seed, 15, 0) % (uint64_t)options->step_ms);
    grid_init(&w->kube_grid, options->window, offset, kube_step, fd >= 0);
}

void demo_writer_release(struct demo_writer *w)
{
    for (size_t i = 0; w->grids && i < w->fleet->nodes_n; i++)
        free(w->grids[i].stamps);
    free(w->grids);
    free(w->kube_grid.stamps);
    free(w->bytes);
    strbuf_release(&w->head);
}

static void flush(struct demo_writer *w)
{
    for (size_t at = 0; at < w->n && !w->error;) {
        ssize_t wrote = write(w->fd, w->bytes + at, w->n - at);
        if (wrote > 0)
            at += (size_t)wrote;
        else if (errno != EINTR)
            w->error = errno;
    }
    w->n = 0;
}

static void put_text(struct demo_writer *w, struct str text)
{
    if (w->n + text.n > DEMO_SINK_BYTES)
        flush(w);
    memcpy(w->bytes + w->n, text.p, text.n);
    w->n += text.n;
}

bool demo_put_family(struct demo_writer *w, const char *name, const char *type, const char *help)
{
    if (w->only && strcmp(w->only, name) != 0)
        return false;
    strbuf_clear(&w->head);
    strbuf_addf(&w->head, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    if (!w->series)
        put_text(w, strbuf_str(&w->head));
    return true;
}

static void put_lines(struct demo_writer *w, const struct demo_grid *grid, size_t from, size_t to,
                      struct demo_values values)
{
    size_t line = w->head.n + DEMO_NUMBER_MAX + DEMO_STAMP_BYTES;
    for (size_t k = from; k < to && !w->error; k++) {
        if (w->n + line > DEMO_SINK_BYTES)
            flush(w);
        char *p = w->bytes + w->n;
        uint64_t value = (uint64_t)values.at(values.context, grid->first + (time_ms)k * grid->step);
        memcpy(p, w->head.text, w->head.n);
        p = values.places ? demo_put_fixed(p + w->head.n, value, values.places)
                          : demo_put_number(p + w->head.n, value);
        memcpy(p, grid->stamps[k], DEMO_STAMP_BYTES);
        w->n = (size_t)(p + DEMO_STAMP_BYTES - w->bytes);
    }
}

void demo_put_series(struct demo_writer *w, const struct demo_grid *grid, struct span time,
                     struct demo_values values)
{
    size_t from = grid_index(grid, time.from), to = grid_index(grid, time.to);
    if (from >= to)
        return;
    if (w->series)
        w->series(w, grid, from, to, values);
    else
        put_lines(w, grid, from, to, values);
}

void demo_put_end(struct demo_writer *w)
{
    put_text(w, STR("# EOF\n"));
    flush(w);
}
