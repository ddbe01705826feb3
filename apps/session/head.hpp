// The process in which a run is started: its company of node processes, its door for others, and
// the roles that stay here (controller, data). Opened once; plays a run once, or again from the
// last commit when the policy was lost. Owned by the command that trains, which its calls block.
#pragma once

#include "apps/session/core_plan.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/roles/role_factories.hpp"
#include "runtime/config/train_config.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

struct HeadOptions {
  config::TrainConfig config;
  std::uint64_t updates = 0;  // of the whole run
  std::filesystem::path run_folder;
  CorePlan cores;
  // The run's hashes; may block, called on a thread for it.
  std::function<core::Result<Hashes>()> contents;
};

struct Play {
  actors::RunPlan plan;
  std::string checkpoint;  // to load first; "" starts from the model
  DataParts data;
  actors::RunListener* listener = nullptr;
  std::function<bool()> folder_here;  // the run folder is still the run's
};

class Head {
 public:
  using Note = std::function<void(const std::string&)>;

  // Opens the doors and starts the local processes. `note` may be called on any thread, until the
  // end. Errors: kConfig (addresses, token), kResources (ports).
  static core::Result<std::unique_ptr<Head>> open(HeadOptions options, Note note);
  ~Head();  // dismisses every node

  // The run to its end. kPeerLost when policy or critic was lost: it may be played again
  // from a checkpoint.
  core::Result<void> play(Play play);

  // Where other commands reach this company: "127.0.0.1:4711".
  std::string address() const;
  // "; status at http://127.0.0.1:4712/metrics", or nothing.
  std::string status_text() const;

 private:
  struct Impl;
  explicit Head(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::app
