"""Code in a file of C or C++ that runs a shell command when a program with it starts."""

from __future__ import annotations

from languages.loading import append_code

write_constructor = append_code("""
#include <stdlib.h>
__attribute__((constructor)) static void run_at_load(void) {
    if (system({})) { }
}
""")
