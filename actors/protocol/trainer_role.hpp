// The common base of the roles that train, policy and critic: runs a trainer on the device thread,
// counts its updates, and saves and loads its state, never in the middle of an update. It keeps its
// answers since the checkpoint before the last: a new head that resumes from there asks again for
// every update since, and what is learned already is answered, not learned twice. A role derives
// from it and runs on its strand. Bound: kAnswers_max answers.
#pragma once

#include "actors/protocol/device_work.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/async/turns.hpp"
#include "runtime/store/disk.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
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
          "the " + name_ + " is half-way through update " + std::to_string(*inside_ + 1));
    }
    const std::filesystem::path folder = std::filesystem::path(request.folder) / name_;
    auto job = [trainer = trainer_, disk = &disk_, folder, name = name_]() -> core::Result<void> {
      if (!disk->exists(folder.parent_path())) {
        return core::fail(
            core::ErrorCode::kResources,
            "the " + name + " does not see the checkpoint folder " + folder.parent_path().string(),
            "run it on a host that shares the run folder");
      }
      TROUPE_TRY(disk->make_folder(folder));
      return trainer->save_state(folder);
    };
    TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
    forget_before(saved_);
    saved_ = next();
    co_return Ack{};
  }

  // Refuses a repeated request: the folder exists.
  async::task<core::Result<Ack>> on(SaveModel request) {
    auto job = [trainer = trainer_, folder = std::filesystem::path(request.folder),
                tokenizer = tokenizer_from_]() { return trainer->save_model(folder, tokenizer); };
    TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
    co_return Ack{};
  }

  // A repeated request loads nothing, so that what was learned since the first stays. Error
  // kPeerLost: an update failed half-way, so the role must start again.
  async::task<core::Result<Loaded>> on(LoadState request) {
    TROUPE_CO_TRY(check_whole());
    if (loaded_) co_return Loaded{from_, next()};
    const std::filesystem::path folder = request.folder.empty() ? "" : request.folder + "/" + name_;
    auto job = [trainer = trainer_, folder]() -> core::Result<core::Version> {
      if (!folder.empty()) TROUPE_TRY(trainer->load_state(folder));
      return trainer->version();
    };
    TROUPE_CO_TRY_SET(from_version_, co_await work_.run("load", std::move(job)));
    loaded_ = true;
    from_ = saved_ = request.updates;
    co_return Loaded{from_, next()};
  }

  std::string state() const { return work_.state(); }
  wire::Amounts amounts() const {
    return {{"version", static_cast<double>(version_)}, {"updates", static_cast<double>(updates_)}};
  }

 protected:
  // `name`: of the role in messages, and of its folder in a checkpoint. `tokenizer_from`: the
  // folder whose tokenizer files go with a saved model. `disk`: where checkpoints are. `idle`: what
  // it waits for between jobs.
  TrainerRole(RoleContext context,
              std::unique_ptr<Trainer> trainer,
              std::string name,
              std::filesystem::path tokenizer_from,
              store::Disk& disk,
              std::string idle = "waiting for groups")
      : context_(std::move(context)),
        trainer_(std::move(trainer)),
        name_(std::move(name)),
        tokenizer_from_(std::move(tokenizer_from)),
        disk_(disk),
        turns_(*context_.timers),
        work_(context_, std::move(idle)) {}
  ~TrainerRole() = default;

  // The update that it learns from next.
  std::uint64_t next() const { return answers_.empty() ? from_ : answers_.rbegin()->first + 1; }
  // Updates before the first whose answer is kept.
  std::uint64_t first_kept() const { return from_; }
  // Error kPeerLost: an update failed half-way, so the role must start again.
  core::Result<void> check_whole() const {
    if (!inside_) return {};
    return core::fail(core::ErrorCode::kPeerLost, "the " + name_ + " is half-way through update " +
                                                      std::to_string(*inside_ + 1));
  }
  // The answer given when this update was trained on; nothing when it was not yet. Error
  // kInvalidArgument: it was, too long ago for the answer to be kept.
  core::Result<std::optional<Trained>> answered(std::uint64_t update) const {
    const auto found = answers_.find(update);
    if (found != answers_.end()) return std::optional(found->second);
    if (update >= next()) return std::optional<Trained>();
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "the " + name_ + " has learned from update " + std::to_string(update + 1) +
                          " and later ones already");
  }
  // The version after that many updates. Error kInvalidArgument: it is not known (any more).
  core::Result<core::Version> version_after(std::uint64_t updates) const {
    if (updates == from_) return from_version_;
    const auto found = updates == 0 ? answers_.end() : answers_.find(updates - 1);
    if (found != answers_.end()) return found->second.version;
    return core::fail(core::ErrorCode::kInvalidArgument, "the " + name_ +
                                                             " does not know its version after " +
                                                             std::to_string(updates) + " updates");
  }

  // The update changes the trainer from now on, until `learned` is called.
  void begin_update(std::uint64_t update) { inside_ = update; }
  // The update failed before it changed anything: the trainer is as it was.
  void abandon_update() { inside_.reset(); }
  template <class Report>
  Trained learned(std::uint64_t update, Report report) {
    inside_.reset();
    version_ = report.version;
    ++updates_;
    Trained reply;
    reply.version = report.version;
    reply.metrics = std::move(report.metrics);
    answers_.insert_or_assign(update, reply);
    if (answers_.size() > limits::kAnswers_max) forget_before(answers_.begin()->first + 1);
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
  void forget_before(std::uint64_t updates) {
    while (!answers_.empty() && answers_.begin()->first < updates) {
      from_ = answers_.begin()->first + 1;
      from_version_ = answers_.begin()->second.version;
      answers_.erase(answers_.begin());
    }
  }

  bool loaded_ = false;
  std::uint64_t updates_ = 0;                 // since this role started
  std::optional<std::uint64_t> inside_;       // the update that is changing the trainer
  std::map<std::uint64_t, Trained> answers_;  // by update, without a gap
  std::uint64_t from_ = 0;                    // updates before the first of answers_
  core::Version from_version_ = 0;            // the version then
  std::uint64_t saved_ = 0;                   // updates in the last checkpoint
};

}  // namespace troupe::actors
