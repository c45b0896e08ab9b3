#!/usr/bin/env python3
"""Checks mscgym.spdx.json, the list of the libraries that mscgym links and of the code that it contains.

usage: check_sbom.py SBOM PROGRAM --readelf READELF --pkg-config PKG_CONFIG

The document must have what SPDX 2.3 requires, with unique identifiers and relationships between
existing ones. It must list exactly the libraries that PROGRAM needs, with the versions in their own
package files. If the package spdx-tools (PyPI) is installed, it also validates the document.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

# By the name in a program's list of needed libraries: the package, and its pkg-config file.
LIBRARIES = {
    "c": ("glibc", None), "m": ("glibc", None), "ld-linux-x86-64": ("glibc", None), "ld-linux-aarch64": ("glibc", None),
    "gomp": ("libgomp", None), "omp": ("LLVM-OpenMP", None),
    "cjson": ("cJSON", "libcjson"), "dnnl": ("oneDNN", "dnnl"), "lapacke": ("LAPACKE", "lapacke"),
    "microhttpd": ("libmicrohttpd", "libmicrohttpd"), "openblas": ("OpenBLAS", "openblas"),
    "protobuf-c": ("protobuf-c", "libprotobuf-c"), "xxhash": ("xxHash", "libxxhash"), "z": ("zlib", "zlib"),
    "gcc_s": ("libgcc", None), "stdc++": ("libstdc++", None), "tomlplusplus": ("toml++", "tomlplusplus"),
    "yaml-0": ("libyaml", "yaml-0.1"), "zip": ("libzip", "libzip"),
}
IDENTIFIER = re.compile(r"SPDXRef-[A-Za-z0-9.-]+$")
LICENSES = re.compile(r"[A-Za-z0-9.+-]+(?: (?:OR|AND|WITH) [A-Za-z0-9.+-]+)*$")
RELATIONS = {"DESCRIBES", "DYNAMIC_LINK", "CONTAINS", "DEPENDS_ON"}


def check_form(document):
    wrong = [f"{key}: expected {value}, found {document.get(key)}"
             for key, value in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT"))
             if document.get(key) != value]
    if not re.match(r"https://[^#\s]+$", document.get("documentNamespace", "")):
        wrong.append("documentNamespace: not an address without '#'")
    if not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", document["creationInfo"]["created"]):
        wrong.append("creationInfo.created: not a time such as 2026-01-31T12:00:00Z")
    packages = document["packages"]
    identifiers = [package["SPDXID"] for package in packages]
    wrong += [f"{name}: not an identifier" for name in identifiers if not IDENTIFIER.match(name)]
    wrong += [f"{name}: several packages" for name in set(identifiers) if identifiers.count(name) > 1]
    for package in packages:
        wrong += [f"{package['SPDXID']}: no {key}" for key in ("name", "downloadLocation", "versionInfo")
                  if not package.get(key)]
        for key in ("licenseConcluded", "licenseDeclared"):
            if not LICENSES.match(package.get(key, "")):
                wrong.append(f"{package['SPDXID']}: {key} is {package.get(key)}")
    known = set(identifiers) | {"SPDXRef-DOCUMENT"}
    for relation in document["relationships"]:
        wrong += [f"{relation[key]}: not in the document" for key in ("spdxElementId", "relatedSpdxElement")
                  if relation[key] not in known]
        if relation["relationshipType"] not in RELATIONS:
            wrong.append(f"{relation['relationshipType']}: unknown")
    related = {relation["relatedSpdxElement"] for relation in document["relationships"]}
    return wrong + [f"{name}: in no relationship" for name in identifiers if name not in related]


def output(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def check_libraries(document, arguments):
    needed = re.findall(r"\(NEEDED\).*\[(?:lib)?(\S+?)\.so[.\d]*\]", output(arguments.readelf, "-d", arguments.program))
    versions = {package["name"]: package.get("versionInfo") for package in document["packages"]}
    by_identifier = {package["SPDXID"]: package["name"] for package in document["packages"]}
    linked = {by_identifier.get(relation["relatedSpdxElement"]) for relation in document["relationships"]
              if relation["relationshipType"] == "DYNAMIC_LINK"}
    wrong = [f"lib{name}: the program needs it, and LIBRARIES of check_sbom.py does not have it"
             for name in needed if name not in LIBRARIES]
    packages = {LIBRARIES[name] for name in needed if name in LIBRARIES}
    wrong += [f"{name}: the program needs it, but the document does not have it"
              for name, _ in packages if name not in linked]
    wrong += [f"{name}: in the document, but the program does not need it"
              for name in linked - {name for name, _ in packages}]
    for name, module in packages:
        version = output(arguments.pkg_config, "--modversion", module) if module else ""
        if version and versions.get(name) != version:
            wrong.append(f"{name}: version {versions.get(name)}, its package file says {version}")
    return wrong if needed else ["the program needs no library"]


def check_by_spdx_tools(path):
    try:
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    except ImportError:
        print("skipped: no spdx-tools to validate the document")
        return []
    return [message.validation_message for message in validate_full_spdx_document(parse_file(str(path)))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sbom", type=Path)
    parser.add_argument("program")
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--pkg-config", required=True)
    arguments = parser.parse_args()
    document = json.loads(arguments.sbom.read_text(encoding="utf-8"))
    wrong = check_form(document) + check_libraries(document, arguments) + check_by_spdx_tools(arguments.sbom)
    print("\n".join(wrong + [f"{len(document['packages'])} packages, {len(wrong)} complaints"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
