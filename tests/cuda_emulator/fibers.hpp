// One block of threads as fibers on the calling thread: who runs, who waits for a warp or for the
// block, and what lanes tell each other. Reused from block to block; stacks are kept.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe_emulator {

// The order in which threads and blocks run, where nothing else says it.
struct Order {
  enum class Kind { kForward, kReverse, kRandom };
  Kind kind = Kind::kForward;
  std::uint64_t seed = 0;  // of kRandom: even, thread by thread; odd, a warp as far as it comes
};
// The numbers below `count`, in that order. `state`: of the dice.
std::vector<unsigned> in_order(unsigned count, Order order, std::uint64_t& state);

class Fibers {
 public:
  Fibers() = default;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  ~Fibers();

  // Runs `body` once for each thread of block `block`; ends the process when threads wait for each
  // other in vain.
  void run_block(const cudaLaunchConfig_t& config,
                 uint3 block,
                 const std::function<void()>& body,
                 Order order);

  void block_barrier();
  const WarpValues& exchange(unsigned mask, std::uint64_t value);
  unsigned lane() const { return running_ % 32; }

  void copy_later(void* to, const void* from, std::size_t bytes);
  void commit_copies() { ++fibers_[running_].committed; }
  void wait_for_copies(std::uint64_t pending);

 private:
  enum class State : std::uint8_t { kReady, kAtBlock, kAtWarp, kDone };
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
    std::uint64_t group = 0;
  };
  struct Fiber {
    void* stack = nullptr;
    void* pointer = nullptr;  // of the stack, while it does not run
    State state = State::kDone;
    Thread thread;
    std::vector<Copy> copies;     // not done yet, oldest first
    std::uint64_t committed = 0;  // groups of copies
  };
  struct Warp {
    unsigned arrived = 0, mask = 0;
    WarpValues put{};
    WarpValues taken[2]{};  // of the last two exchanges: a lane may still read the one before
    unsigned turn = 0;
  };
  static void entry();
  void start(unsigned index);
  bool resume(unsigned index);
  bool run_warp(unsigned warp, Order order);
  void wait(State state);
  bool release_block();
  [[noreturn]] void stuck() const;

  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  unsigned count_ = 0, running_ = 0, done_ = 0;
  void* scheduler_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  std::uint64_t dice_ = 0;
};

}  // namespace troupe_emulator
