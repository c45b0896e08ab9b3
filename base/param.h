// Parameter tables: a row gives name, help, offset in a struct, type, default and range. The
// functions here use these rows to read JSON, check ranges, suggest spellings, and print help and
// defaults.
//
//     static const struct msc_param anneal_params[] = {
//         {.name = "t0", .help = "starting temperature", .offset = offsetof(struct anneal, t0),
//          .type = MSC_PARAM_F64, .number = 1.0, .min = 1e-3, .max = 1e3, .unit = "reward"},
//         {.name = "mode", .help = "how to move", .offset = offsetof(struct anneal, mode),
//          .type = MSC_PARAM_ENUM, .text = "swap", .names = "swap|flip"},
//         {0},
//     };
#ifndef MSC_BASE_PARAM_H
#define MSC_BASE_PARAM_H

#include "base/status.h"

#include <stddef.h>

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_arena;
struct msc_str;

enum msc_param_type {
    MSC_PARAM_BOOL,     // bool
    MSC_PARAM_I64,      // int64_t
    MSC_PARAM_F64,      // double
    MSC_PARAM_TEXT,     // const char *, in the arena
    MSC_PARAM_ENUM,     // int: index into names
    MSC_PARAM_DURATION, // double, seconds; JSON number of seconds or text such as "8h"
    MSC_PARAM_JSON,     // const struct cJSON *: any value, borrowed from the object that is read
    MSC_PARAM_WORD,     // like TEXT, but msc_param_write omits it if it is NULL
    MSC_PARAM_OBJECT,   // like JSON, but msc_param_write omits it if it is NULL
};

struct msc_param {
    const char *name; // NULL ends the table
    const char *help; // one line, no full stop at the end
    size_t offset;    // offset of the member in the caller's struct
    enum msc_param_type type;
    double number;     // default of BOOL (0, 1), I64, F64, DURATION
    const char *text;  // default of ENUM and TEXT (NULL: no default)
    double min, max;   // range of I64, F64, DURATION; both 0: no limits
    const char *names; // ENUM: "first|second"
    const char *unit;  // for help only; may be NULL
};

// The index of `text` among the names "first|second|...", or -1.
int msc_param_index(const char *names, const char *text);

// Writes every default into `target`. Text defaults are borrowed from the table.
void msc_param_defaults(const struct msc_param params[], void *target);

// Reads a JSON object (NULL: reads nothing) and overwrites the parameters that it contains. An
// unknown key, a wrong type or a value out of range is MSC_E_INVALID. The message begins with
// `where` (such as "agent") and suggests the nearest known key. Keys in `ignore` (NULL-terminated,
// may be NULL) are skipped.
enum msc_status msc_param_read(const struct msc_param params[], void *target,
                               const struct cJSON *object, const char *where,
                               const char *const ignore[], struct msc_arena *arena);

// Adds every parameter's current value to a JSON object.
enum msc_status msc_param_write(const struct msc_param params[], const void *target,
                                struct cJSON *object);

// One line per parameter: name, help, default, range.
void msc_param_help(const struct msc_param params[], struct msc_str *out);
// Like msc_param_help, as JSON for programs. Each parameter is {"name", "type", "help", "default",
// "min", "max", "unit", "names"} without the members that do not apply. An absent limit is null;
// durations are in seconds.
enum msc_status msc_param_describe(const struct msc_param params[], struct cJSON *list);

MSC_PUBLIC_END

#endif
