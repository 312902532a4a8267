"""Copy the running Python, with every shared library it needs, to a folder where it runs on any image.

Usage: python install_python.py FOLDER

The copy starts through its own dynamic loader, so it depends neither on the image's C library nor on environment
variables, which programs started from it would inherit. FOLDER/bin/python3 is a shell script that does so; its own path
is the program that Python sees as its executable, so child processes that use `sys.executable` start the same way.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

WRAPPER = """#!/bin/sh
exec {root}/lib/{loader} --library-path {root}/lib --argv0 {root}/bin/python3 {root}/bin/python.bin "$@"
"""
SITE_PACKAGES = "/opt/mergemill/program/site"
"""Folder of the packages of a program, which another volume has."""
LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
EXTRA_LIBRARIES = ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1")
"""Needed by wheels of native extensions."""
EXCLUDED = (
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "__pycache__",
    "site-packages",
    "dist-packages",
)


def copy_python(root: pathlib.Path) -> None:
    """Copy interpreter, standard library and shared libraries to a folder."""
    executable = pathlib.Path(
        getattr(sys, "_base_executable", sys.executable)
    ).resolve()  # the interpreter itself, not that of an environment
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (root / "bin").mkdir(parents=True)
    (root / "lib" / version / "site-packages").mkdir(parents=True)
    shutil.copy2(executable, root / "bin" / "python.bin")
    for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        shutil.copytree(path, root / "lib" / version, ignore=shutil.ignore_patterns(*EXCLUDED), dirs_exist_ok=True)
    (root / "lib" / version / "site-packages").mkdir(exist_ok=True)
    (root / "lib" / version / "site-packages" / "program.pth").write_text(SITE_PACKAGES + "\n")
    loader = copy_libraries(root, [executable, *(root / "lib" / version / "lib-dynload").glob("*.so")])
    wrapper = root / "bin" / "python3"
    wrapper.write_text(WRAPPER.format(root=root, loader=loader))
    wrapper.chmod(0o755)


def copy_libraries(root: pathlib.Path, files: list[pathlib.Path]) -> str:
    """Copy the shared libraries of some files to `lib`; return the name of the loader there."""
    libraries = set()
    for file in files:
        libraries.update(LIBRARY.findall(run(["ldd", str(file)])))
    cache = run(["/sbin/ldconfig", "-p"])
    for name in EXTRA_LIBRARIES:
        if listed := re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", cache, re.MULTILINE):
            libraries.add(listed[1])
    for path in libraries:
        shutil.copy2(pathlib.Path(path).resolve(), root / "lib" / pathlib.Path(path).name)
    return next(pathlib.Path(path).name for path in libraries if pathlib.Path(path).name.startswith("ld-"))


def run(command: list[str]) -> str:
    """Return the text that a command prints; a file that is not a program of this system prints nothing of use."""
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


if __name__ == "__main__":
    copy_python(pathlib.Path(sys.argv[1]))
