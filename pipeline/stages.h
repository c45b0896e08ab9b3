// Which stages of a configuration were done, and what came of them: WORKSPACE/msc_stages.json.
//
//     {"schema": "mscgym.stages.1", "stages": [
//         {"stage": "quantize[0]", "key": "<hash>", "files": [{"path": "q.jsonl", "hash": "<hash>"}],
//          "result": {...}}]}
//
// A stage is done as long as its key, the hash of all that it rests on, is the same and its files, as
// seen from the folder of this one, hold what they held. The file is complete or absent, and written
// whenever a stage is done: who is killed goes on with the stage after.
#ifndef MSC_PIPELINE_STAGES_H
#define MSC_PIPELINE_STAGES_H

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"

#define MSC_STAGES_FILE "msc_stages.json" // in the workspace

struct msc_stages;

// `is_fresh`: nothing is done yet, whatever the file says; so, with a warning, where it cannot be
// read. *out is owned by the caller.
enum msc_status msc_stages_open(struct msc_stages **out, const char *path, bool is_fresh,
                                const struct msc_log *log);
void msc_stages_close(struct msc_stages *stages); // accepts NULL

// What came of a stage, borrowed until the next one is put; NULL: it is to be done.
const cJSON *msc_stages_find(const struct msc_stages *stages, const char *stage,
                             struct msc_hash key);
// Has any stage left a file of this path?
bool msc_stages_has_file(const struct msc_stages *stages, const char *path);
// Is one of the files that a stage has left, whatever it rested on, another one now?
bool msc_stages_is_changed(const struct msc_stages *stages, const char *stage, const char *path);
// A stage was done and has written these files [n], NULL entries passed over. Takes the ownership of
// `result`, also on failure.
enum msc_status msc_stages_put(struct msc_stages *stages, const char *stage, struct msc_hash key,
                               const char *const files[], size_t n, cJSON *result);

#endif
