// Second moments in a file (data/array_log.h): the upper triangles of the moments H in float32, the
// means, and the rows held back. A use without moments is recorded too.
//
//     MSC_TRY(msc_moment_save(kept, "", slot, &moment));
//     enum msc_status status = msc_moment_load(&moment, kept, "", slot, n);      // MSC_E_NOT_FOUND
#ifndef MSC_TOOLS_MOMENT_FILE_H
#define MSC_TOOLS_MOMENT_FILE_H

#include "data/array_log.h"
#include "tools/second_moment.h"

// Saves the moments of a slot's use, without the members that exist only under a plan. `of`
// identifies the computation, since another computation may sample different rows. Errors are those
// of msc_array_log_add.
enum msc_status msc_moment_save(struct msc_array_log *log, const char *of, int32_t slot,
                                const struct msc_moment *m);
// *out, which may be zeroed, is owned by the caller (msc_moment_finish). MSC_E_NOT_FOUND;
// MSC_E_FORMAT if the arrays are not moments of `n_elements` weights; MSC_E_IO, MSC_E_NOMEM.
enum msc_status msc_moment_load(struct msc_moment *out, const struct msc_array_log *log,
                                const char *of, int32_t slot, int64_t n_elements);
// Is this the name of an array that msc_moment_save writes?
bool msc_moment_is_name(const char *name);

#endif
