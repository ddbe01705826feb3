// The contents that a run was begun with, kept in every checkpoint and held against what is there
// when it is resumed: other data, weights or another tokenizer under the same names would be
// another run. Hashed on a thread of its own while the roles load; owned by the command that
// trains.
#pragma once

#include "apps/session/roles/contents.hpp"
#include "runtime/store/checkpoint_store.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::app {

class RunContents {
 public:
  using Note = std::function<void(const std::string&)>;

  // Errors: those of contents_of.
  static core::Result<std::unique_ptr<RunContents>> open(const config::TrainConfig& config);

  // What differs from the checkpoint's, as notes. Error kConfig, naming old and new: something that
  // alters the result, unless the run is a branch.
  core::Result<std::vector<std::string>> check(const store::Checkpoint& checkpoint,
                                               bool branch) const;

  // For the manifest of a checkpoint. Blocks until all is hashed; "{}" when it cannot be, and
  // `note` hears why.
  std::string state(const Note& note) const;

  // By name; blocks. Safe on any thread.
  const core::Result<Hashes>& hashes() const { return hashing_.get(); }

 private:
  RunContents(std::vector<Content> contents, std::string run_path)
      : hashing_(std::move(contents)), run_path_(std::move(run_path)) {}

  const Hashing hashing_;
  const std::string run_path_;
};

}  // namespace troupe::app
