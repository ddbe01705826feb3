// The ranks of a gang as threads of a test, over real collectives.
#pragma once

#include "actors/gang/gang_link.hpp"
#include "runtime/collective/collectives.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::actors::testing {

// Where ranks of one process meet.
class MeetingRoom {
 public:
  explicit MeetingRoom(int size) : addresses_(static_cast<std::size_t>(size)) {}
  collective::Meeting come(int rank, const collective::RankAddress& mine) {
    std::unique_lock lock(mutex_);
    addresses_[static_cast<std::size_t>(rank)] = mine;
    ++here_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return here_ == addresses_.size(); });
    return {std::string(64, 'a'), addresses_};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t here_ = 0;
  std::vector<collective::RankAddress> addresses_;
};

class RoomRendezvous final : public collective::Rendezvous {
 public:
  explicit RoomRendezvous(MeetingRoom& room) : room_(room) {}
  core::Result<collective::Meeting> meet(int rank,
                                         int,
                                         const collective::RankAddress& mine,
                                         const std::atomic<bool>&) override {
    return room_.come(rank, mine);
  }

 private:
  MeetingRoom& room_;
};

using Ranks = std::shared_ptr<collective::Collectives>;

// Connected ranks.
inline std::vector<Ranks> connected(int size) {
  MeetingRoom room(size);
  std::vector<Ranks> all;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    collective::RankOptions options;
    options.gang = {core::RunId{7}, "policy", 3};
    options.rank = rank;
    options.size = size;
    all.push_back(std::make_shared<collective::Collectives>(std::move(options)));
  }
  for (const Ranks& ranks : all) {
    threads.emplace_back([&room, ranks] {
      RoomRendezvous rendezvous(room);
      const auto met = ranks->connect(rendezvous);
      EXPECT_TRUE(met.has_value()) << met.error().message;
    });
  }
  threads.clear();
  return all;
}

}  // namespace troupe::actors::testing
