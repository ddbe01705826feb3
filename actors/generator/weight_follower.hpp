// Fetches new weights for an engine: tracks which version is wanted, which is being fetched or
// packed, which the engine holds, and which requests wait. Handles one version at a time; of
// several wanted ones it fetches the newest next. A fetch may block, so it runs on a thread of its
// own, and the end of the role breaks it off. Part of a role that has an engine, on its strand.
// Bound: one fetch or intake (weights being packed) at a time.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace troupe::actors::generator {

class WeightFollower {
 public:
  // `arrived` is called when fetched weights are ready to be packed.
  WeightFollower(RoleContext context,
                 std::shared_ptr<weights::WeightSubscriber> subscriber,
                 async::DeviceQueue& fetch_thread,
                 std::function<void()> arrived);

  // Answers once the engine holds that version or a newer one. Errors: those of fetching it after
  // kFetchTries_max tries; kDeadline when the sender or the link to it is gone. It may be repeated.
  async::task<core::Result<Ack>> update(UpdateWeights request);

  // The weights to pack now; null when there are none.
  const std::shared_ptr<weights::WeightIntake>& intake() const noexcept { return intake_; }
  engine::KvAction kv() const noexcept { return kv_; }

  void swapped(core::Version version);    // the engine computes with these weights now
  void broken(const core::Error& error);  // packing the intake failed

  // The version that the engine holds; none before the first.
  const std::optional<core::Version>& version() const noexcept { return version_; }

 private:
  struct Failed {
    core::Version version = 0;
    core::Error error;
  };
  bool holds(core::Version version) const { return version_ && *version_ >= version; }
  async::task<void> fetch();
  core::Duration pause_before(core::Version version, std::uint64_t tries) const;
  async::task<void> close_at_end();
  void give_up(core::Version version, const core::Error& error);

  RoleContext context_;
  std::shared_ptr<weights::WeightSubscriber> subscriber_;
  async::DeviceQueue& fetch_thread_;
  std::function<void()> arrived_;
  async::Notifier changed_;
  std::optional<UpdateWeights> wanted_;  // the request for the newest version
  std::shared_ptr<weights::WeightIntake> intake_;
  engine::KvAction kv_ = engine::KvAction::kRecompute;
  std::optional<core::Version> version_;
  std::optional<Failed> failed_;
  bool fetching_ = false;
  bool watching_ = false;
};

}  // namespace troupe::actors::generator
