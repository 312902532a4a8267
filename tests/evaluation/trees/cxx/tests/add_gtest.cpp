#include <gtest/gtest.h>

TEST(Add, Sums) { EXPECT_EQ(2, 1 + 1); }
TEST(Add, SumsWrongly) { EXPECT_EQ(3, 1 + 1); }
TEST(Add, DISABLED_Later) {}
TEST(Add, Skips) { GTEST_SKIP() << "not here"; }

class Each : public ::testing::TestWithParam<int> {};
TEST_P(Each, IsOne) { EXPECT_EQ(1, GetParam()); }
INSTANTIATE_TEST_SUITE_P(Small, Each, ::testing::Values(1, 2));
