// Which tokens end a response: those that the tokenizer's files name, then any others that the
// model's config.json names. Pure.
#pragma once

#include "runtime/model/spec.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::cli {

// `ends`: Tokenizer::eos_ids(), or SpecialTokens::eos_ids without a tokenizer.
inline std::vector<std::int32_t> end_tokens(std::vector<std::int32_t> ends,
                                            const model::ModelSpec& spec) {
  for (const std::int32_t id : spec.eos) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  }
  return ends;
}

}  // namespace troupe::cli
