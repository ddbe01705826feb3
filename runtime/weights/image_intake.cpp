#include "runtime/weights/image_intake.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace troupe::weights {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::span<const char> ArrivedImage::bucket(std::uint32_t index) const {
  const auto of = static_cast<std::uint32_t>(parts.size());
  const std::uint32_t part = index % of;
  return shape.bucket(parts[part].data, index, {part, of});
}

bool ArrivedImage::is_taken_back() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return weights::is_taken_back(part.lease); });
}

void ArrivedImage::let_go() {
  for (Part& part : parts) {
    part.owner.reset();
    part.lease.close();
  }
}

bool is_taken_back(const net::OwnedFd& lease) {
  char byte = 0;
  return lease && ::recv(lease.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

core::Failure taken_back(core::Version version) {
  return core::fail(core::ErrorCode::kPeerLost,
                    "the trainer needed the memory of version " + std::to_string(version) +
                        " of the weights before it was packed",
                    "the newest can be fetched");
}

ImageIntake::ImageIntake(ArrivedImage image, std::shared_ptr<ShadowPool> shadows)
    : image_(std::move(image)), shadows_(std::move(shadows)), wrong_bucket_(kNone) {
  if (shadows_->memory().on_host()) shadow_ = shadows_->take();
}

// An error of any kind that shows after the snapshot was taken back is that: its bytes may be those
// of another version.
core::Result<bool> ImageIntake::advance(core::TeamRunner& team, core::Duration budget) {
  if (image_.is_taken_back()) return taken_back(image_.version);
  auto done = copy(team, budget);
  if ((!done || *done) && image_.is_taken_back()) return taken_back(image_.version);
  if (!done || !*done) return done;
  image_.let_go();
  return true;
}

core::Result<bool> ImageIntake::copy(core::TeamRunner& team, core::Duration budget) {
  TROUPE_CHECK(shadow_ != nullptr || next_bucket_ == 0, "an intake whose panels were taken");
  const core::TimePoint end = std::chrono::steady_clock::now() + budget;
  if (done_) return true;
  try {
    if (shadow_ == nullptr) shadow_ = shadows_->take();
    team.run([&](core::Team) {
      core::Duration slowest{0};
      core::TimePoint begin = std::chrono::steady_clock::now();
      do {
        const std::uint32_t i = next_bucket_.fetch_add(1);
        if (i >= image_.shape.buckets) return;
        copy_bucket(i);
        const core::TimePoint now = std::chrono::steady_clock::now();
        slowest = std::max(slowest, now - begin);
        begin = now;
      } while (begin + slowest < end);
    });
  } catch (const core::OutOfMemory& error) {
    return core::fail(core::ErrorCode::kResources,
                      std::string("panels for a new version of the weights: ") + error.what());
  }
  if (const std::uint32_t wrong = wrong_bucket_; wrong != kNone) {
    return wrong_bucket(image_.version, wrong, image_.shape.buckets);
  }
  if (next_bucket_ < image_.shape.buckets) return false;
  shadow_->set_version(image_.version);
  return image_.verified = done_ = true;
}

void ImageIntake::copy_bucket(std::uint32_t index) {
  const auto from = image_.bucket(index);
  char* const to = shadow_->image() + image_.shape.begin_of(index);
  core::Memory& memory = shadow_->memory();
  const bool check = !image_.verified;
  std::uint32_t crc = 0;
  if (memory.on_host() && check) {
    crc = core::copy_crc32c(to, from.data(), from.size());
  } else if (memory.on_host()) {
    std::memcpy(to, from.data(), from.size());
  } else {
    if (check) crc = core::crc32c(from.data(), from.size());
    image_.on_device ? memory.copy(to, from.data(), from.size())
                     : memory.upload(to, from.data(), from.size());
    memory.wait();  // enqueueing returns at once, and a slice would run far beyond its budget
  }
  if (check && crc != image_.table[index]) wrong_bucket_ = index;
}

std::shared_ptr<const model::PackedWeights> ImageIntake::take() {
  TROUPE_CHECK(done_ && shadow_ != nullptr, "panels that are not done, or taken twice");
  return std::move(shadow_);
}

}  // namespace troupe::weights
