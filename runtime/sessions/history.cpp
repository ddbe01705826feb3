#include "runtime/sessions/history.hpp"

#include "runtime/dialects/json_text.hpp"
#include "runtime/store/sha256.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::sessions {

using dialects::ApiError;
using Json = nlohmann::ordered_json;
using Tokens = std::vector<std::int32_t>;

namespace {

// Stands for an answer in a rendering that is made to see what a template writes after one.
constexpr const char* kAnswerMark = "\x01troupe-answer\x01";

PastText past_of(std::string_view text) {
  return {text.size(), store::sha256_text(text)};
}

// What a template writes of some messages whether or not an answer follows: some end the text in
// their own way if none does.
std::string_view shared_beginning(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return a.substr(0, static_cast<std::size_t>(end.first - a.begin()));
}

// Where the mark that ends an answer stands in a text.
struct TurnEnd {
  std::size_t at = std::string::npos;
  std::int32_t token = -1;
  std::string mark;
};

class CallRenderer {
 public:
  CallRenderer(const dialects::ServedModel& model,
               const dialects::GenerateRequest& request,
               std::int64_t now_unix_s)
      : model_(model), request_(request) {
    options_.tools_json = request.tools_json;
    options_.variables_json = request.template_variables_json;
    options_.now_unix_s = now_unix_s;
  }

  std::variant<CallPrompt, ApiError> run(const PastCalls& calls, History history) {
    auto dialogue = dialogue_of(request_);
    if (!dialogue) return ApiError{.message = dialogue.error().message, .param = "messages"};
    auto whole = render(dialogue->messages, request_.add_generation_prompt);
    if (auto* error = std::get_if<ApiError>(&whole)) return *error;
    auto closed = render(dialogue->messages, false);
    if (auto* error = std::get_if<ApiError>(&closed)) return *error;
    const auto& text = std::get<std::string>(whole);
    CallPrompt out;
    out.dialogue = dialogue->digests.back();
    out.past = past_of(shared_beginning(text, std::get<std::string>(closed)));
    if (auto before = calls.before(dialogue->digests)) {
      auto grown = growth(*before, dialogue->messages, text);
      out.rewritten = !grown;
      if (!grown && history == History::kKeep)
        grown = growth_behind_mark(*before, dialogue->messages);
      if (grown) {
        out.place = {before->call, before->sequence.size()};
        out.tokens = std::move(before->sequence);
        out.tokens.insert(out.tokens.end(), grown->begin(), grown->end());
        return out;
      }
    }
    auto tokens = dialects::encode_text(model_, text, request_.add_special_tokens);
    if (auto* error = std::get_if<ApiError>(&tokens)) return *error;
    out.tokens = std::move(std::get<Tokens>(tokens));
    out.place = calls.place(out.tokens);
    return out;
  }

 private:
  using Before = PastCalls::Before;

  std::variant<std::string, ApiError> render(const Json& messages, bool opens) {
    options_.add_generation_prompt = opens;
    return dialects::render_chat(model_, dialects::json_text(messages), options_);
  }

  // The last mark at `from` or after it with which an answer may end.
  TurnEnd turn_end(std::string_view text, std::size_t from) const {
    TurnEnd best;
    for (const std::int32_t token : model_.tokenizer->eos_ids()) {
      const std::string mark = model_.tokenizer->id_to_token(token).value_or("");
      if (mark.empty()) continue;
      const std::size_t at = text.rfind(mark);
      if (at == text.npos || at < from || (best.at != text.npos && at < best.at)) continue;
      best = {at, token, mark};
    }
    return best;
  }

  // The tokens of `text`, which begins with the mark that ends the answer before it; without that
  // mark's if the answer was drawn with it.
  std::optional<Tokens> tokens_behind(const Before& before,
                                      const TurnEnd& end,
                                      const std::string& text) const {
    auto encoded = dialects::encode_text(model_, text, false);
    if (std::holds_alternative<ApiError>(encoded)) return std::nullopt;
    auto& tokens = std::get<Tokens>(encoded);
    if (tokens.empty() || tokens.front() != end.token) return std::nullopt;
    if (before.sequence.back() == end.token) tokens.erase(tokens.begin());
    return std::move(tokens);
  }

  // What the rendering of the messages grew by since the answer of `before`. Nothing if the
  // template writes their past otherwise now.
  std::optional<Tokens> growth(const Before& before,
                               const Json& messages,
                               const std::string& whole) {
    if (whole.size() < before.past.bytes || store::sha256_text(std::string_view(whole).substr(
                                                0, before.past.bytes)) != before.past.sha256) {
      return std::nullopt;
    }
    const auto closed = render(first(messages, before.messages), false);
    if (std::holds_alternative<ApiError>(closed)) return std::nullopt;
    std::string_view text = std::get<std::string>(closed);
    const auto open = render(first(messages, before.messages), true);
    if (std::holds_alternative<ApiError>(open)) return std::nullopt;
    text = shared_beginning(text, std::get<std::string>(open));
    if (!whole.starts_with(text)) return std::nullopt;
    const TurnEnd end = turn_end(text, before.past.bytes);
    if (end.at == text.npos) return std::nullopt;
    return tokens_behind(before, end, whole.substr(end.at));
  }

  // If the past is rendered differently: what follows a mark in the answer's place.
  std::optional<Tokens> growth_behind_mark(const Before& before, const Json& messages) {
    Json marked = messages;
    marked[before.messages - 1] = {{"role", "assistant"}, {"content", kAnswerMark}};
    const auto rendered = render(marked, request_.add_generation_prompt);
    if (std::holds_alternative<ApiError>(rendered)) return std::nullopt;
    const auto& text = std::get<std::string>(rendered);
    const std::size_t at = text.rfind(kAnswerMark);
    if (at == text.npos) return std::nullopt;
    const std::string behind = text.substr(at + std::string_view(kAnswerMark).size());
    TurnEnd first_end;
    for (const std::int32_t token : model_.tokenizer->eos_ids()) {
      const std::string mark = model_.tokenizer->id_to_token(token).value_or("");
      const std::size_t found = mark.empty() ? behind.npos : behind.find(mark);
      if (found < first_end.at) first_end = {found, token, mark};
    }
    if (first_end.at == behind.npos) return std::nullopt;
    return tokens_behind(before, first_end, behind.substr(first_end.at));
  }

  static Json first(const Json& messages, std::size_t count) {
    Json out = Json::array();
    for (std::size_t i = 0; i < count; ++i)
      out.push_back(messages[i]);
    return out;
  }

  const dialects::ServedModel& model_;
  const dialects::GenerateRequest& request_;
  text::RenderOptions options_;
};

}  // namespace

std::optional<PastCalls::Before> TreeCalls::before(std::span<const Digest> digests) const {
  const auto match = tree_.find(digests);
  if (!match) return std::nullopt;
  return Before{match->call, match->messages, tree_.at(match->call).past,
                tree_.sequence(match->call)};
}

std::variant<CallPrompt, ApiError> prompt_of_call(const dialects::ServedModel& model,
                                                  const PastCalls& calls,
                                                  const dialects::GenerateRequest& request,
                                                  History history,
                                                  std::int64_t now_unix_s) {
  if (request.is_dialogue() && model.tokenizer)
    return CallRenderer(model, request, now_unix_s).run(calls, history);
  auto encoded = dialects::encode_prompts(model, request);
  if (auto* error = std::get_if<ApiError>(&encoded)) return *error;
  auto& prompts = std::get<std::vector<dialects::EncodedPrompt>>(encoded);
  if (prompts.size() != 1)
    return ApiError{.message = "a session takes one prompt a request", .param = "prompt"};
  CallPrompt out;
  out.tokens = std::move(prompts.front().tokens);
  out.place = calls.place(out.tokens);
  return out;
}

}  // namespace troupe::sessions
