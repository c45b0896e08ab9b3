#include "cli/cli.h"

#include "base/file.h"
#include "base/str.h"
#include "serve/service.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define USUAL_PORT 8642
// Interval between looks at the searches.
#define STEP_NS 50000000

struct serve_values {
    struct msc_cli_common common;
    const char *folder, *users, *address, *certificate, *key, *cluster;
    struct msc_cli_list roots;
    int64_t port, jobs;
    bool allow_code;
};

#define SERVE(member) offsetof(struct serve_values, member)

static const struct msc_cli_option options[] = {
    {.name = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "folder of the jobs; it is made if it is missing",
     .offset = SERVE(folder),
     .is_positional = true,
     .is_required = true},
    {.name = "users",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "users with their tokens and limits (default: one user, with the token FOLDER/token)",
     .offset = SERVE(users)},
    {.name = "jobs",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "searches at once; they share --threads and --memory evenly (default: 1)",
     .offset = SERVE(jobs)},
    {.name = "address",
     .argument = "IP",
     .type = MSC_CLI_TEXT,
     .help = "listen at this address (default: 127.0.0.1, this machine only)",
     .offset = SERVE(address)},
    {.name = "port",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "listen on this port; 0: any free port (default: 8642)",
     .offset = SERVE(port)},
    {.name = "certificate",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "serve HTTPS with this certificate (PEM)",
     .needs = "key",
     .offset = SERVE(certificate)},
    {.name = "key",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "private key of the certificate (PEM)",
     .needs = "certificate",
     .offset = SERVE(key)},
    {.name = "root",
     .argument = "DIR",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FOLDERS,
     .help = "jobs may read models and samples in this folder; may be repeated",
     .offset = SERVE(roots)},
    {.name = "allow-code",
     .type = MSC_CLI_FLAG,
     .help = "trust all users: configurations may name libraries and programs",
     .offset = SERVE(allow_code)},
    {.name = "threads",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "threads of all searches together (default: all processors)",
     .offset = SERVE(common.threads)},
    {.name = "memory",
     .argument = "BYTES",
     .type = MSC_CLI_BYTES,
     .help = "memory of all searches together, such as 32G (default: most of this machine's)",
     .offset = SERVE(common.memory_bytes)},
    {.name = "device",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .help = "computing device of all searches, in place of the configurations'",
     .offset = SERVE(common.device)},
    {.name = "cluster",
     .argument = "KIND:WHERE",
     .type = MSC_CLI_TEXT,
     .names = "local:|ray:auto|ray:|slurm:",
     .help = "measure trials on workers, as in mscgym search",
     .offset = SERVE(cluster)},
    {0},
};

// ---- Signals ----------------------------------------------------------------------------------

static void fill_ends(sigset_t *set) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        sigaddset(set, ends[i]);
    }
}

// True if a request to end has arrived within `wait_ns`.
static bool must_end(long wait_ns) {
    sigset_t set;
    const struct timespec wait = {.tv_nsec = wait_ns};
    fill_ends(&set);
    return sigtimedwait(&set, NULL, &wait) > 0;
}

static bool must_end_now(void) {
    return must_end(0);
}

// ---- Serving ----------------------------------------------------------------------------------

static enum msc_status check_values(const struct serve_values *v) {
    if (v->port > 65535) {
        return MSC_FAIL(MSC_E_INVALID, "serve: --port is %lld, expected at most 65535",
                        (long long)v->port);
    }
    return v->jobs == 0 || v->jobs > 1000
               ? MSC_FAIL(MSC_E_INVALID, "serve: --jobs is %lld, expected 1 to 1000",
                          (long long)v->jobs)
               : MSC_OK;
}

// The roots as absolute paths with links resolved: jobs have other current folders.
static enum msc_status find_roots(const char ***out, const struct msc_cli_list *roots,
                                  struct msc_arena *arena) {
    *out = msc_arena_array(arena, roots->n + 1, sizeof **out);
    MSC_TRY(MSC_ALLOCATED(*out));
    for (size_t i = 0; i < roots->n; i++) {
        char *path = NULL;
        struct stat info;
        MSC_TRY(msc_path_absolute(&path, arena, roots->items[i]));
        if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
            return MSC_FAIL(MSC_E_INVALID, "serve: --root: %s is no folder", roots->items[i]);
        }
        (*out)[i] = path;
    }
    return MSC_OK;
}

static enum msc_status load_users(struct msc_users *out, const struct serve_values *v,
                                  const char *folder, struct msc_arena *arena) {
    if (v->users) {
        return msc_users_load(out, v->users);
    }
    const char *path = msc_path_join(arena, folder, "token");
    MSC_TRY(MSC_ALLOCATED(path));
    return msc_users_load_local(out, path);
}

static enum msc_status say_address(const struct msc_service *service, const struct serve_values *v,
                                   const char *folder) {
    struct msc_str said = {0};
    msc_str_printf(&said, "service: %s\n", msc_service_url(service));
    if (!v->users) {
        msc_str_printf(&said, "token of the user local: %s/token\n", folder);
    }
    enum msc_status status = msc_cli_print_str(&said);
    msc_str_finish(&said);
    return status == MSC_OK && fflush(stdout) != 0
               ? MSC_FAIL(MSC_E_IO, "cannot write standard output")
               : status;
}

static enum msc_status serve(const struct msc_cli_call *call, const struct serve_values *v,
                             const struct msc_jobs_options *o) {
    struct msc_jobs *jobs = NULL;
    struct msc_service *service = NULL;
    enum msc_status status = msc_jobs_open(&jobs, o);
    if (status == MSC_OK) {
        const struct msc_service_options of_service = {
            .jobs = jobs,
            .users = o->users,
            .of_jobs = o,
            .address = v->address ? v->address : "127.0.0.1",
            .port = v->port >= 0 ? (uint16_t)v->port : USUAL_PORT,
            .certificate = v->certificate,
            .key = v->key};
        status = msc_service_start(&service, &of_service);
    }
    if (status == MSC_OK) {
        status = say_address(service, v, o->folder);
    }
    while (status == MSC_OK && !must_end(STEP_NS)) {
        msc_jobs_step(jobs);
        msc_service_end_late(service);
    }
    if (status == MSC_OK) {
        msc_log(&call->console->log, MSC_LOG_INFO, "stopping; the jobs continue at the next start");
        msc_jobs_begin_stop(jobs); // before requests in progress end, which may take long
        msc_service_stop(service);
        msc_jobs_stop(jobs, must_end_now);
    } else {
        msc_service_stop(service);
    }
    msc_jobs_close(jobs);
    return status;
}

// Jobs may read the roots, but not each other's files and not the tokens.
static enum msc_status check_roots(const char *const roots[], size_t n, const char *folder) {
    for (size_t i = 0; i < n; i++) {
        if (msc_path_lies_in(folder, roots[i]) || msc_path_lies_in(roots[i], folder)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "serve: --root %s: it must not contain the folder of the jobs, %s, nor "
                            "lie in it",
                            roots[i], folder);
        }
    }
    return MSC_OK;
}

static enum msc_status open_and_serve(const struct msc_cli_call *call,
                                      const struct serve_values *v) {
    struct msc_users users = {0};
    const char **roots = NULL;
    char *folder = NULL;
    sigset_t set;
    MSC_TRY(check_values(v));
    fill_ends(&set);
    sigprocmask(SIG_BLOCK, &set, NULL); // applies to all threads; must_end takes the signals
    umask(S_IRWXG | S_IRWXO);           // jobs are their users' secrets
    MSC_TRY(find_roots(&roots, &v->roots, call->arena));
    MSC_TRY(msc_file_make_folders(v->folder));
    MSC_TRY(msc_path_absolute(&folder, call->arena, v->folder));
    MSC_TRY(check_roots(roots, v->roots.n, folder));
    MSC_TRY(load_users(&users, v, folder, call->arena));
    const struct msc_jobs_options o = {.folder = folder,
                                       .roots = roots,
                                       .n_roots = v->roots.n,
                                       .users = &users,
                                       .cluster = v->cluster,
                                       .device = v->common.device,
                                       .threads = v->common.threads,
                                       .memory_bytes = v->common.memory_bytes,
                                       .most_running = v->jobs > 0 ? v->jobs : 1,
                                       .allow_code = v->allow_code,
                                       .log = &call->console->log};
    enum msc_status status = serve(call, v, &o);
    msc_users_finish(&users);
    return status;
}

static int cmd_serve(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = open_and_serve(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_serve = {
    .name = "serve",
    .summary = "serves compression over HTTP to users with tokens",
    .usage = "FOLDER [options]",
    .description =
        "Users submit a model with samples, or a configuration, follow the search, and fetch the "
        "compressed model, the plan and the report. Each job is a search with a workspace of its "
        "own. Ctrl-C stops the searches after their current rounds. However the server ends, its "
        "jobs continue when it is started again.",
    .examples = "  mscgym serve jobs\n"
                "  mscgym serve jobs --users users.json --jobs 4 --threads 16 --memory 32G\n"
                "  mscgym serve jobs --users users.json --address 0.0.0.0 --certificate c.pem "
                "--key k.pem\n",
    .options = options,
    .values_size = sizeof(struct serve_values),
    .run = cmd_serve,
};
