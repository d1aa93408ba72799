/* Strips of one device or instance to one line of rows (semantics, section 4: shared devices are
 * exported once per pod, HA pairs twice).
 *
 * The common device has strips that follow one another in time, one a holder: their columns are
 * laid end to end. Where strips overlap, rows of one stamp are joined: a signal comes from the rows
 * that name no pod if one has it, else the largest; the holders are the union. Strips are walked as
 * they begin and are dropped as they end, so that a day of many short pods costs no more than its
 * rows. */
#include <stdlib.h>

#include "ledger/device_rows.h"

/* ------------------------------------------------------------------ joining rows */

/* A row of the stamp in hand. */
struct row_ref {
    uint32_t meaning;
    size_t row, open; /* open: which of the open strips */
};

/* A strip of which rows are left. */
struct open_strip {
    uint32_t meaning;
    size_t next;
};

/* One line of a stamp's rows: a holder, and the replica that the exporter tells apart (label vgpu,
 * NAME_NONE: none). */
struct named_row {
    name_t namespace, pod, container, vgpu;
};

struct merge {
    struct device *device;
    const struct facts *facts;
    struct timeline *line;
    const struct meaning *meanings;
    struct open_strip *open; /* in order of first stamp */
    size_t open_n;
    struct row_ref *refs;                 /* rows of the stamp in hand */
    struct named_row *named, *last_named; /* who they name, and who the stamp before did */
    size_t named_n, last_named_n;
    const struct named_set *last; /* set of last_named */
};

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct named_row));
}

static int by_text(const void *a, const void *b, void *names)
{
    const struct named *x = a, *y = b;
    const name_t left[] = {x->namespace, x->pod, x->container};
    const name_t right[] = {y->namespace, y->pod, y->container};
    int order = 0;
    for (int i = 0; i < 3 && !order; i++)
        order = str_cmp(names_text(names, left[i]), names_text(names, right[i]));
    return order;
}

/* Who the rows name, each once, grouped by holder. */
static void find_named(struct merge *merge, size_t found)
{
    struct named_row *named = merge->named;
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < found; i++) {
        const struct meaning *meaning = &merge->meanings[merge->refs[i].meaning];
        const struct holder_labels *holder = &meaning->holder;
        if (holder->pod != NAME_NONE)
            named[n++] = (struct named_row){holder->namespace, holder->pod, holder->container,
                                            meaning->strip->label[GPU_LABEL_VGPU]};
    }
    qsort(named, n, sizeof *named, by_bytes);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || by_bytes(&named[i], &named[kept - 1]) != 0)
            named[kept++] = named[i];
    merge->named_n = kept;
}

/* Holders of the rows of one stamp, each with the number of replicas that the exporter tells apart,
 * else 1; the set of the stamp before where it is the same. NULL: nobody. */
static const struct named_set *joined_set(struct merge *merge, size_t found)
{
    find_named(merge, found);
    const struct named_row *named = merge->named;
    size_t n = merge->named_n;
    if (!n)
        return NULL;
    if (merge->last && n == merge->last_named_n &&
        memcmp(named, merge->last_named, n * sizeof *named) == 0)
        return merge->last;
    struct named_set *set = arena_alloc(&merge->device->arena, sizeof *set);
    set->at = arena_alloc(&merge->device->arena, n * sizeof *set->at);
    set->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct named *holder = set->n ? &set->at[set->n - 1] : NULL;
        if (!holder || holder->namespace != named[i].namespace || holder->pod != named[i].pod ||
            holder->container != named[i].container) {
            holder = &set->at[set->n++];
            *holder = (struct named){named[i].namespace, named[i].pod, named[i].container, 0};
        }
        holder->replicas += named[i].vgpu != NAME_NONE;
    }
    for (size_t i = 0; i < set->n; i++)
        set->at[i].replicas += set->at[i].replicas == 0;
    qsort_r(set->at, set->n, sizeof *set->at, by_text, merge->facts->names);
    memcpy(merge->last_named, named, n * sizeof *named);
    merge->last_named_n = n;
    return set;
}

static void join_values(struct timeline *line, size_t at, const struct meaning *meanings,
                        const struct row_ref *refs, size_t n)
{
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!line->column[s])
            continue;
        int64_t plain = SIGNAL_ABSENT, named = SIGNAL_ABSENT;
        for (size_t i = 0; i < n; i++) {
            const struct strip *strip = meanings[refs[i].meaning].strip;
            int64_t v = strip->column[s] ? strip->column[s][refs[i].row] : SIGNAL_ABSENT;
            if (v == SIGNAL_ABSENT)
                continue;
            int64_t *into = meanings[refs[i].meaning].holder.pod == NAME_NONE ? &plain : &named;
            *into = v > *into ? v : *into; /* absent is the smallest */
        }
        line->column[s][at] = plain != SIGNAL_ABSENT ? plain : named;
    }
}

/* ------------------------------------------------------------------ strips end to end */

/* The rows of the earliest stamp that is next, and the stamp that follows it in some other strip
 * (TIME_MAX: none). Returns how many there are. */
static size_t earliest(const struct merge *merge, time_ms *ret_following)
{
    time_ms first = TIME_MAX, following = TIME_MAX;
    size_t found = 0;
    for (size_t i = 0; i < merge->open_n; i++) {
        const struct open_strip *open = &merge->open[i];
        time_ms t = merge->meanings[open->meaning].strip->t[open->next];
        if (t > first) {
            following = t < following ? t : following;
            if (open->next == 0)
                break; /* those behind it begin no earlier */
            continue;
        }
        if (t < first) {
            following = first;
            first = t;
            found = 0;
        }
        merge->refs[found++] = (struct row_ref){open->meaning, open->next, i};
    }
    *ret_following = following;
    return found;
}

static void drop_ended(struct merge *merge, size_t from)
{
    size_t kept = from;
    for (size_t i = from; i < merge->open_n; i++)
        if (merge->open[i].next < merge->meanings[merge->open[i].meaning].strip->n)
            merge->open[kept++] = merge->open[i];
    merge->open_n = kept;
}

/* Rows [first, end) of one strip, as they lie. */
static void lay_rows(struct merge *merge, struct open_strip *open, size_t end)
{
    struct timeline *line = merge->line;
    const struct meaning *meaning = &merge->meanings[open->meaning];
    const struct strip *strip = meaning->strip;
    size_t first = open->next, rows = end - first;
    memcpy(line->t + line->n, strip->t + first, rows * sizeof *line->t);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (line->column[s] && strip->column[s])
            memcpy(line->column[s] + line->n, strip->column[s] + first, rows * sizeof(int64_t));
        else if (line->column[s])
            for (size_t row = 0; row < rows; row++)
                line->column[s][line->n + row] = SIGNAL_ABSENT;
    }
    timeline_name(line, line->n, meaning->set);
    line->n += rows;
    open->next = end;
}

/* The rows of one stamp, of several strips. */
static void join_rows(struct merge *merge, size_t found)
{
    struct timeline *line = merge->line;
    const struct row_ref *first = &merge->refs[0];
    line->t[line->n] = merge->meanings[first->meaning].strip->t[first->row];
    join_values(line, line->n, merge->meanings, merge->refs, found);
    const struct named_set *set = joined_set(merge, found);
    timeline_name(line, line->n++, set);
    merge->last = set ? set : merge->last;
    bool ended = false;
    for (size_t i = 0; i < found; i++) {
        struct open_strip *open = &merge->open[merge->refs[i].open];
        open->next++;
        ended = ended || open->next == merge->meanings[open->meaning].strip->n;
    }
    if (ended)
        drop_ended(merge, first->open);
}

static size_t row_at(const struct strip *strip, size_t from, time_ms t)
{
    size_t high = strip->n;
    while (from < high) {
        size_t mid = (from + high) / 2;
        if (strip->t[mid] < t)
            from = mid + 1;
        else
            high = mid;
    }
    return from;
}

static int by_first_stamp(const void *a, const void *b, void *context)
{
    const struct open_strip *x = a, *y = b;
    const struct meaning *meanings = context;
    time_ms left = meanings[x->meaning].strip->t[0], right = meanings[y->meaning].strip->t[0];
    return left != right ? (left > right) - (left < right)
                         : (x->meaning > y->meaning) - (x->meaning < y->meaning);
}

/* Room for all rows in the line, and every strip open. */
static void begin(struct merge *merge, const uint32_t *which, size_t n)
{
    struct timeline *line = merge->line;
    size_t total = 0;
    merge->open = mem_alloc(n * sizeof *merge->open);
    for (size_t i = 0; i < n; i++) {
        merge->open[i] = (struct open_strip){which[i], 0};
        total += merge->meanings[which[i]].strip->n;
    }
    merge->open_n = n;
    qsort_r(merge->open, n, sizeof *merge->open, by_first_stamp, (void *)merge->meanings);
    line->room = total + 1;
    line->t = mem_alloc(line->room * sizeof *line->t);
    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < SIGNAL_COUNT; s++)
            if (merge->meanings[which[i]].strip->column[s] && !line->column[s])
                line->column[s] = mem_alloc(line->room * sizeof(int64_t));
    merge->refs = mem_alloc(n * sizeof *merge->refs);
    merge->named = mem_alloc(n * sizeof *merge->named);
    merge->last_named = mem_alloc(n * sizeof *merge->last_named);
}

static void merge_strips(struct merge *merge)
{
    time_ms following;
    for (size_t found; (found = earliest(merge, &following)) > 0;) {
        if (found > 1) {
            join_rows(merge, found);
            continue;
        }
        size_t at = merge->refs[0].open;
        struct open_strip *open = &merge->open[at];
        const struct strip *strip = merge->meanings[open->meaning].strip;
        lay_rows(merge, open, row_at(strip, open->next, following));
        if (open->next == strip->n)
            drop_ended(merge, at);
    }
    free(merge->open);
    free(merge->refs);
    free(merge->named);
    free(merge->last_named);
}

void join_strips(struct device *device, const struct facts *facts, struct timeline *line,
                 const struct meaning *meanings, const uint32_t *which, size_t n)
{
    if (n == 1) { /* take the arrays */
        struct strip *strip = meanings[which[0]].strip;
        line->t = strip->t;
        line->n = strip->n;
        line->room = strip->room;
        memcpy(line->column, strip->column, sizeof line->column);
        memset(strip->column, 0, sizeof strip->column);
        strip->t = NULL;
        timeline_name(line, 0, meanings[which[0]].set);
        return;
    }
    struct merge merge = {.device = device, .facts = facts, .line = line, .meanings = meanings};
    begin(&merge, which, n);
    merge_strips(&merge);
}
