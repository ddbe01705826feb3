#include "runtime/weights/flat_intake.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <sys/socket.h>

#include <chrono>
#include <limits>

namespace troupe::weights {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

bool is_taken_back(const net::OwnedFd& lease) {
  char byte = 0;
  return lease && ::recv(lease.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

core::Failure taken_back(core::Version version) {
  return core::fail(core::ErrorCode::kPeerLost,
                    "the trainer needed the memory of version " + std::to_string(version) +
                        " of the weights before it was packed; the newest can be fetched");
}

FlatIntake::FlatIntake(FlatWeights flat, std::shared_ptr<ShadowPool> shadows)
    : flat_(std::move(flat)), shadows_(std::move(shadows)), wrong_bucket_(kNone) {
  if (shadows_->memory().on_host()) take_shadow();
}

void FlatIntake::take_shadow() {
  shadow_ = shadows_->take();
  packer_.emplace(*shadow_, flat_.data, flat_.version, flat_.on_device);
}

// An error of any kind that shows after the snapshot was taken back is that: its bytes may be those
// of another version.
core::Result<bool> FlatIntake::advance(core::TeamRunner& team, core::Duration budget) {
  if (is_taken_back(flat_.lease)) return taken_back(flat_.version);
  auto done = pack(team, budget);
  if ((!done || *done) && is_taken_back(flat_.lease)) return taken_back(flat_.version);
  if (!done || !*done) return done;
  flat_.owner.reset();
  flat_.lease.close();
  return true;
}

core::Result<bool> FlatIntake::pack(core::TeamRunner& team, core::Duration budget) {
  TROUPE_CHECK(shadow_ != nullptr || !packer_, "an intake whose panels were taken");
  const core::TimePoint end = std::chrono::steady_clock::now() + budget;
  if (!flat_.verified) {
    TROUPE_TRY_ASSIGN(whole, verify(team, end));
    if (!whole || std::chrono::steady_clock::now() >= end) return false;
  }
  try {
    if (!packer_) take_shadow();
    return packer_->advance(team, end - std::chrono::steady_clock::now());
  } catch (const core::OutOfMemory& error) {
    return core::fail(core::ErrorCode::kResources,
                      std::string("panels for a new version of the weights: ") + error.what());
  }
}

core::Result<bool> FlatIntake::verify(core::TeamRunner& team, core::TimePoint end) {
  const std::uint32_t buckets = flat_.shape.buckets;
  team.run([&](core::Team) {
    do {
      const std::uint32_t i = next_bucket_.fetch_add(1);
      if (i >= buckets) return;
      const auto bytes = flat_.shape.bucket(flat_.data, i);
      if (core::crc32c(bytes.data(), bytes.size()) != flat_.table[i]) wrong_bucket_ = i;
    } while (std::chrono::steady_clock::now() < end);
  });
  if (const std::uint32_t wrong = wrong_bucket_; wrong != kNone) {
    return wrong_bucket(flat_.version, wrong, buckets);
  }
  flat_.verified = next_bucket_ >= buckets;
  return flat_.verified;
}

std::shared_ptr<const model::PackedWeights> FlatIntake::take() {
  TROUPE_CHECK(packer_ && packer_->done() && shadow_ != nullptr,
               "panels that are not done, or taken twice");
  return std::move(shadow_);
}

}  // namespace troupe::weights
