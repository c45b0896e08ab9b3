#!/usr/bin/env python3
"""Tests how the package finds the installed program and headers, copies examples, and names its wheel.

    test_installed.py VERSION

VERSION is that of the CMake project.
"""
import os
import sys

if sys.version_info < (3, 11):
    print("skipped: the package needs Python 3.11")
    sys.exit(0)
try:
    import re
    import shutil
    import stat
    import subprocess
    import tempfile
    import tomllib
    import unittest
    from unittest import mock
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
VERSION = sys.argv.pop(1)

from mscgym import examples, installed  # noqa: E402


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


class InFolder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="mscgym installed ")
        self.addCleanup(held.cleanup)
        self.folder = held.name


class TestProgram(InFolder):
    """Finding the program; `scripts` and `path` are two folders in PATH."""

    def setUp(self):
        super().setUp()
        self.scripts, self.path = (os.path.join(self.folder, name) for name in ("scripts", "path"))
        for folder in self.scripts, self.path:
            os.mkdir(folder)
        for patch in (mock.patch.object(installed, "FOLDER", os.path.join(self.folder, "package")),
                      mock.patch.dict(os.environ, PATH=os.pathsep.join((self.scripts, "no/such", self.path)))):
            patch.start()
            self.addCleanup(patch.stop)

    def test_is_the_package_s_own(self):
        write(os.path.join(self.path, "mscgym"), "elsewhere")
        own = write(os.path.join(self.folder, "package", "bin", "mscgym"), "own")
        self.assertEqual(installed.program(), own)

    def test_is_never_the_script_that_asks(self):
        # A script as pip writes it, in any folder.
        write(os.path.join(self.scripts, "mscgym"),
              "#!/usr/bin/python3\nimport sys\nfrom mscgym.installed import main\nsys.exit(main())\n")
        with self.assertRaisesRegex(FileNotFoundError, "no program mscgym"):
            installed.program()
        wrapper = write(os.path.join(self.path, "mscgym"), "#!/bin/sh\n")
        self.assertEqual(installed.program(), wrapper)

    def test_may_lie_among_the_scripts(self):
        program = write(os.path.join(self.scripts, "mscgym"), "\x7fELF")
        self.assertEqual(installed.program(), program)

    def test_headers_are_the_package_s_own(self):
        with self.assertRaisesRegex(FileNotFoundError, "no headers"):
            installed.get_include()
        os.makedirs(os.path.join(self.folder, "package", "include"))
        self.assertEqual(installed.get_include(), os.path.join(self.folder, "package", "include"))


class TestScript(InFolder):
    """The script that pip makes for `mscgym` in [project.scripts], with a program that prints
    its arguments.
    """

    def run_script(self, *arguments):
        code = ("import sys; from mscgym import installed; installed.FOLDER = sys.argv.pop(1); "
                "sys.exit(installed.main())")
        variables = {"PATH": "no/such", "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, "-c", code, self.folder, *arguments], capture_output=True, text=True,
                              check=False, env=variables)

    def test_becomes_the_program(self):
        write(os.path.join(self.folder, "bin", "mscgym"),
              '#!/bin/sh\necho "$$ $MSCGYM_PYTHON" "$@"\nexit 7\n')
        done = self.run_script("search", "a b.json")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stdout.split(" ", 1)[1], f"{sys.executable} search a b.json\n")

    def test_says_what_is_missing(self):
        done = self.run_script("search")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
        self.assertIn("mscgym: there is no program mscgym in ", done.stderr)


class TestExamples(InFolder):
    def setUp(self):
        super().setUp()
        self.source, self.target = (os.path.join(self.folder, name) for name in ("source", "target"))
        for name in ("agent.json", "digits/digits.json"):
            write(os.path.join(self.source, name), name)

    def test_are_copied(self):
        self.assertEqual(examples.copy(self.target, self.source), ["agent.json", "digits/digits.json"])
        with open(os.path.join(self.target, "digits", "digits.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "digits/digits.json")

    def test_take_the_place_of_nothing(self):
        there = write(os.path.join(self.target, "digits", "digits.json"), "mine")
        with self.assertRaisesRegex(examples.CopyError, re.escape(f"{there}: it is there already")):
            examples.copy(self.target, self.source)
        self.assertEqual(os.listdir(self.target), ["digits"])
        shutil.rmtree(self.target)
        write(self.target, "a file")
        with self.assertRaisesRegex(examples.CopyError, f"{re.escape(self.target)}"):
            examples.copy(self.target, self.source)

    def test_are_missing_in_the_sources(self):
        with self.assertRaisesRegex(examples.CopyError, "there are no examples"):
            examples.copy(self.target)


class TestMetadata(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(PACKAGE, "..", "pyproject.toml"), "rb") as file:
            self.project = tomllib.load(file)

    def test_version_is_that_of_the_project(self):
        version = self.project["tool"]["scikit-build"]["metadata"]["version"]
        with open(os.path.join(PACKAGE, "..", version["input"]), encoding="utf-8") as file:
            self.assertEqual(re.search(version["regex"], file.read())["value"], VERSION)

    def test_packages_are_all_there_are(self):
        named = self.project["tool"]["scikit-build"]["wheel"]["packages"]
        there = [f"python/{name}" for name in sorted(os.listdir(PACKAGE))
                 if os.path.isfile(os.path.join(PACKAGE, name, "__init__.py"))]
        self.assertEqual(sorted(named), there)


if __name__ == "__main__":
    unittest.main()
