"""Record which lines of the project every Python process of a test run executes. Needs Python 3.6 and nothing else.

For one run the file lies in the container's own site-packages, where a .pth file calls `start` in every process. Each
line is appended as `path:line` when it is first executed: nothing is lost when a process is killed, and no descriptor
stays open that tests could count or close. Python 3.12 and later use `sys.monitoring`; earlier versions use a trace
function, which then prevents other trace functions from replacing it.
"""

import os
import sys

TOOL = 4
"""One of the two identifiers of `sys.monitoring` that are not reserved."""


def start(root, out):
    """Start recording in this process.

    Args:
        root: the tree; files elsewhere are skipped.
        out: the file to append to, in an existing folder.
    """
    record = make_recorder(root, out)
    if hasattr(sys, "monitoring"):
        install_monitoring(record)
    else:
        install_trace(record)


def make_recorder(root, out):
    """Return a function `record(file, line)` that returns False for a file outside of the tree.

    It keeps its own references to functions, as tests replace functions of `os` and of the file system.
    """
    open_file, write, close, cwd, normal = os.open, os.write, os.close, os.getcwd, os.path.normpath
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    start = root + "/"
    paths = {}
    recorded = {}

    def find_path(file):
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

    def record(file, line):
        if file not in paths:
            paths[file] = find_path(file)
            recorded[file] = set()
        path = paths[file]
        if path is None:
            return False
        if line and line not in recorded[file]:
            recorded[file].add(line)
            try:
                handle = open_file(out, flags, 0o600)
                try:
                    write(handle, ("%s:%d\n" % (path, line)).encode("utf-8", "surrogateescape"))
                finally:
                    close(handle)
            except OSError:
                recorded[file].discard(line)
        return True

    return record


def install_monitoring(record):
    """Record by `sys.monitoring` (Python 3.12 and later); a line's event is disabled once it is recorded."""
    monitoring = sys.monitoring
    disable = monitoring.DISABLE

    def at_line(code, line):
        record(code.co_filename, line)
        return disable

    try:
        monitoring.use_tool_id(TOOL, "mergemill")
    except ValueError:
        return
    monitoring.register_callback(TOOL, monitoring.events.LINE, at_line)
    monitoring.set_events(TOOL, monitoring.events.LINE)


def install_trace(record):
    """Record by a trace function for all threads (before Python 3.12)."""
    import threading  # noqa: PLC0415 - needed here only

    def at_line(frame, event, _):
        if event == "line":
            record(frame.f_code.co_filename, frame.f_lineno)
        return at_line

    def at_call(frame, _, __):
        return at_line if record(frame.f_code.co_filename, 0) else None

    set_trace = sys.settrace
    threading.settrace(at_call)
    set_trace(at_call)
    # A project whose configuration measures coverage would replace the trace function, also in its threads.
    sys.settrace = lambda _: set_trace(at_call)
    threading.settrace = lambda _: None
