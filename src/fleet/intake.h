/* Where sources deliver: series and their samples, of a slice of time.
 *
 * A source names each series once (intake_series), then appends its samples in order of time, in as
 * many pieces as it likes. The intake knows by the metric's name and labels whether anybody wants
 * the series: SERIES_UNWANTED means that its samples need not even be decoded. Samples may come
 * twice (retries, overlapping chunks): same series, same stamp is one sample.
 *
 * Threads: any thread may call intake_series (it takes a lock); one thread at a time may append to
 * a given series, and different series may be appended to by different threads at once. */
#ifndef GPUTALLY_FLEET_INTAKE_H
#define GPUTALLY_FLEET_INTAKE_H

#include "util/clock.h"
#include "util/names.h"
#include "util/str.h"

typedef uint32_t series_id;
#define SERIES_UNWANTED UINT32_MAX
#define INTAKE_LABELS_MAX 256        /* labels of a series; more: the series is refused, counted */
#define INTAKE_SERIES_MAX (1u << 23) /* series of a slice */

struct intake;
struct settings;

/* An intake for one slice; settings and names must outlive it. intake_free(NULL) is fine. */
struct intake *intake_new(const struct settings *settings, struct names *names);
void intake_free(struct intake *intake);

/* The cluster of series that have no label `cluster`; lives as long as the intake. Before the first
 * series. */
void intake_default_cluster(struct intake *intake, struct str cluster);

/* labels: any order, the metric's name as the label __name__; empty values are no labels. The texts
 * need to live only during the call. Naming a known series again gives the same id. O(labels). */
series_id intake_series(struct intake *intake, const struct label *labels, size_t n);

/* n samples, stamps in ms (ascending inside a call; a call may reach back over earlier ones),
 * values as they came, NaN included. Prometheus's stale marker (NaN 0x7ff0000000000002) and stamps
 * that no calendar has (time_is_sane) are dropped here. */
void intake_append(struct intake *intake, series_id id, const time_ms *t, const double *v,
                   size_t n);

/* Between these two each series' samples come in order of time (or repeat what was there), as
 * servers and journals give them: samples of loads (fleet/loads.h) are then added up as they come;
 * else they are kept until the end. hours: what will be booked. Not while others append. */
void intake_in_order(struct intake *intake, struct span hours);
void intake_in_any_order(struct intake *intake);

/* Between these two the samples of a GPU's signals come at about the same time, as scrapes and
 * journals give them, not series by series: what is more than fits is then packed, and put into an
 * unlinked file in `folder`. Other sources may deliver in between; while they do, nothing new is
 * packed. Not while others append. */
void intake_by_time(struct intake *intake, const char *folder);
void intake_by_series(struct intake *intake);

/* Is any series of this metric wanted? What sources ask for, and what text decoders keep. */
bool intake_wants_metric(struct str name);

/* The metrics to ask a server for. match is a full PromQL/remote-read selector body without the
 * name, or "" (`resource=~"nvidia_com_.*|…"`). group says in which order they are best read. */
enum metric_group {
    METRIC_GROUP_KUBE,    /* kube-state-metrics: read first, over a wider range */
    METRIC_GROUP_TARGETS, /* up */
    METRIC_GROUP_GPU,
    METRIC_GROUP_WORK,  /* of inference servers */
    METRIC_GROUP_HOSTS, /* Kubernetes' records of what runs on nodes with GPUs: read last */
    METRIC_GROUP_LOADS, /* of processors: too many series to be read raw from a server */
};
struct wanted_metric {
    const char *name;
    const char *match;
    enum metric_group group;
};
/* Made once from the tables of signals and records; lives for ever. Thread-safe. */
const struct wanted_metric *wanted_metrics(size_t *ret_n);

/* What a source found out that the report must say (thread-safe). count: how many; subject: which
 * file, metric or server; text: a sentence. Same kind, subject and text add up. */
enum note_kind {
    NOTE_PARTIAL,     /* data is missing: a warning of the server, a cut answer */
    NOTE_REJECTED,    /* samples or lines that were not believed or not readable */
    NOTE_GUESS,       /* a guess was made (units) */
    NOTE_LATE_LABELS, /* telemetry named a pod that was finished */
    NOTE_UNPLACED,    /* work counters without a row */
    NOTE_INFO,
    NOTE_EXEMPT, /* somebody asked to be left alone (fleet/exempt.h) */
    NOTE_FROZEN, /* an exporter served an old text again and again */
};
#define INTAKE_NOTES_MAX 1024 /* different ones of a slice; more are not kept */
void intake_note(struct intake *intake, enum note_kind kind, struct str subject, int64_t count,
                 struct str text);

#endif
