// Reads one choice of an answer while its tokens arrive: the text, the calls of tools in it, and
// why it ended. Shared by the answers of all APIs. Owned by one answer, on its request's strand.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/dialects/sample_text.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/dialects/tools/tool_reader.hpp"
#include "runtime/engine/types.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace troupe::dialects {

// The stop string or the stop token of the request that ended a sample; neither: something else
// did.
using StopCause = std::variant<std::monostate, std::string, std::int32_t>;

class ChoiceReader {
 public:
  // The arguments outlive the reader.
  ChoiceReader(const ServedModel& model, const GenerateRequest& request);

  // Takes new tokens of an unfinished sample, which `part` holds alone; returns what they have
  // brought.
  core::Result<ToolText> go_on(const engine::Sample& part);
  // Takes a finished sample; returns what it has beyond what go_on has had.
  core::Result<ToolText> finish(const engine::Sample& sample);

  // Tokens of the response so far; 0 if the request wants only the prompt.
  std::size_t tokens() const noexcept { return tokens_; }
  std::size_t calls() const noexcept { return calls_; }        // of tools, so far
  core::Version version() const noexcept { return version_; }  // of the newest token; 0: none yet
  StopCause stop_cause(const engine::Sample& finished) const;

 private:
  ToolText split(const std::string& text, bool at_end);
  void note_version(const engine::Sample& sample);

  const GenerateRequest& request_;
  SampleText text_;
  std::optional<ToolReader> reader_{};  // none: the response is text alone
  std::size_t tokens_ = 0, calls_ = 0;
  core::Version version_ = 0;
};

// The id of call `index` of a choice, the same whenever the answer is asked for it: `prefix` and 24
// hexadecimal digits; or nine letters and digits, which is what Mistral's templates want.
std::string call_id(const ServedModel& model,
                    std::string_view prefix,
                    const std::string& answer_id,
                    std::size_t choice,
                    std::size_t index);

}  // namespace troupe::dialects
