#include "apps/session/run_checkpoints.hpp"

#include <utility>

namespace troupe::session {

RunCheckpoints::RunCheckpoints(const config::TrainConfig& config,
                               const store::RunStart& start,
                               const Hashing& contents)
    : config_(config),
      start_(start),
      contents_(contents),
      store_(start.folder.checkpoint_folder(), config.ckpt.max_num),
      modules_(start.checkpoint ? hashes_of_json(start.checkpoint->state_json) : Hashes()),
      card_(config),
      logged_(start.checkpoint ? start.checkpoint->step : 0) {}

Result<std::filesystem::path> RunCheckpoints::begin(std::uint64_t done) {
  const auto here = start_.folder.check_here();
  if (!here && here.error().code == core::ErrorCode::kClosed) return here.failure();
  if (!here && !std::exchange(beside_, true)) {
    const auto rescue = store::free_sibling(start_.folder.path(), ".rescued-");
    store_ = store::CheckpointStore(rescue / "ckpt", config_.ckpt.max_num);
  }
  TROUPE_TRY_ASSIGN(folder, store_.begin(done));
  open_.emplace(std::move(folder));
  return open_->path();
}

RunCheckpoints::Open RunCheckpoints::take(std::uint64_t done) {
  TROUPE_CHECK(open_.has_value(), "a checkpoint is begun before it is committed");
  Open open{std::move(*open_),     store_, arithmetic_, modules_, card_.text(done, false),
            card_.text(done, true)};
  open_.reset();
  return open;
}

Result<std::filesystem::path> RunCheckpoints::write(
    std::uint64_t done, Open open, const std::function<void(const std::string&)>& note) {
  const auto synced = store::sync_path(start_.folder.metrics_file());
  if (!synced && synced.error().code != core::ErrorCode::kNotFound) return synced.failure();
  const auto& hashes = contents_.get();
  if (!hashes) {
    note("a resume cannot tell whether the contents are the same: " + hashes.error().message);
  }
  Hashes all = hashes ? *hashes : Hashes();
  open.modules.add_to(all);
  TROUPE_TRY(write_cards(open.folder.path(), open.card_of_model, open.card_of_adapter));
  return open.store.commit(done, std::move(open.folder),
                           hashes_json(all, open.arithmetic, start_.first));
}

bool RunCheckpoints::written(std::uint64_t done) {
  made_ = true;
  logged_ = done;
  log_bytes_ = 0;
  return !config_.run.keep_experience && !beside_;
}

bool RunCheckpoints::log_is_long(std::uint64_t done) {
  for (; logged_ < done; ++logged_) {
    const auto size = start_.folder.experience().size_of(logged_ + 1);
    if (size) log_bytes_ += *size;
  }
  return log_bytes_ >= static_cast<std::uint64_t>(config_.ckpt.log_bytes_max);
}

}  // namespace troupe::session
