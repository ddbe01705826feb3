// What `troupe train METHOD` can be. A key of the configuration says which methods read it; a key
// that a method does not read is refused, and a method may have a default of its own. Constants and
// pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

// Sets of methods, one bit each.
using Methods = unsigned;
inline constexpr Methods kPpo = 1;       // every kind of reinforcement learning
inline constexpr Methods kSft = 2;       // supervised fine-tuning on answers
inline constexpr Methods kPretrain = 4;  // next token over all of a text
inline constexpr Methods kRm = 8;        // pairwise reward model
inline constexpr Methods kDpo = 16;
inline constexpr Methods kIpo = 32;
inline constexpr Methods kCdpo = 64;
inline constexpr Methods kKto = 128;
inline constexpr Methods kPairs = kRm | kDpo | kIpo | kCdpo;  // learn from chosen and rejected
inline constexpr Methods kPreference = kDpo | kIpo | kCdpo | kKto;  // have a reference model
inline constexpr Methods kSupervised = kSft | kPretrain | kRm | kPreference;
inline constexpr Methods kAllMethods = kPpo | kSupervised;

// 0 for a word that is no method.
Methods method_bit(std::string_view name);

// "sft, pretrain, rm": the methods of a set, in a fixed order.
std::string method_names(Methods methods);

// A default that differs from the table's for some methods; `value` as written in YAML.
struct MethodDefault {
  Methods methods;
  std::string_view key;
  std::string_view value;
};
std::span<const MethodDefault> method_defaults();

}  // namespace troupe::config
