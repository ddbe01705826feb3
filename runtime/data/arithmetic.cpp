#include "runtime/data/arithmetic.hpp"

#include "runtime/core/rng.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace troupe::data {
namespace {

using Family = std::pair<int, int>;
using Kind = ArithmeticProblem::Kind;

constexpr int kDigits = 10;
constexpr std::uint64_t kShuffleStream = 0x61726974;  // a random stream of this file's own

// The worked examples that every prompt begins with.
constexpr ArithmeticProblem kExamples[] = {{Kind::kSum, 3, 4}, {Kind::kDifference, 6, 2}};

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
            "\", \"kind\": \"" + (problem.kind == Kind::kSum ? "sum" : "difference") + "\"}\n";
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (!written || !closed) {
    return core::fail(
        core::ErrorCode::kResources,
        "cannot write " + path.string() + ": " + std::strerror(errno) + "; choose another --out");
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
  for (const ArithmeticProblem& example : kExamples) {
    out += question(example) + " " + std::to_string(example.answer()) + "\n";
  }
  return out + question(*this);
}

std::vector<ArithmeticProblem> all_arithmetic_problems() {
  std::vector<ArithmeticProblem> out;
  for (const Kind kind : {Kind::kSum, Kind::kDifference}) {
    for (int left = 0; left < kDigits; ++left) {
      for (int right = 0; right < kDigits; ++right) {
        if (kind == Kind::kDifference && right > left) continue;
        const ArithmeticProblem problem{kind, left, right};
        const bool shown = std::any_of(
            std::begin(kExamples), std::end(kExamples),
            [&](const ArithmeticProblem& example) { return example.family() == problem.family(); });
        if (!shown) out.push_back(problem);
      }
    }
  }
  return out;
}

core::Result<ArithmeticSplit> split_arithmetic(std::uint64_t seed, int held_out_min) {
  const std::vector<ArithmeticProblem> all = all_arithmetic_problems();
  if (held_out_min < 1 || static_cast<std::size_t>(held_out_min) > all.size() / 2) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "held-out problems: " + std::to_string(held_out_min) + " of " +
                          std::to_string(all.size()) + "; expected 1 to " +
                          std::to_string(all.size() / 2));
  }
  std::map<Family, int> sizes;
  std::vector<Family> with_difference, sums_only;
  for (const ArithmeticProblem& problem : all) {
    if (sizes[problem.family()]++ > 0) continue;
    const auto [low, high] = problem.family();
    (low + high < kDigits ? with_difference : sums_only).push_back({low, high});
  }
  core::Rng rng(seed, kShuffleStream);
  core::shuffle(with_difference, rng);
  core::shuffle(sums_only, rng);

  std::set<Family> held;
  int count = 0;
  for (std::size_t i = 0; count < held_out_min; ++i) {
    for (const auto* families : {&with_difference, &sums_only}) {
      if (i >= families->size() || count >= held_out_min) continue;
      held.insert((*families)[i]);
      count += sizes[(*families)[i]];
    }
  }
  ArithmeticSplit split;
  for (const ArithmeticProblem& problem : all) {
    (held.contains(problem.family()) ? split.held_out : split.train).push_back(problem);
  }
  core::shuffle(split.train, rng);
  core::shuffle(split.held_out, rng);
  return split;
}

core::Result<void> write_arithmetic(const ArithmeticSplit& split,
                                    const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return core::fail(core::ErrorCode::kResources, "cannot make folder " + folder.string() + ": " +
                                                       error.message() + "; choose another --out");
  }
  TROUPE_TRY(write_problems(split.train, folder / "train.jsonl"));
  return write_problems(split.held_out, folder / "heldout.jsonl");
}

}  // namespace troupe::data
