// Metrics lines, progress lines, checkpoints, phases.
#include "apps/troupe/train/run_reporter.hpp"

#include <cmath>
#include <cstdio>
#include <numeric>

#include <nlohmann/json.hpp>

#include "apps/troupe/stop_signal.hpp"

namespace troupe::app {
namespace {

double value_of(const actors::Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::nan("");
}

}  // namespace

core::Result<std::unique_ptr<RunReporter>> RunReporter::open(const core::TrainConfig& config,
                                                             const store::RunFolder& folder,
                                                             std::uint64_t updates,
                                                             const core::Clock& clock) {
  TROUPE_TRY_ASSIGN(metrics, store::AppendFile::open(folder.metrics_file()));
  return std::unique_ptr<RunReporter>(
      new RunReporter(std::move(metrics),
                      store::CheckpointStore(folder.checkpoint_folder(), config.ckpt.max_num), updates,
                      clock));
}

void RunReporter::end_phase() {
  const core::TimePoint now = clock_.now();
  const double seconds = std::chrono::duration<double>(now - phase_begin_).count();
  phase_begin_ = now;
  if (phase_.empty()) return;
  for (auto& [name, total] : phases_) {
    if (name == phase_) {
      total += seconds;
      return;
    }
  }
  phases_.emplace_back(phase_, seconds);
}

void RunReporter::on_phase(const std::string& phase) {
  end_phase();
  phase_ = phase;
}

const std::vector<std::pair<std::string, double>>& RunReporter::phases() {
  end_phase();
  phase_.clear();
  return phases_;
}

core::Result<void> RunReporter::on_update(const actors::UpdateReport& report) {
  nlohmann::ordered_json line = {{"step", report.done}};
  for (const auto& [name, value] : report.metrics) {
    // JSON has no word for what is not finite.
    if (std::isfinite(value)) line[name] = value;
  }
  TROUPE_TRY(metrics_.append(line.dump() + "\n"));
  std::printf("step=%llu/%llu reward=%.3f kl=%.4f tokens_per_s=%.0f step_s=%.1f\n",
              static_cast<unsigned long long>(report.done),
              static_cast<unsigned long long>(updates_), value_of(report.metrics, "reward/mean"),
              value_of(report.metrics, "kl/ref"), value_of(report.metrics, "perf/tokens_per_s"),
              value_of(report.metrics, "time/step"));
  std::fflush(stdout);
  return {};
}

core::Result<void> RunReporter::on_evaluation(const actors::EvaluationReport& report) {
  const double mean = std::accumulate(report.accuracy.begin(), report.accuracy.end(), 0.0) /
                      static_cast<double>(report.accuracy.size());
  const nlohmann::ordered_json line = {{"step", report.done},
                                       {report.greedy ? "eval/greedy" : "eval/pass@1", mean},
                                       {"time/eval", report.seconds}};
  TROUPE_TRY(metrics_.append(line.dump() + "\n"));
  std::printf("step=%llu %s=%.3f problems=%zu seconds=%.1f\n",
              static_cast<unsigned long long>(report.done),
              report.greedy ? "eval_greedy" : "eval_sampled", mean, report.accuracy.size(),
              report.seconds);
  std::fflush(stdout);
  return {};
}

core::Result<std::filesystem::path> RunReporter::begin_checkpoint(std::uint64_t done) {
  TROUPE_TRY_ASSIGN(folder, checkpoints_.begin(done));
  open_checkpoint_.emplace(std::move(folder));
  return open_checkpoint_->path();
}

core::Result<void> RunReporter::commit_checkpoint(std::uint64_t done) {
  TROUPE_TRY(metrics_.sync());
  TROUPE_CHECK(open_checkpoint_.has_value(), "a checkpoint is begun before it is committed");
  store::AtomicFolder open = std::move(*open_checkpoint_);
  open_checkpoint_.reset();
  TROUPE_TRY_ASSIGN(folder, checkpoints_.commit(done, std::move(open), "{}"));
  std::printf("step=%llu checkpoint=%s\n", static_cast<unsigned long long>(done),
              folder.c_str());
  std::fflush(stdout);
  return {};
}

bool RunReporter::stop_requested() const { return app::stop_requested().load(); }

}  // namespace troupe::app
