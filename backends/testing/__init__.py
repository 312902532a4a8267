"""Running a project's tests in the sandbox and reading the harness's own report; builders and verifiers share it."""
