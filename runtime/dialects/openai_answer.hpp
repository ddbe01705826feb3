// Answers in OpenAI's formats of completions and chats, and in vLLM's of token ids. Owned by one
// request, on its strand.
#pragma once

#include "runtime/dialects/answer.hpp"
#include "runtime/dialects/choice_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace troupe::dialects {

class OpenAiAnswer final : public Answer {
 public:
  // The arguments outlive the answer.
  OpenAiAnswer(const ServedModel& model,
               const GenerateRequest& request,
               const std::vector<EncodedPrompt>& prompts,
               AnswerName name,
               core::Version version);
  ~OpenAiAnswer() override;

  core::Result<void> finish(std::size_t choice, const engine::Sample& sample) override;
  core::Result<std::string> finish_event(std::size_t choice, const engine::Sample& sample) override;
  core::Result<std::string> grow_event(std::size_t choice, const engine::Sample& part) override;
  std::string body() const override;
  std::string last_events() const override;  // usage, when it was asked for, and [DONE]
  std::string error_event(const ApiError& error) const override;

 private:
  struct State;  // of one choice
  const EncodedPrompt& prompt_of(const State& state) const;
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
  // The last calls of a choice; `part`: of a stream, whose calls have an index.
  nlohmann::ordered_json calls_json(const State& state,
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
  const core::Version version_;  // when the request came
  std::vector<State> states_;
};

}  // namespace troupe::dialects
