// What the ranks of an emulated communicator share: who is there, and a ring of bytes for each
// ordered pair. The file is gone as soon as all ranks have it open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe_nccl_emulator {

enum class OperationKind : std::uint32_t { kPair = 1, kBroadcast = 2 };

// Before the bytes of an operation; the receiver compares it with its own.
struct TransferHead {
  OperationKind kind = OperationKind::kPair;
  std::uint32_t root = 0;
  std::uint64_t number = 0;  // among the operations of its kind
  std::uint64_t count = 0;
};

class SharedFile {
 public:
  static constexpr std::size_t kRing_bytes = 4096;

  SharedFile(std::string path, int ranks);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  // False: there is such a rank already.
  bool arrive(int rank, int device);
  bool all_there();
  // The rank that uses the same device as a lower one; -1: none.
  int twice_on_a_device() const;

  // A rank is about to die; whether that was said, and whether a rank has asked since.
  void say_lost() { end_->said = 1; }
  bool lost() { return end_->said == 1 && (end_->heard = 1) == 1; }
  bool loss_is_known() const { return end_->heard == 1; }

  // Moves a part of the bytes; returns how many.
  std::size_t write(int from, int to, const char* at, std::size_t bytes);
  std::size_t read(int from, int to, char* at, std::size_t bytes);

 private:
  struct Seat {
    std::atomic<std::uint32_t> taken;
    std::int32_t device;
  };
  struct End {
    std::atomic<std::uint32_t> said, heard;
  };
  struct Ring {
    std::atomic<std::uint64_t> written, taken;
    char bytes[kRing_bytes];
  };
  Ring& ring(int from, int to) { return rings_[from * ranks_ + to]; }

  const std::string path_;
  const int ranks_;
  std::size_t bytes_ = 0;
  void* map_ = nullptr;
  Seat* seats_ = nullptr;
  Ring* rings_ = nullptr;
  End* end_ = nullptr;
};

}  // namespace troupe_nccl_emulator
