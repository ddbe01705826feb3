// The episodes that run in one place, a worker or a server: how many more may come. One that may
// have ended such a place comes among few others, at last alone, so that it is found out. A pure
// value.
#pragma once

#include "actors/environment/environment.hpp"
#include "actors/environment/limits.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

namespace troupe::actors::environment {

// The most episodes of its place that an episode runs among, itself included.
inline std::size_t company_of(const EpisodeStart& start) {
  constexpr std::size_t kFew = limits::kWorkerEpisodes_max / 16;
  return start.losses == 0 ? limits::kWorkerEpisodes_max : start.losses == 1 ? kFew : 1;
}

class EpisodeRoom {
 public:
  bool has_room(std::size_t company) const {
    const std::size_t most = companies_.empty() ? company : std::min(company, *companies_.begin());
    return companies_.size() < most;
  }
  void enter(std::size_t company) { companies_.insert(company); }
  void leave(std::size_t company) { companies_.erase(companies_.find(company)); }
  std::size_t size() const noexcept { return companies_.size(); }

 private:
  std::multiset<std::size_t> companies_;  // of the episodes that are here
};

// How what ran an episode was lost, by the error that says so (Episode::step).
enum class Loss { kNone, kOfAnother, kPerhapsOwn };
inline Loss loss_of(const core::Error& error) {
  if (error.code == core::ErrorCode::kInterrupted) return Loss::kOfAnother;
  return error.code == core::ErrorCode::kClosed ? Loss::kPerhapsOwn : Loss::kNone;
}

}  // namespace troupe::actors::environment
