// Compares two networks tensor by tensor on the same samples and finds the joint after which they
// differ. The sides are two models, or one model under two strategies.
//
//     struct msc_track_side sides[2] = {{.model = m}, {.model = m, .strategy = strategy}};
//     MSC_TRY(msc_track_make(&track, sides));
//     for (size_t i = 0; i < track->n_rows; i++) ... track->rows[i].snr_db ...
//     msc_track_destroy(track);
//
// A float32 output of a joint of the first network is compared if the second network has a tensor
// of the same name: the name in the model's file (which an exported quantised model keeps) or, if
// both sides are the same model, the graph's name. If a strategy removes channels, only the
// channels that both sides have are compared.
#ifndef MSC_MODEL_TRACK_H
#define MSC_MODEL_TRACK_H

#include "model/model.h"
#include "tools/strategy.h"

MSC_PUBLIC_BEGIN

struct msc_track_side {
    struct msc_model *model; // with a loaded dataset; both sides have the same number of batches
    const struct msc_strategy *strategy; // NULL: the unmodified model
};

// y are the elements on the first side and z those on the second, over all samples.
struct msc_track_row {
    int32_t tensor;  // tensor of the first graph
    int64_t n;       // common elements; 0: none, or shapes differ, and the values below are unknown
    double max_abs;  // maximum of |y - z|
    double mean_abs; // mean of |y - z|
    double snr_db;   // 10 log10(sum y^2 / sum (y - z)^2); INFINITY: y equals z
    double cosine;   // sum yz / sqrt(sum y^2 sum z^2); 1 if y and z are all 0, 0 if only one is
    // The least snr_db of the joint's inputs. An input without a row counts with the least snr_db
    // of the inputs of the joint that computes this input.
    double inputs_db;
};

// A greater inputs_db counts as this value, which is about what 8 bits give.
#define MSC_TRACK_CLEAN_DB 40.0

struct msc_track {
    size_t n_rows;
    struct msc_track_row *rows; // in the order in which the first network computes the tensors
    int64_t n_samples;
    // The row with the largest fall, min(inputs_db, MSC_TRACK_CLEAN_DB) - snr_db; of equal falls,
    // the first. `n_rows` means that nothing differs.
    size_t worst;
};

// MSC_E_INVALID: the networks have no tensor in common. Tracks the tensors in parts, to stay within
// the first model's memory limit. *out is owned by the caller.
enum msc_status msc_track_make(struct msc_track **out, const struct msc_track_side sides[2]);
void msc_track_destroy(struct msc_track *track); // accepts NULL
// min(inputs_db, MSC_TRACK_CLEAN_DB) - snr_db.
double msc_track_fall(const struct msc_track_row *row);
// {"samples", "worst" and "fall_db" unless nothing differs, "tensors": [{"joint", "tensor",
// "elements", "snr_db", "inputs_snr_db", "cosine", "max_abs", "mean_abs"}]}. Values that are not
// finite are null, for example "snr_db" of tensors that are equal. `graph` is the first side's.
// *out is owned by the caller.
enum msc_status msc_track_to_json(struct cJSON **out, const struct msc_track *track,
                                  const struct msc_graph *graph);

MSC_PUBLIC_END

#endif
