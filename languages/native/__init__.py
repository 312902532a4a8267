"""Code shared by C and C++: compilers by Debian release, CMake, Meson and Autotools, libraries of Debian."""
