// The interface to the prompts of a run, in the order in which tickets take them. A position in
// this stream always means the same prompt, so a resumed run needs only the position. Used on the
// data role's strand.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors::data {

struct Prompt {
  std::uint64_t row = 0;  // index in the dataset
  std::vector<std::int32_t> tokens;
  std::string text;           // as the model sees it, after templates
  std::string label;          // "" when there is none
  std::string columns;        // the whole row as JSON
  std::string messages = {};  // JSON list of chat messages, where the dataset has one
  std::uint32_t teacher = 0;  // of the row's domain, in the order of the run's teachers
  std::string set = {};       // of named held-out prompts (eval.sets); "": none
};

class PromptSource {
 public:
  virtual ~PromptSource() = default;
  virtual std::uint64_t size() const = 0;  // prompts of one epoch
  // Any position is valid; beyond one epoch the next shuffled epoch follows.
  virtual core::Result<Prompt> at(std::uint64_t position) = 0;
};

}  // namespace troupe::actors::data
