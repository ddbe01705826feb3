// One block of threads as fibers on the calling thread: who runs, who waits for a warp or for the
// block, and what lanes tell each other. Reused from block to block; stacks are kept.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe_emulator {

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
                 bool reverse);

  void block_barrier();
  const WarpValues& exchange(unsigned mask, std::uint64_t value);
  unsigned lane() const { return running_ % 32; }

 private:
  enum class State : std::uint8_t { kReady, kAtBlock, kAtWarp, kDone };
  struct Fiber {
    void* stack = nullptr;
    void* pointer = nullptr;  // of the stack, while it does not run
    State state = State::kDone;
    Thread thread;
  };
  struct Warp {
    unsigned arrived = 0, mask = 0;
    WarpValues put{};
    WarpValues taken[2]{};  // of the last two exchanges: a lane may still read the one before
    unsigned turn = 0;
  };
  static void entry();
  void start(unsigned index);
  void resume(unsigned index);
  void wait(State state);
  bool release_block();
  [[noreturn]] void stuck() const;

  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  unsigned count_ = 0, running_ = 0, done_ = 0;
  void* scheduler_ = nullptr;
  const std::function<void()>* body_ = nullptr;
};

}  // namespace troupe_emulator
