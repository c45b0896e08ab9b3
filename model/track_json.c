// Writes a comparison of two networks as JSON.
#include "model/track.h"

#include "base/json.h"

#include <math.h>

static const char *joint_of(const struct msc_graph *g, const struct msc_track_row *row) {
    return msc_graph_joint(g, msc_graph_tensor(g, row->tensor)->producer)->name;
}

static enum msc_status add_finite(cJSON *object, const char *key, double value) {
    return isfinite(value) ? msc_json_add_number(object, key, value)
                           : msc_json_add(object, key, cJSON_CreateNull());
}

static enum msc_status add_row(cJSON *list, const struct msc_graph *g,
                               const struct msc_track_row *row) {
    cJSON *json = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, json));
    MSC_TRY(msc_json_add_text(json, "joint", joint_of(g, row)));
    MSC_TRY(msc_json_add_text(json, "tensor", msc_tensor_label(msc_graph_tensor(g, row->tensor))));
    MSC_TRY(msc_json_add_number(json, "elements", (double)row->n));
    MSC_TRY(add_finite(json, "snr_db", row->snr_db));
    MSC_TRY(add_finite(json, "inputs_snr_db", row->inputs_db));
    MSC_TRY(add_finite(json, "cosine", row->cosine));
    MSC_TRY(add_finite(json, "max_abs", row->max_abs));
    return add_finite(json, "mean_abs", row->mean_abs);
}

static enum msc_status fill_track(cJSON *json, const struct msc_track *track,
                                  const struct msc_graph *g) {
    MSC_TRY(msc_json_add_number(json, "samples", (double)track->n_samples));
    if (track->worst < track->n_rows) {
        const struct msc_track_row *worst = &track->rows[track->worst];
        MSC_TRY(msc_json_add_text(json, "worst", joint_of(g, worst)));
        MSC_TRY(msc_json_add_number(json, "fall_db", msc_track_fall(worst)));
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "tensors", list));
    for (size_t i = 0; i < track->n_rows; i++) {
        MSC_TRY(add_row(list, g, &track->rows[i]));
    }
    return MSC_OK;
}

enum msc_status msc_track_to_json(struct cJSON **out, const struct msc_track *track,
                                  const struct msc_graph *graph) {
    cJSON *json = cJSON_CreateObject();
    enum msc_status status =
        json ? fill_track(json, track, graph) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(json);
        return status;
    }
    *out = json;
    return MSC_OK;
}
