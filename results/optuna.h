// Exports a record as a journal for Optuna (https://optuna.org). Optuna's JournalStorage with a
// JournalFileBackend reads it, and so does its dashboard.
//
//     MSC_TRY(msc_optuna_save(record, "digits.journal"));
//
// The journal has one study, named after the record without its ending, with the objectives'
// directions and metric names. Each line of the record becomes the trial of the same number. A
// trial has a categorical parameter for each task (the labels of its choices), the objectives as
// values, user attributes for the line's other data (metrics, violation, state, baseline, parent,
// ...), and times in UTC. A complete or infeasible trial with all objectives measured is COMPLETE,
// with a constraint for each bound ("constraints", > 0 if the bound is exceeded). A trial is PRUNED
// if it was stopped early, or not measured because its exact costs break a bound. A failed trial is
// FAIL. A trial's losses at the rungs of a race are its intermediate values; their step is the
// number of batches.
//
// Each line of the journal is an operation of optuna/storages/journal/_storage.py (Optuna 3 to 5):
// 0 creates the study, 2 and 3 set its user and system attributes, 4 creates a complete trial.
#ifndef MSC_RESULTS_OPTUNA_H
#define MSC_RESULTS_OPTUNA_H

#include "records/record.h"

// Replaces the file atomically.
enum msc_status msc_optuna_save(const struct msc_record *record, const char *path);

#endif
