#include "runtime/sessions/said.hpp"

#include "runtime/dialects/choice_reader.hpp"

namespace troupe::sessions {

using Json = nlohmann::ordered_json;

core::Result<Said> said_of(const dialects::ServedModel& model,
                           const dialects::GenerateRequest& request,
                           const std::string& answer_id,
                           std::size_t choice,
                           const engine::Sample& sample) {
  Said out;
  if (!model.tokenizer) return out;
  dialects::ChoiceReader reader(model, request);
  TROUPE_TRY_ASSIGN(parts, reader.finish(sample));
  dialects::SampleText whole(model.tokenizer, request.sampling, true, request.include_stop);
  TROUPE_TRY_SET(out.text, whole.end(sample.tokens, sample.finish));
  out.message = {{"role", "assistant"}, {"content", parts.content}};
  if (parts.calls.empty()) return out;
  const bool blank = parts.content.find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank) out.message["content"] = "";
  const bool of_messages = request.dialect == dialects::Dialect::kMessages;
  Json& calls = out.message["tool_calls"] = Json::array();
  for (std::size_t i = 0; i < parts.calls.size(); ++i) {
    calls.push_back(
        {{"id", dialects::call_id(model, of_messages ? "toolu_" : "call_", answer_id, choice, i)},
         {"type", "function"},
         {"function", {{"name", parts.calls[i].name}, {"arguments", parts.calls[i].arguments}}}});
  }
  return out;
}

Call call_of(const CallPrompt& prompt, const Said& said, const engine::Sample& sample) {
  Call call;
  call.drawn = {sample.tokens, sample.logprobs, experience::VersionRuns(sample.versions),
                sample.facts, sample.finish};
  call.text = said.text;
  if (prompt.dialogue.empty()) return call;
  call.after = digest_with(prompt.dialogue, said.message);
  call.past = prompt.past;
  return call;
}

}  // namespace troupe::sessions
