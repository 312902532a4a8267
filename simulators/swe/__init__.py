"""Environments of tasks that have none.

True files and programs, and only the programs that would have to be executed are simulated.

An agent works in a container session (`backends.sandbox`) on the base tree of the task, with the real shell, coreutils,
grep, sed and git. Interpreters, test runners, builds and package managers are not there: in the place of each stands a
small program (`program.bash`) that sends its command line to this process, where a model answers for it.
"""
