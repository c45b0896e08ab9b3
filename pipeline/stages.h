// The record of a configuration's stages and their results: WORKSPACE/msc_stages.json.
//
//     {"schema": "mscgym.stages.1", "stages": [
//         {"stage": "quantize[0]", "key": "<hash>",
//          "files": [{"path": "q.jsonl", "hash": "<hash>"}], "result": {...}}]}
//
// A stage is done as long as its key (the hash of everything it depends on) and the contents of its
// files are unchanged. Paths are relative to the workspace. The file is complete or absent, and is
// written after each stage: if a run is killed, the next run continues with the next stage.
#ifndef MSC_PIPELINE_STAGES_H
#define MSC_PIPELINE_STAGES_H

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"

#define MSC_STAGES_FILE "msc_stages.json" // file in the workspace

struct msc_stages;

// `is_fresh`: starts with no stage done, whatever the file holds. If the file cannot be read, no
// stage is done either, and a warning is logged. *out is owned by the caller.
enum msc_status msc_stages_open(struct msc_stages **out, const char *path, bool is_fresh,
                                const struct msc_log *log);
void msc_stages_close(struct msc_stages *stages); // accepts NULL

// The result of a stage, borrowed until the next msc_stages_put; NULL: the stage must run.
const cJSON *msc_stages_find(const struct msc_stages *stages, const char *stage,
                             struct msc_hash key);
// True if a stage has written a file of this path.
bool msc_stages_has_file(const struct msc_stages *stages, const char *path);
// True if this file of the stage has changed, whether or not the stage's key has.
bool msc_stages_is_changed(const struct msc_stages *stages, const char *stage, const char *path);
// Records that a stage is done and has written these files [n]; NULL entries are skipped. Takes
// ownership of `result`, also on failure.
enum msc_status msc_stages_put(struct msc_stages *stages, const char *stage, struct msc_hash key,
                               const char *const files[], size_t n, cJSON *result);

#endif
