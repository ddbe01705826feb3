// Collects the server's metrics and renders them for /metrics in Prometheus's format, mostly under
// vLLM's names so that dashboards made for vLLM work. Thread-safe. Bound: a fixed set of series,
// and five for each API key.
#pragma once

#include "apps/serving/engine_pump.hpp"
#include "apps/serving/key_meter.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::serving {

// A Prometheus histogram: counts values by bucket. Not thread-safe.
class Histogram {
 public:
  // `bounds`: the upper bounds of the buckets, ascending.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  // Appends the histogram to `out`: cumulative buckets, sum and count. `labels` is without braces.
  void render(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // by bucket, not cumulative; the last is above all bounds
  double sum_ = 0;
};

class ServeMetrics final : public dialects::GenerationEvents {
 public:
  ServeMetrics();

  void prompt(std::size_t tokens) override;
  void first_token(double seconds) override;
  void finished(std::size_t tokens, engine::FinishReason reason, double seconds) override;
  void aborted(std::size_t samples) override;
  void refused();  // a request was answered with an error
  void forked();   // a chat template changed the past of a session

  // The page of /metrics, in Prometheus's text format 0.0.4.
  std::string render(const PumpCounters& pump,
                     const std::string& model,
                     const std::vector<KeyUse>& keys = {}) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t prompt_tokens_ = 0, generation_tokens_ = 0, refused_ = 0, forked_ = 0;
  std::array<std::uint64_t, 3> success_{};  // stop, length, abort
  Histogram first_token_s_, request_s_, token_s_, prompt_sizes_, response_sizes_;
};

}  // namespace troupe::serving
