#include <gtest/gtest.h>

template <typename T> class Typed : public ::testing::Test {};
TYPED_TEST_SUITE(Typed, ::testing::Types<int>);
TYPED_TEST(Typed, IsZero) { EXPECT_EQ(TypeParam(), 0); }

class Fixture : public ::testing::Test {};
TEST_F(Fixture,
       TakesAway) { EXPECT_EQ(1, 2 - 1); }
