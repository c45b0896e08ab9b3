// The header line: creates it, reads space and goal from it, and compares it with a
// configuration.
#ifndef MSC_RECORDS_RECORD_HEADER_H
#define MSC_RECORDS_RECORD_HEADER_H

#include "base/alloc.h"
#include "env/api/drop.h"
#include "env/api/space.h"
#include "env/api/trial.h"
#include "records/record.h"

MSC_PUBLIC_BEGIN

struct cJSON;

struct msc_record_header {
    const char *program;        // "mscgym 0.1.0"
    const char *numerics;       // numerics id
    const struct cJSON *config; // resolved configuration, or NULL
    const struct cJSON *budget; // object, or NULL; may differ between launches
    const struct cJSON *env;    // object: type, version, ...
    const struct cJSON *agent;  // object: type, version, ...
    const struct cJSON *hashes; // object: graph, weights, dataset, base, params, ...
    const struct cJSON *more;   // further members, or NULL
    const struct msc_space *space;
    const struct msc_goal *goal;
    const struct msc_drops *drops; // of the goal's bounds; NULL: no bound is a drop
    uint64_t seed;
    uint32_t parallel;
    const struct msc_race *race; // NULL: none
};

// *out is owned by the caller (cJSON_Delete); everything in it is a copy.
enum msc_status msc_record_header_create(struct cJSON **out, const struct msc_record_header *from);

// MSC_E_STATE if the headers differ; the message names the first field that differs and both
// values. These may differ: `program`, `numerics`, `measured`, `sameness`, every object called
// `budget`, hashes that only one side has, and members of `config` whose path within `config`
// matches one of `free_keys` ("log_file", "dataset.inputs", "*.record"; NULL-terminated, may be
// NULL).
enum msc_status msc_record_header_compare(const struct cJSON *stored, const struct cJSON *wanted,
                                          const char *const free_keys[], const char *path);

// Reads space (without costs and features) and goal from the header, into the arena. `where`
// begins the error message (MSC_E_FORMAT).
enum msc_status msc_record_header_space(struct msc_space **out, struct msc_arena *arena,
                                        const struct cJSON *header, const char *where);
enum msc_status msc_record_header_race(struct msc_race *out, const struct cJSON *header,
                                       const char *where);
enum msc_status msc_record_header_goal(struct msc_goal *out, const struct msc_space *space,
                                       const struct cJSON *header, const char *where);
// Reads which bounds of the goal are drops.
enum msc_status msc_record_header_drops(struct msc_drops *out, const struct cJSON *header,
                                        const char *where);

MSC_PUBLIC_END

#endif
