#include "runtime/data/arithmetic.hpp"

#include "runtime/core/rng.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace troupe::data {
namespace {

using Family = std::pair<int, int>;
using Kind = ArithmeticProblem::Kind;

// The operands of a task.
int lowest(int digits) {
  return digits == 1 ? 0 : 10;
}
int highest(int digits) {
  return digits == 1 ? 9 : 99;
}

constexpr std::uint64_t kShuffleStream = 0x61726974;  // a random stream of this file's own

// The worked examples that every prompt begins with.
constexpr ArithmeticProblem kExamples[][2] = {
    {{Kind::kSum, 3, 4}, {Kind::kDifference, 6, 2}},
    {{Kind::kSum, 23, 41, 2}, {Kind::kDifference, 67, 25, 2}}};

std::span<const ArithmeticProblem> examples(int digits) {
  return kExamples[digits - 1];
}

std::string question(const ArithmeticProblem& problem) {
  return std::to_string(problem.left) + (problem.kind == Kind::kSum ? " + " : " - ") +
         std::to_string(problem.right) + " =";
}

core::Result<void> write_problems(const std::vector<ArithmeticProblem>& problems,
                                  const std::filesystem::path& path) {
  std::string text;
  for (const ArithmeticProblem& problem : problems) {
    std::string prompt;
    for (const char c : problem.prompt())
      prompt += c == '\n' ? std::string("\\n") : std::string(1, c);
    text += "{\"prompt\": \"" + prompt + "\", \"answer\": \"" + std::to_string(problem.answer()) +
            "\", \"kind\": \"" + (problem.kind == Kind::kSum ? "sum" : "difference") +
            "\", \"target\": \" " + std::to_string(problem.answer()) + "\", \"question\": \"" +
            question(problem) + "\"}\n";
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (!written || !closed) {
    return core::fail(core::ErrorCode::kResources,
                      "cannot write " + path.string() + ": " + std::strerror(errno),
                      "choose another --out");
  }
  return {};
}

}  // namespace

std::pair<int, int> ArithmeticProblem::family() const {
  if (kind == Kind::kSum) return std::minmax({left, right});
  return std::minmax({answer(), right});
}

std::string ArithmeticProblem::prompt() const {
  std::string out;
  for (const ArithmeticProblem& example : examples(digits))
    out += question(example) + " " + std::to_string(example.answer()) + "\n";
  return out + question(*this);
}

std::vector<ArithmeticProblem> all_arithmetic_problems(int digits) {
  std::vector<ArithmeticProblem> out;
  for (const Kind kind : {Kind::kSum, Kind::kDifference}) {
    for (int left = lowest(digits); left <= highest(digits); ++left) {
      for (int right = lowest(digits); right <= highest(digits); ++right) {
        if (kind == Kind::kDifference && right > left) continue;
        const ArithmeticProblem problem{kind, left, right, digits};
        const bool shown = std::ranges::any_of(
            examples(digits),
            [&](const ArithmeticProblem& example) { return example.family() == problem.family(); });
        if (!shown) out.push_back(problem);
      }
    }
  }
  return out;
}

core::Result<ArithmeticSplit> split_arithmetic(std::uint64_t seed,
                                               int held_out_min,
                                               int digits,
                                               int valid_min) {
  const std::vector<ArithmeticProblem> all = all_arithmetic_problems(digits);
  const int apart = held_out_min + valid_min;
  if (held_out_min < 1 || static_cast<std::size_t>(apart) > all.size() / 2) {
    return core::fail(
        core::ErrorCode::kInvalidArgument,
        "held-out problems: " + std::to_string(apart) + " of " + std::to_string(all.size()),
        "expected 1 to " + std::to_string(all.size() / 2));
  }
  std::map<Family, int> sizes;
  std::vector<Family> with_difference, sums_only;
  for (const ArithmeticProblem& problem : all) {
    if (sizes[problem.family()]++ > 0) continue;
    const auto [low, high] = problem.family();
    (low + high <= highest(digits) ? with_difference : sums_only).push_back({low, high});
  }
  core::Rng rng(seed, kShuffleStream);
  core::shuffle(with_difference, rng);
  core::shuffle(sums_only, rng);

  std::set<Family> held, valid;
  int held_count = 0, valid_count = 0;
  for (std::size_t i = 0; held_count < held_out_min || valid_count < valid_min; ++i) {
    for (const auto* families : {&with_difference, &sums_only}) {
      if (i >= families->size()) continue;
      const Family& family = (*families)[i];
      if (held_count < held_out_min) {
        held.insert(family);
        held_count += sizes[family];
      } else if (valid_count < valid_min) {
        valid.insert(family);
        valid_count += sizes[family];
      }
    }
  }
  ArithmeticSplit split;
  for (const ArithmeticProblem& problem : all) {
    auto& set = held.contains(problem.family())    ? split.held_out
                : valid.contains(problem.family()) ? split.valid
                                                   : split.train;
    set.push_back(problem);
  }
  core::shuffle(split.train, rng);
  core::shuffle(split.held_out, rng);
  core::shuffle(split.valid, rng);
  return split;
}

core::Result<void> take_apart(ArithmeticSplit& split, int count) {
  const auto whole = std::ssize(split.train);
  if (count >= whole) {
    return core::fail(
        core::ErrorCode::kInvalidArgument,
        std::to_string(count) + " problems for SFT of " + std::to_string(whole) + " for training",
        "give fewer");
  }
  split.sft.assign(split.train.end() - count, split.train.end());
  split.train.resize(static_cast<std::size_t>(whole - count));
  return {};
}

core::Result<void> write_arithmetic(const ArithmeticSplit& split,
                                    const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return core::fail(core::ErrorCode::kResources,
                      "cannot make folder " + folder.string() + ": " + error.message(),
                      "choose another --out");
  }
  TROUPE_TRY(write_problems(split.train, folder / "train.jsonl"));
  if (!split.valid.empty()) TROUPE_TRY(write_problems(split.valid, folder / "valid.jsonl"));
  if (!split.sft.empty()) TROUPE_TRY(write_problems(split.sft, folder / "sft.jsonl"));
  return write_problems(split.held_out, folder / "heldout.jsonl");
}

}  // namespace troupe::data
