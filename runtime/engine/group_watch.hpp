// Collects the news of each group in an engine (first token, new tokens, finished samples), and
// remembers what was reported already. Part of an EngineDriver, on the engine's thread. Bound: the
// groups of the engine.
#pragma once

#include "runtime/core/error.hpp"
#include "runtime/engine/engine.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe::engine {

// What is reported about a group besides its finished samples.
enum class Watch : std::uint8_t {
  kFinished,    // nothing
  kFirstToken,  // it has its first token
  kStream,      // the first and each new token of unfinished samples
};

// What is new about one group since the last report.
struct GroupNews {
  core::GroupId group;
  std::vector<Sample> grown;         // for each unfinished sample its new tokens only (kStream)
  std::vector<Sample> finished;      // whole samples, in the order in which they finished
  std::optional<core::Error> error;  // if set, the group has ended
  bool first_token = false;          // this news includes the group's first token
};

using News = std::map<core::GroupId, GroupNews>;

class GroupWatch {
 public:
  void add(core::GroupId group, std::int32_t samples, Watch watch);
  void drop(core::GroupId group) { groups_.erase(group); }
  std::vector<core::GroupId> groups() const;

  // Adds finished samples to the news; stops watching groups whose samples are all finished.
  void take(std::vector<Sample> finished, News& news);
  // Counts one finished sample as `take` does, without news.
  void count(core::GroupId group);
  // Adds the first tokens and new tokens of unfinished samples, as each group's Watch asks.
  void look(const Engine& engine, News& news);

 private:
  struct Watched {
    std::int32_t left = 0;  // samples that have not finished
    Watch watch = Watch::kFinished;
    bool drew = false;              // its first token was reported
    std::vector<std::size_t> told;  // tokens of each sample that were reported; only for kStream
  };

  std::map<core::GroupId, Watched> groups_;  // ids ascend in the order of submission
};

// The entry of `group` in `news`, added if missing.
GroupNews& news_of(core::GroupId group, News& news);

}  // namespace troupe::engine
