// A record as a journal of Optuna (https://optuna.org), which its JournalStorage reads with a
// JournalFileBackend, and its dashboard shows:
//
//     MSC_TRY(msc_optuna_save(record, "digits.journal"));
//
// One study, named as the record without its ending, with the objectives as directions and metric
// names. Each line of the record is the trial of its number: a categorical parameter for each task with
// the labels of its choices, the objectives as values, user attributes for what else the line says
// (metrics, violation, state, baseline, parent, ...), times in UTC. A complete or infeasible trial whose
// objectives were all measured is COMPLETE, with a constraint for each limit ("constraints", > 0 where
// it is exceeded); one that was stopped, or left out for its exact costs, is PRUNED, a failed one FAIL.
// What a race saw of a trial are its intermediate values, by batches.
//
// Each line of the journal is an operation of optuna/storages/journal/_storage.py (Optuna 3 to 5):
// 0 makes the study, 2 and 3 give it user and system attributes, 4 makes a trial with all it has.
#ifndef MSC_SEARCH_OPTUNA_H
#define MSC_SEARCH_OPTUNA_H

#include "records/record.h"

// The file is complete or as it was.
enum msc_status msc_optuna_save(const struct msc_record *record, const char *path);

#endif
