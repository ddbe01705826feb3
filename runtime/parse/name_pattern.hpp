// Regular expressions of Python's `re` that a whole name must match (re.fullmatch), as PEFT has
// them in the `target_modules` of an adapter. For patterns of strangers: length, nesting, size and
// steps are bounded, and what a backtracking matcher takes for ever over takes a few thousand steps
// here. Names are ASCII. A value; pure.
#pragma once

#include "runtime/core/result.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::parse {

class NamePattern {
 public:
  static constexpr std::size_t kBytes_max = 4096, kDepth_max = 100, kOps_max = 20'000;
  static constexpr std::uint64_t kSteps_max = 500'000;  // for one name

  // Error kData, which says why: the pattern is malformed or larger than the bounds, or has what is
  // not evaluated (back references, look-behind, atomic groups, possessive quantifiers, conditions,
  // flags after the beginning, verbose patterns).
  static core::Result<NamePattern> compile(std::string_view pattern);

  // Error kData: it takes more than kSteps_max steps.
  core::Result<bool> matches(std::string_view name) const;

  // What compiling and matching work with.
  using Set = std::bitset<128>;
  enum class Code : std::uint8_t {
    kOne,    // a character of the set `x`
    kSplit,  // go on at x or at y
    kBegin,
    kEnd,
    kWordEdge,    // \b
    kNoWordEdge,  // \B
    kAhead,       // the program at x matches from here; go on at y
    kNotAhead,
    kAccept,  // of a look-ahead
    kFull,    // at the end of the name
  };
  struct Op {
    Code code = Code::kFull;
    std::uint32_t x = 0, y = 0;
  };

 private:
  std::vector<Op> ops_;
  std::vector<Set> sets_;
  std::uint32_t begin_ = 0;
};

}  // namespace troupe::parse
