#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest.h"
TEST_SUITE("leap") {
TEST_CASE("a fourth year") { CHECK(2024 % 4 == 0); }
TEST_CASE("a \"quoted\" year") { SUBCASE("inner") { int year = 1900; CHECK(year % 400 == 0); } }
TEST_CASE("skipped" * doctest::skip()) { CHECK(false); }
TEST_CASE("throws") { throw 3; }
TEST_CASE("may fail" * doctest::may_fail()) { CHECK(1 == 2); }
}
