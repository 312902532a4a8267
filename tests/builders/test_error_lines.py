"""The line of a log that names the cause of a failure."""

from __future__ import annotations

import pytest

from builders.error_lines import find_error_line


def test_the_error_line_of_a_log_is_the_last_with_an_error_word() -> None:
    assert find_error_line("Resolved\nerror: no such package\nbye\n") == "error: no such package"
    assert find_error_line("") == "no output"


def test_mavens_help_is_not_the_error_line() -> None:
    log = """
[ERROR] Failed to execute goal on project core: Could not find artifact a:b:jar:1 -> [Help 1]
[ERROR]
[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.
[ERROR] Re-run Maven using the -X switch to enable full debug logging because of errors.
[ERROR] For more information about the errors and possible solutions, please read the following articles:
[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/DependencyResolutionException
[ERROR] After correcting the problems, you can resume the build with the command
[ERROR]   mvn <args> -rf :core
"""
    assert find_error_line(log).endswith("Could not find artifact a:b:jar:1 -> [Help 1]")


NPM = """\
npm error code ENOVERSIONS
npm error No versions available for is-odd
npm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-30T09_00_00_000Z-debug-0.log
"""
NPM_6 = """\
npm ERR! code ETARGET
npm ERR! notarget No matching version found for is-odd@99.
npm ERR! notarget In most cases you or one of your dependencies are requesting
npm ERR! notarget a package version that doesn't exist.

npm ERR! A complete log of this run can be found in:
npm ERR!     /root/.npm/_logs/2020-01-01T00_00_00_000Z-debug.log
"""
NPM_PEERS = """\
npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error
npm error While resolving: app@1.0.0
npm error Found: react@18.2.0
npm error
npm error Could not resolve dependency:
npm error peer react@"17" from y@1.0.0
npm error
npm error Fix the upstream dependency conflict, or retry
npm error this command with --force or --legacy-peer-deps
npm error to accept an incorrect (and potentially broken) dependency resolution.
npm error
npm error For a full report see:
npm error /root/.npm/_logs/x-eresolve-report.txt
npm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log
"""
NPM_SCRIPT = """\
npm error code 1
npm error path /run/mergemill/node_modules/old
npm error command failed
npm error command sh -c node-gyp rebuild
npm error gyp ERR! stack Error: Could not find any Python installation to use
npm error gyp ERR! command "/usr/bin/node" "rebuild"
npm error gyp ERR! cwd /run/mergemill/node_modules/old
npm error gyp ERR! not ok
npm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log
"""
NPM_6_SCRIPT = """\
src/a.ts(1,1): error TS2304: Cannot find name 'b'.
npm ERR! code ELIFECYCLE
npm ERR! errno 2
npm ERR! app@1.0.0 build: `tsc`
npm ERR! Exit status 2
npm ERR!
npm ERR! Failed at the app@1.0.0 build script.
npm ERR! This is probably not a problem with npm. There is likely additional logging output above.

npm ERR! A complete log of this run can be found in:
npm ERR!     /root/.npm/_logs/x-debug.log
"""
PNPM = """\
Progress: resolved 1, reused 0, downloaded 0, added 0
 ERR_PNPM_NO_MATCHING_VERSION  No matching version found for is-odd@99 while fetching it from https://r/

This error happened while installing a direct dependency of /testbed

The latest release of is-odd is "3.0.1".
"""
YARN = """\
yarn install v1.22.22
[1/4] Resolving packages...
error Couldn't find any versions for "is-odd" that matches "99"
info Visit https://yarnpkg.com/en/docs/cli/install for documentation about this command.
"""
BERRY = """\
➤ YN0000: · Yarn 4.5.3
➤ YN0000: ┌ Resolution step
➤ YN0060: │ react is listed by your project with version 18, which doesn't satisfy what y requests.
➤ YN0035: │ is-odd@npm:99: Package not found
➤ YN0035: │   Response Code: 404 (Not Found)
➤ YN0000: └ Completed in 0s 300ms
➤ YN0000: · Failed with errors in 0s 305ms
"""
BUN = """\
bun install v1.3.1
error: No version matching "99" found for specifier "is-odd" (but package exists)
error: is-odd@99 failed to resolve
"""
MISSING = "npm error code E404\nnpm error 404 Not Found - GET https://r/x\n"
MODULE = "Error: Cannot find module 'a'"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (NPM, "npm error code ENOVERSIONS: No versions available for is-odd"),
        (NPM_6, "npm ERR! code ETARGET: notarget No matching version found for is-odd@99. notarget In most"),
        (
            NPM_PEERS,
            "npm error code ERESOLVE: ERESOLVE unable to resolve dependency tree While resolving: app@1.0.0 Found: ",
        ),
        (NPM_SCRIPT, "npm error gyp ERR! stack Error: Could not find any Python installation to use"),
        (NPM_6_SCRIPT, "src/a.ts(1,1): error TS2304: Cannot find name 'b'."),
        (PNPM, "ERR_PNPM_NO_MATCHING_VERSION  No matching version found for is-odd@99"),
        (YARN, """error Couldn't find any versions for "is-odd" that matches "99\""""),
        (BERRY, "➤ YN0035: │ is-odd@npm:99: Package not found"),
        (BUN, "error: is-odd@99 failed to resolve"),
        (MISSING + "ok\n" * 80 + MODULE, MODULE),
        (MISSING + MODULE, MODULE),
        (PNPM + MODULE, MODULE),
        ("npm error code ENOSPC\n", "npm error code ENOSPC"),
        ("npm error A complete log of this run can be found in: /x\n", "npm error A complete log"),
    ],
)
def test_the_error_line_of_a_package_manager_names_the_cause(log: str, line: str) -> None:
    assert find_error_line(log).startswith(line)


def test_the_error_line_of_peers_has_both_sides() -> None:
    assert find_error_line(NPM_PEERS).endswith("""Could not resolve dependency: peer react@"17" from y@1.0.0""")


def test_an_error_line_is_short() -> None:
    assert len(find_error_line(f"npm error code E404\nnpm error 404 {'x' * 500}")) == 300
