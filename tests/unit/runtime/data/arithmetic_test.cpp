// The arithmetic task: what problems there are and that the split leaks nothing.
#include "runtime/data/arithmetic.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace {

using namespace troupe::data;
using Kind = ArithmeticProblem::Kind;

// The family written without the code under test: the two addends and their sum, as a set.
std::multiset<int> family_of(const ArithmeticProblem& p) {
  return p.kind == Kind::kSum ? std::multiset<int>{p.left, p.right, p.left + p.right}
                              : std::multiset<int>{p.left, p.right, p.left - p.right};
}

TEST(Arithmetic, PromptIsTheFewShotCompletionForm) {
  const ArithmeticProblem sum{Kind::kSum, 9, 2};
  EXPECT_EQ(sum.prompt(), "3 + 4 = 7\n6 - 2 = 4\n9 + 2 =");
  EXPECT_EQ(sum.answer(), 11);
  const ArithmeticProblem difference{Kind::kDifference, 9, 2};
  EXPECT_EQ(difference.prompt(), "3 + 4 = 7\n6 - 2 = 4\n9 - 2 =");
  EXPECT_EQ(difference.answer(), 7);
}

TEST(Arithmetic, FamilyJoinsSumsAndDifferences) {
  using P = ArithmeticProblem;
  EXPECT_EQ((P{Kind::kSum, 2, 5}.family()), std::pair(2, 5));
  EXPECT_EQ((P{Kind::kSum, 5, 2}.family()), std::pair(2, 5));
  EXPECT_EQ((P{Kind::kDifference, 7, 5}.family()), std::pair(2, 5));
  EXPECT_EQ((P{Kind::kDifference, 7, 2}.family()), std::pair(2, 5));
}

TEST(Arithmetic, AllProblemsButTheFamiliesOfTheExamples) {
  const auto all = all_arithmetic_problems();
  // 100 sums and 55 differences, less 3+4 4+3 7-3 7-4 and 2+4 4+2 6-2 6-4.
  EXPECT_EQ(all.size(), 147u);
  for (const auto& problem : all) {
    EXPECT_NE(family_of(problem), (std::multiset<int>{3, 4, 7}));
    EXPECT_NE(family_of(problem), (std::multiset<int>{2, 4, 6}));
    EXPECT_GE(problem.answer(), 0);
  }
}

class ArithmeticSeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ArithmeticSeeds, NoFamilyIsOnBothSides) {
  auto split = split_arithmetic(GetParam(), 40);
  ASSERT_TRUE(split);
  EXPECT_GE(split->held_out.size(), 40u);
  EXPECT_LE(split->held_out.size(), 43u);
  EXPECT_EQ(split->held_out.size() + split->train.size(), 147u);
  std::set<std::multiset<int>> held;
  std::map<Kind, int> kinds;
  for (const auto& problem : split->held_out) {
    held.insert(family_of(problem));
    ++kinds[problem.kind];
  }
  EXPECT_GE(kinds[Kind::kSum], 15);
  EXPECT_GE(kinds[Kind::kDifference], 8);
  for (const auto& problem : split->train)
    EXPECT_FALSE(held.contains(family_of(problem)));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArithmeticSeeds, testing::Range<std::uint64_t>(0, 50));

TEST(Arithmetic, SameSeedSameSplit) {
  auto a = split_arithmetic(7, 40), b = split_arithmetic(7, 40), c = split_arithmetic(8, 40);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->held_out, b->held_out);
  EXPECT_EQ(a->train, b->train);
  EXPECT_NE(a->held_out, c->held_out);
}

TEST(Arithmetic, TwoDigitsHaveTheirOwnExamplesAndProblems) {
  const ArithmeticProblem sum{Kind::kSum, 38, 94, 2};
  EXPECT_EQ(sum.prompt(), "23 + 41 = 64\n67 - 25 = 42\n38 + 94 =");
  const auto all = all_arithmetic_problems(2);
  // 90 x 90 sums and 90 x 91 / 2 differences, less 23+41 41+23 64-23 64-41 and 25+42 42+25 67-25
  // 67-42.
  EXPECT_EQ(all.size(), 8100u + 4095u - 8u);
  for (const auto& problem : all) {
    EXPECT_NE(family_of(problem), (std::multiset<int>{23, 41, 64}));
    EXPECT_GE(std::min(problem.left, problem.right), 10);
    EXPECT_LE(std::max(problem.left, problem.right), 99);
    EXPECT_GE(problem.answer(), 0);
  }
}

TEST(Arithmetic, ThreeSetsShareNoFamily) {
  auto split = split_arithmetic(3, 300, 2, 200);
  ASSERT_TRUE(split);
  EXPECT_GE(split->held_out.size(), 300u);
  EXPECT_LE(split->held_out.size(), 303u);
  EXPECT_GE(split->valid.size(), 200u);
  EXPECT_LE(split->valid.size(), 203u);
  EXPECT_EQ(split->held_out.size() + split->valid.size() + split->train.size(), 12187u);
  std::map<std::multiset<int>, int> sets;  // 1, 2 and 4: the sets that have the family
  const auto add = [&](const std::vector<ArithmeticProblem>& set, int bit) {
    for (const auto& problem : set)
      sets[family_of(problem)] |= bit;
  };
  add(split->train, 1), add(split->valid, 2), add(split->held_out, 4);
  for (const auto& [family, bits] : sets)
    EXPECT_TRUE(bits == 1 || bits == 2 || bits == 4) << bits;
  const auto same = split_arithmetic(3, 300, 2, 0);
  ASSERT_TRUE(same);
  std::set<std::multiset<int>> held, held_alone;
  for (const auto& problem : split->held_out)
    held.insert(family_of(problem));
  for (const auto& problem : same->held_out)
    held_alone.insert(family_of(problem));
  EXPECT_EQ(held, held_alone) << "a validation part changes no held-out part";
}

TEST(Arithmetic, ProblemsForSftAreApart) {
  auto split = split_arithmetic(1, 40), whole = split_arithmetic(1, 40);
  ASSERT_TRUE(split && whole);
  ASSERT_TRUE(take_apart(*split, 30));
  EXPECT_EQ(split->sft.size(), 30u);
  auto joined = split->train;
  joined.insert(joined.end(), split->sft.begin(), split->sft.end());
  EXPECT_EQ(joined, whole->train);
  EXPECT_FALSE(take_apart(*split, 1000));
}

TEST(Arithmetic, RefusesToHoldOutTooMuch) {
  EXPECT_FALSE(split_arithmetic(1, 40, 1, 60));
  EXPECT_FALSE(split_arithmetic(1, 0));
  EXPECT_FALSE(split_arithmetic(1, 100));
}

TEST(Arithmetic, FilesHoldOneObjectALine) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("troupe_arithmetic_" + std::to_string(::getpid()));
  auto split = split_arithmetic(1, 40);
  ASSERT_TRUE(split);
  ASSERT_TRUE(write_arithmetic(*split, folder));
  std::ifstream in(folder / "heldout.jsonl");
  std::string line;
  std::getline(in, line);
  const auto& first = split->held_out.front();
  const std::string sign = first.kind == Kind::kSum ? "+" : "-";
  EXPECT_EQ(line, "{\"prompt\": \"3 + 4 = 7\\n6 - 2 = 4\\n" + std::to_string(first.left) + " " +
                      sign + " " + std::to_string(first.right) + " =\", \"answer\": \"" +
                      std::to_string(first.answer()) + "\", \"kind\": \"" +
                      (first.kind == Kind::kSum ? "sum" : "difference") + "\", \"target\": \" " +
                      std::to_string(first.answer()) + "\", \"question\": \"" +
                      std::to_string(first.left) + " " + sign + " " + std::to_string(first.right) +
                      " =\"}");
  std::filesystem::remove_all(folder);
}

}  // namespace
