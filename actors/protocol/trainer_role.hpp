// The common base of the policy and critic roles: runs a trainer on the device thread, counts its
// updates, and saves and loads its state, never in the middle of an update. A role derives from it
// and runs on its strand.
#pragma once

#include "actors/protocol/device_work.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/async/turns.hpp"
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
  // Writes again for a repeated request. kInvalidArgument: an update failed half-way.
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

  // Refuses a repeated request: the folder exists.
  async::task<core::Result<Ack>> on(SaveModel request) {
    auto job = [trainer = trainer_, folder = std::filesystem::path(request.folder),
                tokenizer = tokenizer_from_]() { return trainer->save_model(folder, tokenizer); };
    TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
    co_return Ack{};
  }

  // Ignores a repeated request, so that what was learned since the first stays.
  async::task<core::Result<Ack>> on(LoadState request) {
    const std::filesystem::path folder = std::filesystem::path(request.folder) / name_;
    if (folder == loaded_) co_return Ack{};
    auto job = [trainer = trainer_, folder]() { return trainer->load_state(folder); };
    TROUPE_CO_TRY(co_await work_.run("load", std::move(job)));
    loaded_ = folder;
    inside_.reset();
    answer_.reset();
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
        turns_(*context_.timers),
        work_(context_, "waiting for groups") {}
  ~TrainerRole() = default;

  // The answer given when this update was trained on; nothing when it was not yet. Error
  // kInvalidArgument for an update before the last one trained on.
  core::Result<std::optional<Trained>> answered(std::uint64_t update) const {
    if (!answer_ || update > answer_->first) return std::optional<Trained>();
    if (update == answer_->first) return std::optional(answer_->second);
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "the " + name_ + " has learned from update " + std::to_string(update + 1) +
                          " and later ones already");
  }

  // The update changes the trainer from now on, until `learned` is called.
  void begin_update(std::uint64_t update) { inside_ = update; }
  template <class Report>
  Trained learned(std::uint64_t update, Report report) {
    inside_.reset();
    version_ = report.version;
    ++updates_;
    Trained reply;
    reply.version = report.version;
    reply.metrics = std::move(report.metrics);
    answer_.emplace(update, reply);
    return reply;
  }

  RoleContext context_;
  const std::shared_ptr<Trainer> trainer_;  // used on the device thread alone
  const std::string name_;
  const std::filesystem::path tokenizer_from_;
  store::Disk& disk_;
  async::Turns turns_;  // of requests that work on an update
  DeviceWork work_;
  core::Version version_ = 0;

 private:
  std::filesystem::path loaded_;  // checkpoint loaded last; "": none
  std::uint64_t updates_ = 0;
  std::optional<std::uint64_t> inside_;  // the update that is changing the trainer
  std::optional<std::pair<std::uint64_t, Trained>> answer_;  // the last update and its answer
};

}  // namespace troupe::actors
