"""Tell which lines of the project every Python process of a test run executes. Needs Python 3.6 and nothing else.

It lies in the box's own site-packages for the time of one run, and a .pth file there calls `start` in every process.
Each line is written when it is first seen, `path:line` in an append-only file: nothing is lost with a process that is
killed, and no descriptor is left open that tests could count or close. On Python 3.12 and later `sys.monitoring` tells,
before it a trace function, which then lets no other take its place.
"""

import os
import sys

TOOL = 4
"""One of the two identifiers of `sys.monitoring` that nobody has spoken for."""


def start(root, out):
    """Begin to tell of this process.

    Args:
        root: the tree; files elsewhere are passed over.
        out: the file to append to, in a folder that is there.
    """
    tell = teller(root, out)
    if hasattr(sys, "monitoring"):
        monitor(tell)
    else:
        trace(tell)


def teller(root, out):
    """A function `tell(file, line)`: False for a file that is not in the tree.

    What it needs it holds itself: tests exchange functions of `os` and of the file system for their own.
    """
    open_file, write, close, cwd, normal = os.open, os.write, os.close, os.getcwd, os.path.normpath
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    start = root + "/"
    paths = {}
    seen = {}

    def path_of(file):
        if file[:1] != "/":
            if file[:1] == "<":
                return None
            try:
                file = cwd() + "/" + file
            except OSError:
                return None
        file = normal(file)
        path = file[len(start) :] if file.startswith(start) else None
        return path if path and "\n" not in path else None

    def tell(file, line):
        if file not in paths:
            paths[file] = path_of(file)
            seen[file] = set()
        path = paths[file]
        if path is None:
            return False
        if line and line not in seen[file]:
            seen[file].add(line)
            try:
                handle = open_file(out, flags, 0o600)
                try:
                    write(handle, ("%s:%d\n" % (path, line)).encode("utf-8", "surrogateescape"))
                finally:
                    close(handle)
            except OSError:
                seen[file].discard(line)
        return True

    return tell


def monitor(tell):
    """Python 3.12 and later: each line's event is switched off once it was told."""
    monitoring = sys.monitoring
    disable = monitoring.DISABLE

    def at_line(code, line):
        tell(code.co_filename, line)
        return disable

    try:
        monitoring.use_tool_id(TOOL, "mergemill")
    except ValueError:
        return
    monitoring.register_callback(TOOL, monitoring.events.LINE, at_line)
    monitoring.set_events(TOOL, monitoring.events.LINE)


def trace(tell):
    """Before Python 3.12: a trace function for all threads."""
    import threading  # noqa: PLC0415 - where it is needed alone

    def at_line(frame, event, _):
        if event == "line":
            tell(frame.f_code.co_filename, frame.f_lineno)
        return at_line

    def at_call(frame, _, __):
        return at_line if tell(frame.f_code.co_filename, 0) else None

    set_trace = sys.settrace
    threading.settrace(at_call)
    set_trace(at_call)
    # A project that measures its own coverage by its configuration would end ours; threads are begun by it, too.
    sys.settrace = lambda _: set_trace(at_call)
    threading.settrace = lambda _: None
