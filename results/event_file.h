// Writes and reads event files for TensorBoard: TFRecord files of Event messages
// (results/event.proto).
//
//     MSC_TRY(msc_event_file_create(&file, "runs/digits"));
//     MSC_TRY(msc_event_file_add(file, &event));          // buffered
//     MSC_TRY(msc_event_file_flush(file));                // one write, no sync
//     msc_event_file_close(file);
//
// A TFRecord file (tensorflow/core/lib/io/record_writer.h) is a sequence of
//
//     uint64 length          little endian, like the integers below
//     uint32 masked CRC-32C of these eight bytes
//     byte   data[length]    an Event
//     uint32 masked CRC-32C of the data
//
// with masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8.
#ifndef MSC_RESULTS_EVENT_FILE_H
#define MSC_RESULTS_EVENT_FILE_H

#include "base/status.h"

#include "event.pb-c.h"

struct msc_event_file;

// Creates a file in the folder, and the folder if needed. The file's name sorts after all event
// files in the folder. *out is owned by the caller.
enum msc_status msc_event_file_create(struct msc_event_file **out, const char *folder);
// Adds an event to the buffer, which is written from time to time.
enum msc_status msc_event_file_add(struct msc_event_file *file, const MscTb__Event *event);
// Writes the buffer. After MSC_E_IO the file accepts no more events.
enum msc_status msc_event_file_flush(struct msc_event_file *file);
void msc_event_file_close(
    struct msc_event_file *file); // drops events that are still buffered; accepts NULL
const char *msc_event_file_path(const struct msc_event_file *file);

// Passes every event of a folder's event files to `take`, in the order in which TensorBoard reads
// them. Like TensorBoard, skips the rest of a file after a damaged frame. If `take` returns a
// status other than MSC_OK, reading ends with that status. If the folder is missing, there are no
// events.
enum msc_status msc_event_file_read_all(const char *folder,
                                        enum msc_status (*take)(void *payload,
                                                                const MscTb__Event *event),
                                        void *payload);

#endif
