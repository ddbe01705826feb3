// The metrics of /metrics, under vLLM's names so that dashboards made for vLLM work. Requests
// update them. Thread-safe. Bound: a fixed set of series.
#pragma once

#include "apps/serving/engine_pump.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::app {

// Counts of values by bucket. Not thread-safe.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  // Prometheus text: cumulative buckets, sum and count. `labels` without braces.
  void render(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // of each bucket alone, the last one beyond all bounds
  double sum_ = 0;
};

class ServeMetrics {
 public:
  ServeMetrics();

  void prompt(std::size_t tokens);  // of a submitted group
  void first_token(double seconds);
  // A finished sample: its tokens, why it ended, and the seconds since its request came in.
  void finished(std::size_t tokens, engine::FinishReason reason, double seconds);
  void aborted(std::size_t samples);  // whose client disconnected
  void refused();                     // a request answered with an error

  // Text format 0.0.4.
  std::string render(const PumpCounters& pump, const std::string& model) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t prompt_tokens_ = 0, generation_tokens_ = 0, refused_ = 0;
  std::array<std::uint64_t, 3> success_{};  // stop, length, abort
  Histogram first_token_s_, request_s_, token_s_, prompt_sizes_, response_sizes_;
};

}  // namespace troupe::app
