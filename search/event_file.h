// Event files, which TensorBoard reads: a TFRecord file of Event messages (search/event.proto).
//
//     MSC_TRY(msc_event_file_create(&file, "runs/digits"));
//     MSC_TRY(msc_event_file_add(file, &event));          // buffered
//     MSC_TRY(msc_event_file_flush(file));                // one write, no sync
//     msc_event_file_close(file);
//
// A TFRecord file (tensorflow/core/lib/io/record_writer.h) is one of these after the other:
//
//     uint64 length          little endian, as all that follows
//     uint32 masked CRC-32C of these eight bytes
//     byte   data[length]    an Event
//     uint32 masked CRC-32C of the data
//
// where masked is ((crc >> 15) | (crc << 17)) + 0xa282ead8.
#ifndef MSC_SEARCH_EVENT_FILE_H
#define MSC_SEARCH_EVENT_FILE_H

#include "base/status.h"

#include "event.pb-c.h"

struct msc_event_file;

// A new file in the folder, which is made where it is not there; its name comes after those of all
// other event files in it. *out is owned by the caller.
enum msc_status msc_event_file_create(struct msc_event_file **out, const char *folder);
// Adds an event to the buffer, which is written now and then.
enum msc_status msc_event_file_add(struct msc_event_file *file, const MscTb__Event *event);
// After MSC_E_IO the file takes nothing more.
enum msc_status msc_event_file_flush(struct msc_event_file *file);
void msc_event_file_close(
    struct msc_event_file *file); // what is buffered still is lost; accepts NULL
const char *msc_event_file_path(const struct msc_event_file *file);

// Every event of all event files of a folder, in the order in which TensorBoard reads them. What is
// damaged in a file ends it, as it does there. Another status than MSC_OK of `take` ends the reading.
// A folder that is not there has none.
enum msc_status msc_event_file_read_all(const char *folder,
                                        enum msc_status (*take)(void *payload,
                                                                const MscTb__Event *event),
                                        void *payload);

#endif
