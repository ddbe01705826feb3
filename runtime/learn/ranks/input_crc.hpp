// A checksum of what a trainer is given, by which ranks notice that they were not given the same:
// of groups, the fields of their samples that are learned from. The order of groups matters. A
// value type.
#pragma once

#include "runtime/core/crc32c.hpp"
#include "runtime/experience/sample_fields.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace troupe::learn {

class InputCrc {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> InputCrc& add(std::span<const Number> numbers) {
    crc_ = core::crc32c(numbers.data(), numbers.size_bytes(), crc_);
    return *this;
  }
  template <class Number>
  requires std::is_arithmetic_v<Number> InputCrc& add(const Number& number) {
    return add(std::span(&number, 1));
  }
  // Numbers, or lists of lists of them.
  template <class Entry>
  InputCrc& add(const std::vector<Entry>& list) {
    if constexpr (std::is_arithmetic_v<Entry>) {
      return add(std::span<const Entry>(list));
    } else {
      for (const Entry& entry : list)
        add(entry);
      return *this;
    }
  }
  InputCrc& add(const experience::Group& group) {
    add(group.prompt);
    for (const experience::Trajectory& sample : group.samples) {
      experience::each_sample_field<experience::kLearnedFrom>(
          [&](const auto& field) { add(sample.*field.member); });
    }
    return *this;
  }
  std::uint32_t value() const { return crc_; }

 private:
  InputCrc& add(experience::FinishReason finish) { return add(static_cast<int>(finish)); }
  InputCrc& add(const experience::Turn& turn) { return add(turn.begin).add(turn.context); }
  InputCrc& add(const experience::Shares& shares) { return add(shares.sample).add(shares.tokens); }
  InputCrc& add(const experience::StepReward& step) { return add(step.token).add(step.reward); }
  InputCrc& add(const experience::VersionRuns& versions) {
    for (const auto& run : versions.runs())
      add(run.version).add(run.count);
    return *this;
  }
  InputCrc& add(const experience::TokenFacts& facts) {
    for (const experience::TokenFact& fact : experience::kTokenFacts)
      if (fact.learned_from) add(facts.*fact.list);
    return *this;
  }
  template <class Value>
  InputCrc& add(const std::optional<Value>& value) {
    return value ? add(*value) : *this;
  }

  std::uint32_t crc_ = 0;
};

}  // namespace troupe::learn
