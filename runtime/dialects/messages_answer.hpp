// Answers in the format of Anthropic's Messages: a message of content blocks, each a text or the
// use of a tool, whole or as named events. A request for token ids adds `prompt_token_ids`,
// `token_ids` and `system_fingerprint`, one for log-probs `logprobs`. Owned by one request, on its
// strand.
#pragma once

#include "runtime/dialects/answer.hpp"
#include "runtime/dialects/choice_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe::dialects {

class MessagesAnswer final : public Answer {
 public:
  // The arguments outlive the answer.
  MessagesAnswer(const ServedModel& model,
                 const GenerateRequest& request,
                 const EncodedPrompt& prompt,
                 AnswerName name,
                 core::Version version);
  ~MessagesAnswer() override;

  // There is one choice: a message is one sample.
  core::Result<void> finish(std::size_t choice, const engine::Sample& sample) override;
  core::Result<std::string> finish_event(std::size_t choice, const engine::Sample& sample) override;
  core::Result<std::string> grow_event(std::size_t choice, const engine::Sample& part) override;
  std::string body() const override;
  std::string last_events() const override;  // message_stop
  std::string error_event(const ApiError& error) const override;

 private:
  struct Blocks;  // the content, block by block
  nlohmann::ordered_json message(std::size_t output_tokens) const;
  std::string opening();
  std::string add(const ToolText& parts);
  // Why the sample ended, as the fields "stop_reason" and "stop_sequence".
  nlohmann::ordered_json stop(const engine::Sample& sample) const;
  // What else a finished answer says to those who asked for it: ids and log-probs.
  void add_tokens(nlohmann::ordered_json& object, const engine::Sample& sample) const;

  const ServedModel& model_;
  const GenerateRequest& request_;
  const EncodedPrompt& prompt_;
  const AnswerName name_;
  const core::Version version_;  // when the request came
  ChoiceReader reader_;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<nlohmann::ordered_json> whole_;  // the message, if the answer is not streamed
  bool opened_ = false;                            // message_start was sent
};

}  // namespace troupe::dialects
