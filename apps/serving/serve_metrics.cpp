#include "apps/serving/serve_metrics.hpp"

#include "runtime/core/texts.hpp"

#include <algorithm>

namespace troupe::serving {

namespace {

std::string number(double value) {
  return core::printed("%.10g", value);
}

// Bucket bounds 1, 2, 5, 10, ... 5e6, as vLLM has for token counts.
std::vector<double> size_bounds() {
  std::vector<double> bounds;
  for (double ten = 1; ten <= 1e6; ten *= 10) {
    for (const double step : {1.0, 2.0, 5.0})
      bounds.push_back(ten * step);
  }
  return bounds;
}

// Builds a page in Prometheus's text format.
class Page {
 public:
  explicit Page(const std::string& model)
      : labels_("model_name=\"" + escaped(model) + "\",engine=\"0\"") {}

  void head(const char* name, const char* type, const char* help) {
    text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void value(const char* name, const char* type, const char* help, double value) {
    head(name, type, help);
    line(name, "", value);
  }
  // `more`: further labels, beginning with a comma.
  void line(const std::string& name, const std::string& more, double value) {
    text += name + "{" + labels_ + more + "} " + number(value) + "\n";
  }
  void histogram(const char* name, const char* help, const Histogram& one) {
    head(name, "histogram", help);
    one.render(text, name, labels_);
  }

  std::string text;

 private:
  static std::string escaped(const std::string& raw) {
    std::string out;
    for (const char c : raw) {
      if (c == '\\' || c == '"') out += '\\';
      out += c == '\n' ? ' ' : c;
    }
    return out;
  }
  const std::string labels_;
};

}  // namespace

void Histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(at)];
  sum_ += value;
}

void Histogram::render(std::string& out, const std::string& name, const std::string& labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    out += name + "_bucket{" + labels + ",le=\"" + bound + "\"} " + std::to_string(below) + "\n";
  }
  out += name + "_sum{" + labels + "} " + number(sum_) + "\n";
  out += name + "_count{" + labels + "} " + std::to_string(below) + "\n";
}

ServeMetrics::ServeMetrics()
    : first_token_s_({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                      1.0,   2.5,   5.0,  7.5,  10,   20,   40,   80,  160,  640, 2560}),
      request_s_({0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10,   15,  20,
                  30,  40,  50,  60,  120, 240, 480, 960, 1920, 7680}),
      token_s_({0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
                10, 20, 40, 80}),
      prompt_sizes_(size_bounds()),
      response_sizes_(size_bounds()) {}

void ServeMetrics::prompt(std::size_t tokens) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += tokens;
  prompt_sizes_.observe(static_cast<double>(tokens));
}

void ServeMetrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_s_.observe(seconds);
}

void ServeMetrics::finished(std::size_t tokens, engine::FinishReason reason, double seconds) {
  const std::lock_guard lock(mutex_);
  generation_tokens_ += tokens;
  const std::size_t which = reason == engine::FinishReason::kLength    ? 1
                            : reason == engine::FinishReason::kAborted ? 2
                                                                       : 0;
  ++success_[which];
  request_s_.observe(seconds);
  response_sizes_.observe(static_cast<double>(tokens));
  if (tokens > 0) token_s_.observe(seconds / static_cast<double>(tokens));
}

void ServeMetrics::aborted(std::size_t samples) {
  const std::lock_guard lock(mutex_);
  success_[2] += samples;
}

void ServeMetrics::refused() {
  const std::lock_guard lock(mutex_);
  ++refused_;
}

void ServeMetrics::forked() {
  const std::lock_guard lock(mutex_);
  ++forked_;
}

std::string ServeMetrics::render(const PumpCounters& pump,
                                 const std::string& model,
                                 const std::vector<KeyUse>& keys) const {
  const std::lock_guard lock(mutex_);
  const engine::EngineCounters& engine = pump.engine;
  Page page(model);
  const auto count = [](auto n) { return static_cast<double>(n); };
  const double total = count(std::max<std::int64_t>(engine.total_blocks, 1));
  page.value("vllm:num_requests_running", "gauge", "Sequences that the engine computes.",
             count(engine.running_sequences));
  page.value("vllm:num_requests_waiting", "gauge",
             "Sequences that wait for their turn, also those that gave their blocks back.",
             count(engine.waiting_sequences));
  page.value("vllm:kv_cache_usage_perc", "gauge", "KV blocks in use. 1 means all of them.",
             1.0 - count(engine.free_blocks) / total);
  page.value("vllm:num_preemptions_total", "counter",
             "Sequences computed again for want of blocks.", count(engine.preempted));
  page.value("vllm:prefix_cache_queries_total", "counter", "Tokens looked up in the prefix cache.",
             count(engine.prefix_query_tokens));
  page.value("vllm:prefix_cache_hits_total", "counter", "Tokens found there.",
             count(engine.prefix_hit_tokens));
  page.value("vllm:engine_sleep_state", "gauge", "1 while a part of the engine sleeps.",
             pump.state.awake() ? 0 : 1);
  page.value("vllm:prompt_tokens_total", "counter", "Tokens of prompts taken in.",
             count(prompt_tokens_));
  page.value("vllm:generation_tokens_total", "counter", "Tokens sampled for requests.",
             count(generation_tokens_));
  page.head("vllm:request_success_total", "counter", "Responses by the reason of their end.");
  constexpr std::array<const char*, 3> kReasons = {"stop", "length", "abort"};
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    const std::string reason = std::string(",finished_reason=\"") + kReasons[i] + "\"";
    page.line("vllm:request_success_total", reason, count(success_[i]));
  }
  page.histogram("vllm:time_to_first_token_seconds", "From the request to its first token.",
                 first_token_s_);
  page.histogram("vllm:e2e_request_latency_seconds", "From the request to a response's last token.",
                 request_s_);
  page.histogram("vllm:request_time_per_output_token_seconds",
                 "Seconds of a response over its tokens.", token_s_);
  page.histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", prompt_sizes_);
  page.histogram("vllm:request_generation_tokens", "Tokens of a response.", response_sizes_);
  page.value("troupe_engine_steps_total", "counter", "Steps of the engine.", count(engine.steps));
  page.value("troupe_requests_refused_total", "counter", "Requests answered with an error.",
             count(refused_));
  page.value("troupe_sessions_forked_by_template_total", "counter",
             "Calls of sessions whose past the chat template wrote otherwise than before.",
             count(forked_));
  page.value("troupe_weight_version", "gauge", "Version of the weights that the engine holds.",
             count(pump.version));
  struct Row {
    const char *name, *type, *help;
    double (*value)(const KeyUse&);
  };
  constexpr std::array<Row, 5> kRows = {{
      {"troupe_key_requests_total", "counter", "Requests of an API key, by its name.",
       [](const KeyUse& key) { return static_cast<double>(key.requests); }},
      {"troupe_key_refused_total", "counter", "Requests that the limits of the key refused.",
       [](const KeyUse& key) { return static_cast<double>(key.refused); }},
      {"troupe_key_prompt_tokens_total", "counter", "Tokens of the key's prompts.",
       [](const KeyUse& key) { return static_cast<double>(key.prompt_tokens); }},
      {"troupe_key_generation_tokens_total", "counter", "Tokens sampled for the key.",
       [](const KeyUse& key) { return static_cast<double>(key.generation_tokens); }},
      {"troupe_key_requests_running", "gauge", "Requests of the key that are being answered.",
       [](const KeyUse& key) { return static_cast<double>(key.running); }},
  }};
  for (const Row& row : kRows) {
    if (keys.empty()) break;
    page.head(row.name, row.type, row.help);
    for (const KeyUse& key : keys)
      page.line(row.name, ",key=\"" + key.name + "\"", row.value(key));
  }
  return page.text;
}

}  // namespace troupe::serving
