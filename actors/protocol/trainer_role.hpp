// The common base of the policy and critic roles: a trainer on the device thread, the count of its
// updates, and its state in a checkpoint. It never saves a state half-way through an update. A role
// derives from it and runs on its strand.
#pragma once

#include "actors/protocol/device_work.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/store/disk.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors {

template <class Trainer>
class TrainerRole {
 public:
  // Error kInvalidArgument after an update that failed half-way. Repeated: written again.
  async::task<core::Result<Ack>> on(SaveState request) {
    if (inside_) {
      co_return core::fail(
          core::ErrorCode::kInvalidArgument,
          "the " + name_ + " stands half-way through update " + std::to_string(*inside_ + 1));
    }
    const std::filesystem::path folder = std::filesystem::path(request.folder) / name_;
    auto job = [trainer = trainer_, disk = &disk_, folder, name = name_]() -> core::Result<void> {
      if (!disk->exists(folder.parent_path())) {
        return core::fail(core::ErrorCode::kResources,
                          "the " + name + " does not see the checkpoint folder " +
                              folder.parent_path().string() +
                              "; play it on a host that shares the run folder");
      }
      TROUPE_TRY(disk->make_folder(folder));
      return trainer->save_state(folder);
    };
    TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
    co_return Ack{};
  }

  // Repeated: refused; the folder is there.
  async::task<core::Result<Ack>> on(SaveModel request) {
    auto job = [trainer = trainer_, folder = std::filesystem::path(request.folder),
                tokenizer = tokenizer_from_]() { return trainer->save_model(folder, tokenizer); };
    TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
    co_return Ack{};
  }

  // Repeated: loaded again.
  async::task<core::Result<Ack>> on(LoadState request) {
    const std::filesystem::path folder = std::filesystem::path(request.folder) / name_;
    auto job = [trainer = trainer_, folder]() { return trainer->load_state(folder); };
    TROUPE_CO_TRY(co_await work_.run("load", std::move(job)));
    inside_.reset();
    co_return Ack{};
  }

  std::string state() const { return work_.state(); }
  wire::Amounts amounts() const {
    return {{"version", static_cast<double>(version_)}, {"updates", static_cast<double>(updates_)}};
  }

 protected:
  // `name`: of the role in messages, and of its folder in a checkpoint. `tokenizer_from`: the
  // folder whose tokenizer files go with a saved model. `disk`: where checkpoints are.
  TrainerRole(RoleContext context,
              std::unique_ptr<Trainer> trainer,
              std::string name,
              std::filesystem::path tokenizer_from,
              store::Disk& disk)
      : context_(std::move(context)),
        trainer_(std::move(trainer)),
        name_(std::move(name)),
        tokenizer_from_(std::move(tokenizer_from)),
        disk_(disk),
        work_(context_, "waiting for groups") {}
  ~TrainerRole() = default;

  // The update changes the trainer from now on, until `learned` is called.
  void begin_update(std::uint64_t update) { inside_ = update; }
  template <class Report>
  Trained learned(Report report) {
    inside_.reset();
    version_ = report.version;
    ++updates_;
    Trained reply;
    reply.version = report.version;
    reply.metrics = std::move(report.metrics);
    return reply;
  }

  RoleContext context_;
  const std::shared_ptr<Trainer> trainer_;  // used on the device thread alone
  const std::string name_;
  const std::filesystem::path tokenizer_from_;
  store::Disk& disk_;
  DeviceWork work_;
  core::Version version_ = 0;

 private:
  std::uint64_t updates_ = 0;
  std::optional<std::uint64_t> inside_;  // the update that is changing the trainer
};

}  // namespace troupe::actors
