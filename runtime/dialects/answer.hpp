// Builds the HTTP answer to one request from its samples: one JSON object at the end, or
// server-sent events while samples grow. Each API has a writer of its own; all read the tokens of a
// choice by a ChoiceReader. A choice is one sample: sample s of prompt i is choice i*n + s. Owned
// by one request, on its strand.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::dialects {

// What identifies an answer.
struct AnswerName {
  std::string id;              // "cmpl-...", "chatcmpl-...", "msg_..."; of token ids "request_id"
  std::int64_t created_s = 0;  // Unix time
};

// Call either `finish` for every choice, then `body`; or grow_event and finish_event, then
// last_events.
class Answer {
 public:
  virtual ~Answer() = default;

  // Adds a finished sample to an answer that is not streamed.
  virtual core::Result<void> finish(std::size_t choice, const engine::Sample& sample) = 0;
  // The events for a finished sample, without the tokens that grow_event has already sent.
  virtual core::Result<std::string> finish_event(std::size_t choice,
                                                 const engine::Sample& sample) = 0;
  // The events for new tokens of an unfinished sample; `part` holds only these.
  virtual core::Result<std::string> grow_event(std::size_t choice, const engine::Sample& part) = 0;

  // Call these once all choices are finished.
  virtual std::string body() const = 0;
  virtual std::string last_events() const = 0;

  // The last events of a stream that failed.
  virtual std::string error_event(const ApiError& error) const = 0;
};

// The answer in the API of the request, whose arguments outlive it. `version`: of the weights now.
std::unique_ptr<Answer> make_answer(const ServedModel& model,
                                    const GenerateRequest& request,
                                    const std::vector<EncodedPrompt>& prompts,
                                    AnswerName name,
                                    core::Version version);

}  // namespace troupe::dialects
