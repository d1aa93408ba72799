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
    return strip->column[SIGNAL_UTIL] && !(strip->ratio_metric & 1u << SIGNAL_UTIL);
}

/* Fills `jobs` with those of which some exporter is surely percent. What has no job is apart. */
static void find_percent_jobs(const struct intake *intake, const struct idmap *collectors,
                              const struct unit_evidence *evidence, struct idmap *jobs)
{
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        if (has_plain_util(strip) && strip->label[GPU_LABEL_JOB] != NAME_NONE &&
            evidence[idmap_get(collectors, collector_of(strip))].most > WHOLE_PERCENT)
            idmap_set(jobs, job_of(strip), 1);
    }
}

static void find_scaled(struct intake *intake)
{
    struct idmap collectors = {0}, jobs = {0};
    struct unit_evidence *evidence = NULL;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        if (!has_plain_util(strip))
            continue;
        bool fresh;
        uint32_t at = idmap_add(&collectors, collector_of(strip), (uint32_t)n, &fresh);
        if (fresh) {
            struct unit_evidence none = {0};
            mem_push(evidence, n, room, none);
        }
        weigh_strip(strip, &evidence[at]);
    }
    find_percent_jobs(intake, &collectors, evidence, &jobs);
    for (size_t i = 0; i < intake->strips_n; i++) {
        struct strip *strip = intake->strips[i];
        strip->scaled = has_plain_util(strip) &&
                        is_scaled(&evidence[idmap_get(&collectors, collector_of(strip))],
                                  idmap_get(&jobs, job_of(strip)) != IDMAP_NONE);
    }
    free(evidence);
    idmap_release(&jobs);
    idmap_release(&collectors);
}

/* Exporters whose *_RATIO is percent: some value lies above 1.5 (and is no garbage). */
static void find_percent(struct intake *intake)
{
    struct idmap percent = {0};
    for (size_t i = 0; i < intake->strips_n; i++) {
        const struct strip *strip = intake->strips[i];
        for (int s = 0; s < SIGNAL_COUNT; s++) {
            if (!(strip->ratio_metric & 1u << s) || !strip->column[s])
                continue;
            for (size_t row = 0; row < strip->n; row++)
                if (strip->column[s][row] > RATIO_UP_TO && strip->column[s][row] <= GARBAGE_ABOVE) {
                    idmap_set(&percent, exporter_of(strip), 1);
                    break;
                }
        }
    }
    for (size_t i = 0; i < intake->strips_n; i++)
        intake->strips[i]->percent =
            intake->strips[i]->ratio_metric &&
            idmap_get(&percent, exporter_of(intake->strips[i])) != IDMAP_NONE;
    idmap_release(&percent);
}

void units_judge(struct intake *intake)
{
    find_percent(intake);
    find_scaled(intake);
}

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
            else if (v > 1000000000)
                strip->column[s][i] = SIGNAL_ABSENT;
        }
        device->guessed |= strip->percent;
    }
}
