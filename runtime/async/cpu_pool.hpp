// The process's compute threads. `run` starts one parallel region: the caller is member 0 and
// returns when every member has. Owned by the node and shared by reference. Callers on several
// threads take turns, so a region must be one step of work, not a whole job. Bound: `size` threads,
// fixed at construction.
//
// Waiting members spin at most about 20 us, then sleep on a futex. An exception in a member is
// thrown again in the caller (lowest rank first); a member must not throw while others wait for it
// at a barrier of the same region.
#pragma once

#include "runtime/core/team.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::async {

class CpuPool final : public core::TeamRunner {
 public:
  // Called first on each thread the pool starts; flushes denormals in practice. May be null.
  using ThreadHook = void (*)();

  // Starts size - 1 threads (the caller is the first member). The hook is not called for callers.
  explicit CpuPool(int size, ThreadHook hook = nullptr);
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;
  ~CpuPool() override;

  void run(const std::function<void(core::Team)>& region) override;
  int size() const noexcept override { return size_; }

 private:
  void worker(int rank, ThreadHook hook) noexcept;
  void end() noexcept;  // of the threads that were started
  void invoke(int rank) noexcept;

  const int size_;
  std::mutex turn_;
  std::atomic<std::thread::id> owner_{};
  const std::function<void(core::Team)>* region_ = nullptr;
  core::TeamBarrier* barrier_ = nullptr;
  std::vector<std::exception_ptr> errors_;  // by rank
  std::atomic<std::uint32_t> round_{0};     // grows by one a region
  std::atomic<int> running_{0};             // members other than the caller still at work
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace troupe::async
