// Prints results and errors.
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum msc_status status;
    enum msc_cli_exit code;
} exit_codes[] = {
    {MSC_OK, MSC_CLI_OK},
    {MSC_E_INVALID, MSC_CLI_USAGE},
    {MSC_E_NOMEM, MSC_CLI_ENVIRONMENT},
    {MSC_E_IO, MSC_CLI_ENVIRONMENT},
    {MSC_E_FORMAT, MSC_CLI_FAILED},
    {MSC_E_UNSUPPORTED, MSC_CLI_FAILED},
    {MSC_E_DEVICE, MSC_CLI_ENVIRONMENT},
    {MSC_E_STATE, MSC_CLI_FAILED},
    {MSC_E_NOT_FOUND, MSC_CLI_USAGE},
    {MSC_E_CANCELLED, MSC_CLI_STOPPED},
    {MSC_E_LOST, MSC_CLI_ENVIRONMENT},
};

int msc_cli_exit_code(enum msc_status status) {
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++) {
        if (exit_codes[i].status == status) {
            return exit_codes[i].code;
        }
    }
    return MSC_CLI_FAILED;
}

int msc_cli_fail(const struct msc_cli_call *call, enum msc_status status) {
    msc_console_error(call->console, msc_status_message());
    return msc_cli_exit_code(status);
}

// Prints text that is safe to show, and frees it.
static enum msc_status print_shown(struct msc_str *shown) {
    enum msc_status status = msc_str_status(shown);
    FILE *out = msc_output_file();
    if (status == MSC_OK && (fputs(msc_str_text(shown), out) < 0 || fflush(out) != 0)) {
        status = MSC_FAIL(MSC_E_IO, "standard output: %s", strerror(errno));
    }
    msc_str_finish(shown);
    return status;
}

enum msc_status msc_cli_print(const char *text) {
    struct msc_str shown = {0};
    msc_shown_append_lines(&shown, text);
    return print_shown(&shown);
}

enum msc_status msc_cli_print_str(const struct msc_str *text) {
    struct msc_str shown = {0};
    MSC_TRY(msc_str_status(text));
    msc_style_show(&shown, text);
    return print_shown(&shown);
}

enum msc_status msc_cli_print_data(const struct msc_str *json) {
    struct msc_str shown = {0};
    MSC_TRY(msc_str_status(json));
    msc_shown_append_json(&shown, msc_str_text(json));
    return print_shown(&shown);
}

enum msc_status msc_cli_print_json(const struct cJSON *value) {
    struct msc_str text = {0};
    msc_json_write_pretty(&text, value);
    enum msc_status status = msc_cli_print_data(&text);
    msc_str_finish(&text);
    return status;
}
