// Two networks beside one another, tensor by tensor, on the same samples: where does the second one
// go wrong? Models, or one model under two strategies.
//
//     struct msc_track_side sides[2] = {{.model = m}, {.model = m, .strategy = strategy}};
//     MSC_TRY(msc_track_make(&track, sides));
//     for (size_t i = 0; i < track->n_rows; i++) ... track->rows[i].snr_db ...
//     msc_track_destroy(track);
//
// Tensors are those float32 ones that joints of the first network make and the second has under the
// same name: the model's own where there is one (as a quantised model that was exported keeps them),
// else, of the same model, that of the graph. Where a strategy takes channels, those that both sides have are
// compared.
#ifndef MSC_MODEL_TRACK_H
#define MSC_MODEL_TRACK_H

#include "model/model.h"
#include "tools/strategy.h"

MSC_PUBLIC_BEGIN

struct msc_track_side {
    struct msc_model *model; // with its dataset loaded, of as many batches on both sides
    const struct msc_strategy *strategy; // NULL: as the model is
};

// y are the elements on the first side, z those on the second, of all samples.
struct msc_track_row {
    int32_t tensor;  // of the first graph
    int64_t n;       // elements that both have; 0: none, or of other shapes: nothing below is known
    double max_abs;  // of |y - z|
    double mean_abs; // of |y - z|
    double snr_db;   // 10 log10(sum y^2 / sum (y - z)^2); INFINITY: they are equal
    double cosine;   // sum yz / sqrt(sum y^2 sum z^2); 1 where both are all 0, 0 where one is
    double inputs_db; // least snr_db of what the joint reads, followed through what is no row
};

// More than so much is not asked of what a joint reads: 8 bits leave about as much.
#define MSC_TRACK_CLEAN_DB 40.0

struct msc_track {
    size_t n_rows;
    struct msc_track_row *rows; // in the order that the first network computes them
    int64_t n_samples;
    // Where it goes wrong: the row with the largest fall, min(inputs_db, MSC_TRACK_CLEAN_DB) - snr_db,
    // the first one of equals; n_rows: nothing differs.
    size_t worst;
};

// MSC_E_INVALID: the two have no tensor in common. What is held is within the memory of the first
// model, by going over the tensors in parts where need be. *out is owned by the caller.
enum msc_status msc_track_make(struct msc_track **out, const struct msc_track_side sides[2]);
void msc_track_destroy(struct msc_track *track); // accepts NULL
// min(inputs_db, MSC_TRACK_CLEAN_DB) - snr_db.
double msc_track_fall(const struct msc_track_row *row);
// {"samples", "worst" and "fall_db" unless nothing differs, "tensors": [{"joint", "tensor", "elements",
// "snr_db", "inputs_snr_db", "cosine", "max_abs", "mean_abs"}]}, null where no number stands for it: equal
// tensors have no ratio. `graph` is the first side's. *out is owned by the caller.
enum msc_status msc_track_to_json(struct cJSON **out, const struct msc_track *track,
                                  const struct msc_graph *graph);

MSC_PUBLIC_END

#endif
