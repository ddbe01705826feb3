// A block of floats (or other plain numbers) for weights, caches and scratch, in the memory of the
// host or of a device (core/memory.hpp). Move-only, single owner; initially zero. Large host blocks
// ask the kernel for huge pages. The Memory must outlive the buffer.
#pragma once

#include "runtime/core/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace troupe::core {

// Zeroed host memory, aligned to 64 bytes; null only for 0 bytes. Out of memory ends the process:
// by abort below 4 MiB, else with a message and exit status 3.
void* allocate_aligned(std::size_t bytes);
void free_aligned(void* memory, std::size_t bytes) noexcept;

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::int64_t count, Memory& memory = host_memory())
      : memory_(&memory), data_(static_cast<T*>(memory.allocate(bytes_of(count)))), count_(count) {}
  Buffer(Buffer&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) memory_->release(data_, bytes_of(count_));
  }

  Memory& memory() const noexcept { return *memory_; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::int64_t size() const noexcept { return count_; }
  // Only for host memory.
  T& operator[](std::int64_t i) noexcept { return data_[i]; }
  const T& operator[](std::int64_t i) const noexcept { return data_[i]; }
  std::span<T> span() noexcept { return {data_, static_cast<std::size_t>(count_)}; }
  std::span<const T> span() const noexcept { return {data_, static_cast<std::size_t>(count_)}; }

  // Copy `from` to the start of the buffer, and the start of the buffer to `to`, both on the host.
  void upload(std::span<const T> from) { memory_->upload(data_, from.data(), from.size_bytes()); }
  void download(std::span<T> to) const { memory_->download(to.data(), data_, to.size_bytes()); }

  // Makes room for at least `count` numbers in `memory`. A buffer that is too small or in another
  // memory is replaced by one for 1.25 x `count` numbers, and its contents are lost.
  void reserve_discard(std::int64_t count, Memory& memory) {
    if (&memory == memory_ && count <= count_) return;
    *this = Buffer(0, memory);  // released before more is allocated
    if (count > 0) *this = Buffer(count + count / 4, memory);
  }
  void reserve_discard(std::int64_t count) { reserve_discard(count, *memory_); }

 private:
  static std::size_t bytes_of(std::int64_t count) {
    return static_cast<std::size_t>(count) * sizeof(T);
  }

  Memory* memory_ = &host_memory();
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace troupe::core
