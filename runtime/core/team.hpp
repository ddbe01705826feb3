// One member's view of a parallel region: its rank, the size, and a barrier. Numeric code is
// written in this form (every member calls the same function and takes its share), so the engine
// and the trainer run one forward. The pool that starts the members owns the barrier. Sharing work
// over a team never changes a result's bits: members split outputs, never a sum.
#pragma once

#include "runtime/core/memory.hpp"
#include "runtime/core/range.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace troupe::core {

// Memory that a member reads next: fetched into its cache while it waits for others, which would
// leave the memory idle. A hint, never needed and never written.
struct Upcoming {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

// All members arrive before any leaves. Spins at most about 20 us, then sleeps on a futex.
class TeamBarrier {
 public:
  explicit TeamBarrier(int size) noexcept : size_(size) {}
  TeamBarrier(const TeamBarrier&) = delete;
  TeamBarrier& operator=(const TeamBarrier&) = delete;
  void arrive_and_wait(Upcoming next = {}) noexcept;

 private:
  const int size_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
};

// Nanoseconds that the calling thread has waited in barriers for other members, ever.
std::uint64_t barrier_wait_ns() noexcept;

struct Team {
  int rank = 0;
  int size = 1;
  TeamBarrier* barrier_ptr = nullptr;  // null when size is 1

  void barrier(Upcoming next = {}) const noexcept {
    if (size > 1) barrier_ptr->arrive_and_wait(next);
  }

  // This member's share of `count` items, contiguous, in multiples of `grain`.
  Range share(std::int64_t count, std::int64_t grain = 1) const noexcept {
    const std::int64_t units = (count + grain - 1) / grain;
    const std::int64_t begin = units * rank / size * grain;
    const std::int64_t end = units * (rank + 1) / size * grain;
    return {begin < count ? begin : count, end < count ? end : count};
  }
};

// Work of a team's memory that was recorded once and is submitted as a whole, again and again, with
// the pointers and sizes of the recording. Used and ended by the thread that uses the team, before
// the team ends.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void submit() = 0;
};

// Starts a parallel region: `run` calls the function once per member, the caller being member 0,
// and returns when all have. Not reentrant.
class TeamRunner {
 public:
  virtual ~TeamRunner() = default;
  virtual void run(const std::function<void(Team)>& region) = 0;
  virtual int size() const noexcept = 0;
  // Where the numbers live that regions of this team compute on.
  virtual Memory& memory() noexcept { return host_memory(); }
  // What the region would submit to a device is recorded and not done; null, and nothing was
  // called, where there is nothing to record (the CPU). The region may not download. Throws what
  // the region throws; then nothing is recorded.
  virtual std::unique_ptr<Recording> record(const std::function<void(Team)>&) { return nullptr; }
};

// A team of one: the caller.
class SerialTeam final : public TeamRunner {
 public:
  void run(const std::function<void(Team)>& region) override { region(Team{}); }
  int size() const noexcept override { return 1; }
};

}  // namespace troupe::core
