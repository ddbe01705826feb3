#include "runtime/cluster/part_intake.hpp"

#include "runtime/cluster/limits.hpp"
#include "runtime/wire/limits.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::cluster {
namespace {

// A second copy of a part comes at most a few messages after the first.
constexpr std::size_t kTaken_max = 256;

std::span<std::byte> bytes_of(std::vector<std::uint64_t>& words) {
  return std::as_writable_bytes(std::span<std::uint64_t>(words));
}

}  // namespace

bool PartIntake::taken(const Name& name) const {
  return std::find(taken_.begin(), taken_.end(), name) != taken_.end();
}

PartIntake::Messages::iterator PartIntake::drop(Messages::iterator place) {
  release(place->second.words.size() * sizeof(std::uint64_t));
  return messages_.erase(place);
}

core::Result<PartIntake::Messages::iterator> PartIntake::begin(const Name& name,
                                                               const wire::Part& part) {
  if (const auto place = messages_.find(name); place != messages_.end()) return place;
  if (part.bytes > wire::limits::kMessage_bytes_max || part.bytes % sizeof(std::uint64_t) != 0 ||
      part.bytes == 0) {
    return core::fail(ErrorCode::kData,
                      "a message of " + std::to_string(part.bytes) + " bytes in parts",
                      "it may have " + std::to_string(wire::limits::kMessage_bytes_max));
  }
  if (bytes_ + part.bytes > limits::kMessages_bytes_max) {
    return core::fail(ErrorCode::kOverloaded,
                      "long messages hold " + std::to_string(bytes_) + " bytes already, and " +
                          std::to_string(part.bytes) + " more would be beyond " +
                          std::to_string(limits::kMessages_bytes_max));
  }
  Message message;
  message.words.resize(part.bytes / sizeof(std::uint64_t));
  message.missing = wire::part_count(part.bytes);
  message.here.assign(message.missing, false);
  bytes_ += part.bytes;
  return messages_.emplace(name, std::move(message)).first;
}

core::Result<void> PartIntake::put(const std::string& from,
                                   std::uint64_t epoch,
                                   const wire::Part& part,
                                   core::TimePoint now) {
  const Name name{from, epoch, part.message};
  if (taken(name)) return {};
  TROUPE_TRY_ASSIGN(place, begin(name, part));
  Message& message = place->second;
  const auto own = wire::part_of(bytes_of(message.words), part.index);
  const bool fits = part.bytes == message.words.size() * sizeof(std::uint64_t) &&
                    part.index < message.here.size() && own.size() == part.data.size();
  if (!fits) {
    return core::fail(ErrorCode::kData, "part " + std::to_string(part.index) + " with " +
                                            std::to_string(part.data.size()) +
                                            " bytes does not belong to its message");
  }
  message.newest = now;
  if (message.here[part.index]) return {};
  const std::size_t at = static_cast<std::size_t>(own.data() - bytes_of(message.words).data());
  std::memcpy(bytes_of(message.words).data() + at, part.data.data(), part.data.size());
  message.here[part.index] = true;
  --message.missing;
  return {};
}

core::Result<std::optional<wire::Frame>> PartIntake::take(const std::string& from,
                                                          std::uint64_t epoch,
                                                          std::uint64_t number) {
  using Found = std::optional<wire::Frame>;
  const Name name{from, epoch, number};
  if (taken(name)) return Found();
  const auto place = messages_.find(name);
  if (place == messages_.end() || place->second.missing > 0) {
    const std::string missing =
        place == messages_.end() ? "all" : std::to_string(place->second.missing);
    if (place != messages_.end()) drop(place);
    return core::fail(ErrorCode::kDeadline,
                      missing + " parts of a message of " + from +
                          " are missing: none came for too long, or they were lost");
  }
  Message message = std::move(place->second);
  messages_.erase(place);
  taken_.push_back(name);
  if (taken_.size() > kTaken_max) taken_.pop_front();
  const std::uint64_t bytes = message.words.size() * sizeof(std::uint64_t);
  auto frame = wire::Frame::from_words(std::move(message.words));
  if (frame) return Found(std::move(frame).value());
  release(bytes);
  return frame.failure();
}

void PartIntake::forget(const std::string& from) {
  for (auto place = messages_.begin(); place != messages_.end();)
    place = std::get<0>(place->first) == from ? drop(place) : std::next(place);
}

void PartIntake::forget_silent(core::TimePoint now) {
  for (auto place = messages_.begin(); place != messages_.end();) {
    const bool silent = now - place->second.newest >= limits::kPartsSilence_max;
    place = silent ? drop(place) : std::next(place);
  }
}

}  // namespace troupe::cluster
