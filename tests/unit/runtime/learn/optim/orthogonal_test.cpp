// Newton-Schulz against hand-worked values, the definition in double, and what it is for: rows or
// columns that are nearly orthogonal.
#include "runtime/learn/optim/orthogonal.hpp"

#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace troupe::learn {
namespace {

std::vector<float> drawn(std::int64_t count, std::uint64_t seed) {
  core::Rng rng(seed);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& value : x)
    value = static_cast<float>(rng.next_normal());
  return x;
}

// One step of the iteration for X [rows, columns] in double; wide matrices.
std::vector<double> stepped(const std::vector<double>& x, std::size_t rows, std::size_t columns) {
  std::vector<double> a(rows * rows), b(rows * rows), next(x.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rows; ++j)
      for (std::size_t k = 0; k < columns; ++k)
        a[i * rows + j] += x[i * columns + k] * x[j * columns + k];
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rows; ++j) {
      b[i * rows + j] = -4.775 * a[i * rows + j];
      for (std::size_t k = 0; k < rows; ++k)
        b[i * rows + j] += 2.0315 * a[i * rows + k] * a[k * rows + j];
    }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      next[i * columns + j] = 3.4445 * x[i * columns + j];
      for (std::size_t k = 0; k < rows; ++k)
        next[i * columns + j] += b[i * rows + k] * x[k * columns + j];
    }
  return next;
}

}  // namespace

TEST(Orthogonal, OneStepByHand) {
  // diag(3, 4): norm 5, X = diag(0.6, 0.8). s -> 3.4445 s - 4.775 s^3 + 2.0315 s^5:
  // 0.6: 2.0667 - 1.0314 + 0.157969 = 1.193269; 0.8: 2.7556 - 2.4448 + 0.665682 = 0.976482.
  core::SerialTeam team;
  Orthogonalizer orthogonalizer(team);
  std::vector<float> x = {3, 0, 0, 4};
  orthogonalizer.run(x.data(), 2, 2, 1);
  EXPECT_NEAR(x[0], 1.193269, 2e-6);
  EXPECT_NEAR(x[3], 0.976482, 2e-6);
  EXPECT_EQ(x[1], 0.0f);
  EXPECT_EQ(x[2], 0.0f);
}

TEST(Orthogonal, IsTheIterationInDoubleForWideAndTallMatrices) {
  constexpr std::size_t kRows = 20, kColumns = 33;
  const std::vector<float> start = drawn(kRows * kColumns, 3);
  std::vector<double> expected(start.begin(), start.end());
  double norm = 0;
  for (const double value : expected)
    norm += value * value;
  for (double& value : expected)
    value /= std::sqrt(norm) + 1e-7;
  for (int i = 0; i < 5; ++i)
    expected = stepped(expected, kRows, kColumns);
  core::SerialTeam team;
  Orthogonalizer orthogonalizer(team);
  std::vector<float> wide = start, tall(start.size());
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j)
      tall[j * kRows + i] = start[i * kColumns + j];
  orthogonalizer.run(wide.data(), kRows, kColumns, 5);
  orthogonalizer.run(tall.data(), kColumns, kRows, 5);
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j) {
      ASSERT_NEAR(wide[i * kColumns + j], expected[i * kColumns + j], 2e-5);
      ASSERT_NEAR(tall[j * kRows + i], expected[i * kColumns + j], 2e-5);
    }
  // Rows are nearly of length 1, and nearly orthogonal.
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kRows; ++j) {
      double dot = 0;
      for (std::size_t k = 0; k < kColumns; ++k)
        dot += static_cast<double>(wide[i * kColumns + k]) *
               static_cast<double>(wide[j * kColumns + k]);
      EXPECT_NEAR(dot, i == j ? 1.0 : 0.0, 0.45) << i << ' ' << j;
    }
}

TEST(Orthogonal, HasTheSameBitsForEveryTeamAndLeavesZerosAlone) {
  const std::vector<float> start = drawn(48 * 70, 4);
  core::SerialTeam one;
  ThreadTeam three(3);
  std::vector<float> a = start, b = start;
  Orthogonalizer(one).run(a.data(), 48, 70, 5);
  Orthogonalizer(three).run(b.data(), 48, 70, 5);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  std::vector<float> zeros(12);
  Orthogonalizer(one).run(zeros.data(), 3, 4, 5);
  EXPECT_EQ(zeros, std::vector<float>(12));
}

}  // namespace troupe::learn
