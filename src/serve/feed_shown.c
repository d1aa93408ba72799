/* What is shown of a feed: the checks of /readyz, and its figures in /metrics. */
#include "serve/feed_impl.h"

#define MINUTE_MS ((time_ms)60 * 1000)
/* A watch that told nothing for so long, bookmarks and its own end included, is no watch. */
#define WATCH_SILENT_MS (15 * MINUTE_MS)

static struct health_check *next_check(struct health_check *ret, size_t *n, size_t room,
                                       const char *what, const char *cluster)
{
    if (*n == room)
        return NULL;
    struct health_check *check = &ret[(*n)++];
    *check = (struct health_check){.ok = true};
    snprintf(check->name, sizeof check->name, "%s%s%.40s", what, *cluster ? " " : "", cluster);
    return check;
}

static void check_journal(struct feed *feed, struct health_check *check)
{
    struct journal_stats stats;
    journal_stats(feed->journal, &stats);
    check->ok = !*stats.failing;
    snprintf(check->why, sizeof check->why, "%.250s", stats.failing);
}

static void check_scraper(struct feed *feed, struct health_check *check)
{
    struct scrape_stats stats;
    scraper_stats(feed->scraper, &stats);
    check->ok = stats.scrapes == 0 || stats.targets == 0 || stats.up > 0;
    if (!check->ok)
        snprintf(check->why, sizeof check->why, "none of %llu targets answers",
                 (unsigned long long)stats.targets);
}

/* Why a list or a watch failed last; empty: none did. */
static const char *trouble_of(const struct kube_watch_status *status)
{
    for (int kind = 0; kind < KUBE_KIND_COUNT; kind++)
        if (*status->resources[kind].text)
            return status->resources[kind].text;
    return "";
}

static void check_watch(struct feed *feed, struct health_check *check)
{
    struct kube_watch_status status;
    kube_watch_status(kube_source_watch(feed->watch), &status);
    bool synced = status.synced != TIME_MIN;
    time_ms silent = synced ? clock_now() - status.seen : 0;
    check->ok = synced && silent < WATCH_SILENT_MS;
    const char *trouble = trouble_of(&status);
    if (check->ok)
        return;
    if (synced)
        snprintf(check->why, sizeof check->why, "%.100s: nothing heard for %lld min%s%.110s",
                 status.url, (long long)(silent / MINUTE_MS), *trouble ? ": " : "", trouble);
    else if (*trouble)
        snprintf(check->why, sizeof check->why, "%.250s", trouble);
    else
        snprintf(check->why, sizeof check->why, "%.100s: not listed yet", status.url);
}

size_t feed_checks(struct feed *feed, struct health_check *ret, size_t room)
{
    size_t n = 0;
    struct health_check *check;
    pthread_rwlock_rdlock(&feed->lock);
    if (feed->journal && (check = next_check(ret, &n, room, "journal", feed->cluster)))
        check_journal(feed, check);
    if (feed->scraper && (check = next_check(ret, &n, room, "scraping", feed->cluster)))
        check_scraper(feed, check);
    if (feed->watch && (check = next_check(ret, &n, room, "kubernetes", feed->cluster)))
        check_watch(feed, check);
    pthread_rwlock_unlock(&feed->lock);
    return n;
}

static struct source_stat *next_source(struct service_stats *ret, const char *name,
                                       const char *cluster, enum source_kind kind)
{
    if (ret->sources_n == SOURCE_STATS_MAX)
        return NULL;
    struct source_stat *stat = &ret->sources[ret->sources_n++];
    *stat = (struct source_stat){.watermark = TIME_MIN, .queue_depth = -1};
    snprintf(stat->name, sizeof stat->name, "%s", name);
    snprintf(stat->cluster, sizeof stat->cluster, "%.60s", cluster);
    snprintf(stat->kind, sizeof stat->kind, "%s", source_kind_words[kind]);
    return stat;
}

static void add_figure(struct service_stats *ret, const char *name, const char *help,
                       const char *cluster, double value)
{
    if (ret->figures_n == SERVICE_FIGURES_MAX)
        return;
    struct service_figure *figure = &ret->figures[ret->figures_n++];
    *figure =
        (struct service_figure){.name = name, .help = help, .label = "cluster", .value = value};
    snprintf(figure->label_value, sizeof figure->label_value, "%.60s", cluster);
}

static void push_figures(struct feed *feed, const char *cluster, struct service_stats *ret)
{
    struct push_stats stats;
    struct source_stat *stat = next_source(ret, "remote write", cluster, SOURCE_KIND_REMOTE_WRITE);
    push_stats(feed->push, &stats);
    if (!stat)
        return;
    stat->up = stats.last_ok != 0;
    stat->samples_total = (int64_t)stats.samples;
    stat->bytes_total = (int64_t)stats.bytes;
    stat->rejected_total = (int64_t)(stats.too_old + stats.in_future + stats.bad_series);
    stat->failures_total = (int64_t)(stats.answers_4xx + stats.answers_5xx + stats.answers_429);
}

static void scrape_figures(struct feed *feed, const char *cluster, struct service_stats *ret)
{
    struct scrape_stats stats;
    struct source_stat *stat = next_source(ret, "scraping", cluster, SOURCE_KIND_SCRAPE);
    scraper_stats(feed->scraper, &stats);
    if (!stat)
        return;
    stat->up = stats.up > 0;
    stat->samples_total = (int64_t)stats.samples;
    stat->bytes_total = (int64_t)stats.bytes;
    stat->rejected_total = (int64_t)(stats.bad_lines + stats.dropped_samples);
    stat->failures_total = (int64_t)stats.failures;
}

static bool is_followed(const struct kube_resource_status *resource)
{
    return resource->lists > 0 &&
           (resource->state == KUBE_WATCH_WATCHING || resource->state == KUBE_WATCH_LISTING);
}

static void watch_figures(struct feed *feed, const char *cluster, struct service_stats *ret)
{
    struct kube_watch_status status;
    struct source_stat *stat = next_source(ret, "watch", cluster, SOURCE_KIND_KUBERNETES);
    kube_watch_status(kube_source_watch(feed->watch), &status);
    if (!stat)
        return;
    stat->up = is_followed(&status.resources[KUBE_KIND_NODE]) &&
               is_followed(&status.resources[KUBE_KIND_POD]);
    for (int kind = 0; kind < KUBE_KIND_COUNT; kind++) {
        stat->samples_total += (int64_t)status.resources[kind].events;
        stat->rejected_total += (int64_t)status.resources[kind].faults;
        stat->failures_total += (int64_t)status.resources[kind].failures;
    }
}

void feed_stats(struct feed *feed, const char *cluster, struct service_stats *ret)
{
    pthread_rwlock_rdlock(&feed->lock);
    if (feed->push)
        push_figures(feed, cluster, ret);
    if (feed->scraper)
        scrape_figures(feed, cluster, ret);
    if (feed->watch)
        watch_figures(feed, cluster, ret);
    if (feed->journal) {
        struct journal_stats stats;
        journal_stats(feed->journal, &stats);
        add_figure(ret, "gputally_journal_bytes", "Size of the journal on disk.", cluster,
                   (double)stats.bytes);
        add_figure(ret, "gputally_journal_lost_samples_total",
                   "Samples that were dropped at the journal's caps before they were booked.",
                   cluster, (double)stats.lost_samples);
    }
    pthread_rwlock_unlock(&feed->lock);
}
