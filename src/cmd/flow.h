/* The main job, which report, export, collect and demo share:
 *
 *     configuration -> sources -> collect into a store (:memory: or --db) -> query -> renderer
 *
 * flow_open readies the configuration and makes the sources that the options name; a command may
 * add sources of its own (demo does); flow_collect fills the store; flow_report prints. One thread.
 */
#ifndef GPUTALLY_CMD_FLOW_H
#define GPUTALLY_CMD_FLOW_H

#include "cmd/options.h"
#include "cmd/progress.h"
#include "collect/collect.h"
#include "fleet/config.h"
#include "report/report.h"
#include "source/prometheus.h"
#include "source/source.h"
#include "store/store.h"

struct narrow; /* insight/narrow.h */

struct flow {
    const struct options *options;
    struct config *config; /* the options' */
    struct names *names;
    struct source **sources;
    size_t sources_n, sources_room;
    struct store *store;
    const char *tz, *currency;
    bool has_server;        /* a Prometheus is among the sources */
    bool window_given;      /* by an option or the configuration */
    struct span window;     /* whole hours; known after flow_collect */
    bool window_widened;    /* an hour was cut */
    const char *title;      /* what the report is called where no cluster has a name */
    struct strbuf settings; /* what the rows are booked with, for the store */
    struct collect_report collected;
    struct meter meter;
};

/* The parts of flow_open that serve shares. Settings, prices and owners of the options go over
 * those of the configuration, which is then finished; *ret_tz NULL: UTC. */
enum err flow_settings(const struct options *options, struct config *config, const char **ret_tz,
                       struct error *err);
/* How the options say that the server of --prometheus is read; texts are the options'. */
enum err flow_prometheus(const struct options *options, struct prometheus_options *ret,
                         struct error *err);

/* ret must be closed also after an error. */
enum err flow_open(const struct options *options, struct flow *ret, struct error *err);
/* Takes the source over. */
void flow_add_source(struct flow *flow, struct source *source);
/* Opens the store, chooses the window, and fills the store from the sources, if there are any. */
enum err flow_collect(struct flow *flow, struct error *err);
/* Queries and prints the report by --by, --filter, --sort, --limit, --output. *ret_incomplete: what
 * --strict is about. */
enum err flow_report(struct flow *flow, bool *ret_incomplete, struct error *err);
/* The result of a query as a report, at the end of `out`; limit 0: all rows. */
enum err flow_render(struct flow *flow, const struct query *query, enum report_format format,
                     size_t limit, struct strbuf *out, bool *ret_incomplete, struct error *err);
/* The window as a page with its data inside; --filter of the query is kept. */
enum err flow_html(struct flow *flow, const struct query *query, struct strbuf *out,
                   bool *ret_incomplete, struct error *err);
/* What recommend and doctor print with --output json, of a flow that has collected: findings
 * narrowed (NULL: all), with their explanations by id beside; doctor's of the query's rows. */
enum err flow_findings_json(struct flow *flow, const struct narrow *narrow, struct strbuf *out,
                            struct strbuf *explanations, struct error *err);
/* "$14,300 a month in 9 actions", "2 findings" where nothing is saved; false: there is none, or an
 * error. */
bool flow_findings_line(struct flow *flow, struct strbuf *out, struct error *err);
enum err flow_doctor_json(struct flow *flow, const struct query *query, struct strbuf *out,
                          struct error *err);
/* The idle scan as a picture, of the complete days before the window's end; narrow as above. */
enum err flow_idle_days_json(struct flow *flow, struct span window, const struct narrow *narrow,
                             struct strbuf *out, struct error *err);
/* The query of --by (team where it was not given) and --filter over the window. */
enum err flow_query(const struct flow *flow, struct query *ret, struct error *err);
/* --output; table where it was not given. */
enum err flow_format(const struct options *options, enum report_format *ret, struct error *err);
void flow_close(struct flow *flow);

/* flow_collect, flow_report and flow_close: the exit status of a command that prints a report. */
int flow_finish_report(struct flow *flow);

#endif
