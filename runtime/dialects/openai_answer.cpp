#include "runtime/dialects/openai_answer.hpp"

#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/logprob_json.hpp"
#include "runtime/dialects/npy_text.hpp"

#include <algorithm>
#include <utility>

namespace troupe::dialects {

using Json = nlohmann::ordered_json;
using engine::FinishReason;

namespace {

const char* finish_word(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAborted:
      return "abort";
    default:
      return "stop";
  }
}

// vLLM's field "stop_reason": the stop string or stop token that ended the sample, else null.
Json stop_reason(const StopCause& cause) {
  if (const auto* text = std::get_if<std::string>(&cause)) return *text;
  if (const auto* token = std::get_if<std::int32_t>(&cause)) return *token;
  return nullptr;
}

}  // namespace

struct OpenAiAnswer::State {
  ChoiceReader reader;
  std::size_t offset = 0;    // characters of the tokens whose log-probs were sent
  bool opened = false;       // the first event was sent
  bool told_prompt = false;  // an event had the prompt's ids, if they are wanted
  Json whole{};              // the finished choice, if the answer is not streamed
};

OpenAiAnswer::OpenAiAnswer(const ServedModel& model,
                           const GenerateRequest& request,
                           const std::vector<EncodedPrompt>& prompts,
                           AnswerName name,
                           core::Version version)
    : model_(model),
      request_(request),
      prompts_(prompts),
      name_(std::move(name)),
      version_(version) {
  const std::size_t count = prompts.size() * static_cast<std::size_t>(request.n);
  states_.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    states_.push_back(State{ChoiceReader(model, request)});
}

OpenAiAnswer::~OpenAiAnswer() = default;

Json OpenAiAnswer::head(bool part) const {
  core::Version version = version_;
  for (const State& state : states_)
    version = std::max(version, state.reader.version());
  const std::string fingerprint = "v" + std::to_string(version);
  if (request_.dialect == Dialect::kTokens)
    return {{"request_id", name_.id}, {"system_fingerprint", fingerprint}};
  const char* const object = request_.dialect == Dialect::kCompletion ? "text_completion"
                             : part                                   ? "chat.completion.chunk"
                                                                      : "chat.completion";
  return {{"id", name_.id},
          {"object", object},
          {"created", name_.created_s},
          {"model", request_.model.empty() ? model_.names.front() : request_.model},
          {"system_fingerprint", fingerprint}};
}

Json OpenAiAnswer::usage() const {
  std::size_t prompt = 0, response = 0;
  for (const EncodedPrompt& one : prompts_)
    prompt += one.tokens.size();
  for (const State& one : states_)
    response += one.reader.tokens();
  return {{"prompt_tokens", prompt},
          {"completion_tokens", response},
          {"total_tokens", prompt + response}};
}

Json OpenAiAnswer::logprobs(State& state,
                            const engine::Sample& sample,
                            std::size_t from,
                            bool with_prompt) const {
  if (!request_.logprobs) return nullptr;
  const auto top = static_cast<std::size_t>(request_.sampling.top_logprobs);
  const auto tops_at = [top](const std::vector<engine::TokenLogprob>& tops, std::size_t at) {
    return std::span(tops).subspan(at * top, top);
  };
  std::vector<ScoredToken> tokens;
  if (with_prompt && request_.echo) {
    const auto& prompt = prompt_of(state).tokens;
    tokens.push_back({.token = prompt[0]});
    const std::vector<float>& known = sample.prompt_logprobs;  // fewer if the sample was aborted
    for (std::size_t i = 1; i < prompt.size(); ++i) {
      tokens.push_back({.token = prompt[i]});
      if (i > known.size()) continue;
      tokens.back().logprob = known[i - 1];
      tokens.back().top = tops_at(sample.prompt_top_logprobs, i - 1);
    }
  }
  for (std::size_t i = from; i < sample.tokens.size() && !request_.scores_only(); ++i)
    tokens.push_back({sample.tokens[i], sample.raw_logprobs[i], tops_at(sample.top_logprobs, i)});
  const LogprobJson writer(model_.tokenizer, request_.tokens_as_ids);
  return request_.dialect == Dialect::kCompletion ? writer.completion(tokens, state.offset)
                                                  : writer.chat(tokens);
}

Json OpenAiAnswer::calls_json(const State& state,
                              const std::vector<ToolCall>& calls,
                              bool part) const {
  const auto choice = static_cast<std::size_t>(&state - states_.data());
  std::size_t index = state.reader.calls() - calls.size();
  Json out = Json::array();
  for (const ToolCall& call : calls) {
    Json made = Json::object();
    if (part) made["index"] = index;
    made["id"] = call_id(model_, "call_", name_.id, choice, index++);
    made["type"] = "function";
    made["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    out.push_back(std::move(made));
  }
  return out;
}

void OpenAiAnswer::add_end(Json& choice, const State& state, const engine::Sample& sample) const {
  const std::string finish = finish_word(sample.finish);
  choice["finish_reason"] = state.reader.calls() > 0 && finish == "stop" ? "tool_calls" : finish;
  choice["stop_reason"] = stop_reason(state.reader.stop_cause(sample));
  if (!sample.guide_error.empty()) choice["stop_reason"] = sample.guide_error;
  if (!request_.sampling.routed_experts) return;
  const auto layers = static_cast<std::size_t>(model_.moe_layers);
  const auto each = static_cast<std::size_t>(model_.experts_per_token);
  const std::size_t rows = state.reader.tokens();  // 0 if the prompt was only scored
  const std::span<const std::uint16_t> chosen(sample.routed_experts);
  choice["routed_experts"] = npy_text(chosen.first(rows * layers * each), {rows, layers, each});
}

const EncodedPrompt& OpenAiAnswer::prompt_of(const State& state) const {
  const auto choice = static_cast<std::size_t>(&state - states_.data());
  return prompts_[choice / static_cast<std::size_t>(request_.n)];
}

bool OpenAiAnswer::shows_ids() const {
  return !model_.tokenizer || request_.return_token_ids || request_.dialect == Dialect::kTokens;
}

void OpenAiAnswer::add_ids(Json& choice, std::span<const std::int32_t> ids) const {
  if (shows_ids()) choice["token_ids"] = ids;
}

void OpenAiAnswer::add_prompt_ids(Json& object, Json& choice, const State& state) const {
  if (!request_.return_token_ids) return;
  Json& to = request_.dialect == Dialect::kCompletion ? choice : object;
  to["prompt_token_ids"] = prompt_of(state).tokens;
}

core::Result<void> OpenAiAnswer::finish(std::size_t choice, const engine::Sample& sample) {
  State& state = states_[choice];
  TROUPE_TRY_ASSIGN(parts, state.reader.finish(sample));
  Json out = {{"index", choice}};
  if (request_.dialect == Dialect::kChat) {
    const bool blank = parts.content.find_first_not_of(" \t\r\n") == std::string::npos;
    out["message"] = {{"role", "assistant"}, {"content", parts.content}, {"refusal", nullptr}};
    if (!parts.calls.empty()) {
      if (blank) out["message"]["content"] = nullptr;
      out["message"]["tool_calls"] = calls_json(state, parts.calls, false);
    }
  } else if (request_.dialect == Dialect::kCompletion) {
    out["text"] = request_.echo ? prompt_of(state).text + parts.content : parts.content;
  }
  add_ids(out, std::span(sample.tokens).first(state.reader.tokens()));
  out["logprobs"] = logprobs(state, sample, 0, true);
  add_end(out, state, sample);
  state.whole = std::move(out);
  return {};
}

std::string OpenAiAnswer::body() const {
  Json out = head(false);
  out["choices"] = Json::array();
  for (const State& state : states_) {
    Json& choice = out["choices"].emplace_back(state.whole);
    add_prompt_ids(out, choice, state);
  }
  out["usage"] = usage();
  return json_text(out);
}

Json OpenAiAnswer::chunk(std::size_t choice, const ToolText& parts, Json logprobs, bool first) {
  const std::string& text = parts.content;
  Json out = {{"index", choice}};
  if (request_.dialect == Dialect::kChat) {
    out["delta"] = Json::object();
    if (first) out["delta"]["role"] = "assistant";
    if (first || !text.empty()) out["delta"]["content"] = text;
    if (!parts.calls.empty())
      out["delta"]["tool_calls"] = calls_json(states_[choice], parts.calls, true);
  } else if (request_.dialect == Dialect::kCompletion) {
    out["text"] = text;
  }
  out["logprobs"] = std::move(logprobs);
  out["finish_reason"] = nullptr;
  return out;
}

std::string OpenAiAnswer::event(State& state, Json choice) const {
  Json out = head(true);
  if (!std::exchange(state.told_prompt, true)) add_prompt_ids(out, choice, state);
  out["choices"] = Json::array({std::move(choice)});
  if (request_.include_usage) out["usage"] = nullptr;
  return "data: " + json_text(out) + "\n\n";
}

// The event that precedes a choice's first text: the role (chat) or the echoed prompt. Empty if
// there is none or it was sent.
std::string OpenAiAnswer::opening(std::size_t choice) {
  State& state = states_[choice];
  if (std::exchange(state.opened, true)) return {};
  if (request_.dialect == Dialect::kChat) return event(state, chunk(choice, {}, nullptr, true));
  if (!request_.echo) return {};
  return event(state, chunk(choice, {prompt_of(state).text, {}, {}}, nullptr, false));
}

core::Result<std::string> OpenAiAnswer::grow_event(std::size_t choice, const engine::Sample& part) {
  State& state = states_[choice];
  if (request_.scores_only()) return std::string();
  std::string out = opening(choice);
  TROUPE_TRY_ASSIGN(parts, state.reader.go_on(part));
  const bool silent = parts.content.empty() && parts.calls.empty();
  if (silent && !request_.logprobs && !shows_ids()) return out;
  Json grown = chunk(choice, parts, logprobs(state, part, 0, false), false);
  add_ids(grown, part.tokens);
  return out + event(state, std::move(grown));
}

core::Result<std::string> OpenAiAnswer::finish_event(std::size_t choice,
                                                     const engine::Sample& sample) {
  State& state = states_[choice];
  std::string out = opening(choice);
  const std::size_t told = std::min(state.reader.tokens(), sample.tokens.size());
  TROUPE_TRY_ASSIGN(parts, state.reader.finish(sample));
  Json last = chunk(choice, parts, logprobs(state, sample, told, false), false);
  if (!request_.scores_only()) add_ids(last, std::span(sample.tokens).subspan(told));
  add_end(last, state, sample);
  return out + event(state, std::move(last));
}

std::string OpenAiAnswer::last_events() const {
  std::string out;
  if (request_.include_usage) {
    Json object = head(true);
    object["choices"] = Json::array();
    object["usage"] = usage();
    out = "data: " + json_text(object) + "\n\n";
  }
  return out + "data: [DONE]\n\n";
}

std::string OpenAiAnswer::error_event(const ApiError& error) const {
  return "data: " + api_error_json(error) + "\n\ndata: [DONE]\n\n";
}

}  // namespace troupe::dialects
