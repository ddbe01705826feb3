#include "runtime/weights/flat_intake.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <chrono>
#include <limits>

namespace troupe::weights {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

FlatIntake::FlatIntake(FlatWeights flat, std::shared_ptr<ShadowPool> shadows)
    : flat_(std::move(flat)), shadows_(std::move(shadows)), wrong_bucket_(kNone) {
  if (shadows_->memory().on_host()) take_shadow();
}

void FlatIntake::take_shadow() {
  shadow_ = shadows_->take();
  packer_.emplace(*shadow_, flat_.data, flat_.version, flat_.on_device);
}

core::Result<bool> FlatIntake::advance(core::TeamRunner& team, core::Duration budget) {
  TROUPE_CHECK(shadow_ != nullptr || !packer_, "an intake whose panels were taken");
  const core::TimePoint end = std::chrono::steady_clock::now() + budget;
  if (!flat_.verified) {
    TROUPE_TRY_ASSIGN(whole, verify(team, end));
    if (!whole || std::chrono::steady_clock::now() >= end) return false;
  }
  try {
    if (!packer_) take_shadow();
    if (!packer_->advance(team, end - std::chrono::steady_clock::now())) return false;
  } catch (const core::OutOfMemory& error) {
    return core::fail(core::ErrorCode::kResources,
                      std::string("panels for a new version of the weights: ") + error.what());
  }
  flat_.lease.close();
  flat_.owner.reset();
  return true;
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
