#define CATCH_CONFIG_MAIN
#include "catch.hpp"
TEST_CASE("a fourth year", "[leap]") { REQUIRE(2024 % 4 == 0); }
TEST_CASE("a century") { SECTION("inner") { int year = 1900; REQUIRE(year % 400 == 0); } }
