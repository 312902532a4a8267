"""Times chosen tests of compiled languages: builds the test programs, then runs each test in processes of its own.

    timed_rounds.py build|run SETTINGS OUT TREE COMMAND_FILE FILE...

`build` compiles the tests and is not metered; `run` runs every test in all rounds and writes OUT/junit.xml. Both run as
the tests' user, in the tree. SETTINGS is a JSON file:

    framework, argv   the plan's test command
    clock             `cpu` or `wall`: the reported time is that of all runs, without the start of the program;
                      `runs`: the number of runs that take ROUND_SECONDS; `work`: the work of one run
    rounds            rounds of each test; every round is a new process, without the memory of the one before
    rows              [runs in a round, work that the test must do, test id] of each test

The work of a test is what the counters in its file add up (`derivers.work_counters`): blocks of the test that were
executed, and sizes of its data. A test that does noticeably less than it must has become faster by doing less, and
fails. FILE: the files of the tests, and canaries, whose tests run once.
"""

import json
import os
import re
import subprocess
import sys
import time
from xml.sax.saxutils import quoteattr

KEPT_SHARE = 0.9  # of the required work, because some of it may depend on chance
ROUND_SECONDS = 0.05
START_FACTOR = 3  # a round is this much longer than the start of the program, or more
SHORTEST = 1e-6


class TestError(Exception):
    """A test did not run or did not pass."""


def make_criterion_filter(name):
    """Return the regular expression, in Python and Rust, of a benchmark's name."""
    stem = name[:-1] if name.endswith("/*") else name
    return "^%s%s$" % (re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", stem), "[^/]+" if stem != name else "")


def has_criterion_passed(output, name):
    """Return whether the output reports that this benchmark was executed, and no other one."""
    started = re.findall(r"^Testing (.+)$", output, re.MULTILINE)
    passed = len(re.findall(r"^Success$", output, re.MULTILINE))
    return 0 < len(started) == passed and all(re.match(make_criterion_filter(name), one) for one in started)


class ProgramTests:
    """Tests that are compiled into programs."""

    max_runs = 1_000_000

    def get_max_runs(self, _programs, _file):
        """Return the most runs of a test in a round."""
        return self.max_runs


class GoTests(ProgramTests):
    """Test binaries of `go test -c`, one per package."""

    canary_tests = re.compile(r"^func (Test\w+)\(", re.MULTILINE)

    def __init__(self, settings, out, tree):
        self.argv, self.out, self.tree = settings["argv"], out, tree

    def build(self, files, _command):
        """Compile the packages of the files."""
        found = {}
        for folder in sorted({os.path.dirname(file) for file in files}):
            module = folder
            while module and not os.path.exists(os.path.join(self.tree, module, "go.mod")):
                module = os.path.dirname(module)
            binary = os.path.join(self.out, "package-%d.test" % len(found))
            inside = "./" + os.path.relpath(folder or ".", module or ".")
            environment = dict(os.environ, GOPROXY="off", GOSUMDB="off")
            command = [*self.argv, "-vet=off", "-c", "-o", binary, inside]
            subprocess.call(command, cwd=os.path.join(self.tree, module), env=environment)
            found[folder] = binary
        return found

    def make_command(self, programs, file, test, runs):
        """Return (command, folder); without a test the program starts and ends."""
        folder = os.path.dirname(file)
        command = [programs[folder], "-test.v", "-test.timeout=0"]
        command += ["-test.short"] if "-short" in self.argv else []
        if test.startswith("Benchmark"):
            command += ["-test.run=^$", "-test.bench=^%s$" % test, "-test.benchtime=%dx" % runs]
        else:
            command += ["-test.run=^%s$" % (test or ""), "-test.count=%d" % runs]
        return command, os.path.join(self.tree, folder)

    def has_passed(self, output, _programs, _file, test, runs):
        """Return whether the output reports that all runs passed."""
        if test.startswith("Benchmark"):
            return re.search(r"^%s\b.*\bns/op" % test, output, re.MULTILINE) and "--- FAIL" not in output
        return len(re.findall(r"^--- PASS: %s " % test, output, re.MULTILINE)) == runs


class CargoTests(ProgramTests):
    """Programs of `cargo test --no-run`, one per file below tests/ or benches/.

    A benchmark of criterion runs once in a process, as `cargo test` runs it, and the counters in its file repeat that.
    A name that ends in `/*` stands for all parameters of a benchmark.
    """

    canary_tests = re.compile(r"^fn (\w+)\(", re.MULTILINE)

    def __init__(self, settings, _out, tree):
        before, _, after = "\0".join(settings["argv"]).partition("\0--\0")
        self.argv, self.tree = [word for word in before.split("\0") if word != "--workspace"], tree
        self.arguments = [word for word in after.split("\0") if word]

    def build(self, files, _command):
        """Compile the targets that are these files: a package's tests together, and each of its benchmarks."""
        say = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
        packages = json.loads(subprocess.check_output(say))["packages"]
        paths = {os.path.join(os.path.realpath(self.tree), file): file for file in files}
        found = {}
        for package in packages:
            targets = [one for one in package["targets"] if one["src_path"] in paths]
            tests = [word for one in targets if "test" in one["kind"] for word in ("--test", one["name"])]
            for names in [tests] + [["--bench", one["name"]] for one in targets if "bench" in one["kind"]]:
                if names:
                    found.update(self._build_targets(package, names, paths))
        return found

    def _build_targets(self, package, names, paths):
        """Return file -> [program, folder, whether it is one of criterion]."""
        build = ["--offline", "--no-run", "--message-format", "json", "-p", package["name"], *names]
        lines = subprocess.run([*self.argv, *build], stdout=subprocess.PIPE, check=False).stdout
        found = {}
        for line in lines.splitlines():
            message = json.loads(line) if line.startswith(b"{") else {}
            file = paths.get(message.get("target", {}).get("src_path"))
            if file and message.get("executable"):
                with open(os.path.join(self.tree, file), encoding="utf-8") as source:
                    is_criterion = "bench" in message["target"]["kind"] and "criterion_main!" in source.read()
                found[file] = [message["executable"], os.path.dirname(package["manifest_path"]), is_criterion]
        return found

    def get_max_runs(self, programs, file):
        """Return the most runs of a test in a round: those of benchmarks are no processes."""
        return self.max_runs if programs[file][2] else 50

    def make_command(self, programs, file, test, runs):
        """Return (command, folder), as above."""
        binary, folder, is_criterion = programs[file]
        if is_criterion:
            pattern = make_criterion_filter(test or "")
            return ["/usr/bin/env", "MERGEMILL_RUNS=%d" % runs, binary, "--test", "--noplot", pattern], folder
        command = [binary, "--exact", test or "no::test", "--test-threads=1", *self.arguments]
        repeat = ["/bin/sh", "-c", 'n=$1; shift; while [ "$n" -gt 0 ]; do "$@" || exit; n=$((n - 1)); done', "sh"]
        return (command if runs == 1 else [*repeat, str(runs), *command]), folder

    def has_passed(self, output, programs, file, test, runs):
        """Return whether the output reports that all runs passed."""
        if programs[file][2]:
            return has_criterion_passed(output, test)
        return len(re.findall(r"^test %s(?: - should panic)? \.\.\. .*\bok$" % test, output, re.MULTILINE)) == runs


class JvmTests(ProgramTests):
    """Test classes on the class path that the build tool uses, started by a class of the workload."""

    canary_tests = re.compile(r"^ {4}public void (\w+)\(", re.MULTILINE)

    def __init__(self, _settings, out, tree):
        self.out, self.tree = out, tree

    def build(self, files, command):
        """Compile and run the test classes, which write their class path."""
        environment = dict(os.environ, MERGEMILL_CLASSPATH=os.path.join(self.out, "classpath"))
        with open(command, "rb") as words:
            subprocess.call([os.fsdecode(word) for word in words.read().split(b"\0")[:-1]], env=environment)
        found = {}
        for file in files:
            with open(os.path.join(self.tree, file), encoding="utf-8") as source:
                package = re.search(r"^\s*package\s+([\w.]+)", source.read(), re.MULTILINE)
            name = os.path.splitext(os.path.basename(file))[0]
            place = os.path.join(self.out, "classpath." + (package[1] if package else ""))
            with open(place, encoding="utf-8") as lines:
                java, folder, path = lines.read().splitlines()
            found[file] = [java, folder, path, (package[1] + "." if package else ""), name]
        return found

    def make_command(self, programs, file, test, runs):
        """Return (command, folder), as above."""
        java, folder, path, package, name = programs[file]
        type_name = "$".join([name, *test.split("::")[:-1]]) if "::" in (test or "") else name
        command = [java, "-cp", path, "-Xshare:auto", package + "MergemillWork", package + type_name]
        return [*command, (test or "").rpartition("::")[2], str(runs)], folder

    def has_passed(self, output, _programs, _file, _test, runs):
        """Return whether the output reports that all runs passed."""
        return output.rstrip().endswith("mergemill: %d passed" % runs)


FRAMEWORKS = {"go-test": GoTests, "cargo-test": CargoTests, "maven": JvmTests}


class Workload:
    """The tests of one workload and the programs that contain them."""

    def __init__(self, settings, out, tree, programs):
        self.settings, self.out, self.tree, self.programs = settings, out, tree, programs
        self.framework = FRAMEWORKS[settings["framework"]](settings, out, tree)
        self.start_seconds = {}

    def run_test(self, test, runs, work_file=""):
        """Return the seconds of some runs of a test in a new process.

        Raises:
            TestError: it did not pass.
        """
        file, _, name = test.partition("::")
        try:
            command, folder = self.framework.make_command(self.programs, file, name, runs)
        except KeyError:
            raise TestError("the test was not built") from None
        code, output, seconds = self._run(command, folder, work_file)
        if name and (code != 0 or not self.framework.has_passed(output, self.programs, file, name, runs)):
            sys.stdout.write(output[-4000:])
            raise TestError("the test does not pass, exit code %d" % code)
        return seconds

    def _run(self, command, folder, work_file):
        environment = dict(os.environ, **({"MERGEMILL_WORK": work_file} if work_file else {}))
        with open(os.path.join(self.out, "output"), "w+b") as output:
            start = time.monotonic()
            try:
                process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
            except OSError as error:
                raise TestError("the test program cannot be started: %s" % error) from error
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = -1 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)  # wait4 has taken the status
            wall = time.monotonic() - start
            output.seek(max(0, output.tell() - 2_000_000))
            text = output.read().decode(errors="replace")
        seconds = wall if self.settings["clock"] == "wall" else usage.ru_utime + usage.ru_stime
        return process.returncode, text, seconds

    def measure_start(self, test):
        """Return the seconds that the program of a test needs when it is started without any test."""
        file = test.partition("::")[0]
        if file not in self.start_seconds:
            self.start_seconds[file] = min(self.run_test(file + "::", 1) for _ in range(3))
        return self.start_seconds[file]

    def count_work(self, test):
        """Return the work of one run."""
        place = os.path.join(self.out, "work")
        if os.path.exists(place):
            os.remove(place)
        self.run_test(test, 1, place)
        try:
            with open(place, encoding="ascii") as lines:
                return sum(int(line) for line in lines)
        except (OSError, ValueError):
            raise TestError("the test does not count its work") from None

    def count_runs(self, test):
        """Return how many runs of a test take about ROUND_SECONDS: doubled until they take half of that."""
        runs, start = 1, self.measure_start(test)
        wanted = max(ROUND_SECONDS, START_FACTOR * start)
        most = self.framework.get_max_runs(self.programs, test.partition("::")[0])
        while True:
            seconds = self.run_test(test, runs) - start
            if seconds >= wanted / 2 or runs >= most:
                break
            runs = min(2 * runs, most)
        return max(1, min(most, int(runs * wanted / max(seconds, SHORTEST))))

    def measure(self, rows):
        """Return test -> (value by the clock or None, why it failed); rounds of the tests alternate."""
        found = {}
        for runs, required, test in rows:
            try:
                found[test] = (self._measure_once(runs, required, test), "")
            except TestError as error:
                found[test] = (None, str(error))
        if self.settings["clock"] in ("cpu", "wall"):
            for _ in range(int(self.settings["rounds"])):
                for runs, _required, test in rows:
                    if found[test][0] is not None:
                        found[test] = self._add_round(found[test][0], test, runs)
            found = {test: (self._remove_starts(value, test), why) for test, (value, why) in found.items()}
        return found

    def _measure_once(self, runs, required, test):
        """Return the first value of a test; 0 where rounds follow."""
        clock = self.settings["clock"]
        if clock == "runs":
            return self.count_runs(test)
        work = self.count_work(test) if clock == "work" or required else 0
        if work < KEPT_SHARE * required:
            raise TestError("the test does less work than before: %d of %d" % (work, required))
        if clock == "work":
            return work
        return 0.0 if self.settings["rounds"] else self.run_test(test, runs)

    def _add_round(self, seconds, test, runs):
        try:
            return seconds + self.run_test(test, runs), ""
        except TestError as error:
            return None, str(error)

    def _remove_starts(self, seconds, test):
        if seconds is None:
            return None
        return max(SHORTEST, seconds - max(1, self.settings["rounds"]) * self.measure_start(test))

    def list_canaries(self, files):
        """Return the ids of all tests in files that are none of the workload's."""
        own = {test.partition("::")[0] for _, _, test in self.settings["rows"]}
        found = []
        for file in files:
            if file not in own:
                with open(os.path.join(self.tree, file), encoding="utf-8") as source:
                    names = self.framework.canary_tests.findall(source.read())
                found += [file + "::" + name for name in names]
        return found


def write_report(path, results):
    """Write the results in the canonical form of reports."""
    rows = []
    for test, (value, why) in results.items():
        file, _, name = test.partition("::")
        failure = "" if value is not None else "<failure message=%s/>" % quoteattr(why)
        fields = (quoteattr(file), quoteattr(name), value or 0, failure)
        rows.append('<testcase file=%s name=%s time="%.9f">%s</testcase>' % fields)
    with open(path, "w", encoding="utf-8") as file:
        file.write('<testsuites mergemill="1"><testsuite>%s</testsuite></testsuites>\n' % "".join(rows))


def main(words):
    """Build or run; return the exit code."""
    phase, settings_file, out, tree, command, *files = words
    with open(settings_file, encoding="utf-8") as file:
        settings = json.load(file)
    programs_file = os.path.join(out, "programs.json")
    if phase == "build":
        programs = FRAMEWORKS[settings["framework"]](settings, out, tree).build(files, command)
        with open(programs_file, "w", encoding="utf-8") as file:
            json.dump(programs, file)
        return 0
    with open(programs_file, encoding="utf-8") as file:
        workload = Workload(settings, out, tree, json.load(file))
    results = workload.measure(settings["rows"])
    once = Workload({**settings, "clock": "cpu", "rounds": 0}, out, tree, workload.programs)
    results.update(once.measure([(1, 0, test) for test in workload.list_canaries(files)]))
    write_report(os.path.join(out, "junit.xml"), results)
    return int(any(value is None for value, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
