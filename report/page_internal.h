// What the parts of a page share.
#ifndef MSC_REPORT_PAGE_INTERNAL_H
#define MSC_REPORT_PAGE_INTERNAL_H

#include "base/json.h"
#include "report/html.h"

#include <math.h>

static inline const cJSON *msc_page__get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}
static inline const char *msc_page__text(const cJSON *object,
                                         const char *key) { // "" where there is none
    const cJSON *item = msc_page__get(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}
static inline double msc_page__number(const cJSON *object, const char *key) { // NaN likewise
    const cJSON *item = msc_page__get(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

// A section with its heading, and its end. What is live is replaced when the page is brought up to date.
void msc_page__begin(struct msc_str *out, int record, const char *id, const char *heading);
void msc_page__end(struct msc_str *out);
// Room for a chart that the script draws: `what` it is of, `label` for those who do not see it.
void msc_page__chart(struct msc_str *out, const char *what, const char *label);

// A table: its beginning with names of columns (NULL-terminated), cells, its end. `kinds` has a letter for
// each column, 'n' for one of numbers, which stand right; those beyond its end have none.
void msc_page__table(struct msc_str *out, const char *caption, const char *const columns[],
                     const char *kinds);
void msc_page__end_table(struct msc_str *out);
void msc_page__row(struct msc_str *out, const char *class_name); // NULL: none
void msc_page__head_cell(struct msc_str *out, const char *text);
void msc_page__cell(struct msc_str *out, const char *text);
void msc_page__text_cell(struct msc_str *out, const char *text, bool is_number);
void msc_page__number_cell(struct msc_str *out, double value); // NaN: empty
// A bar of 0 to 1 before the text.
void msc_page__bar_cell(struct msc_str *out, double share, const char *text);
// "%.4g", whole numbers whole, NaN as a dash.
void msc_page__value(struct msc_str *out, double value);

// Why a verdict is what it is, and the command that exports the plan.
void msc_page__reasons(struct msc_str *out, const cJSON *verdict);
// The table of plans of a record's report.
enum msc_status msc_page__plans(struct msc_str *out, const cJSON *numbers);
// One record: its box and all sections.
enum msc_status msc_page__record(struct msc_str *out, const cJSON *record, int index);
// Several records beside each other, and what they mean together.
enum msc_status msc_page__compare(struct msc_str *out, const cJSON *records, const cJSON *verdict);

#endif
