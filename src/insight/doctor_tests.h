/* The tests of the doctor's checks, for their table. Seen by doctor_checks.c and doctor_tests.c
 * only. */
#ifndef GPUTALLY_INSIGHT_DOCTOR_TESTS_H
#define GPUTALLY_INSIGHT_DOCTOR_TESTS_H

#include "insight/doctor.h"

typedef enum doctor_status doctor_test_fn(const struct doctor_check *check,
                                          const struct doctor_facts *facts,
                                          struct doctor_finding *ret, struct arena *arena);
doctor_test_fn test_flags;
doctor_test_fn test_much_flags;
doctor_test_fn test_flags_beyond_edges;
doctor_test_fn test_util;
doctor_test_fn test_unpriced;
doctor_test_fn test_no_type;
doctor_test_fn test_list_prices;
doctor_test_fn test_price_files;
doctor_test_fn test_settings;
doctor_test_fn test_recorded;
doctor_test_fn test_history;
doctor_test_fn test_silent;
doctor_test_fn test_no_activity;
doctor_test_fn test_memory;
doctor_test_fn test_power;
doctor_test_fn test_limit;
doctor_test_fn test_lives;
doctor_test_fn test_unattributed;
doctor_test_fn test_unowned;
doctor_test_fn test_notes;
doctor_test_fn test_ignore;
doctor_test_fn test_said;

#endif
