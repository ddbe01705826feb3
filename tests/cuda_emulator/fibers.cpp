// Fibers are switched by saving the six registers that a call must keep.
#include "tests/cuda_emulator/fibers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

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
void copy_later(void* to, const void* from, std::size_t bytes) {
  active->copy_later(to, from, bytes);
}
void commit_copies() {
  active->commit_copies();
}
void wait_for_copies(std::uint64_t pending) {
  active->wait_for_copies(pending);
}

std::vector<unsigned> in_order(unsigned count, Order order, std::uint64_t& state) {
  std::vector<unsigned> all(count);
  for (unsigned i = 0; i < count; ++i)
    all[i] = order.kind == Order::Kind::kReverse ? count - 1 - i : i;
  for (unsigned i = count; order.kind == Order::Kind::kRandom && i > 1; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(all[i - 1], all[(state >> 33) % i]);
  }
  return all;
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
  fiber.copies.clear();
  fiber.committed = 0;
}

// False when it cannot go on yet.
bool Fibers::resume(unsigned index) {
  if (fibers_[index].state != State::kReady) return false;
  running_ = index;
  current = fibers_[index].thread;
  troupe_emulator_switch(&scheduler_, fibers_[index].pointer);
  return true;
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
                       Order order) {
  const dim3 shape = config.blockDim;
  count_ = shape.x * shape.y * shape.z;
  if (fibers_.size() < count_) fibers_.resize(count_);
  warps_.assign((count_ + 31) / 32, Warp{});
  body_ = &body;
  done_ = 0;
  active = this;
  dice_ = order.seed + (std::uint64_t{block.z} << 40) + (std::uint64_t{block.y} << 20) + block.x;
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i].thread = {
        {i % shape.x, i / shape.x % shape.y, i / shape.x / shape.y}, block, shape, config.gridDim};
    start(i);
  }
  const bool random = order.kind == Order::Kind::kRandom;
  const bool by_warp = random && order.seed % 2 == 1;
  const unsigned parts = by_warp ? (count_ + 31) / 32 : count_;
  std::vector<unsigned> turns = in_order(parts, order, dice_);
  while (done_ < count_) {
    bool moved = false;
    for (const unsigned at : turns)
      moved = (by_warp ? run_warp(at, order) : resume(at)) || moved;
    if (!moved && !release_block()) stuck();
    if (random) turns = in_order(parts, order, dice_);
  }
}

// Runs a warp's threads until all of them wait for the block or have ended.
bool Fibers::run_warp(unsigned warp, Order order) {
  bool any = false;
  for (bool moved = true; moved; any = any || moved) {
    moved = false;
    for (const unsigned lane : in_order(std::min(32u, count_ - 32 * warp), order, dice_))
      moved = resume(32 * warp + lane) || moved;
  }
  return any;
}

// Until it is done its destination holds NaNs, as f32 and as bfloat16.
void Fibers::copy_later(void* to, const void* from, std::size_t bytes) {
  Fiber& fiber = fibers_[running_];
  std::memset(to, 0xff, bytes);
  fiber.copies.push_back({to, from, bytes, fiber.committed});
}

void Fibers::wait_for_copies(std::uint64_t pending) {
  Fiber& fiber = fibers_[running_];
  const std::uint64_t done = fiber.committed - std::min(fiber.committed, pending);
  std::size_t count = 0;
  for (; count < fiber.copies.size() && fiber.copies[count].group < done; ++count) {
    const Copy& copy = fiber.copies[count];
    if (copy.from != nullptr)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
  }
  fiber.copies.erase(fiber.copies.begin(),
                     fiber.copies.begin() + static_cast<std::ptrdiff_t>(count));
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
