#include "apps/session/run_output.hpp"

#include "runtime/store/atomic_folder.hpp"

#include <chrono>
#include <utility>

namespace troupe::session {

namespace {

double unix_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

Result<RunOutput> RunOutput::open(const config::TrainConfig& config,
                                  const store::RunFolder& folder,
                                  std::optional<std::uint64_t> resumed_at) {
  TROUPE_TRY_ASSIGN(log, observe::Log::open(folder.log_file()));
  TROUPE_TRY_ASSIGN(metrics,
                    store::KeptLines::open(folder.metrics_file(), &store::step_of_metrics));
  RunOutput made(config, folder, std::move(log), std::move(metrics));
  folder.kept()->wrote(folder.log_file());
  if (!config.logger.tensorboard) return made;
  std::error_code error;
  const bool anew = !resumed_at && std::filesystem::exists(folder.tensorboard_folder(), error);
  TROUPE_TRY(made.begin_events(resumed_at));
  if (anew) TROUPE_TRY(made.tensorboard_->drop_earlier(unix_time()));
  return made;
}

Result<void> RunOutput::begin_events(std::optional<std::uint64_t> resumed_at) {
  TROUPE_TRY(store::make_folder(folder_->tensorboard_folder()));
  TROUPE_TRY_ASSIGN(writer, observe::TensorboardWriter::create(folder_->tensorboard_folder(),
                                                               unix_time(), resumed_at));
  writer.use_names(config_.log.names);
  tensorboard_.emplace(std::move(writer));
  folder_->kept()->wrote(tensorboard_->path());
  return {};
}

Result<void> RunOutput::write(const observe::MetricRow& row, const Say& say) {
  TROUPE_TRY(metrics_.append(observe::metric_json(row) + "\n"));
  if (!tensorboard_) return {};
  auto written = tensorboard_->write(row);
  // metrics.jsonl has the row: a retry after kNoRoom would write it there twice.
  if (written || written.error().code != core::ErrorCode::kNoRoom) return written;
  say("TensorBoard lacks a row: " + written.error().message);
  return {};
}

Result<void> RunOutput::look_after_files(const Say& say) {
  if (!folder_->check_here()) return {};
  TROUPE_TRY_ASSIGN(mended, metrics_.mend());
  if (mended) say(*mended);
  for (const auto& [row, loss] : folder_->kept()->look()) {
    lost_ = lost_ || row->care == store::Care::kSaved;
    if (row->care == store::Care::kAnew) TROUPE_TRY(begin_anew(loss.file));
    say(store::told_of_loss(*row, loss));
  }
  return {};
}

Result<void> RunOutput::begin_anew(const std::filesystem::path& lost) {
  if (lost != folder_->log_file()) return begin_events(std::nullopt);
  TROUPE_TRY_ASSIGN(log, observe::Log::open(lost));
  log_ = std::move(log);
  folder_->kept()->wrote(lost);
  return {};
}

void RunOutput::checkpoint_begins() {
  if (!newest_.empty()) folder_->kept()->forget(newest_);
}

void RunOutput::checkpoint_is(const std::filesystem::path& folder) {
  newest_ = folder;
  lost_ = false;
  folder_->kept()->wrote(folder);
}

}  // namespace troupe::session
