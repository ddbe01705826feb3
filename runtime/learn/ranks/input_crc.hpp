// A checksum of what a trainer is given, by which ranks notice that they were not given the same.
// The order of groups matters. A value type.
#pragma once

#include "runtime/core/crc32c.hpp"
#include "runtime/experience/group.hpp"

#include <cstdint>
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
      add(sample.tokens).add(sample.behaviour).add(sample.reference).add(sample.teacher);
      add(sample.values);
      for (const experience::Turn& turn : sample.turns)
        add(std::span(&turn.begin, 1)).add(turn.context);
      if (sample.episode != 0) add(std::span(&sample.episode, 1));
      if (sample.shares)
        add(std::span(&sample.shares->sample, 1)).add(std::span(&sample.shares->tokens, 1));
      for (const experience::StepReward& step : sample.steps)
        add(std::span(&step.token, 1)).add(std::span(&step.reward, 1));
    }
    return *this;
  }
  std::uint32_t value() const { return crc_; }

 private:
  std::uint32_t crc_ = 0;
};

}  // namespace troupe::learn
