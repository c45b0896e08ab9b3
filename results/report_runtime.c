#include "results/report_runtime.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "results/report_rows.h"
#include "results/report_table.h"
#include "results/units.h"
#include "tools/latency.h"

#include <math.h>
#include <stdio.h>

// Losses with a smaller relative difference count as equal across runtimes.
#define LOSS_MARGIN 0.02
#define NOISE_MARGIN 3.0
// Losses that differ by less than this fraction of uniform 8's loss count as equal: the difference
// is float rounding.
#define LOSS_FLOOR 0.001
// Latencies with a smaller relative difference count as equal.
#define LATENCY_MARGIN 0.01

// A plan's numbers from its row; NaN: not measured.
struct measured {
    const cJSON *row;
    double file_bytes, loss, searched_loss, noise;
    const cJSON *rounds; // latencies by round, or NULL
};

static struct measured measured_of(const cJSON *row) {
    const cJSON *examined = msc_json_get(row, "examined");
    const cJSON *runtime = msc_json_get(examined, "runtime");
    return (struct measured){
        .row = row,
        .file_bytes = msc_json_number_of(examined, "file_bytes"),
        .loss = msc_json_number_of(runtime, "distill_loss"),
        .searched_loss = msc_json_number_of(msc_json_get(row, "metrics"), "distill_loss"),
        .noise = msc_json_number_of(examined, "noise"),
        .rounds = msc_json_get(runtime, "us_by_round"),
    };
}

// The words for the delivered plan: "the winner" or "trial 8 (first after rerank)", either of them
// followed by " with better weights" if its weights were improved.
struct subject {
    char text[MSC_REPORT_CELL_BYTES + 48];
};

static struct subject subject_of(const cJSON *report) {
    struct subject subject = {""};
    const char *weights = msc_json_get(report, "delivered") ? " with better weights" : "";
    char name[MSC_REPORT_CELL_BYTES];
    if (msc_report__is_another(report)) {
        const cJSON *plans = msc_json_get(msc_json_get(report, "reranked"), "plans");
        msc_report_name_row(name, plans->child);
        snprintf(subject.text, sizeof subject.text, "%s (first after rerank)%s", name, weights);
    } else {
        snprintf(subject.text, sizeof subject.text, "the winner%s", weights);
    }
    return subject;
}

// The quartiles of the latency ratios by round. False if either plan has no rounds.
static bool find_ratio(struct msc_quartiles *out, const struct measured *of,
                       const struct measured *to) {
    int n = cJSON_GetArraySize(of->rounds);
    double *ratios = n > 0 && n == cJSON_GetArraySize(to->rounds)
                         ? msc_alloc_zero((size_t)n, sizeof *ratios)
                         : NULL;
    const cJSON *a = ratios ? of->rounds->child : NULL;
    const cJSON *b = ratios ? to->rounds->child : NULL;
    for (size_t i = 0; a && b; i++, a = a->next, b = b->next) {
        ratios[i] = a->valuedouble / b->valuedouble;
    }
    if (ratios) {
        *out = msc_quartiles_of(ratios, (size_t)n);
    }
    msc_free(ratios);
    return ratios != NULL;
}

static void write_name(struct msc_str *out, const cJSON *runtime) {
    if (!msc_json_get(runtime, "name")) {
        return;
    }
    msc_str_append(out, "runtime: ");
    msc_shown_append(out, msc_report__text(runtime, "name"));
    if (msc_json_get(runtime, "missing")) {
        msc_str_append(out, ", nothing was measured: ");
        msc_shown_append(out, msc_report__text(runtime, "missing"));
        msc_str_char(out, '\n');
        return;
    }
    double n_threads = msc_json_number_of(runtime, "threads");
    msc_str_char(out, ' ');
    msc_shown_append(out, msc_report__text(runtime, "version"));
    msc_str_append(out, ", ");
    msc_shown_append(out, msc_report__text(runtime, "processor"));
    msc_str_printf(out, ", %.0f thread%s, %.0f rounds\n", n_threads, n_threads == 1.0 ? "" : "s",
                   msc_json_number_of(runtime, "rounds"));
}

void msc_report__write_float(struct msc_str *out, double loss, double least, const char *runtime) {
    if (loss > least) {
        msc_str_append(out, "the float model itself differs in ");
        msc_shown_append(out, runtime);
        msc_str_printf(out,
                       ": its outputs there have a loss of %.5g against the outputs that plans are "
                       "compared with\n",
                       loss);
    }
}

double msc_report__loss_margin(double searched_loss, double noise, double eight_loss) {
    double share = fmax(LOSS_MARGIN, isnan(noise) ? 0.0 : NOISE_MARGIN * noise);
    return fmax(searched_loss * share, LOSS_FLOOR * eight_loss);
}

// `eight_loss` is NaN if there is no uniform plan of 8 bits.
static void write_loss(struct msc_str *out, const struct measured *winner, double eight_loss,
                       const char *subject, const char *runtime) {
    double margin = msc_report__loss_margin(winner->searched_loss, winner->noise, eight_loss);
    if (fabs(winner->loss - winner->searched_loss) > margin) {
        msc_shown_append(out, subject);
        msc_str_append(out, " has another loss in ");
        msc_shown_append(out, runtime);
        msc_str_printf(out, " than the search measured: %.5g, not %.5g\n", winner->loss,
                       winner->searched_loss);
    }
}

// True if the winner's file is not smaller, its loss is not lower by more than the noise, and the
// quartiles of the latency ratios do not show a lower latency.
static bool is_not_better(const struct measured *winner, const struct measured *eight) {
    struct msc_quartiles ratio;
    double noise = isnan(winner->noise) ? 0.0 : winner->noise;
    bool loses_less = winner->loss < eight->loss - noise * fmax(winner->loss, eight->loss);
    bool is_quicker = find_ratio(&ratio, winner, eight) && ratio.upper < 1.0;
    return winner->file_bytes >= eight->file_bytes && !isnan(winner->loss) && !loses_less &&
           !is_quicker;
}

static void write_file_bytes(struct msc_str *out, const struct measured *winner,
                             const struct measured *eight) {
    enum { DIGITS = 4 };
    msc_unit_digits(out, "file_bytes", winner->file_bytes, DIGITS);
    msc_str_append(out, " against ");
    msc_unit_digits(out, "file_bytes", eight->file_bytes, DIGITS);
}

static void write_beside_8(struct msc_str *out, const struct measured *winner,
                           const struct measured *eight, const char *subject, const char *runtime) {
    struct msc_quartiles ratio;
    bool has_ratio = find_ratio(&ratio, winner, eight);
    const char *name = msc_json_get(eight->row, "label")->valuestring;
    if (!(winner->file_bytes >= eight->file_bytes)) {
        return;
    }
    if (!is_not_better(winner, eight)) {
        msc_shown_append(out, subject);
        msc_str_append(out, " has no smaller file than uniform ");
        msc_shown_append(out, name);
        msc_str_append(out, ": ");
        write_file_bytes(out, winner, eight);
        msc_str_char(out, '\n');
        return;
    }
    msc_shown_append(out, subject);
    msc_str_append(out, " is not better than uniform ");
    msc_shown_append(out, name);
    msc_str_append(out, ": a file of ");
    write_file_bytes(out, winner, eight);
    msc_str_append(out, ", a loss in ");
    msc_shown_append(out, runtime);
    msc_str_printf(out, " of %.5g against %.5g", winner->loss, eight->loss);
    if (has_ratio) {
        msc_str_printf(out, ", %.3g times its latency (%.3g to %.3g)", ratio.median, ratio.lower,
                       ratio.upper);
    }
    msc_str_char(out, '\n');
}

// The delivered plan's numbers, as msc_report__write_runtime uses them.
static struct measured measured_winner(const cJSON *report) {
    struct measured winner = measured_of(msc_report__find_delivered(report));
    winner.noise =
        measured_of(msc_json_get(report, "winner")).noise; // noise is only measured for the winner
    return winner;
}

bool msc_report__is_not_better(const struct cJSON *report) {
    const cJSON *eight_row = msc_report__find_uniform_8(report);
    const cJSON *winner_row = msc_report__find_delivered(report);
    const struct measured eight = measured_of(eight_row);
    const struct measured winner = measured_winner(report);
    return eight_row && cJSON_IsObject(winner_row) &&
           msc_json_number_of(eight_row, "id") != msc_json_number_of(winner_row, "id") &&
           is_not_better(&winner, &eight);
}

enum msc_status msc_report__write_runtime(struct msc_str *out, const struct cJSON *report) {
    const cJSON *runtime = msc_json_get(report, "runtime");
    const cJSON *winner_row = msc_report__find_delivered(report);
    const cJSON *eight_row = msc_report__find_uniform_8(report);
    struct msc_quartiles ratio;
    if (!runtime) {
        return MSC_OK;
    }
    write_name(out, runtime);
    if (msc_json_get(runtime, "unmeasured")) {
        msc_str_append(out, "rerank: ");
        msc_shown_append(out, msc_report__text(runtime, "unmeasured"));
        msc_str_char(out, '\n');
    }
    if (msc_json_get(runtime, "refused")) {
        msc_str_append(out, "the runtime refuses the winner: ");
        msc_shown_append(out, msc_report__text(runtime, "refused"));
        msc_str_char(out, '\n');
    }
    if (!cJSON_IsObject(winner_row) || msc_json_get(runtime, "missing")) {
        return msc_str_status(out);
    }
    const char *name = msc_report__text(runtime, "name");
    const struct subject subject = subject_of(report);
    const struct measured winner = measured_winner(report), eight = measured_of(eight_row);
    const struct measured reference = measured_of(msc_json_get(report, "reference"));
    write_loss(out, &winner, eight.searched_loss, subject.text, name);
    msc_report__write_float(
        out, reference.loss,
        msc_report__loss_margin(winner.searched_loss, winner.noise, eight.searched_loss), name);
    if (eight_row && msc_json_number_of(eight_row, "id") != msc_json_number_of(winner_row, "id")) {
        write_beside_8(out, &winner, &eight, subject.text, name);
    }
    if (find_ratio(&ratio, &winner, &reference) && ratio.lower > 1.0 &&
        ratio.median >= 1.0 + LATENCY_MARGIN) {
        msc_shown_append(out, subject.text);
        msc_str_printf(out,
                       " is slower than the float model in %s: %.3g times its latency (%.3g to "
                       "%.3g)\n",
                       name, ratio.median, ratio.lower, ratio.upper);
    }
    return msc_str_status(out);
}
