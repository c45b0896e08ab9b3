// One element of an array of any type: how data/ reads, converts and writes single values.
// Internal to data/.
#ifndef MSC_DATA_NUMBER_H
#define MSC_DATA_NUMBER_H

#include "data/dtype.h"

enum msc_number_kind {
    MSC_NUMBER_REAL,
    MSC_NUMBER_SIGNED,
    MSC_NUMBER_UNSIGNED,
};

struct msc_number {
    enum msc_number_kind kind;
    double real; // `kind` says which of these members holds the value
    int64_t i;
    uint64_t u;
};

// Reads element `index` of `data`. A bool is an unsigned 0 or 1.
struct msc_number msc_number__load(const void *data, enum msc_dtype dtype, int64_t index);
// Converts as in C, but saturates. NaN becomes integer 0. Every number except 0 becomes true.
void msc_number__store(void *data, enum msc_dtype dtype, int64_t index, struct msc_number number);

double msc_number__to_double(struct msc_number number);
// Truncates towards zero and clamps to [low, high].
int64_t msc_number__to_i64(struct msc_number number, int64_t low, int64_t high);

#endif
