// The checkpoints of a run: where they are written, what their manifests say, and when the
// experience log is long enough for one. RunReporter uses it under its lock; only `write` needs
// none, because it works on a copy, and only one checkpoint is made at a time.
#pragma once

#include "apps/session/model_card.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/roles/loaded_modules.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_start.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe::session {

class RunCheckpoints {
 public:
  // Every manifest gets the hashes of `contents`. All three outlive this object.
  RunCheckpoints(const config::TrainConfig& config,
                 const store::RunStart& start,
                 const Hashing& contents);

  store::CheckpointStore& store() noexcept { return store_; }
  const store::CheckpointStore& store() const noexcept { return store_; }
  // What is loaded besides the contents; the class of arithmetic of checkpoints from now on.
  LoadedModules& modules() noexcept { return modules_; }
  void computes_in(std::string arithmetic) { arithmetic_ = std::move(arithmetic); }
  // The card of the models in each checkpoint: it is given what the run measures.
  ModelCard& card() noexcept { return card_; }
  // Whether this object has made one.
  bool any_made() const noexcept { return made_; }

  // Begins one in the run folder, or next to it once it is gone. Error kClosed: the run is another
  // head's. Then `take`, `write` and `written`, in this order.
  core::Result<std::filesystem::path> begin(std::uint64_t done);
  struct Open {
    store::AtomicFolder folder;
    store::CheckpointStore store;
    std::string arithmetic;
    LoadedModules modules;
    std::string card_of_model, card_of_adapter;
  };
  Open take(std::uint64_t done);
  // Blocks until all contents are hashed. `note` is told when they cannot be.
  core::Result<std::filesystem::path> write(std::uint64_t done,
                                            Open open,
                                            const std::function<void(const std::string&)>& note);
  // True when the experience log up to there is not needed any more.
  bool written(std::uint64_t done);

  // Whether the log of the updates since the newest checkpoint has ckpt.log_bytes_max. A file that
  // cannot be read is noticed at the next write there.
  bool log_is_long(std::uint64_t done);

 private:
  const config::TrainConfig& config_;
  const store::RunStart& start_;
  const Hashing& contents_;
  store::CheckpointStore store_;
  LoadedModules modules_;
  ModelCard card_;
  std::string arithmetic_;
  std::optional<store::AtomicFolder> open_;
  bool beside_ = false;
  bool made_ = false;
  std::uint64_t logged_;         // updates whose log is in log_bytes_, or in a checkpoint
  std::uint64_t log_bytes_ = 0;  // of the updates since the newest checkpoint
};

}  // namespace troupe::session
