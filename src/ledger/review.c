#include "ledger/review.h"

#include "ledger/device_rows.h"
#include "ledger/device_units.h"

enum err strip_fetch(struct strip *strip, struct error *err)
{
    return strip_load(strip) ? ERR_OK
                             : error_set(err, ERR_IO,
                                         "samples that were put aside cannot be read back: is the "
                                         "disk of the journal sound?");
}

/* nvidia_gpu_exporter names the model on a series of its own. */
static void read_models(const struct facts *facts, struct intake *intake)
{
    struct idmap models = {0};
    for (size_t i = 0; i < intake->records_n; i++) {
        const struct record *record = intake->records[i];
        if (record->metric == RECORD_GPU_INFO)
            idmap_set(
                &models,
                IDKEY(facts_label(facts, record, "cluster"), facts_label(facts, record, "uuid")),
                facts_label(facts, record, "name"));
    }
    for (size_t i = 0; models.count && i < intake->strips_n; i++) {
        name_t *label = intake->strips[i]->label;
        uint32_t model = idmap_get(&models, IDKEY(label[GPU_LABEL_CLUSTER], label[GPU_LABEL_UUID]));
        if (label[GPU_LABEL_MODEL] == NAME_NONE && model != IDMAP_NONE)
            label[GPU_LABEL_MODEL] = model;
    }
    idmap_release(&models);
}

/* The last value of a column in its first rows. A value that stands is told apart only of signals
 * by which something is lost or frozen. */
static struct strip_end end_of(const struct strip *strip, int signal, size_t rows)
{
    const int64_t *column = strip->column[signal];
    while (rows > 0 && column[rows - 1] == SIGNAL_ABSENT)
        rows--;
    if (rows == 0)
        return (struct strip_end){TIME_MIN, TIME_MIN, SIGNAL_ABSENT};
    struct strip_end end = {strip->t[rows - 1], strip->t[rows - 1], column[rows - 1]};
    bool told = signal == SIGNAL_XID || signal == SIGNAL_ENERGY;
    for (size_t i = rows; told && i > 0; i--)
        if (column[i - 1] == end.v)
            end.since = strip->t[i - 1];
        else if (column[i - 1] != SIGNAL_ABSENT)
            break;
    return end;
}

static void look(struct intake *intake, struct strip *strip, const struct facts *facts, time_ms to)
{
    size_t rows = strip_rows_until(strip, to), n = 0;
    strip->holder = facts_holder_labels(facts, strip);
    strip->node = strip_node(facts, strip, &strip->holder);
    strip->last = rows ? strip->t[rows - 1] : TIME_MIN;
    strip->signals = 0;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        strip->signals |= (strip->column[s] ? 1u : 0u) << s;
    if (!rows)
        return;
    strip->ends = arena_alloc(&intake->arena,
                              (size_t)__builtin_popcount(strip->signals) * sizeof *strip->ends);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strip->column[s])
            strip->ends[n++] = end_of(strip, s, rows);
}

enum err strips_review(struct intake *intake, const struct facts *facts, time_ms to,
                       struct error *err)
{
    struct units units = {0};
    bool packed = intake->packing.used;
    enum err code = ERR_OK;
    read_models(facts, intake);
    for (size_t i = 0; i < intake->strips_n && code == ERR_OK; i++) {
        struct strip *strip = intake->strips[i];
        strip->packing = packed ? &intake->packing : NULL;
        code = strip_fetch(strip, err);
        if (code != ERR_OK)
            break;
        look(intake, strip, facts, to);
        units_weigh(&units, strip);
        strip_unload(strip);
    }
    if (code == ERR_OK)
        units_judge(&units, intake);
    units_release(&units);
    return code;
}
