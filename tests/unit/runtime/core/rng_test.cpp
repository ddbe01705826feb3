// Philox against the known answers published with Random123, and what is drawn from it.
#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::core {

TEST(Philox, KnownAnswersOfRandom123) {
  // kat_vectors of Random123 1.14: philox4x32-10.
  EXPECT_EQ(philox4x32(0, 0, 0),
            (std::array<std::uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox4x32(~0ull, ~0ull, ~0ull),
            (std::array<std::uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox4x32(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (std::array<std::uint32_t, 4>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Uniform, StaysInsideTheOpenIntervalAndAveragesHalf) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double u = uniform(7, 3, i);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
}

TEST(Rng, SeekGivesTheSameNumbersAgain) {
  Rng rng(5, 1);
  std::vector<std::uint64_t> first;
  for (int i = 0; i < 10; ++i)
    first.push_back(rng.next_u64());
  rng.seek(4);
  EXPECT_EQ(rng.next_u64(), first[4]);
  EXPECT_EQ(rng.position(), 5u);
}

TEST(Rng, BelowCoversItsRangeEvenly) {
  Rng rng(11);
  std::vector<int> count(7);
  for (int i = 0; i < 70000; ++i)
    ++count[rng.next_below(7)];
  double chi = 0;
  for (int c : count)
    chi += (c - 10000.0) * (c - 10000.0) / 10000.0;
  EXPECT_LT(chi, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(DeriveSeed, EveryWordMatters) {
  const auto base = derive_seed(1, 2, 3, 4);
  EXPECT_NE(base, derive_seed(2, 2, 3, 4));
  EXPECT_NE(base, derive_seed(1, 3, 3, 4));
  EXPECT_NE(base, derive_seed(1, 2, 4, 4));
  EXPECT_NE(base, derive_seed(1, 2, 3, 5));
  EXPECT_NE(derive_seed(1, 2), derive_seed(2, 1));
}

}  // namespace troupe::core
