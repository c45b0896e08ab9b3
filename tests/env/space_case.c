#include "tests/env/space_case.h"

// For each site that is fixed to a choice, sets the choice's edit at all slots of the site, as the
// environment does.
static void fill_fixed(struct bench *b) {
    const struct msc_sites *sites = msc_quantizer_sites(b->q);
    for (int32_t i = 0; i < sites->n_sites; i++) {
        int32_t choice = msc_quantizer_fixed_choice(b->q, i);
        for (int32_t k = 0; choice >= 0 && k < sites->sites[i].n_slots; k++) {
            b->fixed[sites->sites[i].slots[k]] = msc_quantizer_edit(b->q, i, choice);
        }
    }
}

enum msc_status build_on(struct bench *b, const struct msc_dataset *data) {
    const struct msc_env_host host = {.graph = b->c.g, .dataset = data};
    struct msc_metrics metrics;
    struct msc_outline outline;
    MSC_TRY(msc_evaluator_outline(&outline, b->c.ev));
    const struct msc_quantize_inputs inputs = {.host = &host,
                                               .quantizer = b->q,
                                               .plan = outline.plan,
                                               .n_samples = outline.n_samples,
                                               .fixed = b->fixed,
                                               .metrics = &metrics};
    fill_fixed(b);
    MSC_TRY(msc_metrics_choose(&metrics, msc_quantize_metrics, &host, NULL));
    return msc_quantize_space_build(&b->space, &inputs, &b->arena);
}

enum msc_status build(struct bench *b) {
    return build_on(b, b->c.data);
}

void open_bench(struct bench *b, const char *config, int64_t batch) {
    memset(b, 0, sizeof(*b));
    quantize_case_open(&b->c, 1, batch);
    assert_ok(quantize_create(&b->q, b->c.g, config));
    assert_ok(msc_quantizer_calibrate(b->q, b->c.ev, NULL, NULL));
}

void close_bench(struct bench *b) {
    msc_quantizer_destroy(b->q);
    msc_arena_finish(&b->arena);
    quantize_case_close(&b->c);
}
