// Fibers are switched by saving the six registers that a call must keep.
#include "tests/cuda_emulator/fibers.hpp"

#include <sys/mman.h>

#include <cstdio>

asm(R"(
.text
.type troupe_emulator_switch, @function
troupe_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size troupe_emulator_switch, .-troupe_emulator_switch
)");
extern "C" void troupe_emulator_switch(void** save, void* load);

namespace troupe_emulator {
namespace {

constexpr std::size_t kStack = 64 << 10;
Fibers* active = nullptr;

}  // namespace

Thread current;
unsigned char* dynamic_shared = nullptr;

void block_barrier() {
  active->block_barrier();
}
const WarpValues& exchange(unsigned mask, std::uint64_t value) {
  return active->exchange(mask, value);
}
unsigned lane() {
  return active->lane();
}

Fibers::~Fibers() {
  for (const Fiber& fiber : fibers_)
    if (fiber.stack != nullptr) munmap(fiber.stack, kStack);
}

void Fibers::entry() {
  Fibers& self = *active;
  (*self.body_)();
  self.wait(State::kDone);
  std::abort();
}

void Fibers::start(unsigned index) {
  Fiber& fiber = fibers_[index];
  if (fiber.stack == nullptr) {
    fiber.stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fiber.stack == MAP_FAILED) std::abort();
  }
  // As if `entry` had been about to be called: its address to return to, six registers below; the
  // stack then stands as after a call.
  auto* top = reinterpret_cast<std::uint64_t*>(static_cast<char*>(fiber.stack) + kStack);
  *--top = 0;
  *--top = reinterpret_cast<std::uint64_t>(&Fibers::entry);
  for (int i = 0; i < 6; ++i)
    *--top = 0;
  fiber.pointer = top;
  fiber.state = State::kReady;
}

void Fibers::resume(unsigned index) {
  running_ = index;
  current = fibers_[index].thread;
  troupe_emulator_switch(&scheduler_, fibers_[index].pointer);
}

// Back to the scheduler, to be resumed when the state is kReady again.
void Fibers::wait(State state) {
  Fiber& fiber = fibers_[running_];
  fiber.state = state;
  if (state == State::kDone) ++done_;
  troupe_emulator_switch(&fiber.pointer, scheduler_);
}

void Fibers::run_block(const cudaLaunchConfig_t& config,
                       uint3 block,
                       const std::function<void()>& body,
                       bool reverse) {
  const dim3 shape = config.blockDim;
  count_ = shape.x * shape.y * shape.z;
  if (fibers_.size() < count_) fibers_.resize(count_);
  warps_.assign((count_ + 31) / 32, Warp{});
  body_ = &body;
  done_ = 0;
  active = this;
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i].thread = {
        {i % shape.x, i / shape.x % shape.y, i / shape.x / shape.y}, block, shape, config.gridDim};
    start(i);
  }
  while (done_ < count_) {
    bool moved = false;
    for (unsigned i = 0; i < count_; ++i) {
      const unsigned at = reverse ? count_ - 1 - i : i;
      if (fibers_[at].state != State::kReady) continue;
      moved = true;
      resume(at);
    }
    if (!moved && !release_block()) stuck();
  }
}

void Fibers::block_barrier() {
  wait(State::kAtBlock);
}

// All that have not ended are at the barrier: they go on.
bool Fibers::release_block() {
  for (unsigned i = 0; i < count_; ++i)
    if (fibers_[i].state == State::kAtWarp) return false;
  bool any = false;
  for (unsigned i = 0; i < count_; ++i) {
    if (fibers_[i].state != State::kAtBlock) continue;
    fibers_[i].state = State::kReady;
    any = true;
  }
  return any;
}

const WarpValues& Fibers::exchange(unsigned mask, std::uint64_t value) {
  const unsigned first = running_ / 32 * 32;
  Warp& warp = warps_[running_ / 32];
  if (warp.arrived == 0) warp.mask = mask;
  if (warp.mask != mask || (mask >> lane() & 1u) == 0) {
    std::fprintf(stderr, "cuda emulator: lanes of a warp name different masks\n");
    std::abort();
  }
  warp.put.of[lane()] = value;
  warp.arrived |= 1u << lane();
  // Lanes that the block does not have cannot come.
  const unsigned there = count_ - first >= 32 ? 0xffffffffu : (1u << (count_ - first)) - 1u;
  if (warp.arrived != (mask & there)) {
    const unsigned turn = warp.turn;
    wait(State::kAtWarp);
    return warps_[running_ / 32].taken[turn % 2];
  }
  warp.arrived = 0;
  const unsigned turn = warp.turn++;
  warp.taken[turn % 2] = warp.put;
  for (unsigned i = 0; i < 32 && first + i < count_; ++i) {
    Fiber& fiber = fibers_[first + i];
    if ((mask >> i & 1u) != 0 && fiber.state == State::kAtWarp) fiber.state = State::kReady;
  }
  return warp.taken[turn % 2];
}

void Fibers::stuck() const {
  unsigned at_block = 0, at_warp = 0;
  for (unsigned i = 0; i < count_; ++i) {
    at_block += fibers_[i].state == State::kAtBlock;
    at_warp += fibers_[i].state == State::kAtWarp;
  }
  std::fprintf(
      stderr,
      "cuda emulator: threads wait for each other in vain: %u at the block's barrier, %u in "
      "a warp function, %u ended, of %u\n",
      at_block, at_warp, done_, count_);
  std::abort();
}

}  // namespace troupe_emulator
