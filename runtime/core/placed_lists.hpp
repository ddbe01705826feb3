// Puts lists that were made on the host where kernels can read them, and returns pointers. For a
// team on the host these point to the lists themselves; to a device all lists are copied as one
// block. In it, addresses stay the same until a list outgrows its room, so a Recording
// (core/team.hpp) finds the next lists at the same addresses. One owner, one thread. The lists must
// not change while the pointers are in use.
#pragma once

#include "runtime/core/buffer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <vector>

namespace troupe::core {

class PlacedLists {
 public:
  // Pointers to each list in `memory`; valid until the next call.
  template <class... T>
  std::tuple<const T*...> place(Memory& memory, const std::vector<T>&... lists) {
    if (memory.on_host()) return {lists.data()...};
    const List all[] = {{lists.data(), lists.size() * sizeof(T)}...};
    send(memory, all);
    auto begin = begin_.cbegin();
    const auto next = [&] { return block_.data() + *begin++; };
    return {reinterpret_cast<const T*>(next())...};
  }

 private:
  struct List {
    const void* data;
    std::size_t bytes;
  };
  static constexpr std::size_t kRoom_min = 64;  // bytes; also the alignment

  void send(Memory& memory, std::span<const List> lists) {
    room_.resize(lists.size(), kRoom_min);
    begin_.clear();
    std::size_t end = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      room_[i] = std::max(room_[i], std::bit_ceil(lists[i].bytes));
      begin_.push_back(end);
      end += room_[i];
    }
    staging_.resize(end);
    for (std::size_t i = 0; i < lists.size(); ++i)
      if (lists[i].bytes > 0)
        std::memcpy(staging_.data() + begin_[i], lists[i].data, lists[i].bytes);
    block_.reserve_discard(static_cast<std::int64_t>(end), memory);
    block_.upload(staging_);
  }

  std::vector<std::size_t> room_, begin_;  // room and offset of each list in the block, in bytes
  std::vector<std::byte> staging_;
  Buffer<std::byte> block_;
};

}  // namespace troupe::core
