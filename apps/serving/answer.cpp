#include "apps/serving/answer.hpp"

#include "apps/serving/npy_text.hpp"
#include "apps/serving/stop_filter.hpp"
#include "runtime/text/stream_decoder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::app {

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

// Decodes one response while its tokens arrive: whole characters only, without special tokens, cut
// before a stop string.
class SampleText {
 public:
  // Without a tokenizer the text stays empty, and tokens are only counted.
  SampleText(const std::optional<text::Tokenizer>& tokenizer,
             const engine::SamplingParams& params,
             bool skip_special,
             bool include_stop);

  // Takes the next tokens of an unfinished response; returns the new text that can no longer
  // change.
  core::Result<std::string> go_on(std::span<const std::int32_t> tokens);
  // Takes the last tokens; returns the rest of the text. An end token adds no text, unless
  // `include_stop` is set.
  core::Result<std::string> end(std::span<const std::int32_t> tokens, engine::FinishReason reason);

  std::size_t taken() const noexcept { return taken_; }  // tokens so far
  const std::optional<std::string>& stop() const noexcept { return filter_.matched(); }

 private:
  core::Result<std::string> push(std::int32_t token);

  std::optional<text::StreamDecoder> decoder_;
  StopFilter filter_;
  const std::vector<std::int32_t> stop_tokens_;
  const bool include_stop_;
  const std::size_t
      stops_from_;  // the first token, counted from 1, that may complete a stop string
  std::size_t taken_ = 0;
};

SampleText::SampleText(const std::optional<text::Tokenizer>& tokenizer,
                       const engine::SamplingParams& params,
                       bool skip_special,
                       bool include_stop)
    : filter_(params.stop_strings, include_stop),
      stop_tokens_(params.stop_tokens),
      include_stop_(include_stop),
      stops_from_(static_cast<std::size_t>(params.min_new_tokens)) {
  if (tokenizer) decoder_.emplace(*tokenizer, skip_special);
}

core::Result<std::string> SampleText::push(std::int32_t token) {
  ++taken_;
  if (!decoder_) return std::string();
  TROUPE_TRY_ASSIGN(piece, decoder_->push(token));
  return filter_.push(piece, taken_ >= stops_from_);
}

core::Result<std::string> SampleText::go_on(std::span<const std::int32_t> tokens) {
  std::string out;
  for (const std::int32_t token : tokens) {
    TROUPE_TRY_ASSIGN(piece, push(token));
    out += piece;
  }
  return out;
}

core::Result<std::string> SampleText::end(std::span<const std::int32_t> tokens,
                                          FinishReason reason) {
  std::string out;
  const bool by_token =
      !tokens.empty() &&
      (reason == FinishReason::kEos ||
       (reason == FinishReason::kStop &&
        std::find(stop_tokens_.begin(), stop_tokens_.end(), tokens.back()) != stop_tokens_.end()));
  const bool leave_out = by_token && !include_stop_;
  TROUPE_TRY_ASSIGN(text, go_on(tokens.first(tokens.size() - (leave_out ? 1 : 0))));
  if (leave_out) ++taken_;
  out += text;
  if (!decoder_) return out;
  TROUPE_TRY_ASSIGN(last, decoder_->finish());
  out += filter_.push(last, taken_ >= stops_from_);
  out += filter_.finish();
  return out;
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

// One token of a sequence with its log-prob at temperature 1, over the whole vocabulary. The first
// token of a prompt has none.
struct ScoredToken {
  std::int32_t token = 0;
  std::optional<float> logprob{};
  std::span<const engine::TokenLogprob> top{};  // most likely tokens there; empty if not asked for
};

// What is shown instead of minus infinity, which JSON does not have.
constexpr float kLeast = -9999.0f;

double shown(float logprob) {
  return static_cast<double>(std::max(logprob, kLeast));
}

// Without a tokenizer a token's text is "token_id:5".
std::string text_of(const std::optional<text::Tokenizer>& tokenizer, std::int32_t token) {
  if (!tokenizer) return "token_id:" + std::to_string(token);
  auto text = tokenizer->decode(std::span(&token, 1), false);
  return text ? std::move(*text) : std::string();
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0u) != 0x80u; }));
}

// A token as a chat shows it: {"token", "logprob", "bytes"}.
Json chat_entry(const std::optional<text::Tokenizer>& tokenizer,
                std::int32_t token,
                float logprob) {
  const std::string text = text_of(tokenizer, token);
  Json bytes = Json::array();
  for (const char c : text)
    bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", shown(logprob)}, {"bytes", std::move(bytes)}};
}

// The log-probs of a completion: {"text_offset": [], "tokens": [], "token_logprobs": [],
// "top_logprobs": []}. `offset` is the position of the first token in the text, in characters; it
// becomes the position after the last token. "top_logprobs" is null for a token without
// alternatives.
Json completion_logprobs(const std::optional<text::Tokenizer>& tokenizer,
                         std::span<const ScoredToken> tokens,
                         std::size_t& offset) {
  Json texts = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ScoredToken& one : tokens) {
    const std::string text = text_of(tokenizer, one.token);
    offsets.push_back(offset);
    offset += characters(text);
    texts.push_back(text);
    values.push_back(one.logprob ? Json(shown(*one.logprob)) : Json());
    if (one.top.empty()) {
      tops.push_back(nullptr);
      continue;
    }
    // Tokens with the same text share a key; it shows the most likely of them.
    Json best = Json::object();
    const auto put = [&best](const std::string& key, double value) {
      if (!best.contains(key) || best[key].get<double>() < value) best[key] = value;
    };
    for (const engine::TokenLogprob& other : one.top) {
      if (other.token != one.token) put(text_of(tokenizer, other.token), shown(other.logprob));
      if (other.token == one.token) put(text, shown(*one.logprob));
    }
    put(text, shown(*one.logprob));
    tops.push_back(std::move(best));
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(values)},
          {"tokens", std::move(texts)},
          {"top_logprobs", std::move(tops)}};
}

// The log-probs of a chat:
// {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}], "refusal": null}.
Json chat_logprobs(const std::optional<text::Tokenizer>& tokenizer,
                   std::span<const ScoredToken> tokens) {
  Json content = Json::array();
  for (const ScoredToken& one : tokens) {
    Json& made = content.emplace_back(chat_entry(tokenizer, one.token, *one.logprob));
    made["top_logprobs"] = Json::array();
    for (const engine::TokenLogprob& other : one.top)
      made["top_logprobs"].push_back(chat_entry(tokenizer, other.token, other.logprob));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace

struct Answer::State {
  SampleText text;
  std::size_t offset = 0;  // characters of the tokens whose log-probs were sent
  bool opened = false;     // the first event was sent
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
  for (std::size_t i = 0; i < count; ++i) {
    states_.push_back({SampleText(model.tokenizer, request.sampling, request.skip_special_tokens,
                                  request.include_stop)});
  }
}

Answer::~Answer() = default;

Json Answer::head(const char* object) const {
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
  return request_.chat ? chat_logprobs(model_.tokenizer, tokens)
                       : completion_logprobs(model_.tokenizer, tokens, state.offset);
}

void Answer::add_end(Json& choice, const State& state, const engine::Sample& sample) const {
  choice["finish_reason"] = finish_word(sample.finish);
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

void Answer::add_ids(Json& choice, std::span<const std::int32_t> ids) const {
  if (!model_.tokenizer) choice["token_ids"] = ids;
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
  if (request_.chat) {
    out["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  } else {
    out["text"] = text;
  }
  add_ids(out, std::span(sample.tokens).first(state.tokens));
  out["logprobs"] = logprobs(state, sample, 0, true);
  add_end(out, state, sample);
  state.whole = std::move(out);
  return {};
}

std::string Answer::body() const {
  Json out = head(request_.chat ? "chat.completion" : "text_completion");
  out["choices"] = Json::array();
  for (const State& state : states_)
    out["choices"].push_back(state.whole);
  out["usage"] = usage();
  return dump(out);
}

Json Answer::chunk(std::size_t choice, const std::string& text, Json logprobs, bool first) const {
  Json out = {{"index", choice}};
  if (request_.chat) {
    out["delta"] = Json::object();
    if (first) out["delta"]["role"] = "assistant";
    if (first || !text.empty()) out["delta"]["content"] = text;
  } else {
    out["text"] = text;
  }
  out["logprobs"] = std::move(logprobs);
  out["finish_reason"] = nullptr;
  return out;
}

std::string Answer::event(Json choice) const {
  Json out = head(request_.chat ? "chat.completion.chunk" : "text_completion");
  out["choices"] = Json::array({std::move(choice)});
  if (request_.include_usage) out["usage"] = nullptr;
  return "data: " + dump(out) + "\n\n";
}

// The event that precedes a choice's first text: the role (chat) or the echoed prompt. Empty if
// there is none or it was sent.
std::string Answer::opening(std::size_t choice) {
  if (std::exchange(states_[choice].opened, true)) return {};
  if (request_.chat) return event(chunk(choice, "", nullptr, true));
  if (!request_.echo) return {};
  return event(chunk(choice, prompt_of(states_[choice]).text, nullptr, false));
}

core::Result<std::string> Answer::grow_event(std::size_t choice, const engine::Sample& part) {
  State& state = states_[choice];
  if (request_.scores_only()) return std::string();
  std::string out = opening(choice);
  TROUPE_TRY_ASSIGN(text, state.text.go_on(part.tokens));
  state.tokens = state.text.taken();
  note_version(part);
  if (text.empty() && !request_.logprobs && model_.tokenizer) return out;
  Json grown = chunk(choice, text, logprobs(state, part, 0, false), false);
  add_ids(grown, part.tokens);
  return out + event(std::move(grown));
}

core::Result<std::string> Answer::finish_event(std::size_t choice, const engine::Sample& sample) {
  State& state = states_[choice];
  std::string out = opening(choice);
  const std::size_t told = std::min(state.text.taken(), sample.tokens.size());
  TROUPE_TRY_ASSIGN(text, end_text(state, sample));
  Json last = chunk(choice, text, logprobs(state, sample, told, false), false);
  if (!request_.scores_only()) add_ids(last, std::span(sample.tokens).subspan(told));
  add_end(last, state, sample);
  return out + event(std::move(last));
}

std::string Answer::last_events() const {
  std::string out;
  if (request_.include_usage) {
    Json object = head(request_.chat ? "chat.completion.chunk" : "text_completion");
    object["choices"] = Json::array();
    object["usage"] = usage();
    out = "data: " + dump(object) + "\n\n";
  }
  return out + "data: [DONE]\n\n";
}

std::string Answer::error_event(const ApiError& error) {
  return "data: " + api_error_json(error) + "\n\ndata: [DONE]\n\n";
}

}  // namespace troupe::app
