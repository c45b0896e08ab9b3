#include "cli/serving.h"

#include "base/file.h"
#include "base/process.h"
#include "base/shown.h"
#include "base/str.h"
#include "config/config.h"
#include "records/record.h"
#include "report/server.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define START_S 30.0
// Niceness of the server, so that it does not slow searches down.
#define NICER 10

static enum msc_status check_port(int64_t port) {
    return port <= 65535
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "--port is %lld, expected at most 65535", (long long)port);
}

enum msc_status msc_cli_serve(const char *const paths[], size_t n, int64_t port) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct msc_server *server = NULL;
    struct msc_str said = {0};
    sigset_t set;
    const struct timespec second = {.tv_sec = 1};
    MSC_TRY(check_port(port));
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        sigaddset(&set, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL); // applies to the server's thread too
    (void)!nice(NICER);                 // if it fails, the priority does not change
    const struct msc_server_options o = {
        .paths = paths, .n = n, .port = port > 0 ? (uint16_t)port : 0};
    MSC_TRY(msc_server_start(&server, &o));
    msc_str_printf(&said, "page: %s\n", msc_server_url(server));
    enum msc_status status = msc_cli_print_str(&said);
    if (status == MSC_OK && fflush(stdout) != 0) {
        status = MSC_FAIL(MSC_E_IO, "cannot write standard output");
    }
    while (status == MSC_OK && sigtimedwait(&set, NULL, &second) < 0) {
        msc_server_end_late(server);
    }
    msc_server_stop(server);
    msc_str_finish(&said);
    return status;
}

// ---- Next to a search -------------------------------------------------------------------------

static enum msc_status find_folder(char **out, struct msc_arena *arena, const char *path) {
    bool is_record = false;
    struct msc_config *config = NULL;
    MSC_TRY(msc_record_is_file(&is_record, path));
    if (is_record) {
        *out = msc_path_folder(arena, path);
    } else {
        MSC_TRY(msc_config_load(&config, path, MSC_CONFIG_CODE_ALLOWED));
        *out = msc_arena_strdup(arena, config->workspace);
        msc_config_destroy(config);
    }
    return MSC_ALLOCATED(*out);
}

enum msc_status msc_cli_start_page(struct msc_process **out, const struct msc_cli_call *call,
                                   const char *path, const char *record, int64_t port) {
    char *folder = NULL, *other = NULL, number[24];
    const char *argv[9] = {"/proc/self/exe", "report"};
    const char *line = NULL;
    size_t length = 0, n = 2;
    MSC_TRY(check_port(port));
    MSC_TRY(find_folder(&folder, call->arena, path));
    argv[n++] = "--serve";
    snprintf(number, sizeof number, "%lld", (long long)(port > 0 ? port : 0));
    argv[n++] = "--port";
    argv[n++] = number;
    argv[n++] = "--";
    argv[n++] = folder;
    if (record) {
        other = msc_path_folder(call->arena, record);
        MSC_TRY(MSC_ALLOCATED(other));
        argv[n] = strcmp(other, folder) != 0 ? other : NULL;
    }
    MSC_TRY(msc_process_start(out, argv, NULL));
    enum msc_status status = msc_process_receive(*out, &line, &length, START_S);
    if (status != MSC_OK) {
        msc_process_stop(*out, 0.0);
        *out = NULL;
        return msc_status_prefix(status, "--serve");
    }
    char address[128];
    snprintf(address, sizeof address, "%.*s", (int)length, line);
    msc_console_say(call->console, address);
    return MSC_OK;
}
