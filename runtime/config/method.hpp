// The methods of `troupe train METHOD`: ppo, and the rows of methods.def. Each configuration key
// says which methods read it; a key that the method does not read is refused. Constants and pure
// functions.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace troupe::config {

// What a method learns from: prompts, or rows of data.
enum class MethodRows { kPrompt, kAnswer, kText, kPair, kRated, kSteps };

enum MethodTrait : unsigned {
  kNoTrait = 0,
  kReference = 1,  // compares with a frozen model
  kTeacher = 2,    // may learn from the distributions of frozen models
  kScores = 4,     // trains a model with a score head
};

enum class MethodNumber : unsigned {
  kPpo,
#define METHOD(id, ...) k##id,
#include "runtime/config/methods.def"
#undef METHOD
};

// A method or a set of methods, one bit each.
enum Methods : unsigned {
  kNoMethod = 0,
  kPpo = 1,  // every kind of reinforcement learning
#define METHOD(id, ...) k##id = 1U << static_cast<unsigned>(MethodNumber::k##id),
#include "runtime/config/methods.def"
#undef METHOD
};

constexpr Methods operator|(Methods a, Methods b) {
  return static_cast<Methods>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

struct MethodRow {
  Methods bit;
  std::string_view name;
  MethodRows rows;
  unsigned traits;
};

// In the order of the bits.
inline constexpr std::array kMethodRows = {
    MethodRow{kPpo, "ppo", MethodRows::kPrompt, kTeacher},
#define METHOD(id, name, rows, traits, ...) MethodRow{k##id, name, MethodRows::rows, traits},
#include "runtime/config/methods.def"
#undef METHOD
};

inline constexpr auto kMethodNames = [] {
  std::array<std::string_view, kMethodRows.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = kMethodRows[i].name;
  return names;
}();

template <class Holds>
constexpr Methods methods_where(Holds holds) {
  Methods set = kNoMethod;
  for (const MethodRow& row : kMethodRows)
    if (holds(row)) set = set | row.bit;
  return set;
}
constexpr Methods methods_of(MethodRows rows) {
  return methods_where([rows](const MethodRow& row) { return row.rows == rows; });
}
constexpr Methods methods_with(MethodTrait trait) {
  return methods_where([trait](const MethodRow& row) { return (row.traits & trait) != 0; });
}

inline constexpr Methods kAllMethods = methods_where([](const MethodRow&) { return true; });
inline constexpr Methods kSupervised =
    methods_where([](const MethodRow& row) { return row.rows != MethodRows::kPrompt; });
inline constexpr Methods kAnswers = methods_of(MethodRows::kAnswer);  // learn the tokens of answers
inline constexpr Methods kPairs = methods_of(MethodRows::kPair);   // of chosen and rejected answers
inline constexpr Methods kRated = methods_of(MethodRows::kRated);  // single answers, good or bad
inline constexpr Methods kReferenced = methods_with(kReference);
inline constexpr Methods kTaught = methods_with(kTeacher);
// The losses of the section dpo.
inline constexpr Methods kVariants = kDpo | kIpo | kCdpo;
// Pairs without a reference model.
inline constexpr Methods kReferenceFree =
    static_cast<Methods>(kPairs & ~(kReferenced | methods_with(kScores)));
inline constexpr Methods kPreference = kReferenced | kReferenceFree;

// kNoMethod for an unknown name.
Methods method_named(std::string_view name);

// "sft, pretrain, rm": the methods of a set.
std::string method_names(Methods methods);

}  // namespace troupe::config
