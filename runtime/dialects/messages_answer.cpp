#include "runtime/dialects/messages_answer.hpp"

#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/logprob_json.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace troupe::dialects {

using Json = nlohmann::ordered_json;

namespace {

std::string named_event(const Json& data) {
  return "event: " + data["type"].get<std::string>() + "\ndata: " + json_text(data) + "\n\n";
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == text.npos;
}

}  // namespace

// Divides what the reader finds into blocks, and writes their events. A text that is only white
// space and precedes a call makes no block: Anthropic's API would not take it back.
struct MessagesAnswer::Blocks {
  std::string text(std::string_view more);
  std::string call(const ToolCall& call, std::string id);
  std::string end(bool calls);  // `calls`: there was a call

  Json content = Json::array();  // of all blocks so far
  bool in_text = false;          // the last block is an unfinished text
  std::string held{};            // white space with which a text begins, before its block

 private:
  std::string open(const Json& empty) const;
  std::string grow(Json delta) const;
  std::string close() const;
  std::size_t last() const { return content.size() - 1; }
};

std::string MessagesAnswer::Blocks::open(const Json& empty) const {
  return named_event(
      {{"type", "content_block_start"}, {"index", last()}, {"content_block", empty}});
}

std::string MessagesAnswer::Blocks::grow(Json delta) const {
  return named_event(
      {{"type", "content_block_delta"}, {"index", last()}, {"delta", std::move(delta)}});
}

std::string MessagesAnswer::Blocks::close() const {
  return named_event({{"type", "content_block_stop"}, {"index", last()}});
}

std::string MessagesAnswer::Blocks::text(std::string_view more) {
  if (more.empty()) return {};
  std::string out;
  std::string piece = std::exchange(held, {}) + std::string(more);
  if (!in_text) {
    if (is_blank(piece)) {
      held = std::move(piece);
      return {};
    }
    content.push_back({{"type", "text"}, {"text", ""}});
    out = open(content.back());
    in_text = true;
  }
  content.back()["text"].get_ref<std::string&>() += piece;
  return out + grow({{"type", "text_delta"}, {"text", std::move(piece)}});
}

std::string MessagesAnswer::Blocks::call(const ToolCall& call, std::string id) {
  held.clear();
  std::string out = std::exchange(in_text, false) ? close() : std::string();
  Json& block = content.emplace_back(Json{
      {"type", "tool_use"}, {"id", std::move(id)}, {"name", call.name}, {"input", Json::object()}});
  out += open(block);
  out += grow({{"type", "input_json_delta"}, {"partial_json", call.arguments}});
  block["input"] = parse::written_json<Json>(call.arguments);  // the reader has parsed it once
  return out + close();
}

std::string MessagesAnswer::Blocks::end(bool calls) {
  std::string out;
  if (!held.empty() && !calls) {
    content.push_back({{"type", "text"}, {"text", ""}});
    out = open(content.back());
    content.back()["text"] = held;
    out += grow({{"type", "text_delta"}, {"text", std::exchange(held, {})}});
    in_text = true;
  }
  if (std::exchange(in_text, false)) out += close();
  return out;
}

MessagesAnswer::MessagesAnswer(const ServedModel& model,
                               const GenerateRequest& request,
                               const EncodedPrompt& prompt,
                               AnswerName name,
                               core::Version version)
    : model_(model),
      request_(request),
      prompt_(prompt),
      name_(std::move(name)),
      version_(version),
      reader_(model, request),
      blocks_(std::make_unique<Blocks>()) {}

MessagesAnswer::~MessagesAnswer() = default;

// The message before its content.
Json MessagesAnswer::message(std::size_t output_tokens) const {
  Json out = {
      {"id", name_.id},
      {"type", "message"},
      {"role", "assistant"},
      {"model", request_.model.empty() ? model_.names.front() : request_.model},
      {"content", Json::array()},
      {"stop_reason", nullptr},
      {"stop_sequence", nullptr},
      {"usage", {{"input_tokens", prompt_.tokens.size()}, {"output_tokens", output_tokens}}}};
  if (request_.return_token_ids) out["prompt_token_ids"] = prompt_.tokens;
  return out;
}

Json MessagesAnswer::stop(const engine::Sample& sample) const {
  if (sample.finish == engine::FinishReason::kLength)
    return {{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}};
  if (sample.finish == engine::FinishReason::kAborted)  // Anthropic has no word for it; vLLM's
    return {{"stop_reason", "abort"}, {"stop_sequence", nullptr}};
  if (reader_.calls() > 0) return {{"stop_reason", "tool_use"}, {"stop_sequence", nullptr}};
  const StopCause cause = reader_.stop_cause(sample);
  if (const auto* text = std::get_if<std::string>(&cause))
    return {{"stop_reason", "stop_sequence"}, {"stop_sequence", *text}};
  return {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}};
}

void MessagesAnswer::add_tokens(Json& object, const engine::Sample& sample) const {
  if (request_.return_token_ids) {
    object["token_ids"] = sample.tokens;
    object["system_fingerprint"] = "v" + std::to_string(std::max(version_, reader_.version()));
  }
  if (!request_.logprobs) return;
  const auto top = static_cast<std::size_t>(request_.sampling.top_logprobs);
  std::vector<ScoredToken> tokens;
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
    tokens.push_back({sample.tokens[i], sample.raw_logprobs[i],
                      std::span(sample.top_logprobs).subspan(i * top, top)});
  }
  const LogprobJson writer(model_.tokenizer, request_.tokens_as_ids);
  object["logprobs"] = {{"content", writer.chat(tokens)["content"]}};
}

std::string MessagesAnswer::opening() {
  if (std::exchange(opened_, true)) return {};
  return named_event({{"type", "message_start"}, {"message", message(0)}});
}

core::Result<std::string> MessagesAnswer::grow_event(std::size_t, const engine::Sample& part) {
  std::string out = opening();
  TROUPE_TRY_ASSIGN(parts, reader_.go_on(part));
  return out + add(parts);
}

core::Result<std::string> MessagesAnswer::finish_event(std::size_t, const engine::Sample& sample) {
  std::string out = opening();
  TROUPE_TRY_ASSIGN(parts, reader_.finish(sample));
  out += add(parts);
  out += blocks_->end(reader_.calls() > 0);
  Json last = {{"type", "message_delta"},
               {"delta", stop(sample)},
               {"usage", {{"output_tokens", reader_.tokens()}}}};
  add_tokens(last, sample);
  return out + named_event(last);
}

core::Result<void> MessagesAnswer::finish(std::size_t, const engine::Sample& sample) {
  TROUPE_TRY_ASSIGN(parts, reader_.finish(sample));
  add(parts);
  blocks_->end(reader_.calls() > 0);
  Json out = message(reader_.tokens());
  out["content"] = blocks_->content;
  out.update(stop(sample));
  add_tokens(out, sample);
  whole_ = std::make_unique<Json>(std::move(out));
  return {};
}

// Adds what new tokens have brought; returns its events.
std::string MessagesAnswer::add(const ToolText& parts) {
  const std::string_view text = parts.content;
  const std::size_t first = reader_.calls() - parts.calls.size();
  std::string out;
  std::size_t told = 0;
  for (std::size_t i = 0; i < parts.calls.size(); ++i) {
    out += blocks_->text(text.substr(told, parts.places[i] - told));
    told = parts.places[i];
    out += blocks_->call(parts.calls[i], call_id(model_, "toolu_", name_.id, 0, first + i));
  }
  return out + blocks_->text(text.substr(told));
}

std::string MessagesAnswer::body() const {
  return json_text(*whole_);
}

std::string MessagesAnswer::last_events() const {
  return named_event({{"type", "message_stop"}});
}

std::string MessagesAnswer::error_event(const ApiError& error) const {
  return "event: error\ndata: " + api_error_json(error, ErrorForm::kAnthropic) + "\n\n";
}

}  // namespace troupe::dialects
