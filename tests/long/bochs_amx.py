#!/usr/bin/env python3
"""Adds to Bochs 3.0 what Linux needs for AMX. Changes its source in place, once.

    bochs_amx.py SOURCE

Linux enables tiles only if the processor has XFD ("extended feature disable", Intel's manual,
volume 1, chapter 13.14): a register that makes a thread's first use of tiles trap, so that Linux
can give it memory to save them in. Bochs lacks it. It also has errors: XSAVE and XRSTOR save half
of each tile, swap the two shapes of a tile and take used tiles for unused; products of signed bytes
(volume 2, TDPBSSD and others) are unsigned.
"""
import argparse
import os
import re

TRAP = """
  if (BX_CPU_THIS_PTR msr.ia32_xfd & BX_XCR0_XTILEDATA_MASK) {
    BX_CPU_THIS_PTR msr.ia32_xfd_err = BX_XCR0_XTILEDATA_MASK;
    exception(BX_NM_EXCEPTION, 0);
  }
"""
READ = """
    case BX_MSR_IA32_XFD:
      val64 = BX_CPU_THIS_PTR msr.ia32_xfd;
      break;
    case BX_MSR_IA32_XFD_ERROR:
      val64 = BX_CPU_THIS_PTR msr.ia32_xfd_err;
      break;
"""
WRITE = """
    case BX_MSR_IA32_XFD:
    case BX_MSR_IA32_XFD_ERROR:
      if (val_64 & ~Bit64u(BX_XCR0_XTILEDATA_MASK)) return false;
      (index == BX_MSR_IA32_XFD ? BX_CPU_THIS_PTR msr.ia32_xfd
                                : BX_CPU_THIS_PTR msr.ia32_xfd_err) = val_64;
      break;
"""
NAMES = """
  msr_desc[BX_MSR_IA32_XFD] = new MSR_Descriptor("MSR_IA32_XFD", BX_ISA_AMX);
  msr_desc[BX_MSR_IA32_XFD_ERROR] = new MSR_Descriptor("MSR_IA32_XFD_ERR", BX_ISA_AMX);
"""
RESTORE = """
  if (restore_mask & requested_feature_bitmap & BX_CPU_THIS_PTR msr.ia32_xfd) {
    BX_CPU_THIS_PTR msr.ia32_xfd_err = BX_XCR0_XTILEDATA_MASK;
    exception(BX_NM_EXCEPTION, 0);
  }
"""
SUM = """
  Bit32u sum = 0;
  for (int n = 0; n < 32; n += 8) sum += Bit32u(Bit32s({a}(x >> n)) * Bit32s({b}(y >> n)));
  return sum;
"""
AFTER, BEFORE, INSTEAD = range(3)

# Each edit: file, part of the line, where the text is inserted, the text, how often the line occurs.
EDITS = (
    ("avx/amx.h", "start_row(0) {}", INSTEAD, "start_row(0), tile_use_tracker(0) {}", 1),
    ("cpu.h", "Bit64u ia32_xss;", AFTER, "\n  Bit64u ia32_xfd, ia32_xfd_err;\n", 1),
    ("init.cc", "BX_CPU_THIS_PTR msr.ia32_xss = 0;", AFTER,
     "\n  BX_CPU_THIS_PTR msr.ia32_xfd = BX_CPU_THIS_PTR msr.ia32_xfd_err = 0;\n", 1),
    ("msr.cc", "msr_desc[BX_MSR_XSS] =", AFTER, NAMES, 1),
    ("msr.cc", "case BX_MSR_APICBASE:", BEFORE, None, 2),  # the text differs for READ and WRITE
    ("cpuid.cc", "leaf->eax |= (1<<3);", AFTER,
     "\n    if (is_cpu_extension_supported(BX_ISA_AMX)) leaf->eax |= (1<<4);\n", 1),
    ("cpuid.cc", "leaf->ecx = (cpu->ia32_xss_suppmask &", AFTER,
     "\n      if (subfunction == xcr0_t::BX_XCR0_XTILEDATA_BIT) leaf->ecx |= (1<<2);\n", 1),
    ("avx/amx.cc", "unsigned bytes_per_row = BX_CPU_THIS_PTR amx->tile_bytes_per_row(tile_num);",
     BEFORE, TRAP, 1),
    ("avx/amx.cc", "BX_CPU_THIS_PTR amx->clear_tile_used(tile);", BEFORE, TRAP, 1),
    ("xsave.cc", "row=0; row < BX_TILE_REGISTERS;", INSTEAD,
     "row=0; row < BX_TILE_MAX_ROWS;", 2),
    ("xsave.cc", "= BX_CPU_THIS_PTR amx->tilecfg[n].rows;", INSTEAD,
     "= BX_CPU_THIS_PTR amx->tilecfg[n].columns;", 1),
    ("xsave.cc", "= BX_CPU_THIS_PTR amx->tilecfg[n].bytes_per_row;", INSTEAD,
     "= BX_CPU_THIS_PTR amx->tilecfg[n].rows;", 1),
    ("xsave.cc", "amx->tilecfg[n].columns;", INSTEAD, "amx->tilecfg[n].bytes_per_row;", 1),
    ("xsave.cc", "amx->tile_use_tracker == 0", INSTEAD, "amx->tile_use_tracker != 0", 1),
    ("xsave.cc", "Bit32u xinuse = get_xinuse_vector(requested_feature_bitmap);", AFTER,
     "\n  xinuse &= ~Bit32u(BX_CPU_THIS_PTR msr.ia32_xfd);\n", 2),
    ("xsave.cc", "Bit32u restore_mask = xstate_bv & format;", AFTER, RESTORE, 1),
)
SIGNED = {"DPBDSS": "ss", "DPBDSU": "su", "DPBDUS": "us", "DPBDUU": "uu"}


def edit(text, name, part, where, new, count):
    pieces = text.split(part)
    if len(pieces) != count + 1:
        raise SystemExit(f"{name}: \"{part}\" is there {len(pieces) - 1} times, expected {count}: "
                         "not Bochs 3.0, or changed already")
    out = pieces[0]
    for i, piece in enumerate(pieces[1:]):
        added = new if new else (READ, WRITE)[i]
        if where == AFTER:
            rest, piece = piece.split("\n", 1)
            out += part + rest + added + piece
        elif where == BEFORE:
            rest, indent = out.rsplit("\n", 1)
            out = rest + added + indent + part + piece
        else:
            out += added + piece
    return out


def sign(text):
    """Makes products of bytes signed or unsigned, as their instructions' names say."""
    for name, kinds in SIGNED.items():
        body = SUM.format(a="Bit8" + kinds[0], b="Bit8" + kinds[1])
        text, n = re.subn(r"(Bit32u %s\(Bit32u x, Bit32u y\)\n\{).*?(\n\}\n)" % name,
                          lambda m: m[1] + body.rstrip() + m[2], text, count=1, flags=re.S)
        if n != 1:
            raise SystemExit(f"no {name}: not Bochs 3.0")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    folder = os.path.join(parser.parse_args().source, "cpu")
    texts = {}
    for name, *change in EDITS:
        if name not in texts:
            with open(os.path.join(folder, name)) as file:
                texts[name] = file.read()
        texts[name] = edit(texts[name], name, *change)
    texts["avx/amx.cc"] = sign(texts["avx/amx.cc"])
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
