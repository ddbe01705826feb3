#include "actors/gang/gang_link.hpp"

#include "actors/gang/limits.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

namespace troupe::actors::gang {
namespace {

// How a rank's part went, as bytes of one size.
struct Verdict {
  std::uint32_t failed = 0;
  std::uint32_t code = 0;
  char text[504] = {};  // ended by a zero
};

Verdict verdict_of(const core::Result<void>& result) {
  Verdict verdict;
  if (result) return verdict;
  verdict.failed = 1;
  verdict.code = static_cast<std::uint32_t>(result.error().code);
  const std::string& text = result.error().message;
  std::memcpy(verdict.text, text.data(), std::min(text.size(), sizeof verdict.text - 1));
  return verdict;
}

// The error of a gang that is over, as those see it who asked the role.
core::Failure over(const core::Error& error) {
  if (error.code == ErrorCode::kInvalidArgument)
    return core::fail(ErrorCode::kInternal, "the ranks disagree on a command: " + error.message);
  if (error.code == ErrorCode::kClosed) return core::fail(ErrorCode::kPeerLost, error.message);
  return core::fail(error);  // kPeerLost, or what another rank gave up with
}

// True for errors that may come from the end of the gang.
bool is_of_gang(ErrorCode code) {
  return code == ErrorCode::kPeerLost || code == ErrorCode::kClosed ||
         code == ErrorCode::kInvalidArgument;
}

ErrorCode code_of(const Verdict& verdict) {
  const bool known = verdict.code < static_cast<std::uint32_t>(core::kErrorCodes);
  return known ? static_cast<ErrorCode>(verdict.code) : ErrorCode::kInternal;
}

// The error of the lowest rank with one of its own; without any, of the lowest with one.
core::Result<void> worst_of(const std::vector<Verdict>& all) {
  std::optional<core::Error> follows;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Verdict& one = all[rank];
    if (one.failed == 0) continue;
    const std::size_t length = ::strnlen(one.text, sizeof one.text);
    core::Error error{code_of(one),
                      "rank " + std::to_string(rank) + ": " + std::string(one.text, length)};
    if (error.code != ErrorCode::kPeerLost) return core::fail(std::move(error));
    if (!follows) follows = std::move(error);
  }
  return follows ? core::Result<void>(core::fail(*follows)) : core::Result<void>();
}

}  // namespace

core::Result<void> CollectiveLink::tell(std::span<const std::byte> command) {
  std::uint64_t bytes = command.size();
  auto told = ranks_->broadcast(0, {&bytes, sizeof bytes});
  if (told) told = ranks_->broadcast(0, {const_cast<std::byte*>(command.data()), command.size()});
  return told ? told : over(told.error());
}

core::Result<std::vector<std::byte>> CollectiveLink::hear() {
  std::uint64_t bytes = 0;
  auto heard = ranks_->broadcast(0, {&bytes, sizeof bytes});
  if (!heard) return over(heard.error());
  if (bytes > limits::kGangCommand_bytes_max)
    return core::fail(ErrorCode::kData, "rank 0 sent a command longer than a gang's may be");
  std::vector<std::byte> command(bytes);
  heard = ranks_->broadcast(0, {command.data(), command.size()});
  if (!heard) return over(heard.error());
  return command;
}

core::Result<void> CollectiveLink::agree(const core::Result<void>& mine, bool* together) {
  const Verdict own = verdict_of(mine);
  std::vector<Verdict> all(static_cast<std::size_t>(ranks_->size()));
  std::vector<collective::Place> places;
  for (Verdict& one : all)
    places.push_back({&one, sizeof one});
  auto met = ranks_->all_gather({&own, sizeof own}, places);
  if (together != nullptr) *together = met.has_value();
  if (!met) return mine || is_of_gang(mine.error().code) ? over(met.error()) : mine.failure();
  return worst_of(all);
}

}  // namespace troupe::actors::gang
