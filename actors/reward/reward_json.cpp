// Shapes seen in OpenRLHF: openrlhf/utils/agent.py (client), openrlhf/cli/serve_rm.py (server).
#include "actors/reward/reward_json.hpp"

#include "runtime/core/limits.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::actors {
namespace {

using core::ErrorCode;
using nlohmann::json;

constexpr std::size_t kShown_bytes_max = 200;

std::string shown(const std::string& text) {
  std::string part = text.substr(0, kShown_bytes_max);
  for (char& c : part) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return text.size() > kShown_bytes_max ? part + "..." : part;
}

core::Result<json> parse(const std::string& text) {
  bool too_deep = false;
  const auto guard = [&too_deep](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > static_cast<int>(core::limits::kJsonDepth_max);
    return !too_deep;
  };
  json value = json::parse(text, guard, false);
  if (too_deep) return core::fail(ErrorCode::kData, "the JSON is nested too deeply");
  if (value.is_discarded()) {
    return core::fail(ErrorCode::kData, "this is no JSON: '" + shown(text) + "'");
  }
  return value;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// One reward; OpenRLHF's own servers wrap single values in a list ([[0.5]]).
RewardScore score_of(const json& value) {
  const json& inner = value.is_array() && value.size() == 1 ? value[0] : value;
  if (inner.is_number() && std::isfinite(inner.get<double>())) return {inner.get<double>(), ""};
  return {std::nullopt, "the reward server gave " + shown(dump(inner)) + " instead of a number"};
}

const json* list_in(const json& reply) {
  if (reply.is_array()) return &reply;
  if (!reply.is_object()) return nullptr;
  for (const char* key : {"rewards", "scores"}) {
    const auto found = reply.find(key);
    if (found != reply.end() && found->is_array()) return &*found;
    if (found != reply.end() && found->is_number()) return &*found;  // of a single sample
  }
  return nullptr;
}

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? std::string() : dump(value);
}

// Splits a query behind its prompt. A query may begin with more than the prompt (a BOS token),
// which then counts as prompt; one that does not hold its prompt at all is a response as a whole.
RewardItem split(const std::string& query, const std::string& prompt) {
  RewardItem item;
  const auto at = query.find(prompt);
  const std::size_t begin = at == query.npos ? 0 : at + prompt.size();
  item.prompt = query.substr(0, begin);
  item.response = query.substr(begin);
  return item;
}

void take_off(std::string& response, const std::vector<std::string>& endings) {
  const auto cut = [&response](const std::string& ending) {
    if (ending.empty() || !response.ends_with(ending)) return false;
    response.resize(response.size() - ending.size());
    return true;
  };
  while (std::any_of(endings.begin(), endings.end(), cut))
    continue;
}

}  // namespace

std::string reward_request(const std::vector<RewardItem>& items) {
  json request = {{"query", json::array()}, {"prompts", json::array()}, {"labels", json::array()}};
  for (const RewardItem& item : items) {
    request["query"].push_back(item.prompt + item.response);
    request["prompts"].push_back(item.prompt);
    request["labels"].push_back(item.label);
  }
  return dump(request);
}

core::Result<std::vector<RewardScore>> read_reward_reply(const std::string& text,
                                                         std::size_t count) {
  TROUPE_TRY_ASSIGN(reply, parse(text));
  const json* list = list_in(reply);
  if (list == nullptr) {
    return core::fail(ErrorCode::kData,
                      "the reply holds no list \"rewards\": '" + shown(text) + "'");
  }
  const json single = json::array({*list});
  if (!list->is_array()) list = &single;
  if (list->size() != count) {
    return core::fail(ErrorCode::kData, "the reply holds " + std::to_string(list->size()) +
                                            " rewards for " + std::to_string(count) + " samples");
  }
  std::vector<RewardScore> scores;
  scores.reserve(count);
  for (const json& value : *list)
    scores.push_back(score_of(value));
  // Our own server says why a score is missing.
  const json causes = reply.is_object() ? reply.value("causes", json()) : json();
  for (std::size_t i = 0; causes.is_array() && i < std::min(count, causes.size()); ++i) {
    if (!scores[i].value && causes[i].is_string()) {
      scores[i].cause = shown(causes[i].get<std::string>());
    }
  }
  return scores;
}

core::Result<std::vector<RewardItem>> read_reward_request(const std::string& text,
                                                          const std::vector<std::string>& endings) {
  TROUPE_TRY_ASSIGN(request, parse(text));
  if (!request.is_object() || !request.contains("query") || !request["query"].is_array()) {
    return core::fail(ErrorCode::kData,
                      "the request holds no list \"query\" of texts (prompt and response)");
  }
  const json& queries = request["query"];
  const json prompts = request.value("prompts", json());
  const json labels = request.value("labels", json());
  for (const auto& [name, list] : {std::pair{"prompts", &prompts}, {"labels", &labels}}) {
    if (list->is_null() || (list->is_array() && list->size() == queries.size())) continue;
    return core::fail(ErrorCode::kData, std::string("\"") + name + "\" is not a list as long as " +
                                            "\"query\" (" + std::to_string(queries.size()) + ")");
  }
  std::vector<RewardItem> items;
  items.reserve(queries.size());
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const bool texts = queries[i].is_string() && (prompts.is_null() || prompts[i].is_string());
    if (!texts) {
      return core::fail(ErrorCode::kData, "sample " + std::to_string(i) + " is no text");
    }
    RewardItem item = split(queries[i].get<std::string>(),
                            prompts.is_null() ? std::string() : prompts[i].get<std::string>());
    take_off(item.response, endings);
    if (!labels.is_null()) item.label = text_of(labels[i]);
    items.push_back(std::move(item));
  }
  return items;
}

std::string reward_reply(const std::vector<RewardScore>& scores) {
  json rewards = json::array(), causes = json::array();
  bool missing = false;
  for (const RewardScore& score : scores) {
    const bool good = score.value && std::isfinite(*score.value);
    rewards.push_back(good ? json(*score.value) : json());
    causes.push_back(good ? std::string() : score.value ? "not a finite number" : score.cause);
    missing = missing || !good;
  }
  json reply = {{"rewards", rewards}, {"scores", rewards}, {"extra_logs", json::object()}};
  if (missing) {
    reply["error"] = "at least one sample cannot be scored";
    reply["causes"] = causes;
  }
  return dump(reply);
}

std::string reward_error(const std::string& message) {
  return dump({{"error", message}});
}

}  // namespace troupe::actors
