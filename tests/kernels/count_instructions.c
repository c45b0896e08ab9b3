// A plug-in of qemu's user emulation that counts the instructions a program executes and writes
// their number to standard error at its end: "instructions N". check_arm.py compiles it.
//
//     cc -shared -fPIC -DVERSION=1 -o count.so count_instructions.c
//     qemu-aarch64 -plugin ./count.so PROGRAM
//
// Debian's qemu-user has no header of the interface, so the few functions are declared here.
// VERSION is the version of the interface; a version of qemu accepts a range.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*translated)(plugin_id id,
                                                              struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                          void (*executed)(unsigned int cpu, void *data), int flags,
                                          void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*ended)(plugin_id id, void *data),
                                    void *data);
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

extern const int qemu_plugin_version;
const int qemu_plugin_version = VERSION;

static uint64_t n_executed;

static void add_block(unsigned int cpu, void *n) {
    (void)cpu;
    n_executed += (uintptr_t)n;
}

static void translate(plugin_id id, struct qemu_plugin_tb *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, add_block, 0,
                                         (void *)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void print(plugin_id id, void *data) {
    (void)id;
    (void)data;
    fprintf(stderr, "instructions %llu\n", (unsigned long long)n_executed);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, print, NULL);
    return 0;
}
