/* GPU_UTIL in percent or as a ratio: which it is shows in the values of all GPUs of an exporter,
 * and, where these leave it open, of all exporters that one job scrapes: they are set up alike. */
#include "ledger/device_units.h"

#include <stdlib.h>

/* Which exporter a strip comes from, to judge the unit of its *_RATIO by. */
static struct idkey exporter_of(const struct strip *strip)
{
    return IDKEY(strip->label[GPU_LABEL_CLUSTER], strip->label[GPU_LABEL_JOB],
                 strip->label[GPU_LABEL_INSTANCE], strip->label[GPU_LABEL_HOSTNAME]);
}

/* A collector is a job and its target. */
static struct idkey collector_of(const struct strip *strip)
{
    return IDKEY(strip->label[GPU_LABEL_CLUSTER], strip->label[GPU_LABEL_JOB],
                 strip->label[GPU_LABEL_INSTANCE]);
}

static struct idkey job_of(const struct strip *strip)
{
    return IDKEY(strip->label[GPU_LABEL_CLUSTER], strip->label[GPU_LABEL_JOB]);
}

#define WHOLE_PERCENT INT64_C(10000000)     /* 1 % in 1e-9 */
#define GARBAGE_ABOVE INT64_C(100000000000) /* 100 in 1e-9 */
#define RATIO_UP_TO INT64_C(1500000000)     /* 1.5 in 1e-9: above is percent */
#define RATIO_ONE INT64_C(1000000000)

/* What the strips of one collector show of the unit of GPU_UTIL. Sums are over rows in which the
 * engine ratio stands beside it. */
struct unit_evidence {
    int64_t most;        /* largest GPU_UTIL, as percent in 1e-7 */
    bool fractional;     /* some value is no whole percent */
    double util, engine; /* sums */
};

static void weigh_strip(const struct strip *strip, struct unit_evidence *evidence)
{
    const int64_t *util = strip->column[SIGNAL_UTIL];
    for (size_t row = 0; row < strip->n && evidence->most <= WHOLE_PERCENT; row++)
        evidence->most = util[row] > evidence->most ? util[row] : evidence->most;
    if (evidence->most > WHOLE_PERCENT)
        return; /* a percent for sure: nothing more to weigh */
    const int64_t *engine =
        strip->column[SIGNAL_GR] ? strip->column[SIGNAL_GR] : strip->column[SIGNAL_SM];
    for (size_t row = 0; row < strip->n; row++) {
        if (util[row] == SIGNAL_ABSENT)
            continue;
        evidence->fractional |= util[row] % WHOLE_PERCENT != 0;
        if (engine && engine[row] != SIGNAL_ABSENT) {
            evidence->util += (double)util[row];
            evidence->engine += (double)engine[row];
        }
    }
}

/* Some collectors keep the name GPU_UTIL and scale it to 0..1. NVML's percents are whole numbers,
 * so fractions up to 1 and nothing above are a ratio, unless the engine ratio says that the GPUs
 * did next to nothing. Means of percents have fractions too: without an engine ratio, another
 * exporter of the job that is surely percent decides (job_percent). */
static bool is_scaled(const struct unit_evidence *evidence, bool job_percent)
{
    if (!evidence->fractional || evidence->most > WHOLE_PERCENT)
        return false;
    if (evidence->engine > 0)
        return evidence->engine > 10 * evidence->util;
    return evidence->most >= WHOLE_PERCENT / 5 && !job_percent;
}

static bool has_plain_util(const struct strip *strip)
{
    return strip->signals & 1u << SIGNAL_UTIL && !(strip->ratio_metric & 1u << SIGNAL_UTIL);
}

/* ------------------------------------------------------------------ weighing */

/* An exporter's *_RATIO is percent where some value lies above 1.5 (and is no garbage). */
static bool shows_percent(const struct strip *strip)
{
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!(strip->ratio_metric & 1u << s) || !strip->column[s])
            continue;
        for (size_t row = 0; row < strip->n; row++)
            if (strip->column[s][row] > RATIO_UP_TO && strip->column[s][row] <= GARBAGE_ABOVE)
                return true;
    }
    return false;
}

/* Does the column have a value in [0, most]? */
static bool has_value(const struct strip *strip, int signal, int64_t most)
{
    const int64_t *column = strip->column[signal];
    for (size_t row = 0; row < strip->n; row++)
        if (column[row] != SIGNAL_ABSENT && column[row] <= most)
            return true;
    return false;
}

/* Is there a value that units_settle and device_clean leave to the device? GPU_UTIL of an instance
 * is none, nor what is above 1 under the name of a ratio, unless that is percent. */
static bool speaks(const struct strip *strip, bool percent)
{
    bool instance = strip->label[GPU_LABEL_GPU_INSTANCE] != NAME_NONE;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        bool ratio = strip->ratio_metric & 1u << s && !percent;
        if (strip->column[s] && !(instance && s == SIGNAL_UTIL) &&
            has_value(strip, s, ratio ? RATIO_ONE : INT64_MAX))
            return true;
    }
    return false;
}

static struct unit_evidence *evidence_of(struct units *units, const struct strip *strip)
{
    bool fresh;
    uint32_t at = idmap_add(&units->collectors, collector_of(strip), (uint32_t)units->n, &fresh);
    struct unit_evidence none = {0};
    if (fresh)
        mem_push(units->evidence, units->n, units->room, none);
    return &units->evidence[at];
}

void units_weigh(struct units *units, struct strip *strip)
{
    if (shows_percent(strip))
        idmap_set(&units->percent, exporter_of(strip), 1);
    if (has_plain_util(strip))
        weigh_strip(strip, evidence_of(units, strip));
    strip->says = speaks(strip, false);
    strip->says_percent = !strip->says && speaks(strip, true);
}

/* ------------------------------------------------------------------ judging */

static const struct unit_evidence *evidence_for(const struct units *units,
                                                const struct strip *strip)
{
    return &units->evidence[idmap_get(&units->collectors, collector_of(strip))];
}

/* Fills `jobs` with those of which some exporter is surely percent. What has no job is apart. */
static void find_percent_jobs(const struct units *units, const struct intake *intake,
                              struct idmap *jobs)
{
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        if (has_plain_util(strip) && strip->label[GPU_LABEL_JOB] != NAME_NONE &&
            evidence_for(units, strip)->most > WHOLE_PERCENT)
            idmap_set(jobs, job_of(strip), 1);
    }
}

void units_judge(const struct units *units, struct intake *intake)
{
    struct idmap jobs = {0};
    find_percent_jobs(units, intake, &jobs);
    for (size_t i = 0; i < intake->strips_n; i++) {
        struct strip *strip = intake->strips[i];
        strip->percent =
            strip->ratio_metric && idmap_get(&units->percent, exporter_of(strip)) != IDMAP_NONE;
        strip->scaled =
            has_plain_util(strip) &&
            is_scaled(evidence_for(units, strip), idmap_get(&jobs, job_of(strip)) != IDMAP_NONE);
        strip->says |= strip->percent && strip->says_percent;
    }
    idmap_release(&jobs);
}

void units_release(struct units *units)
{
    idmap_release(&units->percent);
    idmap_release(&units->collectors);
    free(units->evidence);
}

/* ------------------------------------------------------------------ settling */

/* Percent or ratio, now that all values of the exporter are known. (inputs, section 1) */
void units_settle(struct device *device, struct strip *strip)
{
    for (size_t i = 0; strip->scaled && i < strip->n; i++) {
        int64_t *v = &strip->column[SIGNAL_UTIL][i];
        *v = *v == SIGNAL_ABSENT ? *v : *v * 100;
    }
    device->guessed |= strip->scaled;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!(strip->ratio_metric & 1u << s) || !strip->column[s])
            continue;
        for (size_t i = 0; i < strip->n; i++) {
            int64_t v = strip->column[s][i];
            if (v == SIGNAL_ABSENT)
                continue;
            if (strip->percent)
                strip->column[s][i] = (v + 50) / 100;
            else if (v > RATIO_ONE)
                strip->column[s][i] = SIGNAL_ABSENT;
        }
        device->guessed |= strip->percent;
    }
}
