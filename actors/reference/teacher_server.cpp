#include "actors/reference/teacher_server.hpp"

#include "runtime/parse/bounded_json.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::actors::reference {
namespace {

using nlohmann::json;

// Log-probs are at most 0; a server may round one up by a little.
constexpr double kLogprob_max = 1e-3;

std::string completions_of(std::string url) {
  while (url.ends_with('/'))
    url.pop_back();
  return url.ends_with("/completions") ? url : url + "/completions";
}

// Servers differ in how they show a space.
std::string trimmed(std::string text) {
  const auto space = [](char c) { return c == ' '; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  while (!text.empty() && space(text.back()))
    text.pop_back();
  return text;
}

core::Failure wrong(const std::string& what, std::string_view advice = {}) {
  return core::fail(ErrorCode::kData, what, advice);
}

// Refuses tokens of which most are spelled otherwise: the server has another tokenizer.
core::Result<void> check_spelling(const json& theirs,
                                  std::size_t first,
                                  std::span<const std::int32_t> response,
                                  const TokenSpelling& spelling) {
  std::size_t compared = 0, different = 0;
  std::string example;
  for (std::size_t i = 0; i < response.size(); ++i) {
    const json& shown = theirs[first + i];
    const std::string ours = trimmed(spelling(response[i]));
    if (ours.empty() || !shown.is_string()) continue;
    const auto& their = shown.get_ref<const std::string&>();
    ++compared;
    if (their == "token_id:" + std::to_string(response[i]) || trimmed(their) == ours) continue;
    ++different;
    if (example.empty())
      example = "token " + std::to_string(response[i]) + " is '" + reward::printed(their) +
                "' there and '" + reward::printed(ours) + "' here";
  }
  if (2 * different <= compared) return {};
  return wrong("has another tokenizer (" + example + ")", "serve a model with the policy's");
}

}  // namespace

std::string teacher_request(std::span<const std::int32_t> prompt,
                            std::span<const std::int32_t> response) {
  json ids = json::array();
  for (const auto part : {prompt, response}) {
    for (const std::int32_t token : part)
      ids.push_back(token);
  }
  return json{{"prompt", std::move(ids)},
              {"max_tokens", 0},
              {"echo", true},
              {"logprobs", 0},
              {"temperature", 1}}
      .dump();
}

core::Result<std::vector<float>> read_teacher_reply(const std::string& body,
                                                    std::size_t prompt_tokens,
                                                    std::span<const std::int32_t> response,
                                                    const TokenSpelling& spelling) {
  auto reply = parse::bounded_json<json>(body, {});
  if (!reply) return wrong("gave '" + reward::printed(body) + "', which " + reply.error().message);
  const json& choices = reply->is_object() ? reply->value("choices", json()) : json();
  const bool has_choice = choices.is_array() && choices.size() == 1 && choices[0].is_object();
  const json logprobs = has_choice ? choices[0].value("logprobs", json()) : json();
  const json values = logprobs.is_object() ? logprobs.value("token_logprobs", json()) : json();
  if (!values.is_array()) {
    return wrong("gave no choices[0].logprobs.token_logprobs but '" + reward::printed(body) + "'",
                 "it must answer \"echo\" with \"logprobs\", as troupe serve does");
  }
  const std::size_t wanted = prompt_tokens + response.size();
  if (values.size() != wanted) {
    return wrong("gave " + std::to_string(values.size()) + " log-probs for " +
                 std::to_string(wanted) + " tokens");
  }
  std::vector<float> out;
  for (std::size_t i = prompt_tokens; i < wanted; ++i) {
    const double value = values[i].is_number() ? values[i].get<double>() : std::nan("");
    if (!(std::isfinite(value) && value <= kLogprob_max)) {
      return wrong("gave " + reward::printed(values[i].dump()) + " as the log-prob of token " +
                   std::to_string(i + 1));
    }
    out.push_back(static_cast<float>(std::min(value, 0.0)));
  }
  const json tokens = logprobs.value("tokens", json());
  if (spelling && tokens.is_array() && tokens.size() == wanted) {
    TROUPE_TRY(check_spelling(tokens, prompt_tokens, response, spelling));
  }
  return out;
}

core::Result<std::vector<float>> at_targets(const std::vector<float>& all,
                                            const std::vector<std::uint32_t>& targets) {
  std::vector<float> some;
  for (const std::uint32_t target : targets) {
    if (target >= all.size()) return wrong("a target is not a place of its response");
    some.push_back(all[target]);
  }
  return some;
}

TeacherServer::TeacherServer(RoleContext context, TeacherServerOptions options)
    : context_(std::move(context)),
      options_(std::move(options)),
      servers_({completions_of(options_.url)}, {.what = "teacher"}) {
  servers_.begin(context_);
}

async::task<core::Result<Logprobs>> TeacherServer::on(ScoreLogprobs request) {
  if (request.temperature != 1) {
    co_return core::fail(ErrorCode::kConfig, "a teacher's server gives log-probs at temperature 1");
  }
  Logprobs reply;
  reply.samples.resize(request.responses.size());
  std::vector<async::task<core::Result<void>>> asking;
  for (std::size_t i = 0; i < reply.samples.size(); ++i)
    asking.push_back(ask_for(this, request.prompt, request.responses[i], &reply.samples[i]));
  TROUPE_CO_TRY(co_await async::all(std::move(asking)));
  for (std::size_t i = 0; i < reply.samples.size() && i < request.targets.size(); ++i) {
    if (request.targets[i].empty()) continue;
    TROUPE_CO_TRY_SET(reply.samples[i], at_targets(reply.samples[i], request.targets[i]));
  }
  co_return reply;
}

async::task<core::Result<void>> TeacherServer::ask_for(TeacherServer* self,
                                                       std::vector<std::int32_t> prompt,
                                                       std::vector<std::int32_t> response,
                                                       std::vector<float>* out) {
  std::string body = teacher_request(prompt, response);
  TROUPE_CO_TRY_ASSIGN(reply,
                       co_await self->servers_.post(std::move(body), self->options_.deadline));
  const std::string where = "teacher " + reply.url;
  if (reply.http.status < 200 || reply.http.status > 299) {
    co_return core::fail(ErrorCode::kData, where + " answered with status " +
                                               std::to_string(reply.http.status) + ": '" +
                                               reward::printed(reply.http.body) + "'");
  }
  auto logprobs =
      read_teacher_reply(reply.http.body, prompt.size(), response, self->options_.spelling);
  if (!logprobs) co_return core::fail(ErrorCode::kData, where + " " + logprobs.error().message);
  *out = std::move(*logprobs);
  co_return core::Result<void>();
}

}  // namespace troupe::actors::reference
