#include "apps/serving/server_pages.hpp"

#include "apps/cli/build_facts.hpp"
#include "apps/serving/text_answers.hpp"
#include "runtime/dialects/json_text.hpp"

#include <nlohmann/json.hpp>

namespace troupe::serving {

using dialects::json_response;
using Json = nlohmann::ordered_json;
using net::HttpResponse;

HttpResponse models_page(const ServerFacts& facts, const std::string& path) {
  if (!path.starts_with(kModelPath)) return json_response(dialects::model_list(facts.model));
  const std::string name = path.substr(kModelPath.size());
  if (auto error = check_model_name(facts.model, name)) return dialects::api_error_response(*error);
  return json_response(dialects::model_card(facts.model, name));
}

HttpResponse tokenizer_page(const ServerFacts& facts, const std::string&) {
  if (!facts.model.tokenizer) return dialects::api_error_response(no_tokenizer());
  const text::SpecialTokens& special = facts.model.tokenizer->special();
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const auto& chat = facts.model.chat;
  return json_response({{"bos_token", or_null(special.bos)},
                        {"eos_token", or_null(special.eos)},
                        {"pad_token", or_null(special.pad)},
                        {"chat_template", chat ? Json(chat->source()) : Json()}});
}

HttpResponse server_page(const ServerFacts& facts, const std::string&) {
  const dialects::ServedModel& model = facts.model;
  Json about = {
      {"model", model.root},
      {"served_model_name", model.names},
      {"max_model_len", model.context},
      {"dtype", facts.dtype},
      {"max_logprobs", facts.bounds.logprobs_max},
      {"logprobs_mode", facts.bounds.processed_logprobs ? "processed_logprobs" : "raw_logprobs"},
      {"skip_tokenizer_init", !model.tokenizer}};
  Json parallel = {{"world_size", 1},
                   {"tensor_parallel_size", 1},
                   {"pipeline_parallel_size", 1},
                   {"data_parallel_size", 1}};
  return json_response({{"vllm_config",
                         {{"model_config", std::move(about)},
                          {"parallel_config", std::move(parallel)},
                          {"weight_transfer_config", nullptr}}},
                        {"version", cli::build_version()}});
}

HttpResponse world_size_page(const ServerFacts&, const std::string&) {
  return json_response({{"world_size", 1}});
}

HttpResponse version_page(const ServerFacts&, const std::string&) {
  return json_response({{"version", cli::build_version()}});
}

HttpResponse health_page(const ServerFacts& facts, const std::string&) {
  if (facts.pump.counters().ready) return json_response({{"status", "ok"}});
  return dialects::api_error_response(
      {.status = 503, .message = "no weights yet", .code = "unavailable"});
}

HttpResponse paused_page(const ServerFacts& facts, const std::string&) {
  return json_response({{"is_paused", facts.pump.counters().state.paused}});
}

HttpResponse sleeping_page(const ServerFacts& facts, const std::string&) {
  return json_response({{"is_sleeping", !facts.pump.counters().state.awake()}});
}

HttpResponse metrics_page(const ServerFacts& facts, const std::string&) {
  HttpResponse page;
  page.content_type = "text/plain; version=0.0.4; charset=utf-8";
  page.body =
      facts.metrics.render(facts.pump.counters(), facts.model.names.front(), facts.keys.uses());
  return page;
}

}  // namespace troupe::serving
