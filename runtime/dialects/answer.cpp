#include "runtime/dialects/answer.hpp"

#include "runtime/dialects/logprob_json.hpp"
#include "runtime/dialects/npy_text.hpp"
#include "runtime/dialects/sample_text.hpp"
#include "runtime/dialects/tools/tool_reader.hpp"
#include "runtime/store/sha256.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::dialects {

using Json = nlohmann::ordered_json;
using engine::FinishReason;

namespace {

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

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
Json stop_reason(const SampleText& text,
                 const engine::Sample& sample,
                 const engine::SamplingParams& params) {
  if (text.stop()) return *text.stop();
  const auto& stops = params.stop_tokens;
  if (sample.finish == FinishReason::kStop && !sample.tokens.empty() &&
      std::find(stops.begin(), stops.end(), sample.tokens.back()) != stops.end()) {
    return sample.tokens.back();
  }
  return nullptr;
}

}  // namespace

struct Answer::State {
  SampleText text;
  std::optional<ToolReader> reader{};  // none: the response is text alone
  std::size_t calls = 0;               // that were found in it
  std::size_t offset = 0;              // characters of the tokens whose log-probs were sent
  bool opened = false;                 // the first event was sent
  bool told_prompt = false;            // an event had the prompt's ids, if they are wanted
  std::size_t tokens = 0;
  Json whole{};  // the finished choice, if the answer is not streamed
};

Answer::Answer(const ServedModel& model,
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
  const bool marks = request.tools && marks_are_special(model.tool_format);
  for (std::size_t i = 0; i < count; ++i) {
    State& state = states_.emplace_back(
        State{SampleText(model.tokenizer, request.sampling, request.skip_special_tokens && !marks,
                         request.include_stop)});
    if (request.tools) state.reader.emplace(model.tool_format, request.tool_names);
  }
}

Answer::~Answer() = default;

Json Answer::head(bool part) const {
  if (request_.dialect == Dialect::kTokens) {
    return {{"request_id", name_.id}, {"system_fingerprint", "v" + std::to_string(version_)}};
  }
  const char* const object = request_.dialect == Dialect::kCompletion ? "text_completion"
                             : part                                   ? "chat.completion.chunk"
                                                                      : "chat.completion";
  return {{"id", name_.id},
          {"object", object},
          {"created", name_.created_s},
          {"model", request_.model.empty() ? model_.names.front() : request_.model},
          {"system_fingerprint", "v" + std::to_string(version_)}};
}

Json Answer::usage() const {
  std::size_t prompt = 0, response = 0;
  for (const EncodedPrompt& one : prompts_)
    prompt += one.tokens.size();
  for (const State& one : states_)
    response += one.tokens;
  return {{"prompt_tokens", prompt},
          {"completion_tokens", response},
          {"total_tokens", prompt + response}};
}

Json Answer::logprobs(State& state,
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
  const LogprobJson json(model_.tokenizer, request_.tokens_as_ids);
  return request_.dialect == Dialect::kCompletion ? json.completion(tokens, state.offset)
                                                  : json.chat(tokens);
}

ToolText Answer::split(State& state, const std::string& text, bool at_end) const {
  if (!state.reader) return {text, {}};
  ToolText out = at_end ? state.reader->finish(text) : state.reader->push(text);
  if (request_.one_call && !out.calls.empty()) out.calls.resize(state.calls > 0 ? 0 : 1);
  return out;
}

Json Answer::calls_json(State& state, const std::vector<ToolCall>& calls, bool part) const {
  const std::string choice = std::to_string(&state - states_.data());
  Json out = Json::array();
  for (const ToolCall& call : calls) {
    const std::size_t index = state.calls++;
    const std::string digest =
        store::sha256_text(name_.id + "/" + choice + "/" + std::to_string(index));
    Json made = Json::object();
    if (part) made["index"] = index;
    // Mistral's templates want nine letters and digits.
    made["id"] = model_.tool_format == ToolFormat::kMistral ? digest.substr(0, 9)
                                                            : "call_" + digest.substr(0, 24);
    made["type"] = "function";
    made["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    out.push_back(std::move(made));
  }
  return out;
}

void Answer::add_end(Json& choice, const State& state, const engine::Sample& sample) const {
  const std::string finish = finish_word(sample.finish);
  choice["finish_reason"] = state.calls > 0 && finish == "stop" ? "tool_calls" : finish;
  choice["stop_reason"] = stop_reason(state.text, sample, request_.sampling);
  if (!request_.sampling.routed_experts) return;
  const auto layers = static_cast<std::size_t>(model_.moe_layers);
  const auto each = static_cast<std::size_t>(model_.experts_per_token);
  const std::size_t rows = state.tokens;  // 0 if the prompt was only scored
  const std::span<const std::uint16_t> chosen(sample.routed_experts);
  choice["routed_experts"] = npy_text(chosen.first(rows * layers * each), {rows, layers, each});
}

const EncodedPrompt& Answer::prompt_of(const State& state) const {
  const auto choice = static_cast<std::size_t>(&state - states_.data());
  return prompts_[choice / static_cast<std::size_t>(request_.n)];
}

bool Answer::shows_ids() const {
  return !model_.tokenizer || request_.return_token_ids || request_.dialect == Dialect::kTokens;
}

void Answer::add_ids(Json& choice, std::span<const std::int32_t> ids) const {
  if (shows_ids()) choice["token_ids"] = ids;
}

void Answer::add_prompt_ids(Json& object, Json& choice, const State& state) const {
  if (!request_.return_token_ids) return;
  Json& to = request_.dialect == Dialect::kCompletion ? choice : object;
  to["prompt_token_ids"] = prompt_of(state).tokens;
}

// The part of a finished sample's text that has not been sent.
core::Result<std::string> Answer::end_text(State& state, const engine::Sample& sample) {
  note_version(sample);
  if (request_.scores_only()) return std::string();
  state.tokens = sample.tokens.size();
  const std::size_t told = std::min(state.text.taken(), sample.tokens.size());
  return state.text.end(std::span(sample.tokens).subspan(told), sample.finish);
}

void Answer::note_version(const engine::Sample& sample) {
  if (!sample.versions.empty()) version_ = std::max(version_, sample.versions.back());
}

core::Result<void> Answer::finish(std::size_t choice, const engine::Sample& sample) {
  State& state = states_[choice];
  TROUPE_TRY_ASSIGN(text, end_text(state, sample));
  if (request_.echo) text = prompt_of(state).text + text;
  Json out = {{"index", choice}};
  if (request_.dialect == Dialect::kChat) {
    const ToolText parts = split(state, text, true);
    const bool blank = parts.content.find_first_not_of(" \t\r\n") == std::string::npos;
    out["message"] = {{"role", "assistant"}, {"content", parts.content}, {"refusal", nullptr}};
    if (!parts.calls.empty()) {
      if (blank) out["message"]["content"] = nullptr;
      out["message"]["tool_calls"] = calls_json(state, parts.calls, false);
    }
  } else if (request_.dialect == Dialect::kCompletion) {
    out["text"] = text;
  }
  add_ids(out, std::span(sample.tokens).first(state.tokens));
  out["logprobs"] = logprobs(state, sample, 0, true);
  add_end(out, state, sample);
  state.whole = std::move(out);
  return {};
}

std::string Answer::body() const {
  Json out = head(false);
  out["choices"] = Json::array();
  for (const State& state : states_) {
    Json& choice = out["choices"].emplace_back(state.whole);
    add_prompt_ids(out, choice, state);
  }
  out["usage"] = usage();
  return dump(out);
}

Json Answer::chunk(std::size_t choice, const ToolText& parts, Json logprobs, bool first) {
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

std::string Answer::event(State& state, Json choice) const {
  Json out = head(true);
  if (!std::exchange(state.told_prompt, true)) add_prompt_ids(out, choice, state);
  out["choices"] = Json::array({std::move(choice)});
  if (request_.include_usage) out["usage"] = nullptr;
  return "data: " + dump(out) + "\n\n";
}

// The event that precedes a choice's first text: the role (chat) or the echoed prompt. Empty if
// there is none or it was sent.
std::string Answer::opening(std::size_t choice) {
  State& state = states_[choice];
  if (std::exchange(state.opened, true)) return {};
  if (request_.dialect == Dialect::kChat) return event(state, chunk(choice, {}, nullptr, true));
  if (!request_.echo) return {};
  return event(state, chunk(choice, {prompt_of(state).text, {}}, nullptr, false));
}

core::Result<std::string> Answer::grow_event(std::size_t choice, const engine::Sample& part) {
  State& state = states_[choice];
  if (request_.scores_only()) return std::string();
  std::string out = opening(choice);
  TROUPE_TRY_ASSIGN(text, state.text.go_on(part.tokens));
  state.tokens = state.text.taken();
  note_version(part);
  const ToolText parts = split(state, text, false);
  const bool silent = parts.content.empty() && parts.calls.empty();
  if (silent && !request_.logprobs && !shows_ids()) return out;
  Json grown = chunk(choice, parts, logprobs(state, part, 0, false), false);
  add_ids(grown, part.tokens);
  return out + event(state, std::move(grown));
}

core::Result<std::string> Answer::finish_event(std::size_t choice, const engine::Sample& sample) {
  State& state = states_[choice];
  std::string out = opening(choice);
  const std::size_t told = std::min(state.text.taken(), sample.tokens.size());
  TROUPE_TRY_ASSIGN(text, end_text(state, sample));
  const ToolText parts = split(state, text, true);
  Json last = chunk(choice, parts, logprobs(state, sample, told, false), false);
  if (!request_.scores_only()) add_ids(last, std::span(sample.tokens).subspan(told));
  add_end(last, state, sample);
  return out + event(state, std::move(last));
}

std::string Answer::last_events() const {
  std::string out;
  if (request_.include_usage) {
    Json object = head(true);
    object["choices"] = Json::array();
    object["usage"] = usage();
    out = "data: " + dump(object) + "\n\n";
  }
  return out + "data: [DONE]\n\n";
}

std::string Answer::error_event(const ApiError& error) {
  return "data: " + api_error_json(error) + "\n\ndata: [DONE]\n\n";
}

}  // namespace troupe::dialects
