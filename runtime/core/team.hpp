// Parallel regions of numeric code: every member calls the same function and takes its share of the
// work. Team is one member's view: its rank, the team's size, and a barrier. The TeamRunner that
// starts the members owns the barrier. Dividing work among a team never changes a result's bits:
// members split outputs, never a sum.
#pragma once

#include "runtime/core/memory.hpp"
#include "runtime/core/range.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace troupe::core {

// Memory that a member will read next. It is prefetched into the member's cache while it waits in a
// barrier. Only a hint; the memory is not written.
struct Upcoming {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

// Waits until all members have arrived. Spins for about 20 us at most, then sleeps on a futex.
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

// Total nanoseconds that the calling thread has waited in barriers for other members.
std::uint64_t barrier_wait_ns() noexcept;

struct Team {
  int rank = 0;
  int size = 1;
  TeamBarrier* barrier_ptr = nullptr;  // null when size is 1

  void barrier(Upcoming next = {}) const noexcept {
    if (size > 1) barrier_ptr->arrive_and_wait(next);
  }

  // This member's contiguous share of `count` items, in multiples of `grain`.
  Range share(std::int64_t count, std::int64_t grain = 1) const noexcept {
    const std::int64_t units = (count + grain - 1) / grain;
    const std::int64_t begin = units * rank / size * grain;
    const std::int64_t end = units * (rank + 1) / size * grain;
    return {begin < count ? begin : count, end < count ? end : count};
  }
};

// Device work that was recorded once and can be submitted again and again as a whole, with the
// recorded pointers and sizes. Use it as the team is used, from one thread at a time, and destroy
// it before the team.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void submit() = 0;
};

// Starts parallel regions. `run` calls the function once per member, the caller being member 0, and
// returns when all members have returned. Work that they submitted to a device may still be
// running. Not reentrant.
class TeamRunner {
 public:
  virtual ~TeamRunner() = default;
  virtual void run(const std::function<void(Team)>& region) = 0;
  virtual int size() const noexcept = 0;
  // The memory that regions of this team compute in.
  virtual Memory& memory() noexcept { return host_memory(); }
  // Runs the region but records its device work instead of doing it. On the CPU there is nothing to
  // record: returns null and does not call the region. The region must not download. Throws what
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
