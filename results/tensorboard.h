// Writes a search as a run of TensorBoard: event files (results/event_file.h) in DIR/NAME for
// NAME.jsonl.
//
//     MSC_TRY(msc_tensorboard_open(&board, "runs", record));
//     MSC_TRY(msc_tensorboard_follow(board, record));            // after every commit
//     MSC_TRY(msc_tensorboard_tell(board, record, "result", text));
//     msc_tensorboard_close(board);
//
// An event's step is the id of its trial. Its wall time is the time when the record was begun plus
// the search time at the trial. Scalars have single precision, as in TensorBoard:
//
//     metrics/NAME   all metrics of trials with a result, exact metrics of the others
//     best/NAME      each objective: the best so far of the feasible trials
//     violation      only if there are bounds
//
// There are two texts: `config` at the beginning and `result` at the end. Each time a run is
// opened, a new file begins with the first trial that earlier files lack. The beginning is marked
// (session_log START), so that TensorBoard drops trials that were cut from the record, and trials
// of another record of the same name.
#ifndef MSC_RESULTS_TENSORBOARD_H
#define MSC_RESULTS_TENSORBOARD_H

#include "records/record.h"

struct msc_tensorboard;

// *out is owned by the caller. MSC_E_IO: the folder is not writable.
enum msc_status msc_tensorboard_open(struct msc_tensorboard **out, const char *folder,
                                     const struct msc_record *record);
// Writes the trials that were added to the record.
enum msc_status msc_tensorboard_follow(struct msc_tensorboard *board,
                                       const struct msc_record *record);
// Writes text for people under `tag`.
enum msc_status msc_tensorboard_tell(struct msc_tensorboard *board, const struct msc_record *record,
                                     const char *tag, const char *text);
void msc_tensorboard_close(struct msc_tensorboard *board); // accepts NULL

#endif
