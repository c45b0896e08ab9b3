// Reads the section `dataset` of a configuration: samples, images, states and validation set.
#include "config/config_internal.h"

static enum msc_status read_channels(const struct msc_config *c, double out[4], const cJSON *list,
                                     int64_t n, const char *key, bool is_divisor) {
    int i = 0;
    const cJSON *item = NULL;
    if (!list) {
        return MSC_OK;
    }
    bool fits = cJSON_IsArray(list) && cJSON_GetArraySize(list) == n;
    cJSON_ArrayForEach(item, list) {
        fits = fits && cJSON_IsNumber(item) && (!is_divisor || item->valuedouble != 0);
        if (fits) {
            out[i++] = item->valuedouble;
        }
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID,
                           "%s: dataset.image: \"%s\": expected a list of %d %snumbers", c->path,
                           key, (int)n, is_divisor ? "non-zero " : "");
}

static enum msc_status read_image(struct msc_config *c, const cJSON *object) {
    struct msc_config_image from;
    struct msc_image_options *image = &c->dataset.options.image;
    MSC_TRY(msc_config__read(c, msc_config__image_params, &from, object, "dataset.image"));
    if (from.channels == 2) {
        return MSC_FAIL(MSC_E_INVALID, "%s: dataset.image: \"channels\" is 2, expected 1, 3 or 4",
                        c->path);
    }
    image->height = from.height;
    image->width = from.width;
    image->channels = (int)from.channels;
    image->channels_last = from.channels_last;
    image->scale = from.scale;
    MSC_TRY(read_channels(c, image->mean, from.mean, from.channels, "mean", false));
    return read_channels(c, image->std, from.std, from.channels, "std", true);
}

static bool join_labels(struct msc_config *c, const char **labels) {
    return msc_labels_are_next(*labels) || msc_config__join(c, labels, c->folder);
}

static enum msc_status read_validation(struct msc_config *c, const cJSON *value) {
    struct msc_config_dataset *d = &c->dataset;
    struct msc_config_validation set;
    if (cJSON_IsNumber(value)) {
        d->validation_fraction = value->valuedouble;
        if (!(value->valuedouble > 0 && value->valuedouble < 1)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: dataset: \"validation\" is %g, expected a fraction "
                            "between 0 and 1, or {\"inputs\": ...}",
                            c->path, value->valuedouble);
        }
        return MSC_OK;
    }
    MSC_TRY(msc_config__read(c, msc_config__validation_params, &set, value, "dataset.validation"));
    if (value && !set.inputs) {
        return MSC_FAIL(MSC_E_INVALID, "%s: dataset.validation: \"inputs\" is missing", c->path);
    }
    d->validation_inputs = set.inputs;
    d->validation_labels = set.labels;
    MSC_TRY(MSC_ALLOCATED(msc_config__join(c, &d->validation_inputs, c->folder) &&
                          join_labels(c, &d->validation_labels)));
    return MSC_OK;
}

static enum msc_status read_states(struct msc_config *c, const cJSON *object) {
    struct msc_config_dataset *d = &c->dataset;
    const cJSON *item = NULL;
    if (!object) {
        return MSC_OK;
    }
    size_t n = cJSON_IsObject(object) ? (size_t)cJSON_GetArraySize(object) : 0;
    bool fits = n > 0;
    d->states = msc_arena_array(&c->arena, n + 1, sizeof d->states[0]);
    MSC_TRY(MSC_ALLOCATED(d->states));
    cJSON_ArrayForEach(item, object) {
        fits = fits && cJSON_IsString(item);
        if (fits) {
            d->states[d->n_states++] = (struct msc_config_state){item->string, item->valuestring};
        }
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID,
                           "%s: dataset: \"state\": expected inputs and the tensors that feed "
                           "them, such as {\"h\": \"hn\"}",
                           c->path);
}

enum msc_status msc_config__read_dataset(struct msc_config *c, const cJSON *object) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_dataset_options *o = &c->dataset.options;
    struct msc_config_data from;
    *o = init;
    MSC_TRY(msc_config__read(c, msc_config__data_params, &from, object, "dataset"));
    if (object && !from.inputs) {
        return MSC_FAIL(MSC_E_INVALID, "%s: dataset: \"inputs\" is missing", c->path);
    }
    o->inputs = from.inputs;
    o->labels = from.labels;
    o->samples = from.samples;
    o->batch = from.batch;
    o->sequence = from.sequence;
    MSC_TRY(
        MSC_ALLOCATED(msc_config__join(c, &o->inputs, c->folder) && join_labels(c, &o->labels)));
    MSC_TRY(read_states(c, from.state));
    MSC_TRY(read_image(c, from.image));
    return read_validation(c, from.validation);
}
