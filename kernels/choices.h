// Choices among variants (kernels/backend.h) that are kept for a device, as JSON:
//
//     {"schema": 1, "device": "...", "choices": [
//         {"kind": "int8 3x3", "rows": 49, "cols": 512, "depth": 4608, "variant": "direct"}]}
//
// A file that does not match this device and program is ignored: choices affect only speed, never
// results.
//
//     msc_choices_load(&kept, path, "cpu/2 ...", log);
//     const struct msc_kept_choice *choice = msc_choices_find(&kept, &work);
#ifndef MSC_KERNELS_CHOICES_H
#define MSC_KERNELS_CHOICES_H

#include "kernels/backend.h"

enum { MSC_MOST_CHOICES = 512 };

struct msc_choices {
    int n;
    struct msc_kept_choice choices[MSC_MOST_CHOICES];
};

// Reads a file. *out is empty if there is none (`path` may be NULL) or if it does not match; a
// warning says if it is damaged.
void msc_choices_load(struct msc_choices *out, const char *path, const char *device,
                      const struct msc_log *log);
// Reads a file, puts the choices and writes it, without losing what other processes keep at the
// same time. *out is what is kept then. Creates the folder of `path` if it is missing.
enum msc_status msc_choices_keep(struct msc_choices *out, const char *path, const char *device,
                                 const struct msc_kept_choice choices[], size_t n,
                                 const struct msc_log *log);
// Replaces the choice kept for equal work, or adds one; the oldest leaves if there is no room.
void msc_choices_put(struct msc_choices *kept, const struct msc_kept_choice *choice);

// How different the work of two products is, for products of one kind: 0 for equal work, 1 for
// twice the rows. Columns count twice, because a tile that is wider than the result computes
// columns outside of it; the depth counts half.
double msc_work_distance(const struct msc_work *a, const struct msc_work *b);
// The choice of the most similar work of the same kind, at a distance below `most`; NULL: none.
const struct msc_kept_choice *msc_choices_find(const struct msc_choices *kept,
                                               const struct msc_work *work, double most);

#endif
