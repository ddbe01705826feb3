// Builds the HTTP answer to one request from its samples, in OpenAI's formats of completions and
// chats or vLLM's of token ids: one JSON object at the end, or server-sent events while samples
// grow. A choice is one sample: sample s of prompt i is choice i*n + s. Owned by one request, on
// its strand.
#pragma once

#include "runtime/dialects/served_model.hpp"
#include "runtime/dialects/tools/tool_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::dialects {

// The fields "id" and "created" of every JSON object of an answer.
struct AnswerName {
  std::string id;  // "cmpl-..." or "chatcmpl-..."; the field "request_id" of token ids
  std::int64_t created_s = 0;
};

// Call either `finish` for every choice, then `body`; or grow_event and finish_event, then
// last_events.
class Answer {
 public:
  // The arguments outlive the answer.
  Answer(const ServedModel& model,
         const GenerateRequest& request,
         const std::vector<EncodedPrompt>& prompts,
         AnswerName name,
         core::Version version);
  ~Answer();

  // Adds a finished sample to an answer that is not streamed.
  core::Result<void> finish(std::size_t choice, const engine::Sample& sample);
  // The events for a finished sample, without the tokens that grow_event has already sent.
  core::Result<std::string> finish_event(std::size_t choice, const engine::Sample& sample);
  // The events for new tokens of an unfinished sample; `part` holds only these.
  core::Result<std::string> grow_event(std::size_t choice, const engine::Sample& part);

  // Call these once all choices are finished.
  std::string body() const;
  std::string last_events() const;  // usage, when it was asked for, and [DONE]

  static std::string error_event(const ApiError& error);

 private:
  struct State;  // of one choice
  const EncodedPrompt& prompt_of(const State& state) const;
  void note_version(const engine::Sample& sample);
  core::Result<std::string> end_text(State& state, const engine::Sample& sample);
  nlohmann::ordered_json head(bool part) const;
  nlohmann::ordered_json usage() const;
  // The log-probs of the tokens [from, end) that `sample` holds. Before them, if `with_prompt` and
  // the request echoes its prompt, those of the prompt. Null if the request wants none.
  nlohmann::ordered_json logprobs(State& state,
                                  const engine::Sample& sample,
                                  std::size_t from,
                                  bool with_prompt) const;
  // Adds "finish_reason" and the fields that only a finished choice has.
  void add_end(nlohmann::ordered_json& choice,
               const State& state,
               const engine::Sample& sample) const;
  bool shows_ids() const;
  // Adds "token_ids" to a choice or a part of one, if the answer shows them.
  void add_ids(nlohmann::ordered_json& choice, std::span<const std::int32_t> ids) const;
  // Adds "prompt_token_ids", if they are wanted, to the choice (completions) or to the object.
  void add_prompt_ids(nlohmann::ordered_json& object,
                      nlohmann::ordered_json& choice,
                      const State& state) const;
  // Text and calls of new text; all of a response's if it is `at_end`.
  ToolText split(State& state, const std::string& text, bool at_end) const;
  // `part`: of a stream, whose calls have an index.
  nlohmann::ordered_json calls_json(State& state,
                                    const std::vector<ToolCall>& calls,
                                    bool part) const;
  nlohmann::ordered_json chunk(std::size_t choice,
                               const ToolText& parts,
                               nlohmann::ordered_json logprobs,
                               bool first);
  std::string event(State& state, nlohmann::ordered_json choice) const;
  std::string opening(std::size_t choice);

  const ServedModel& model_;
  const GenerateRequest& request_;
  const std::vector<EncodedPrompt>& prompts_;
  const AnswerName name_;
  core::Version version_;
  std::vector<State> states_;
};

}  // namespace troupe::dialects
