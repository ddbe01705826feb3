// Lists that the host makes and kernels read, as pointers into a team's memory: on the host the
// lists themselves, on a device a copy of all of them, sent as one block. One owner, one thread;
// the block is kept and grows. The lists stay as they are while the pointers are in use.
#pragma once

#include "runtime/core/buffer.hpp"

#include <cstring>
#include <tuple>
#include <vector>

namespace troupe::core {

class PlacedLists {
 public:
  // Where each list stands in `memory`; good until the next call.
  template <class... T>
  std::tuple<const T*...> place(Memory& memory, const std::vector<T>&... lists) {
    if (memory.on_host()) return {lists.data()...};
    staging_.clear();
    const std::size_t at[] = {append(lists.data(), lists.size() * sizeof(T))...};
    block_.reserve_discard(static_cast<std::int64_t>(staging_.size()), memory);
    block_.upload(staging_);
    std::size_t i = 0;
    return {reinterpret_cast<const T*>(block_.data() + at[i++])...};
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  std::size_t append(const void* data, std::size_t bytes) {
    const std::size_t at = (staging_.size() + kAlignment - 1) / kAlignment * kAlignment;
    staging_.resize(at + bytes);
    if (bytes > 0) std::memcpy(staging_.data() + at, data, bytes);
    return at;
  }

  std::vector<std::byte> staging_;
  Buffer<std::byte> block_;
};

}  // namespace troupe::core
