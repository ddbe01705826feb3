// Which tokens end a response: the tokenizer's own, then those that only config.json names. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/model/spec.hpp"
#include "runtime/text/tokenizer.hpp"

namespace troupe::app {

inline std::vector<std::int32_t> end_tokens(const text::Tokenizer& tokenizer,
                                            const model::ModelSpec& spec) {
  std::vector<std::int32_t> ends = tokenizer.eos_ids();
  for (const std::int32_t id : spec.eos) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  }
  return ends;
}

}  // namespace troupe::app
