/* What the changes to workloads (patch_rules.c) and to nodes and namespaces (patch_platform.c)
 * share.
 */
#ifndef GPUTALLY_REPORT_PATCH_IMPL_H
#define GPUTALLY_REPORT_PATCH_IMPL_H

#include "report/patch.h"
#include "report/yaml.h"

/* A name as Kubernetes takes it (RFC 1123 subdomain). */
bool patch_is_name(struct str text);
/* A comment: what is to be known about the document, or why there is none. */
void patch_say(struct patch_file *file, const char *text);
/* A command as a comment, with a name in it that patch_is_name(). */
void patch_say_command(struct patch_file *file, const char *before, struct str name,
                       const char *after);
/* The head of a document; namespace may be empty. */
void patch_begin(struct patch_file *file, const char *api, const char *kind, struct str namespace,
                 struct str name);
/* What is known of a workload of the books, for patch_change(). */
struct patch_place patch_place_workload(const struct books *books, const struct book_workload *of);
/* Its pods on machines of the type, without GPUs. */
void patch_without_gpu(const struct books *books, const struct patch_place *place, struct str type,
                       struct patch_file *file);

/* patch_platform.c: the changes of rules about nodes, pools and namespaces; false: none is known
 * for the rule. */
bool patch_platform(const struct findings *findings, const struct finding *finding,
                    const struct patch_place *place, struct patch_file *file);

#endif
