"""What C and C++ share: compilers by Debian release, CMake, Meson and Autotools, Debian's libraries."""
