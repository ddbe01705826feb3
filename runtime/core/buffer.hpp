// A block of floats (or other plain numbers) aligned to 64 bytes, for weights, caches and scratch.
// Move-only, single owner. Large blocks ask the kernel for huge pages; memory is zero at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace troupe::core {

// 64-byte aligned zeroed memory; null only for 0 bytes. Aborts when the system has none left.
void* allocate_aligned(std::size_t bytes);
void free_aligned(void* memory, std::size_t bytes) noexcept;

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::int64_t count)
      : data_(static_cast<T*>(allocate_aligned(static_cast<std::size_t>(count) * sizeof(T)))),
        count_(count) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() { free_aligned(data_, static_cast<std::size_t>(count_) * sizeof(T)); }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::int64_t size() const noexcept { return count_; }
  T& operator[](std::int64_t i) noexcept { return data_[i]; }
  const T& operator[](std::int64_t i) const noexcept { return data_[i]; }
  std::span<T> span() noexcept { return {data_, static_cast<std::size_t>(count_)}; }
  std::span<const T> span() const noexcept { return {data_, static_cast<std::size_t>(count_)}; }

  // Makes room for at least `count`; contents are lost when it grows (to 1.25x, to be kept).
  void reserve_discard(std::int64_t count) {
    if (count > count_) *this = Buffer(count + count / 4);
  }

 private:
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace troupe::core
