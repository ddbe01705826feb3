#include "actors/reward/reward_json.hpp"

#include "actors/reward/limits.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe::actors::reward {
namespace {

using nlohmann::json;

std::string shown(const std::string& text) {
  std::string part = text.substr(0, kShown_bytes_max);
  for (char& c : part) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return text.size() > kShown_bytes_max ? part + "..." : part;
}

// Shortens a text to its beginning and a longer end, since the exception ends a traceback.
std::string both_ends(const std::string& text) {
  constexpr std::size_t kEnd_bytes = kShown_bytes_max * 3 / 4;
  if (text.size() <= kShown_bytes_max) return shown(text);
  return shown(text.substr(0, kShown_bytes_max - kEnd_bytes)) + "..." +
         shown(text.substr(text.size() - kEnd_bytes));
}

core::Result<json> parsed(const std::string& text, parse::Numbers numbers) {
  auto value = parse::bounded_json<json>(
      text, {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max), .numbers = numbers});
  if (value) return value;
  return core::fail(ErrorCode::kData, "'" + shown(text) + "' " + value.error().message);
}

std::string dump(const json& value) {
  return parse::written_text(value);
}

// One reward; OpenRLHF's own servers wrap single values in a list ([[0.5]]).
RewardScore score_of(const json& value) {
  const json& inner = value.is_array() && value.size() == 1 ? value[0] : value;
  if (inner.is_number() && std::isfinite(inner.get<double>())) return {inner.get<double>(), ""};
  return {std::nullopt, "the reward server gave " + shown(dump(inner)) + " instead of a number"};
}

// The values of "extra_logs" by sample: a list has one for each, any other value is for all.
std::vector<std::string> extras_in(const json& reply, std::size_t count) {
  std::vector<json> of_sample(count, json::object());
  const json logs = reply.is_object() ? reply.value("extra_logs", json()) : json();
  if (!logs.is_object()) return {};
  for (const auto& [name, values] : logs.items()) {
    if (values.is_array() && values.size() != count) continue;
    for (std::size_t i = 0; i < count; ++i)
      of_sample[i][name] = values.is_array() ? values[i] : values;
  }
  std::vector<std::string> texts;
  for (const json& extra : of_sample)
    texts.push_back(extra.empty() ? std::string() : dump(extra));
  return texts;
}

// The extra values that every sample has as a number, by name.
json extra_logs(const std::vector<RewardScore>& scores) {
  std::map<std::string, json> logs;
  for (const RewardScore& score : scores) {
    const json extra = parse::written_json<json>(score.extra.empty() ? "{}" : score.extra);
    if (!extra.is_object()) continue;
    for (const auto& [name, value] : extra.items()) {
      if (parse::number_in(value))
        logs.try_emplace(name, json::array()).first->second.push_back(value);
    }
  }
  json whole = json::object();
  for (auto& [name, values] : logs) {
    if (values.size() == scores.size()) whole[name] = std::move(values);
  }
  return whole;
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

// Splits a query after its prompt. Text before the prompt (a BOS token) counts as prompt; a query
// that does not contain its prompt is a response as a whole.
RewardGroup split(const std::string& query, const std::string& prompt) {
  RewardGroup group;
  const auto at = query.find(prompt);
  const std::size_t begin = at == query.npos ? 0 : at + prompt.size();
  group.prompt = query.substr(0, begin);
  group.samples.push_back({query.substr(begin)});
  return group;
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

// A request with "prompt", "response" and "label", each a text or a list of them.
core::Result<RewardRequest> sample_groups(const json& request,
                                          const std::vector<std::string>& endings) {
  RewardRequest read;
  const json& given = request["response"];
  read.shape = given.is_array() ? RequestShape::kSamples : RequestShape::kSample;
  const auto list_of = [&](const char* name) -> json {
    const json value = request.value(name, json());
    if (given.is_array()) return value.is_null() ? json(given.size(), json()) : value;
    return json::array({value});
  };
  const json responses = list_of("response"), prompts = list_of("prompt"),
             labels = list_of("label");
  for (const auto& [name, list] : {std::pair{"prompt", &prompts}, {"label", &labels}}) {
    if (list->is_array() && list->size() == responses.size()) continue;
    return core::fail(ErrorCode::kData, std::string("\"") + name + "\" is not a list as long as " +
                                            "\"response\" (" + std::to_string(responses.size()) +
                                            ")");
  }
  for (std::size_t i = 0; i < responses.size(); ++i) {
    if (!responses[i].is_string()) {
      return core::fail(ErrorCode::kData, "sample " + std::to_string(i) + " is not text");
    }
    RewardGroup& group = read.groups.emplace_back();
    group.prompt = text_of(prompts[i]);
    group.label = text_of(labels[i]);
    group.samples.push_back({responses[i].get<std::string>()});
    take_off(group.samples[0].response, endings);
  }
  return read;
}

}  // namespace

std::string reward_request(const std::vector<RewardGroup>& groups) {
  json request = {{"query", json::array()}, {"prompts", json::array()}, {"labels", json::array()}};
  for (const RewardGroup& group : groups) {
    for (const RewardSample& sample : group.samples) {
      request["query"].push_back(group.prompt + sample.response);
      request["prompts"].push_back(group.prompt);
      request["labels"].push_back(group.label);
    }
  }
  return dump(request);
}

core::Result<std::vector<RewardScore>> read_reward_reply(const std::string& text,
                                                         std::size_t count) {
  TROUPE_TRY_ASSIGN(reply, parsed(text, parse::Numbers::kNearest));
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
  // Troupe's own server says why a score is missing.
  const json causes = reply.is_object() ? reply.value("causes", json()) : json();
  for (std::size_t i = 0; causes.is_array() && i < std::min(count, causes.size()); ++i) {
    if (!scores[i].value && causes[i].is_string()) {
      scores[i].cause = both_ends(causes[i].get<std::string>());
    }
  }
  TROUPE_TRY(add_extras(extras_in(reply, count), scores));
  return scores;
}

std::string sample_request(const RewardGroup& group, const RewardSample& sample) {
  return dump({{"prompt", group.prompt}, {"response", sample.response}, {"label", group.label}});
}

core::Result<std::vector<RewardScore>> read_sample_reply(const std::string& text) {
  TROUPE_TRY_ASSIGN(reply, parsed(text, parse::Numbers::kNearest));
  json extra = json::object();
  json value = reply;
  if (reply.is_object()) {
    const char* const names[] = {"reward", "score", "rewards", "scores"};
    const auto found = std::find_if(std::begin(names), std::end(names),
                                    [&reply](const char* name) { return reply.contains(name); });
    if (found == std::end(names)) {
      return core::fail(ErrorCode::kData, "the reply holds no \"reward\": '" + shown(text) + "'");
    }
    value = reply[*found];
    for (const auto& [name, one] : reply.items()) {
      const bool score = std::any_of(std::begin(names), std::end(names),
                                     [&name](const char* known) { return name == known; });
      if (!score && !one.is_structured()) extra[name] = one;
    }
  }
  std::vector<RewardScore> scores(1, score_of(value));
  TROUPE_TRY(add_extras({extra.empty() ? std::string() : dump(extra)}, scores));
  return scores;
}

core::Result<RewardRequest> read_reward_request(const std::string& text,
                                                const std::vector<std::string>& endings) {
  TROUPE_TRY_ASSIGN(request, parsed(text, parse::Numbers::kAsWritten));
  if (request.is_object() && !request.contains("query") && request.contains("response")) {
    return sample_groups(request, endings);
  }
  if (!request.is_object() || !request.contains("query") || !request["query"].is_array()) {
    return core::fail(ErrorCode::kData,
                      "the request holds neither a list \"query\" of texts (prompt and response) "
                      "nor a \"response\"");
  }
  const json& queries = request["query"];
  const json prompts = request.value("prompts", json());
  const json labels = request.value("labels", json());
  for (const auto& [name, list] : {std::pair{"prompts", &prompts}, {"labels", &labels}}) {
    if (list->is_null() || (list->is_array() && list->size() == queries.size())) continue;
    return core::fail(ErrorCode::kData, std::string("\"") + name + "\" is not a list as long as " +
                                            "\"query\" (" + std::to_string(queries.size()) + ")");
  }
  std::vector<RewardGroup> groups;
  groups.reserve(queries.size());
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const bool texts = queries[i].is_string() && (prompts.is_null() || prompts[i].is_string());
    if (!texts) {
      return core::fail(ErrorCode::kData, "sample " + std::to_string(i) + " is not text");
    }
    RewardGroup group = split(queries[i].get<std::string>(),
                              prompts.is_null() ? std::string() : prompts[i].get<std::string>());
    take_off(group.samples[0].response, endings);
    if (!labels.is_null()) group.label = text_of(labels[i]);
    groups.push_back(std::move(group));
  }
  return RewardRequest{RequestShape::kQueries, std::move(groups)};
}

std::string reward_reply(const std::vector<RewardScore>& scores, RequestShape shape) {
  if (shape == RequestShape::kQueries) return reward_reply(scores);
  json values = json::array();
  for (const RewardScore& score : scores) {
    const bool good = score.value && std::isfinite(*score.value);
    values.push_back(good ? json(*score.value) : json());
  }
  return dump(shape == RequestShape::kSample && values.size() == 1 ? values[0] : values);
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
  json reply = {{"rewards", rewards}, {"scores", rewards}, {"extra_logs", extra_logs(scores)}};
  if (missing) {
    reply["error"] = "at least one sample cannot be scored";
    reply["causes"] = causes;
  }
  return dump(reply);
}

core::Result<void> add_extras(const std::vector<std::string>& extras,
                              std::vector<RewardScore>& scores) {
  for (std::size_t i = 0; i < std::min(extras.size(), scores.size()); ++i) {
    if (extras[i].size() > limits::kRewardExtra_bytes_max) {
      return core::fail(ErrorCode::kData,
                        "it reports " + std::to_string(extras[i].size()) + " bytes of sample " +
                            std::to_string(i) + " besides the score",
                        "at most " + std::to_string(limits::kRewardExtra_bytes_max) + " are taken");
    }
    scores[i].extra = extras[i];
  }
  return {};
}

std::string reward_error(const std::string& message) {
  return dump({{"error", message}});
}

}  // namespace troupe::actors::reward
