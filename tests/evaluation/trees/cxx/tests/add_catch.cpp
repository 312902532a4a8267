#include <catch2/catch.hpp>
#include <stdexcept>

TEST_CASE("adding sums up", "[add]") {
  SECTION("small") { REQUIRE(1 + 1 == 2); }
  SECTION("large") { CHECK(1000 + 1 == 1002); }
}
TEST_CASE("adding, in short") { REQUIRE(1 + 1 == 2); }
TEST_CASE("throws") { throw std::runtime_error("no"); }
SCENARIO("numbers are added") { GIVEN("two") { THEN("there is one") { REQUIRE(true); } } }
