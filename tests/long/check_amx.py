#!/usr/bin/env python3
"""Tests the cpu backend's tiles (Intel AMX) on an emulated machine that has them.

    check_amx.py BOCHS KERNEL BUILD [--cpus 2] [--refuse]

BOCHS is the source folder of Bochs 3.0 after bochs_amx.py, built with

    ./configure --enable-x86-64 --enable-avx --enable-evex --enable-amx --enable-smp --enable-pci \\
        --enable-all-optimizations --disable-plugins --disable-docbook --with-nogui

KERNEL is a Linux 5.16 or newer (vmlinuz), BUILD a build of mscgym without sanitizers. Linux boots
in the emulator and runs the tests of tiles, then one search of the digits example: with tiles on
one thread and on two, and with vectors only. All trial lines must be the same except for
`measured`. With --refuse, Linux grants no tiles, and the lines must still be the same.

Prints what ran; exits with 1 if something fails. Takes ten minutes. Needs Debian's bochsbios,
busybox-static, cpio, isolinux, syslinux-common, vgabios and xorriso.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "digits")
TESTS = ("kernels_cpu_tiles", "kernels_cpu_indirect", "kernels_cpu_integer")
SEARCHES = (  # name, environment, options
    ("tiles", "", "--threads 1"),
    ("tiles-2", "", "--threads 2 --accept-new-numerics"),
    ("vectors", "ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI", "--threads 1 --accept-new-numerics"),
)
LOADER = ("/usr/lib/ISOLINUX/isolinux.bin", "/usr/lib/syslinux/modules/bios/ldlinux.c32")
# 580 is FSRM: Linux would copy memory wrongly, because Bochs lacks the fast strings of
# IA32_MISC_ENABLE. 600 is AMX-TILE.
BOOT = """default linux
label linux
kernel /vmlinuz
append initrd=/initrd console=ttyS0 nokaslr no5lvl mitigations=off quiet clearcpuid=580{refused}
"""
MACHINE = """cpu: model=sapphire_rapids, count={cpus}, ips=50000000, ignore_bad_msrs=1
megs: 2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.stdvga.bin
boot: cdrom
ata0-master: type=cdrom, path={folder}/disc.iso, status=inserted
com1: enabled=1, mode=file, dev={folder}/serial
log: {folder}/log
panic: action=fatal
error: action=ignore
info: action=ignore
display_library: nogui
"""
INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t tmpfs tmp /tmp
mount -t devtmpfs dev /dev
echo "@cpu $(grep -m1 ^flags /proc/cpuinfo | tr ' ' '\\n' | grep -E 'amx|vnni' | tr '\\n' ' ')"
cd /guest
for test in {tests}; do
  ./test_$test > /tmp/out 2>&1
  echo "@test $test $?"
  cat /tmp/out
done
cp -r /guest/digits /tmp/digits
cd /tmp/digits
record=workspace/trials.jsonl
search() {{
  env $2 /guest/mscgym search search.json --device cpu --quiet $3 > /tmp/out 2>&1
  echo "@search $1 $?"
  cat /tmp/out
  /guest/mscgym show $record --canonical | grep '"kind":"trial"'
  echo "@numerics $1 $(grep -o '"numerics":"[^"]*"' $record | tail -n 1)"
  if [ ! -f header ]; then
    head -n 1 $record > header
    cp $record.params params
  fi
  rm -r workspace
  mkdir workspace
  cp header $record
  cp params $record.params
}}
{searches}
echo @end
sleep 5 # until the serial line has sent all
poweroff -f
"""
TRIALS = 24


def libraries(program):
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(", text)


def fill_guest(guest, build):
    programs = [os.path.join(build, "cli", "mscgym")]
    programs += [os.path.join(build, "tests", "kernels", f"test_{name}") for name in TESTS]
    for program in programs:
        copy = shutil.copy(program, guest)
        subprocess.run(["strip", copy], check=True)
    digits = os.path.join(guest, "digits")
    os.makedirs(digits)
    for name in ("digits.onnx", "calibration.npz", "calibration_labels.npy"):
        shutil.copy(os.path.join(EXAMPLE, name), digits)
    with open(os.path.join(EXAMPLE, "digits.json")) as file:
        config = json.load(file)
    config["workspace"] = "workspace"
    del config["dataset"]["validation"]
    config["dataset"].update(samples=32, batch=16)
    config["quantize"]["gym"][0].update(record="trials.jsonl", budget={"trials": TRIALS},
                                        agent={"type": "evolutionary", "population": 8}, parallel=8)
    with open(os.path.join(digits, "search.json"), "w") as file:
        json.dump(config, file)
    return programs


def make_disc(folder, kernel, build, refuse):
    root, disc = os.path.join(folder, "root"), os.path.join(folder, "disc")
    for name in ("bin", "dev", "guest", "proc", "tmp"):
        os.makedirs(os.path.join(root, name))
    os.makedirs(os.path.join(disc, "isolinux"))
    shutil.copy("/bin/busybox", os.path.join(root, "bin"))
    for name in ("cat", "cp", "env", "grep", "head", "mkdir", "mount", "poweroff", "rm", "sh",
                 "sleep", "tail", "tr"):
        os.symlink("busybox", os.path.join(root, "bin", name))
    programs = fill_guest(os.path.join(root, "guest"), build)
    for library in sorted({path for program in programs for path in libraries(program)}):
        copy = root + library
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(library, copy)
    init = os.path.join(root, "init")
    with open(init, "w") as file:
        searches = "\n".join(f"search {name} \"{variables}\" \"{options}\""
                             for name, variables, options in SEARCHES)
        file.write(INIT.format(tests=" ".join(TESTS), searches=searches))
    os.chmod(init, 0o755)
    subprocess.run("find . | cpio --quiet -o -H newc | gzip > ../disc/initrd", shell=True,
                   check=True, cwd=root)
    shutil.copy(kernel, os.path.join(disc, "vmlinuz"))
    for path in LOADER:
        shutil.copy(path, os.path.join(disc, "isolinux"))
    with open(os.path.join(disc, "isolinux", "isolinux.cfg"), "w") as file:
        file.write(BOOT.format(refused=",600" if refuse else ""))
    subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-o", os.path.join(folder, "disc.iso"),
                    "-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat", "-no-emul-boot",
                    "-boot-load-size", "4", "-boot-info-table", disc], check=True)


def run(bochs, folder, cpus):
    """Runs the machine; returns the text of its serial line."""
    machine = os.path.join(folder, "machine")
    with open(machine, "w") as file:
        file.write(MACHINE.format(cpus=cpus, folder=folder))
    subprocess.run([os.path.join(bochs, "bochs"), "-q", "-f", machine], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    with open(os.path.join(folder, "serial"), errors="replace") as file:
        return file.read().replace("\r", "")


def judge(text, refuse):
    """Prints what ran; returns whether all of it passed."""
    parts = re.split(r"^@", text, flags=re.M)[1:]
    good, lines = True, {}
    for part in parts:
        head, *rest = part.splitlines()
        kind, *words = head.split()
        if kind in ("test", "search"):
            good = good and words[1] == "0"
        if kind == "numerics" and words[0] != "vectors":
            good = good and ("amx" in head) != refuse
        if kind == "search":
            lines[words[0]] = [line for line in rest if line.startswith('{"kind":"trial"')]
        print(head if kind != "search" else f"{head}: {len(lines[words[0]])} trials")
        if kind == "test":
            skipped = any("grants no tiles" in line for line in rest)
            good = good and (not skipped or refuse)
            print("\n".join(line for line in rest if line.startswith("[  ")))
    first = lines.get("tiles", [])
    for name, own in lines.items():
        if own != first or len(own) < TRIALS:
            good = False
            print(f"{name}: trials differ from those of tiles, or are missing")
    return good and parts[-1].strip().startswith("end") and len(lines) == len(SEARCHES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bochs")
    parser.add_argument("kernel")
    parser.add_argument("build")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--refuse", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="check_amx_") as folder:
        make_disc(folder, options.kernel, options.build, options.refuse)
        text = run(options.bochs, folder, options.cpus)
    if "@" not in text:
        sys.exit(f"Linux did not start: {text[-2000:]}")
    good = judge(text, options.refuse)
    print("all is well" if good else "FAILED")
    sys.exit(int(not good))


if __name__ == "__main__":
    main()
