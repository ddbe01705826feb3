#include "runtime/async/cpu_pool.hpp"

#include "runtime/core/check.hpp"

#include <immintrin.h>

#include <chrono>

namespace troupe::async {
namespace {

constexpr auto kSpin = std::chrono::microseconds(20);

// Returns once `value` differs from `old`: a short spin, then the futex.
template <class T>
T wait_while(const std::atomic<T>& value, T old) noexcept {
  const auto limit = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (const T now = value.load(std::memory_order_acquire); now != old) return now;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < limit);
  T now = old;
  while ((now = value.load(std::memory_order_acquire)) == old) {
    value.wait(old, std::memory_order_acquire);
  }
  return now;
}

}  // namespace

CpuPool::CpuPool(int size, ThreadHook hook)
    : size_(size), errors_(static_cast<std::size_t>(size > 0 ? size : 0)) {
  TROUPE_CHECK(size >= 1, "a pool has at least its caller");
  threads_.reserve(static_cast<std::size_t>(size - 1));
  try {
    for (int rank = 1; rank < size; ++rank)
      threads_.emplace_back([this, rank, hook] { worker(rank, hook); });
  } catch (...) {  // the system gives no more threads
    end();
    throw;
  }
}

CpuPool::~CpuPool() {
  end();
}

void CpuPool::end() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void CpuPool::worker(int rank, ThreadHook hook) noexcept {
  if (hook) hook();
  std::uint32_t seen = 0;
  for (;;) {
    seen = wait_while(round_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    invoke(rank);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void CpuPool::invoke(int rank) noexcept {
  const auto at = static_cast<std::size_t>(rank);
  try {
    (*region_)(core::Team{rank, size_, size_ > 1 ? barrier_ : nullptr});
  } catch (...) {
    errors_[at] = std::current_exception();
  }
}

void CpuPool::run(const std::function<void(core::Team)>& region) {
  const auto self = std::this_thread::get_id();
  TROUPE_CHECK(owner_.load(std::memory_order_relaxed) != self, "a region starts no region");
  const std::lock_guard lock(turn_);
  owner_.store(self, std::memory_order_relaxed);
  core::TeamBarrier barrier(size_);
  region_ = &region;
  barrier_ = &barrier;
  if (size_ > 1) {
    running_.store(size_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  invoke(0);
  for (int left = running_.load(std::memory_order_acquire); left != 0;) {
    left = wait_while(running_, left);
  }
  region_ = nullptr;
  barrier_ = nullptr;
  owner_.store(std::thread::id(), std::memory_order_relaxed);
  std::exception_ptr first;
  for (auto& error : errors_) {
    if (error && !first) first = error;
    error = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace troupe::async
