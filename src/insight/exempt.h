/* Exemptions: who accepts a finding, until when and why. They come from the command line
 * (--ignore), from the configuration (`ignore:`) and from the annotation gputally.io/ignore, which
 * the ledger keeps as notes. What is exempt is listed and saves nothing; an exemption that has
 * ended is told, and what it was for counts again; one that cannot be read is told and not obeyed.
 *
 * As text: "ID", or parts key=value joined by commas, in any order: id, rule and subject (globs),
 * until (a date or time; the finding counts again from there on), reason. A comma that no key
 * follows belongs to the reason. */
#ifndef GPUTALLY_INSIGHT_EXEMPT_H
#define GPUTALLY_INSIGHT_EXEMPT_H

#include "insight/books.h"
#include "insight/rule.h"

enum exemption_status {
    EXEMPTION_UNUSED, /* nothing was found that it is for */
    EXEMPTION_HOLDS,
    EXEMPTION_ENDED,     /* something was found that it was for */
    EXEMPTION_MALFORMED, /* not obeyed; problem says why */
};
extern const char *const exemption_status_words[];

struct exemption {
    struct str id, rule, subject; /* globs; empty: any. A subject may lack its kind: svc/x */
    bool bearer;       /* of an annotation: subject is exact, and a namespace's is for its workloads
                          too */
    time_ms until;     /* TIME_MAX: for good */
    struct str reason; /* may be empty */
    struct str source; /* "--ignore", "config.yaml:4:3", "annotation of node gpu-7" */
    struct str problem;
    enum exemption_status status; /* set by recommend() … */
    size_t matched;               /* … with how many findings it is for */
};

/* In order of precedence: the first that holds for a finding is the one that is told. */
struct exemptions {
    struct exemption *items;
    size_t n, room;
    struct arena arena;
};
void exemptions_release(struct exemptions *list);

/* One of the command line. ERR_USAGE. The text is copied. */
enum err exemptions_add(struct exemptions *list, struct str text, struct str source,
                        struct error *err);
/* Those of the configuration: texts, or mappings of the keys. ERR_CONFIG with place. */
enum err exemptions_add_config(struct exemptions *list, const struct config *config,
                               struct error *err);
/* Can an annotation be read? ERR_USAGE with what is wrong with it. */
enum err exemption_check(struct str text, struct error *err);
/* Those that annotations have at the end of the books. */
void exemptions_add_annotations(struct exemptions *list, const struct books *books);

struct findings;
/* Mark the findings that are exempt, and count what each exemption is for. recommend() does. */
void exemptions_apply(struct exemptions *list, struct findings *findings);

#endif
