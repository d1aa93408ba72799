#include "ledger/timeline.h"

#include <stdlib.h>

/* The signals whose values are booked from pieces; the others only say that something was there. */
static const bool booked[SIGNAL_COUNT] = {
    [SIGNAL_UTIL] = true,     [SIGNAL_GR] = true,           [SIGNAL_SM] = true,
    [SIGNAL_TENSOR] = true,   [SIGNAL_DRAM] = true,         [SIGNAL_MEM_USED] = true,
    [SIGNAL_MEM_FREE] = true, [SIGNAL_MEM_RESERVED] = true, [SIGNAL_MEM_TOTAL] = true,
    [SIGNAL_POWER] = true,    [SIGNAL_POWER_LIMIT] = true,
};

void timeline_add_column(struct timeline *line, enum signal signal)
{
    if (line->column[signal])
        return;
    size_t room = line->room ? line->room : 1;
    line->column[signal] = mem_alloc(room * sizeof(int64_t));
    for (size_t i = 0; i < line->n; i++)
        line->column[signal][i] = SIGNAL_ABSENT;
}

bool timeline_row_has_any(const struct timeline *line, size_t row)
{
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (line->column[s] && line->column[s][row] != SIGNAL_ABSENT)
            return true;
    return false;
}

void timeline_name(struct timeline *line, size_t row, const struct named_set *set)
{
    const struct named_set *last = line->names_n ? line->names[line->names_n - 1].set : NULL;
    struct named_from fresh = {row, set};
    if (last != set)
        mem_push(line->names, line->names_n, line->names_room, fresh);
}

static bool column_is_full(const int64_t *column, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = n - i < 512 ? n : i + 512;
        bool absent = false;
        for (; i < end; i++)
            absent |= column[i] == SIGNAL_ABSENT;
        if (absent)
            return false;
    }
    return true;
}

bool timeline_is_full(const struct timeline *line)
{
    bool any = false;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!line->column[s])
            continue;
        any = true;
        if (!column_is_full(line->column[s], line->n))
            return false;
    }
    return any && line->n;
}

/* ------------------------------------------------------------------ pieces */

/* Every row has every signal: one piece a row, and the columns are the pieces' as they are. */
static void take_rows(struct timeline *line, const struct settings *settings)
{
    size_t n = line->n;
    line->pieces_n = line->pieces_room = n;
    line->from = mem_alloc(n * sizeof *line->from);
    line->to = line->t;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (booked[s])
            line->piece[s] = line->column[s];
    bool active = line->column[SIGNAL_SM] || line->column[SIGNAL_GR] || line->column[SIGNAL_UTIL];
    size_t first = 0; /* of the stretch without a gap */
    for (size_t i = 0; i < n; i++) {
        line->from[i] = cover_start(line->t, i, settings);
        if (i > 0 && line->from[i] == line->t[i - 1])
            continue;
        if (i > 0)
            spans_push(&line->covered, line->from[first], line->to[i - 1]);
        first = i;
        if (active && !line->flags)
            line->flags = mem_zalloc(n, 1);
        if (active)
            line->flags[i] = PIECE_STEP;
    }
    spans_push(&line->covered, line->from[first], line->to[n - 1]);
    spans_normalise(&line->covered);
    for (size_t i = 0; active && i < line->covered.n; i++)
        spans_push(&line->active, line->covered.at[i].from, line->covered.at[i].to);
}

/* One signal while the rows are walked. */
struct reach {
    enum signal signal;
    const int64_t *column;
    size_t full_until; /* no row from `next` on is absent before this one; may be too early */
    size_t next;       /* first row >= the present one that has it; n: none */
    size_t previous;   /* last row before `next` that has it; SIZE_MAX: none */
    time_ms start;     /* of what the sample at `next` covers */
    bool step;
};

struct walk {
    struct timeline *line;
    const struct settings *settings;
    struct reach reach[SIGNAL_COUNT];
    size_t n;
};

static void find_next(struct walk *walk, struct reach *reach, size_t from)
{
    const struct timeline *line = walk->line;
    size_t i = from;
    while (i < line->n && reach->column[i] == SIGNAL_ABSENT)
        i++;
    reach->next = i;
    if (i == line->n)
        return;
    bool near = reach->previous != SIZE_MAX &&
                line->t[i] - line->t[reach->previous] <= walk->settings->gap_ms;
    reach->start = near ? line->t[reach->previous] : line->t[i] - walk->settings->step_ms;
    reach->step = !near;
}

static void grow_pieces(struct timeline *line, size_t more)
{
    if (line->pieces_n + more <= line->pieces_room)
        return;
    size_t room = line->pieces_room + line->pieces_room / 4 + 16;
    room = room > line->pieces_n + more ? room : line->pieces_n + more;
    line->from = mem_realloc(line->from, room, sizeof *line->from);
    line->to = mem_realloc(line->to, room, sizeof *line->to);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (line->piece[s])
            line->piece[s] = mem_realloc(line->piece[s], room, sizeof *line->piece[s]);
    if (line->flags)
        line->flags = mem_realloc(line->flags, room, 1);
    if (line->e_span)
        line->e_span = mem_realloc(line->e_span, room, sizeof *line->e_span);
    line->pieces_room = room;
}

static uint8_t *flags_of(struct timeline *line)
{
    if (!line->flags)
        line->flags = mem_zalloc(line->pieces_room, 1);
    return line->flags;
}

static struct span *e_span_of(struct timeline *line)
{
    if (!line->e_span) {
        line->e_span = mem_alloc(line->pieces_room * sizeof *line->e_span);
        for (size_t i = 0; i < line->pieces_n; i++)
            line->e_span[i] = (struct span){line->from[i], line->to[i]};
    }
    return line->e_span;
}

static const struct reach *first_there(const struct walk *walk, const enum signal order[3],
                                       time_ms from, time_ms to)
{
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < walk->n; i++) {
            const struct reach *reach = &walk->reach[i];
            if (reach->signal == order[k] && reach->next < walk->line->n && reach->start <= from &&
                walk->line->t[reach->next] >= to)
                return reach;
        }
    return NULL;
}

static const enum signal u_order[3] = {SIGNAL_SM, SIGNAL_GR, SIGNAL_UTIL};
static const enum signal e_order[3] = {SIGNAL_UTIL, SIGNAL_GR, SIGNAL_SM};

/* The piece [from, to), which ends at or before row `row`. */
static void add_piece(struct walk *walk, size_t row, time_ms from, time_ms to)
{
    struct timeline *line = walk->line;
    grow_pieces(line, 1);
    size_t at = line->pieces_n++;
    line->from[at] = from;
    line->to[at] = to;
    for (size_t i = 0; i < walk->n; i++) {
        const struct reach *reach = &walk->reach[i];
        if (!line->piece[reach->signal])
            continue;
        bool there = reach->next < line->n && reach->start <= from;
        line->piece[reach->signal][at] = there ? reach->column[reach->next] : SIGNAL_ABSENT;
    }
    const struct reach *u = first_there(walk, u_order, from, to);
    const struct reach *e = first_there(walk, e_order, from, to);
    uint8_t flags = u && u->step ? PIECE_STEP : 0;
    size_t seen = row;
    while (line->stuck && seen < line->n && !timeline_row_has_any(line, seen))
        seen++;
    if (line->stuck && seen < line->n && line->stuck[seen])
        flags |= PIECE_STUCK;
    if (flags || line->flags)
        flags_of(line)[at] = flags;
    struct span span = e ? (struct span){e->start, line->t[e->next]} : (struct span){from, to};
    if (line->e_span || span.from != from || span.to != to)
        e_span_of(line)[at] = span;
    spans_push(&line->covered, from, to);
    if (u)
        spans_push(&line->active, from, to);
}

/* The pieces of the time between the row before and row i, of which some signals cover a part. */
static void split_interval(struct walk *walk, size_t row, time_ms low)
{
    const struct timeline *line = walk->line;
    time_ms high = line->t[row], edge[SIGNAL_COUNT + 1];
    size_t n = 0;
    for (size_t i = 0; i < walk->n; i++) {
        const struct reach *reach = &walk->reach[i];
        if (reach->next == line->n)
            continue;
        time_ms from = reach->start > low ? reach->start : low;
        if (from >= high)
            continue;
        size_t at = n++;
        for (; at > 0 && edge[at - 1] > from; at--)
            edge[at] = edge[at - 1];
        edge[at] = from;
    }
    edge[n] = high;
    for (size_t i = 0; i < n; i++)
        if (edge[i] < edge[i + 1])
            add_piece(walk, row, edge[i], edge[i + 1]);
}

/* Does nothing of the signal cover the time that ends at this row? */
static bool is_absent(const struct walk *walk, const struct reach *reach, size_t row)
{
    return reach->next == walk->line->n || reach->start >= walk->line->t[row];
}

/* Does every signal cover the time since the row before from end to end, or not at all? */
static bool is_whole(const struct walk *walk, size_t row)
{
    bool any = false;
    for (size_t i = 0; i < walk->n; i++) {
        const struct reach *reach = &walk->reach[i];
        bool whole = reach->next == row && row > 0 && reach->previous == row - 1;
        if (!whole && !is_absent(walk, reach, row))
            return false;
        any |= whole;
    }
    return any && walk->line->t[row] - walk->line->t[row - 1] <= walk->settings->gap_ms;
}

static bool is_activity(enum signal signal)
{
    return signal == SIGNAL_SM || signal == SIGNAL_GR || signal == SIGNAL_UTIL;
}

/* The first row from `row`, a whole one, on that is not like it or stands after a gap. */
static size_t whole_until(struct walk *walk, size_t row)
{
    const struct timeline *line = walk->line;
    size_t end = line->n;
    for (size_t i = 0; i < walk->n; i++) {
        struct reach *reach = &walk->reach[i];
        size_t at = row;
        if (is_absent(walk, reach, row)) {
            while (at < end && is_absent(walk, reach, at))
                at++;
        } else {
            at = reach->full_until > row ? reach->full_until : row;
            while (at < end && reach->column[at] != SIGNAL_ABSENT)
                at++;
            reach->full_until = at;
        }
        end = at < end ? at : end;
    }
    for (size_t i = row + 1; i < end; i++)
        if (line->t[i] - line->t[i - 1] > walk->settings->gap_ms)
            return i;
    return end;
}

/* Rows [row, end), all whole, without a gap: a piece each, copied in blocks. */
static void add_whole(struct walk *walk, size_t row, size_t end)
{
    struct timeline *line = walk->line;
    size_t n = end - row, at = line->pieces_n;
    grow_pieces(line, n);
    line->pieces_n += n;
    memcpy(line->from + at, line->t + row - 1, n * sizeof *line->from);
    memcpy(line->to + at, line->t + row, n * sizeof *line->to);
    bool active = false;
    for (size_t i = 0; i < walk->n; i++) {
        enum signal signal = walk->reach[i].signal;
        bool there = !is_absent(walk, &walk->reach[i], row);
        active |= there && is_activity(signal);
        if (line->piece[signal] && there)
            memcpy(line->piece[signal] + at, walk->reach[i].column + row, n * sizeof(int64_t));
        for (size_t k = 0; line->piece[signal] && !there && k < n; k++)
            line->piece[signal][at + k] = SIGNAL_ABSENT;
    }
    if (line->flags)
        memset(line->flags + at, 0, n);
    for (size_t i = 0; line->stuck && i < n; i++)
        if (line->stuck[row + i])
            flags_of(line)[at + i] = PIECE_STUCK;
    for (size_t i = 0; line->e_span && i < n; i++)
        line->e_span[at + i] = (struct span){line->from[at + i], line->to[at + i]};
    spans_push(&line->covered, line->from[at], line->to[at + n - 1]);
    if (active)
        spans_push(&line->active, line->from[at], line->to[at + n - 1]);
}

/* Does no step reach back over the row before it? (It does where a gap is shorter than a step.) */
static bool steps_fit(const struct timeline *line, const struct settings *settings)
{
    return settings->step_ms <= settings->gap_ms && line->n > 0;
}

void timeline_make_pieces(struct timeline *line, const struct settings *settings)
{
    if (timeline_is_full(line) && steps_fit(line, settings)) {
        take_rows(line, settings);
        return;
    }
    struct walk walk = {.line = line, .settings = settings};
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!line->column[s])
            continue;
        walk.reach[walk.n] = (struct reach){
            .signal = (enum signal)s, .column = line->column[s], .previous = SIZE_MAX};
        find_next(&walk, &walk.reach[walk.n], 0);
        if (walk.reach[walk.n].next < line->n)
            walk.n++;
    }
    if (!walk.n)
        return;
    line->pieces_room = line->n + 16;
    line->from = mem_alloc(line->pieces_room * sizeof *line->from);
    line->to = mem_alloc(line->pieces_room * sizeof *line->to);
    for (size_t i = 0; i < walk.n; i++)
        if (booked[walk.reach[i].signal])
            line->piece[walk.reach[i].signal] = mem_alloc(line->pieces_room * sizeof(int64_t));
    for (size_t row = 0; row < line->n;) {
        size_t end = row + 1;
        if (is_whole(&walk, row)) {
            end = whole_until(&walk, row);
            add_whole(&walk, row, end);
        } else {
            split_interval(&walk, row, row ? line->t[row - 1] : TIME_MIN);
        }
        for (size_t i = 0; i < walk.n; i++)
            if (walk.reach[i].next < end) {
                walk.reach[i].previous = end - 1;
                find_next(&walk, &walk.reach[i], end);
            }
        row = end;
    }
}

size_t timeline_piece_after(const struct timeline *line, time_ms t)
{
    size_t low = 0, high = line->pieces_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (line->to[mid] <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int64_t piece_value(const struct timeline *line, enum signal signal, size_t i)
{
    return line->piece[signal] ? line->piece[signal][i] : SIGNAL_ABSENT;
}

int64_t timeline_memory_total(const struct timeline *line, size_t i)
{
    int64_t total = piece_value(line, SIGNAL_MEM_TOTAL, i);
    if (total != SIGNAL_ABSENT)
        return total;
    int64_t used = piece_value(line, SIGNAL_MEM_USED, i);
    int64_t free_bytes = piece_value(line, SIGNAL_MEM_FREE, i);
    if (used == SIGNAL_ABSENT || free_bytes == SIGNAL_ABSENT)
        return 0;
    int64_t reserved = piece_value(line, SIGNAL_MEM_RESERVED, i);
    return used + free_bytes + (reserved == SIGNAL_ABSENT ? 0 : reserved);
}

const struct label_run *timeline_named_at(const struct timeline *line, const time_ms *stamps,
                                          time_ms t)
{
    size_t low = 0, high = line->labels_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (stamps[line->labels[mid].i1] <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low < line->labels_n && line->labels[low].start <= t ? &line->labels[low] : NULL;
}

void timeline_drop_rows(struct timeline *line)
{
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (line->column[s] != line->piece[s])
            free(line->column[s]);
        line->column[s] = NULL;
    }
    free(line->stuck);
    free(line->names);
    line->stuck = NULL;
    line->names = NULL;
    line->names_n = line->names_room = 0;
}

void timeline_release(struct timeline *line)
{
    timeline_drop_rows(line);
    if (line->to != line->t)
        free(line->to);
    free(line->t);
    free(line->from);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        free(line->piece[s]);
    free(line->flags);
    free(line->e_span);
    free(line->labels);
    spans_release(&line->covered);
    spans_release(&line->active);
    *line = (struct timeline){0};
}
