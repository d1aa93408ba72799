#include "store/group.h"

#include "util/error.h"

void group_put(struct group_writer *group, const int64_t *values, size_t n, struct runs runs)
{
    unsigned at = group->next++;
    invariant(at < GROUP_COLUMNS_MAX);
    size_t i = 0;
    while (i < n && values[i] == 0)
        i++;
    if (i == n)
        return;
    group->bits[at / 8] |= (uint8_t)(1u << at % 8);
    column_pack(&group->columns, values, n, runs);
}

void group_end(struct group_writer *group, struct strbuf *out)
{
    strbuf_add(out, (struct str){(const char *)group->bits, (group->next + 7) / 8});
    strbuf_add(out, strbuf_str(&group->columns));
    strbuf_release(&group->columns);
}

bool group_begin(struct group_reader *group, struct str *in, unsigned columns)
{
    size_t bytes = (columns + 7) / 8;
    invariant(columns <= GROUP_COLUMNS_MAX);
    *group = (struct group_reader){.in = in, .columns = columns};
    if (in->n < bytes)
        return false;
    memcpy(group->bits, in->p, bytes);
    in->p += bytes;
    in->n -= bytes;
    return true;
}

static bool next_is_zero(const struct group_reader *group)
{
    invariant(group->next < group->columns);
    return (group->bits[group->next / 8] >> (group->next % 8) & 1) == 0;
}

bool group_get(struct group_reader *group, int64_t *values, size_t n, struct runs runs)
{
    bool zero = next_is_zero(group);
    group->next++;
    if (!zero)
        return column_unpack(group->in, values, n, runs);
    memset(values, 0, n * sizeof *values);
    return true;
}

bool group_skip_zero(struct group_reader *group)
{
    bool zero = next_is_zero(group);
    group->next += zero;
    return zero;
}

bool group_skip(struct group_reader *group, size_t n, struct runs runs)
{
    bool zero = next_is_zero(group);
    group->next++;
    return zero || column_skip(group->in, n, runs);
}
