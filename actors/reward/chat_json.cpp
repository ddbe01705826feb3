#include "actors/reward/chat_json.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors::reward {
namespace {

using nlohmann::json;

constexpr std::string_view kChatPath = "/chat/completions";

// The member of an object; null without it.
const json* member(const json& value, const char* name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

}  // namespace

std::string chat_request(const ChatQuestion& question) {
  json messages = json::array();
  if (!question.system.empty()) {
    messages.push_back({{"role", "system"}, {"content", question.system}});
  }
  messages.push_back({{"role", "user"}, {"content", question.user}});
  json request = {{"messages", std::move(messages)},
                  {"temperature", question.temperature},
                  {"max_tokens", question.max_tokens},
                  {"seed", question.seed}};
  if (!question.model.empty()) request["model"] = question.model;
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

core::Result<std::optional<std::string>> read_chat_reply(const std::string& body) {
  const auto no = [](const std::string& why) { return core::fail(core::ErrorCode::kData, why); };
  const auto reply = parse::bounded_json<json>(
      body, {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max)});
  if (!reply) return no("the reply " + reply.error().message);
  const json* const choices = member(*reply, "choices");
  if (choices == nullptr && member(*reply, "error") != nullptr) return no("the reply is an error");
  if (choices == nullptr || !choices->is_array() || choices->empty()) {
    return no("the reply is not a chat completion");
  }
  const json* const message = member((*choices)[0], "message");
  if (message == nullptr) return no("the reply is not a chat completion");
  const json* const content = member(*message, "content");
  std::optional<std::string> text;
  if (content != nullptr && content->is_string()) text = content->get<std::string>();
  return text;
}

std::string chat_url(const std::string& base) {
  std::string url = base;
  while (url.ends_with('/'))
    url.pop_back();
  if (url.ends_with(kChatPath)) return url;
  const auto scheme = url.find("://");
  const bool bare = scheme != url.npos && url.find('/', scheme + 3) == url.npos;
  return url + (bare ? "/v1" : "") + std::string(kChatPath);
}

}  // namespace troupe::actors::reward
