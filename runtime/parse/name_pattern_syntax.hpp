// The syntax tree of a NamePattern. Internal to this room.
#pragma once

#include "runtime/parse/name_pattern.hpp"

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace troupe::parse {

struct PatternNode {
  enum class Kind : std::uint8_t {
    kSet,
    kSequence,
    kChoice,
    kRepeat,  // the first child, `least` to `most` times
    kBegin,
    kEnd,
    kWordEdge,
    kNoWordEdge,
    kAhead,
    kNotAhead
  };
  static constexpr std::uint32_t kNoEnd = std::numeric_limits<std::uint32_t>::max();

  Kind kind = Kind::kSequence;
  NamePattern::Set set{};
  std::vector<PatternNode> parts{};
  std::uint32_t least = 0, most = 0;
};

// Errors: those of NamePattern::compile.
core::Result<PatternNode> parse_pattern(std::string_view pattern);

}  // namespace troupe::parse
