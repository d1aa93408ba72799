/* The order in which findings are told: the worst first, then by the money that they are about. */
#include "insight/doctor.h"

#include <stdlib.h>

const char *const doctor_severity_words[DOCTOR_SEVERITIES] = {"error", "warning", "info"};
const char *const doctor_status_words[] = {"fine", "found", "unchecked"};

static int rank(const struct doctor_finding *finding)
{
    switch (finding->status) {
    case DOCTOR_FOUND:
        return (int)finding->check->severity;
    case DOCTOR_UNCHECKED:
        return DOCTOR_SEVERITIES;
    case DOCTOR_FINE:
        break;
    }
    return DOCTOR_SEVERITIES + 1;
}

static int by_weight(const void *a, const void *b)
{
    const struct doctor_finding *x = a, *y = b;
    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    if (x->money != y->money)
        return x->money < y->money ? 1 : -1;
    if (x->gpu_ns != y->gpu_ns)
        return x->gpu_ns < y->gpu_ns ? 1 : -1;
    return (x->check > y->check) - (x->check < y->check); /* in the order of the table */
}

struct doctor *doctor_new(const struct doctor_facts *facts)
{
    struct doctor *doctor = mem_zalloc(1, sizeof *doctor);
    doctor->findings = mem_zalloc(doctor_checks_n, sizeof *doctor->findings);
    for (size_t i = 0; i < doctor_checks_n; i++) {
        const struct doctor_check *check = &doctor_checks[i];
        struct doctor_finding *finding = &doctor->findings[i];
        *finding = (struct doctor_finding){.check = check, .gpu_ns = -1, .money = -1, .count = -1};
        finding->status = check->test(check, facts, finding, &doctor->arena);
        doctor->found += finding->status == DOCTOR_FOUND;
        doctor->unchecked += finding->status == DOCTOR_UNCHECKED;
        doctor->counts[check->severity] += finding->status == DOCTOR_FOUND;
    }
    qsort(doctor->findings, doctor_checks_n, sizeof *doctor->findings, by_weight);
    return doctor;
}

void doctor_free(struct doctor *doctor)
{
    if (!doctor)
        return;
    free(doctor->findings);
    arena_release(&doctor->arena);
    free(doctor);
}
