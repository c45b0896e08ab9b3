#!/usr/bin/env python3
"""Counts how the parts of the program depend on one another.

usage: structure.py REPOSITORY [BUILD]

BUILD is a build folder of the repository (default: build/release). Prints for each folder: files,
lines, calls from file to file (arrows), and circles, which are groups of files that call one
another, found from the symbols that their object files define and need. The files of each circle
are listed below the table. Then it prints circles between folders, the members of struct
msc_processor, and the files of pipeline/ and of the folders below it that receive the argument of
msc_processor_run, or a member of it, by following calls.
"""

import re
import subprocess
import sys
from pathlib import Path

FOLDERS = ["base", "data", "graph", "kernels", "tools", "env", "agents", "records", "supervise",
           "cluster", "search", "checks", "results", "config", "model", "codegen",
           "pipeline", "report", "serve", "cli"]
SOURCES = (".c", ".cpp", ".h", ".def", ".comp", ".glsl")
START = ("msc_processor_run", 0)
WALKED = ["cluster", "results", "config", "model", "pipeline"]
FUNCTION = re.compile(r"^(?:[A-Za-z_][\w \*]*?[ \*])(\w+)\(([^;{}]*?)\)\s*\{", re.M | re.S)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
CALL = re.compile(r"\b(\w+)\(")


def read(path):
    return path.read_text(encoding="utf-8")


def folder_of(path):
    return path.split("/")[0]


# ---- Calls between files, by symbols ----------------------------------------------------------------


def object_files(root, build):
    """Source path -> object file, for the folders above. Object files of deleted sources are left out."""
    found = {}
    for path in build.rglob("*.c.o"):
        text = path.relative_to(build).as_posix()
        match = re.match(r"(.*?)CMakeFiles/[^/]+\.dir/(.*)\.o$", text)
        source = (match[1] + match[2]).replace("//", "/") if match else ""
        if folder_of(source) in FOLDERS and (root / source).is_file():
            found.setdefault(source, path)
    return found


def find_calls(root, build):
    """Maps each source file to the source files that define the symbols it uses."""
    defined, needed = {}, {}
    for source, path in object_files(root, build).items():
        listing = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            kind, name = line.split()[-2:]
            if kind == "U":
                needed.setdefault(source, set()).add(name)
            elif kind.isupper():
                defined[name] = source
        needed.setdefault(source, set())
    return {source: {defined[name] for name in names if name in defined} - {source}
            for source, names in needed.items()}


def find_circles(calls):
    """Strongly connected groups with more than one file (Tarjan 1972), without recursion."""
    index, low, stack, circles = {}, {}, [], []
    for root in sorted(calls):
        work = [(root, iter(sorted(calls[root])))] if root not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            following = next((n for n in rest if n in calls), None)
            if following is not None:
                if following not in index:
                    work.append((following, iter(sorted(calls[following]))))
                elif following in stack:
                    low[node] = min(low[node], index[following])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                group = stack[stack.index(node):]
                del stack[stack.index(node):]
                if len(group) > 1:
                    circles.append(sorted(group))
    return circles


def between(names, calls):
    return {name: calls.get(name, set()) & set(names) for name in names}


# ---- The walk of an argument ------------------------------------------------------------------------


def split_arguments(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]]


def matching(text, start):
    """The position after the bracket that closes the one before `start`."""
    depth = 1
    while depth and start < len(text):
        depth += (text[start] in "({") - (text[start] in ")}")
        start += 1
    return start


def read_functions(root):
    """name -> [(file, names of parameters, body)]; static functions of several files may share a name."""
    functions = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            text = COMMENT.sub("", read(path))
            for match in FUNCTION.finditer(text):
                names = [re.findall(r"\w+", p.split("[")[0])[-1:] for p in split_arguments(match[2])]
                body = text[match.end():matching(text, match.end())]
                functions.setdefault(match[1], []).append(
                    (path.relative_to(root).as_posix(), [n[0] if n else "" for n in names], body))
    return functions


def follow(functions):
    """Files of the folders WALKED with functions that receive the argument of msc_processor_run, or a member of it."""
    seen, waiting = set(), [(functions[START[0]][0], START[1])]
    while waiting:
        (file, names, body), which = waiting.pop()
        if which >= len(names) or (file, tuple(names), body, which) in seen:
            continue
        seen.add((file, tuple(names), body, which))
        for match in CALL.finditer(body):
            arguments = split_arguments(body[match.end():matching(body, match.end()) - 1])
            targets = functions.get(match[1], [])
            targets = [t for t in targets if t[0] == file] or targets
            for i, argument in enumerate(arguments):
                if re.fullmatch(rf"&?{names[which]}(->\w+)*", argument.strip()):
                    waiting += [(t, i) for t in targets if folder_of(t[0]) in WALKED]
    return sorted({file for file, *_ in seen}), len({(s[0], s[2]) for s in seen})


# ---- Figures ----------------------------------------------------------------------------------------


def count_members(root):
    for path in (root / "pipeline").glob("*.[ch]"):
        match = re.search(r"^struct msc_processor \{\n(.*?)^\};", COMMENT.sub("", read(path)), re.M | re.S)
        if match:
            return sum(len(split_arguments(line)) for line in match[1].split(";") if line.strip())
    return 0


def print_folders(root, calls):
    circles = []
    print(f"{'folder':10} {'files':>6} {'lines':>7} {'arrows':>7} {'circles':>8} {'files in them':>14}")
    for folder in FOLDERS:
        files = [f for f in (root / folder).rglob("*") if f.suffix in SOURCES]
        inside = between([n for n in calls if folder_of(n) == folder], calls)
        found = find_circles(inside)
        circles += found
        if files:
            print(f"{folder:10} {len(files):6} {sum(read(f).count(chr(10)) for f in files):7} "
                  f"{sum(map(len, inside.values())):7} {len(found):8} {sum(map(len, found)):14}")
    return circles


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    calls = find_calls(root, Path(sys.argv[2]) if len(sys.argv) == 3 else root / "build/release")
    circles = print_folders(root, calls)
    print(f"\n{len(circles)} circles between files, of {sum(map(len, circles))} files, by "
          f"{sum(len(t) for c in circles for t in between(c, calls).values())} arrows")
    for circle in circles:
        print("  " + " ".join(circle))
    by_folder = {}
    for source, targets in calls.items():
        by_folder.setdefault(folder_of(source), set()).update(map(folder_of, targets))
    by_folder = {folder: targets - {folder} for folder, targets in by_folder.items()}
    print(f"{len(find_circles(by_folder))} circles between folders "
          + " ".join("/".join(c) for c in find_circles(by_folder)))
    files, n_functions = follow(read_functions(root))
    print(f"{count_members(root)} members of struct msc_processor")
    print(f"{len(files)} files and {n_functions} functions get the argument of msc_processor_run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
