#!/usr/bin/env python3
"""Checks our own products for 64-bit Arm under qemu, and counts their instructions.

    check_arm.py                                         compiles product_tool here, checks sums
    check_arm.py --tool PRODUCT_TOOL --sysroot FOLDER    checks sums, and counts instructions

Sums of every level of instructions are compared with plain C on emulated processors. Without --tool
the script compiles the few sources that it needs with aarch64-linux-gnu-gcc, with little
optimisation. With --tool, instructions per multiplication are compared with those of the tile alone:
one instruction per product, and one for each register of weights and windows. A deep product must
not take more than 1.3 times as many. Exits with 77 without the compiler or qemu-aarch64.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
SOURCES = ["base/alloc.c", "base/shown_copy.c", "base/status.c", "base/utf8.c", "graph/reference/numeric.c",
           "kernels/cpu/routine_finish.c", "kernels/cpu/routine_plain.c", "kernels/cpu/simd.c",
           "kernels/cpu/simd_level.c", "kernels/cpu/simd_neon.c", "kernels/cpu/simd_neon_dotprod.c",
           "kernels/cpu/simd_neon_i8mm.c", "kernels/cpu/simd_neon_indirect.c",
           "kernels/cpu/simd_neon_transpose.c", "kernels/cpu/simd_select.c", "tests/kernels/product_tool.c"]
MACHINES = {"simd_neon_dotprod.c": "-march=armv8.2-a+dotprod", "simd_neon_i8mm.c": "-march=armv8.2-a+dotprod+i8mm"}

# Emulated processors and the levels that they have.
PROCESSORS = [("cortex-a53", ["neon"]), ("cortex-a76", ["neon", "neon_dotprod"]),
              ("max", ["neon", "neon_dotprod", "neon_i8mm"])]
# Kind, windows, runs, depth, channels: tiles, depths and channels that are not filled, too.
CHECKED = [("bytes", 7, 2, 45, 37), ("bytes", 3, 1, 64, 16), ("bytes", 6, 3, 13, 9), ("bytes", 20, 1, 24, 40),
           ("floats", 9, 1, 23, 20), ("floats", 1, 2, 16, 16), ("taps", 5, 1, 9, 37), ("taps", 3, 1, 25, 64)]
COUNTED = [("bytes", 196, 3, 192, 64), ("bytes", 196, 3, 768, 256), ("bytes", 196, 1, 256, 256), ("bytes", 196, 1, 96, 32),
           ("bytes", 196, 1, 24, 144), ("floats", 196, 1, 256, 256), ("floats", 196, 1, 96, 32),
           ("taps", 196, 1, 9, 144)]
# Instructions of a tile of 6 windows and 16 channels for 16 bytes of each window, and multiplications.
TILES = {("neon", "bytes"): (384 + 22, 1536), ("neon_dotprod", "bytes"): (96 + 22, 1536),
         ("neon_i8mm", "bytes"): (48 + 22, 1536), ("neon", "floats"): (96 + 22, 384)}
# The limit applies to deep products: the convolutions with windows of 3 x 3 and 64 channels or more.
LEAST_DEPTH, MOST_RATIO = 512, 1.3


def emulate(options, processor, *arguments, plugin=None):
    command = [EMULATOR, "-cpu", processor]
    command += ["-L", options.sysroot] if options.sysroot else []
    command += ["-plugin", plugin] if plugin else []
    return subprocess.run(command + [options.tool, *map(str, arguments)], capture_output=True, text=True, check=False)


def compile_tool(folder):
    def compile_one(source):
        name = os.path.basename(source)
        made = os.path.join(folder, name + ".o")
        command = [COMPILER, "-std=c11", "-D_XOPEN_SOURCE=700", f"-I{ROOT}", "-O1", "-ffp-contract=off", "-fno-math-errno",
                   "-fno-trapping-math", "-c", "-o", made, os.path.join(ROOT, source)]
        subprocess.run(command + ([MACHINES[name]] if name in MACHINES else []), check=True)
        return made

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, SOURCES))
    tool = os.path.join(folder, "product_tool")
    subprocess.run([COMPILER, "-static", "-o", tool, *objects, "-lm"], check=True)
    return tool


def check_sums(options):
    is_good = True
    for processor, levels in PROCESSORS:
        for level in levels:
            for shape in CHECKED:
                result = emulate(options, processor, level, *shape, 0)
                if result.returncode != 0:
                    is_good = False
                    print(f"FAIL {processor} {level} {shape}: {result.stderr.strip()}")
        print(f"{processor}: {', '.join(levels)}: {len(CHECKED)} products each", flush=True)
    return is_good


def can_count():
    return "-plugin" in subprocess.run([EMULATOR, "--help"], capture_output=True, text=True, check=False).stdout


def make_plugin(folder):
    """Compiles the plug-in for the version of the interface that this qemu accepts."""
    plugin = os.path.join(folder, "count.so")
    source = os.path.join(ROOT, "tests", "kernels", "count_instructions.c")
    for version in range(1, 8):
        subprocess.run(["cc", "-shared", "-fPIC", f"-DVERSION={version}", "-o", plugin, source], check=True)
        if subprocess.run([EMULATOR, "-plugin", plugin, "/"], capture_output=True, text=True,
                          check=False).stderr.find("plugin") < 0:
            return plugin
    sys.exit("check_arm.py: no version of the plug-in fits this qemu")


def count(options, plugin, level, shape, times):
    result = emulate(options, "max", level, *shape, times, plugin=plugin)
    if result.returncode != 0:
        sys.exit(f"check_arm.py: {level} {shape}: {result.stderr.strip()}")
    return int(result.stderr.split("instructions")[1].split()[0]), int(result.stdout)


def count_all(options, folder):
    is_good = True
    plugin = make_plugin(folder)
    print("level, kind, windows, runs, depth, channels: instructions per multiplication, of the tile alone, ratio")
    for level in ("neon", "neon_dotprod", "neon_i8mm"):
        for shape in COUNTED:
            if shape[0] == "floats" and level != "neon":
                continue # all levels use the same product
            once, n = count(options, plugin, level, shape, 1)
            each = (count(options, plugin, level, shape, 2)[0] - once) / n
            line = f"{level:13}{shape[0]:7}" + "".join(f"{x:5}" for x in shape[1:]) + f": {each:.4f}"
            tile = TILES.get((level, shape[0]))
            if tile:
                ratio = each * tile[1] / tile[0]
                line += f"  {tile[0] / tile[1]:.4f}  {ratio:.2f}"
                is_deep = shape[2] * shape[3] >= LEAST_DEPTH
                if is_deep and level != "neon" and ratio > MOST_RATIO:
                    is_good = False
                    line += f"  FAIL: above {MOST_RATIO}"
            print(line, flush=True)
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", help="product_tool of a build for 64-bit Arm")
    parser.add_argument("--sysroot", help="the folder with its libraries")
    options = parser.parse_args()
    if not EMULATOR or not (options.tool or shutil.which(COMPILER)):
        print(f"skipped: needs {COMPILER} and qemu-aarch64")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        counts = options.tool is not None
        options.tool = options.tool or compile_tool(folder)
        is_good = check_sums(options)
        if counts and not can_count():
            print("instructions are not counted: this qemu has no plug-ins (Debian's qemu-user has them)")
        elif counts:
            is_good = count_all(options, folder) and is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
