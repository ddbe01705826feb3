// Operations drawn by seed, in any memory, against an oracle that knows what each rank had.
#pragma once

#include "runtime/core/buffer.hpp"
#include "tests/unit/runtime/collective/gang.hpp"

namespace troupe::collective::test {

inline constexpr int kAll = -1;  // in place of a receiver, for bytes that all ranks get

// One rank's view of a sequence. All ranks draw the same numbers, also those of the operations that
// concern others.
class Sequence {
 public:
  Sequence(Collectives& ranks, std::uint64_t seed, std::size_t size_max, core::Memory& memory)
      : ranks_(ranks), seed_(seed), size_max_(size_max), memory_(memory), rng_(seed) {}

  core::Result<void> step() {
    ++number_;
    switch (rng_.next_below(5)) {
      case 0:
        return broadcast();
      case 1:
        return all_gather();
      case 2:
        return all_to_all();
      case 3:
        return pair();
      default:
        return ranks_.barrier();
    }
  }
  std::uint64_t wrong() const { return wrong_; }
  std::uint64_t received() const { return received_; }
  std::uint64_t sent() const { return sent_; }

 private:
  using Bytes = std::vector<char>;
  using Room = core::Buffer<char>;  // in the memory of this rank

  Room room_with(const Bytes& bytes) {
    Room room(static_cast<std::int64_t>(bytes.size()), memory_);
    room.upload(bytes);
    return room;
  }
  static Place place_of(Room& room) { return {room.data(), static_cast<std::size_t>(room.size())}; }
  static Source source_of(const Room& room) {
    return {room.data(), static_cast<std::size_t>(room.size())};
  }

  std::size_t draw_size() {
    switch (rng_.next_below(4)) {
      case 0:
        return 0;
      case 1:
        return rng_.next_below(100);
      default:
        return rng_.next_below(size_max_);
    }
  }
  int draw_rank() { return static_cast<int>(rng_.next_below(static_cast<std::uint64_t>(size()))); }
  int size() const { return ranks_.size(); }
  Bytes had(int from, int to, std::size_t bytes) const {
    return bytes_of(seed_, number_, from, to, bytes);
  }
  void check(const Room& room, int from, int to) {
    Bytes got(static_cast<std::size_t>(room.size()));
    room.download(got);
    wrong_ += got != had(from, to, got.size()) ? 1 : 0;
    if (from != ranks_.rank()) received_ += got.size();
  }

  core::Result<void> broadcast() {
    const int root = draw_rank();
    const std::size_t bytes = draw_size();
    Room mine = room_with(ranks_.rank() == root ? had(root, kAll, bytes) : Bytes(bytes, 'x'));
    TROUPE_TRY(ranks_.broadcast(root, place_of(mine), memory_));
    if (ranks_.rank() == root) sent_ += bytes * static_cast<std::size_t>(size() - 1);
    check(mine, root, kAll);
    return {};
  }

  core::Result<void> all_gather() {
    std::vector<Room> parts;
    std::vector<Place> into;
    for (int rank = 0; rank < size(); ++rank)
      parts.push_back(room_with(Bytes(draw_size(), 'x')));
    for (Room& part : parts)
      into.push_back(place_of(part));
    const std::size_t own = into[static_cast<std::size_t>(ranks_.rank())].bytes;
    const Room mine = room_with(had(ranks_.rank(), kAll, own));
    TROUPE_TRY(ranks_.all_gather(source_of(mine), into, memory_));
    sent_ += own * static_cast<std::size_t>(size() - 1);
    for (int rank = 0; rank < size(); ++rank)
      check(parts[static_cast<std::size_t>(rank)], rank, kAll);
    return {};
  }

  core::Result<void> all_to_all() {
    std::vector<Room> out, in;
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        const std::size_t bytes = draw_size();
        if (from == ranks_.rank()) out.push_back(room_with(had(from, to, bytes)));
        if (to == ranks_.rank()) in.push_back(room_with(Bytes(bytes, 'x')));
        if (from == ranks_.rank() && to != from) sent_ += bytes;
      }
    }
    std::vector<Source> sources;
    std::vector<Place> places;
    for (const Room& room : out)
      sources.push_back(source_of(room));
    for (Room& room : in)
      places.push_back(place_of(room));
    TROUPE_TRY(ranks_.all_to_all(sources, places, memory_));
    for (int rank = 0; rank < size(); ++rank)
      check(in[static_cast<std::size_t>(rank)], rank, ranks_.rank());
    return {};
  }

  core::Result<void> pair() {
    if (size() == 1) return {};
    const int from = draw_rank();
    const int to = (from + 1 + draw_rank() % (size() - 1)) % size();
    const std::size_t bytes = draw_size();
    if (ranks_.rank() == from) {
      sent_ += bytes;
      const Room mine = room_with(had(from, to, bytes));
      return ranks_.send(to, source_of(mine), memory_);
    }
    if (ranks_.rank() != to) return {};
    Room got = room_with(Bytes(bytes, 'x'));
    TROUPE_TRY(ranks_.recv(from, place_of(got), memory_));
    check(got, from, to);
    return {};
  }

  Collectives& ranks_;
  const std::uint64_t seed_;
  const std::size_t size_max_;
  core::Memory& memory_;
  core::Rng rng_;
  std::uint64_t number_ = 0, wrong_ = 0, received_ = 0, sent_ = 0;
};

}  // namespace troupe::collective::test
