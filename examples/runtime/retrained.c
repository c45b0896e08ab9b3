// Compresses a retrained network from a program: loads it, runs it, applies a strategy, replaces
// the weights, fits the strategy to them, and exports the result.
//
//     cc -std=c11 -o retrained retrained.c $(pkg-config --cflags --libs mscgym)
//     mscgym search ../digits/digits.json --quiet
//     cp ../digits/digits.onnx ../digits/calibration.npz .
//     cp ../digits/msc_workspace/msc_quantize.json .
//     mscgym graph digits.onnx -o retrained.json
//     ./retrained digits.onnx calibration.npz msc_quantize.json retrained.safetensors small.onnx
//
// retrained.safetensors (or .npz) has the weights after training, under their names in digits.onnx;
// here they are the original ones. Another .onnx with the same joints works as well.
#include <mscgym/model/model.h>
#include <mscgym/pipeline/processor.h>
#include <mscgym/model/strategies.h>

#include <math.h>
#include <stdio.h>

#define MAX_INPUTS 8

// The network's first output on the first batch, in floats if `strategy` is NULL. *out is owned by
// the caller.
static enum msc_status run(struct msc_array **out, struct msc_model *model,
                           const struct msc_strategy *strategy) {
    const struct msc_array *inputs[MAX_INPUTS];
    if (model->n_inputs > MAX_INPUTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: more than %d inputs", model->path, MAX_INPUTS);
    }
    for (size_t i = 0; i < model->n_inputs; i++) {
        inputs[i] = msc_dataset_batch(model->dataset, 0, i);
    }
    struct msc_model_run once = {.inputs = inputs, .strategy = strategy};
    MSC_TRY(msc_model_run(model, &once));
    *out = msc_array_retain(once.outputs[0]);
    msc_model_run_finish(&once);
    return MSC_OK;
}

static enum msc_status compare(struct msc_model *model, const struct msc_strategy *strategy,
                               const char *what) {
    struct msc_array *whole = NULL, *small = NULL;
    double most = 0;
    enum msc_status status = run(&whole, model, NULL);
    if (status == MSC_OK) {
        status = run(&small, model, strategy);
    }
    for (int64_t i = 0; status == MSC_OK && i < msc_array_n_elements(whole); i++) {
        most = fmax(most, fabs(msc_array_get_double(whole, i) - msc_array_get_double(small, i)));
    }
    if (status == MSC_OK) {
        printf("%s: outputs differ by %.3g at most\n", what, most);
    }
    msc_array_release(small);
    msc_array_release(whole);
    return status;
}

static enum msc_status update(struct msc_model *model, struct msc_strategy *strategy,
                              const char *weights, const char *out) {
    struct msc_recalibration losses;
    MSC_TRY(compare(model, strategy, "as it was found"));
    MSC_TRY(msc_model_update_weights(model, weights));
    MSC_TRY(msc_strategy_refit(&losses, strategy, model)); // keeps its choices, computes new scales
    printf("distill loss: %.3g with the old scales, %.3g with the new ones\n", losses.loss_before,
           losses.loss_after);
    MSC_TRY(compare(model, strategy, "with the new weights"));
    return msc_export_model(model->graph, strategy, out, NULL, -1);
}

int main(int argc, char *argv[]) {
    static const struct msc_dataset_options samples = MSC_DATASET_OPTIONS_INIT;
    struct msc_model_options options = MSC_MODEL_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = samples};
    struct msc_model *model = NULL;
    struct msc_strategy *strategy = NULL;
    if (argc != 6) {
        fprintf(stderr, "usage: retrained MODEL.onnx SAMPLES.npz STRATEGY.json WEIGHTS OUT.onnx\n");
        return 2;
    }
    dataset.options.inputs = argv[2];
    dataset.options.batch = 0; // 0: chosen by the model's shapes
    enum msc_status status = msc_model_open(&model, argv[1], &options);
    if (status == MSC_OK) {
        status = msc_model_load_dataset(model, &dataset);
    }
    if (status == MSC_OK) {
        status = msc_strategy_load(&strategy, argv[3]);
    }
    if (status == MSC_OK) {
        status = update(model, strategy, argv[4], argv[5]);
    }
    if (status != MSC_OK) {
        fprintf(stderr, "retrained: %s\n", msc_status_message());
    }
    msc_strategy_destroy(strategy);
    msc_model_close(model);
    return status == MSC_OK ? 0 : 1;
}
