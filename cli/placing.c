#include "cli/placing.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "cli/table.h"
#include "records/record_query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- A plan of a record -----------------------------------------------------------------------

static enum msc_status check_table(const struct msc_record *record, const struct msc_place_table *p,
                                   const char *path) {
    char text[MSC_HASH_TEXT_BYTES];
    const cJSON *env = msc_json_get(msc_record_header(record), "env");
    const char *table = msc_json_text_of(env, "table");
    const struct msc_space *space = msc_record_space(record);
    bool fits = table && strcmp(table, msc_hash_format(text, msc_place_table_hash(p))) == 0 &&
                space->n_tasks == p->n_groups;
    for (size_t i = 0; fits && i < p->n_groups; i++) {
        fits = space->tasks[i].n_choices == p->n_backends;
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID,
                           "%s: is not a search of this table; name the table that its env.file "
                           "names",
                           path);
}

enum msc_status msc_cli_read_placed(uint32_t choices[], const struct msc_place_table *p,
                                    const char *path) {
    struct msc_record *record = NULL;
    struct msc_record_line best;
    MSC_TRY(msc_record_open_best(&record, path, 1, NULL));
    enum msc_status status = check_table(record, p, path);
    if (status == MSC_OK &&
        !(msc_record_best(&best, record) && best.trial.outcome.state == MSC_TRIAL_COMPLETE)) {
        status = MSC_FAIL(MSC_E_INVALID, "%s: has no feasible trial", path);
    }
    if (status == MSC_OK) {
        memcpy(choices, best.trial.proposal.choices, p->n_groups * sizeof choices[0]);
    }
    msc_record_close(record);
    return status;
}

// ---- For people -------------------------------------------------------------------------------

static void write_measured(struct msc_str *out, const struct msc_place_table *p) {
    size_t n = p->n_backends / p->n_variants;
    msc_str_printf(out, "%zu group%s on %zu backend%s: ", p->n_groups, p->n_groups == 1 ? "" : "s",
                   n, n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++) {
        msc_str_printf(out, "%s%s %s", i > 0 ? ", " : "", p->backends[i].name,
                       p->backends[i].version);
    }
    msc_str_printf(out, "\n%s, %lld thread%s, %lld rounds\n", p->processor, (long long)p->n_threads,
                   p->n_threads == 1 ? "" : "s", (long long)p->n_rounds);
    for (size_t i = 1; i < p->n_variants; i++) {
        msc_str_printf(out, "%s", i == 1 ? "each group also from " : ", ");
        msc_shown_append(out, p->variants[i].model);
        msc_str_append(out, i + 1 == p->n_variants ? "\n" : "");
    }
}

static void write_point(struct msc_str *out, const struct msc_place_table *p,
                        const uint32_t choices[]) {
    int width = 12;
    for (size_t i = 0; i < p->n_groups; i++) {
        int length = (int)strlen(p->backends[choices[i]].label);
        width = length > width ? length : width;
    }
    for (size_t first = 0, last; first < p->n_groups; first = last + 1) {
        int64_t n_joints = p->groups[first].n_joints;
        for (last = first; last + 1 < p->n_groups && choices[last + 1] == choices[first]; last++) {
            n_joints += p->groups[last + 1].n_joints;
        }
        double cut =
            first > 0 ? *msc_place_table_cut(p, first, choices[first - 1], choices[first]) : 0.0;
        msc_str_printf(out, "  %-*s %lld joint%s from %s, %.1f us\n", width,
                       p->backends[choices[first]].label, (long long)n_joints,
                       n_joints == 1 ? "" : "s", p->groups[first].name,
                       cut + *msc_place_table_us(p, first, last, choices[first]));
    }
}

// Cells of a line of the table; `loss` NULL: the table has no such column.
static void add_row(struct msc_table *table, const char *name, const struct msc_place_whole *w,
                    bool has_spread, const double *loss) {
    char cell[64];
    msc_table_add(table, name);
    snprintf(cell, sizeof cell, w->us < 1000.0 ? "%.1f" : "%.0f", w->us);
    msc_table_add(table, w->missing ? "cannot run" : cell);
    snprintf(cell, sizeof cell, "%.1f %%", 100.0 * w->spread);
    msc_table_add(table, has_spread && !w->missing ? cell : "");
    snprintf(cell, sizeof cell, "%.1e", w->error);
    msc_table_add(table, w->missing ? "" : cell);
    if (loss) {
        snprintf(cell, sizeof cell, "%.4g", *loss);
        msc_table_add(table, isnan(*loss) ? "unknown" : cell);
    }
}

// The loss of a whole network on a backend; NULL: the network has no variants.
static const double *loss_of(const struct msc_cli_placed *r, size_t backend) {
    return r->table->n_variants > 1 ? &r->losses[r->table->backends[backend].variant] : NULL;
}

static void write_check(struct msc_str *out, const struct msc_cli_placed *r) {
    static const char *const head[] = {"whole network", "us", "A/A", "error", "loss"};
    struct msc_table table = {.n_columns = r->table->n_variants > 1 ? 5 : 4};
    const struct msc_place_check *c = &r->check;
    char name[96];
    for (size_t i = 0; i < table.n_columns; i++) {
        msc_table_add(&table, head[i]);
    }
    for (size_t i = 0; i < c->n_wholes; i++) {
        add_row(&table, c->wholes[i].backend, &c->wholes[i], true, loss_of(r, i));
    }
    for (size_t i = 0; i < c->n_wholes; i++) {
        snprintf(name, sizeof name, "%.80s, as one piece", c->forms[i].backend);
        add_row(&table, name, &c->forms[i], false, loss_of(r, i));
    }
    size_t n_pieces = msc_place_table_n_pieces(r->table, r->choices);
    snprintf(name, sizeof name, "the plan, %zu piece%s", n_pieces, n_pieces == 1 ? "" : "s");
    add_row(&table, name, &c->mix, true, r->table->n_variants > 1 ? &r->loss : NULL);
    msc_table_write(out, &table, msc_cli_terminal_columns());
    msc_table_finish(&table);
}

// The predicted latency of the plan relative to that of the fastest backend alone, as one piece.
static double predicted_ratio(const struct msc_cli_placed *r) {
    const struct msc_place_table *p = r->table;
    size_t b = r->check.fastest;
    return b < p->n_backends ? r->predicted_us / *msc_place_table_us(p, 0, p->n_groups - 1, b)
                             : NAN;
}

// Relative latencies are compared, as other load may have changed the absolute ones since.
static void write_prediction(struct msc_str *out, const struct msc_cli_placed *r) {
    const struct msc_place_check *c = &r->check;
    double ratio = predicted_ratio(r);
    if (c->mix.missing) {
        msc_str_printf(out, "predicted %.1f us; the plan was not measured: ", r->predicted_us);
        msc_shown_append(out, c->mix.missing);
        msc_str_char(out, '\n');
        return;
    }
    if (isnan(ratio) || isnan(c->form_ratio)) {
        msc_str_printf(out, "predicted %.1f us, measured %.1f us (%+.1f %%)\n", r->predicted_us,
                       c->mix.us, 100.0 * (r->predicted_us / c->mix.us - 1.0));
        return;
    }
    msc_str_printf(
        out,
        "predicted %.1f us, %.3f of %s as one piece; measured %.1f us, %.3f of it (%+.1f %%)\n",
        r->predicted_us, ratio, c->wholes[c->fastest].backend, c->mix.us, c->form_ratio,
        100.0 * (ratio / c->form_ratio - 1.0));
}

static void write_verdict(struct msc_str *out, const struct msc_cli_placed *r) {
    const struct msc_place_check *c = &r->check;
    size_t n_pieces = msc_place_table_n_pieces(r->table, r->choices);
    write_prediction(out, r);
    if (c->fastest == c->n_wholes) {
        msc_str_append(out, "no backend runs the whole network: the pieces are the result\n");
        return;
    }
    const char *fastest = c->wholes[c->fastest].backend;
    if (c->wins) {
        msc_str_printf(out,
                       "the %s wins: it takes at most %.3f of the time of %s, the fastest backend "
                       "alone%s, and two equal copies differ by up to %.1f %%\n",
                       n_pieces > 1 ? "mix" : "plan", c->ratio, fastest,
                       isinf(r->most_loss) ? "" : " within the bound", 100.0 * c->spread);
    } else if (c->mix.missing) {
        msc_str_printf(out, "%s alone is the result\n", fastest);
    } else if (n_pieces > 1) {
        msc_str_printf(
            out,
            "%s alone is the result: the mix takes up to %.3f of its time, and two equal "
            "copies differ by up to %.1f %%\n",
            fastest, c->ratio, 100.0 * c->spread);
    } else {
        msc_str_printf(out, "%s alone is the result: no mix is predicted to be faster\n", fastest);
    }
}

// The loss of what is delivered, by mscgym's kernels and in its backends.
static void write_loss(struct msc_str *out, const struct msc_cli_placed *r) {
    if (r->is_cut_short) {
        msc_str_printf(out,
                       "%zu losses are known, and --losses allows no more: a faster plan may be "
                       "within the bound\n",
                       r->table->n_losses);
    }
    if (r->table->n_variants == 1 || isnan(r->delivered_loss)) {
        return;
    }
    msc_str_printf(out, "loss of the result in its backends: %.4g", r->delivered_loss);
    if (isfinite(r->most_loss)) {
        bool is_within = r->delivered_loss <= r->most_loss;
        msc_str_printf(out, ", %s the bound of %g%s", is_within ? "within" : "above", r->most_loss,
                       is_within ? "" : ": a backend rounds more than mscgym's own kernels");
    }
    msc_str_char(out, '\n');
}

enum msc_status msc_cli_print_placed(const struct msc_cli_placed *r) {
    struct msc_str text = {0};
    write_measured(&text, r->table);
    msc_str_append(&text, "the plan:\n");
    write_point(&text, r->table, r->choices);
    write_check(&text, r);
    write_verdict(&text, r);
    write_loss(&text, r);
    msc_str_printf(&text, "%zu piece%s in %s\n", r->pieces->n_pieces,
                   r->pieces->n_pieces == 1 ? "" : "s", r->pieces->path);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// ---- JSON -------------------------------------------------------------------------------------

static enum msc_status add_whole(cJSON *list, const struct msc_place_whole *w, const char *form) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "form", form));
    MSC_TRY(w->backend ? msc_json_add_text(object, "backend", w->backend) : MSC_OK);
    if (w->missing) {
        return msc_json_add_text(object, "missing", w->missing);
    }
    MSC_TRY(msc_json_add_number(object, "us", w->us));
    MSC_TRY(msc_json_add_number(object, "spread", w->spread));
    return msc_json_add_number(object, "error", w->error);
}

static enum msc_status add_choices(cJSON *json, const char *key, const struct msc_place_table *p,
                                   const uint32_t choices[]) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, key, list));
    for (size_t i = 0; i < p->n_groups; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateString(p->backends[choices[i]].label)));
    }
    return MSC_OK;
}

// Unknown losses become null.
static enum msc_status add_losses(cJSON *json, const struct msc_cli_placed *r) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "variant_losses", list));
    for (size_t i = 0; i < r->table->n_variants; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateNumber(r->losses[i])));
    }
    MSC_TRY(msc_json_add_bool(json, "cut_short", r->is_cut_short));
    MSC_TRY(msc_json_add_number(json, "loss", r->loss));
    return msc_json_add_number(json, "delivered_loss", r->delivered_loss);
}

static enum msc_status fill_json(cJSON *json, const struct msc_cli_placed *r) {
    const struct msc_place_check *c = &r->check;
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "measured", list));
    for (size_t i = 0; i < c->n_wholes; i++) {
        MSC_TRY(add_whole(list, &c->wholes[i], "model"));
        MSC_TRY(add_whole(list, &c->forms[i], "piece"));
    }
    MSC_TRY(add_whole(list, &c->mix, "plan"));
    MSC_TRY(add_choices(json, "plan", r->table, r->choices));
    MSC_TRY(add_choices(json, "result", r->table, c->best));
    MSC_TRY(msc_json_add_number(json, "predicted_us", r->predicted_us));
    MSC_TRY(msc_json_add_number(json, "predicted_ratio", predicted_ratio(r))); // NaN becomes null
    MSC_TRY(msc_json_add_number(json, "measured_ratio", c->form_ratio));
    MSC_TRY(msc_json_add_number(json, "ratio", c->ratio));
    MSC_TRY(msc_json_add_number(json, "spread", c->spread));
    MSC_TRY(msc_json_add_bool(json, "wins", c->wins));
    MSC_TRY(r->table->n_variants > 1 ? add_losses(json, r) : MSC_OK);
    return msc_json_add_text(json, "manifest", r->pieces->path);
}

enum msc_status msc_cli_print_placed_json(const struct msc_cli_placed *r) {
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = fill_json(json, r);
    status = status == MSC_OK ? msc_cli_print_json(json) : status;
    cJSON_Delete(json);
    return status;
}
