// Shared by the files that write a page.
#ifndef MSC_REPORT_PAGE_INTERNAL_H
#define MSC_REPORT_PAGE_INTERNAL_H

#include "base/json.h"
#include "report/html.h"

#include <math.h>

static inline const char *msc_page__text(const cJSON *object,
                                         const char *key) { // "" if the member is missing
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}
static inline double msc_page__number(const cJSON *object,
                                      const char *key) { // NaN if the member is missing
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

// Begin and end a section with its heading. Sections of a live page are replaced when it is
// updated.
void msc_page__begin(struct msc_str *out, int record, const char *id, const char *heading);
void msc_page__end(struct msc_str *out);
// Writes a place for a chart that the script draws. `what` names the chart; `label` describes the
// chart for screen readers.
void msc_page__chart(struct msc_str *out, const char *what, const char *label);

// Begins a table that repeats a chart's data, which ends with </details>. The table is unfolded
// until the script has drawn the chart.
void msc_page__begin_details(struct msc_str *out, const char *what);

// Begin a table with column names (NULL-terminated), add cells, end the table. `kinds` has one
// letter per column: 'n' aligns numbers to the right. Columns beyond the end of `kinds` are text.
void msc_page__table(struct msc_str *out, const char *caption, const char *const columns[],
                     const char *kinds);
void msc_page__end_table(struct msc_str *out);
void msc_page__row(struct msc_str *out, const char *class_name); // NULL: no class
void msc_page__head_cell(struct msc_str *out, const char *text);
void msc_page__cell(struct msc_str *out, const char *text);
void msc_page__text_cell(struct msc_str *out, const char *text, bool is_number);
void msc_page__number_cell(struct msc_str *out, double value); // NaN: empty
// Writes a cell with a bar of length `share` (0 to 1) before the text.
void msc_page__bar_cell(struct msc_str *out, double share, const char *text);
// Writes a number with four significant digits, an integer without a fraction, or NaN as a dash.
void msc_page__value(struct msc_str *out, double value);

// Writes the name of a metric for people (results/units.h), with its own name as a hint.
void msc_page__metric(struct msc_str *out, const char *metric);
// Writes a value of a metric with its unit; NaN as a dash.
void msc_page__quantity(struct msc_str *out, const char *metric, double value);
void msc_page__quantity_cell(struct msc_str *out, const char *metric, double value);

// Writes the reasons for a verdict and the command that exports the plan.
void msc_page__reasons(struct msc_str *out, const cJSON *verdict);
// Writes the table of plans in a record's report.
enum msc_status msc_page__plans(struct msc_str *out, const cJSON *numbers);
// Writes all sections of one record, beginning with its summary box.
enum msc_status msc_page__record(struct msc_str *out, const cJSON *record, int index);
// Writes the section of the delivered plan's layers (model/layers.h), if the record has them.
void msc_page__layers(struct msc_str *out, const cJSON *record, int index);
// Writes the sections of importance and of single choices (results/effects.h).
void msc_page__effects(struct msc_str *out, const cJSON *record, int index);
// Writes the cell of a layer's bits: "W4 A8", or "float".
void msc_page__bits_cell(struct msc_str *out, const cJSON *layer);
// Marks the `most` longest of n bars, and of equal ones the first. MSC_E_NOMEM.
enum msc_status msc_page__mark_longest(bool is_marked[], const double bars[], size_t n,
                                       size_t most);
// Writes the layers and the networks of several records side by side, if they have them.
enum msc_status msc_page__beside(struct msc_str *out, const cJSON *records);
// Writes a comparison of several records with its verdict.
enum msc_status msc_page__compare(struct msc_str *out, const cJSON *records, const cJSON *verdict);

#endif
