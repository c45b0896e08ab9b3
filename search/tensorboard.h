// A search as a run of TensorBoard: DIR/NAME for NAME.jsonl, with event files (search/event_file.h).
//
//     MSC_TRY(msc_tensorboard_open(&board, "runs", record));
//     MSC_TRY(msc_tensorboard_follow(board, record));            // after every commit
//     MSC_TRY(msc_tensorboard_tell(board, record, "result", text));
//     msc_tensorboard_close(board);
//
// The step is the id of a trial, the wall time when the record was begun plus the time searched until
// then. Scalars, in single precision as TensorBoard has them:
//
//     metrics/NAME   of trials that came to a result, and of all others what is known without a run
//     best/NAME      each objective: the best so far of trials within all bounds
//     violation      where there are bounds
//
// and texts: `config` at the beginning, `result` at the end. Each time a run is opened it begins a new
// file, with the first trial that those there do not have; it says so (session_log START), so that
// trials that were cut off the record vanish, and those of another record of this name do.
#ifndef MSC_SEARCH_TENSORBOARD_H
#define MSC_SEARCH_TENSORBOARD_H

#include "records/record.h"

struct msc_tensorboard;

// *out is owned by the caller. MSC_E_IO: the folder cannot be written.
enum msc_status msc_tensorboard_open(struct msc_tensorboard **out, const char *folder,
                                     const struct msc_record *record);
// Writes the trials that are new in the record.
enum msc_status msc_tensorboard_follow(struct msc_tensorboard *board,
                                       const struct msc_record *record);
// Lines for people, under this tag.
enum msc_status msc_tensorboard_tell(struct msc_tensorboard *board, const struct msc_record *record,
                                     const char *tag, const char *text);
void msc_tensorboard_close(struct msc_tensorboard *board); // accepts NULL
// The run's own folder.
const char *msc_tensorboard_folder(const struct msc_tensorboard *board);

#endif
