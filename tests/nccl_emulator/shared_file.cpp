#include "tests/nccl_emulator/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace troupe_nccl_emulator {

// A file of zeros is one in which nobody is there and all rings are empty.
SharedFile::SharedFile(std::string path, int ranks) : path_(std::move(path)), ranks_(ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  bytes_ = n * n * sizeof(Ring) + n * sizeof(Seat) + sizeof(End);
  const int file = ::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0) std::abort();
  map_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map_ == MAP_FAILED) std::abort();
  ::close(file);
  rings_ = static_cast<Ring*>(map_);
  seats_ = reinterpret_cast<Seat*>(rings_ + n * n);
  end_ = reinterpret_cast<End*>(seats_ + n);
}

SharedFile::~SharedFile() {
  ::munmap(map_, bytes_);
}

bool SharedFile::arrive(int rank, int device) {
  seats_[rank].device = device;
  return seats_[rank].taken.exchange(1) == 0;
}

bool SharedFile::all_there() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (seats_[rank].taken.load() == 0) return false;
  ::unlink(path_.c_str());
  return true;
}

int SharedFile::twice_on_a_device() const {
  for (int rank = 0; rank < ranks_; ++rank)
    for (int lower = 0; lower < rank; ++lower)
      if (seats_[lower].device == seats_[rank].device) return rank;
  return -1;
}

std::size_t SharedFile::write(int from, int to, const char* at, std::size_t bytes) {
  Ring& way = ring(from, to);
  const std::uint64_t begin = way.written.load();
  const std::size_t room = kRing_bytes - static_cast<std::size_t>(begin - way.taken.load());
  const std::size_t offset = begin % kRing_bytes;
  const std::size_t moved = std::min({bytes, room, kRing_bytes - offset});
  std::memcpy(way.bytes + offset, at, moved);
  way.written.store(begin + moved);
  return moved;
}

std::size_t SharedFile::read(int from, int to, char* at, std::size_t bytes) {
  Ring& way = ring(from, to);
  const std::uint64_t begin = way.taken.load();
  const auto there = static_cast<std::size_t>(way.written.load() - begin);
  const std::size_t offset = begin % kRing_bytes;
  const std::size_t moved = std::min({bytes, there, kRing_bytes - offset});
  std::memcpy(at, way.bytes + offset, moved);
  way.taken.store(begin + moved);
  return moved;
}

}  // namespace troupe_nccl_emulator
