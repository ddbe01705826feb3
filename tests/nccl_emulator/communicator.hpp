// An emulated NCCL for tests where there are no GPUs: a shared library with the entry points that
// runtime/collective uses. It moves bytes between the emulated devices (tests/cuda_emulator) of the
// processes of one machine, through a file that they map, and ends the process, with words, when a
// caller does what NCCL's rules forbid or would answer with a hang:
// - a communicator that is not there or no longer there; one that is aborted or used within a
//   group that is open, or before its last call is done (it never blocks)
// - operations outside of a group; groups that end without a start, and groups in groups
// - memory that is not the device's, or too short; streams that are not of the communicator's
// device
// - types other than bytes, nothing to move, ranks that do not exist
// - ranks that do not call the same operations in the same order with the same sizes
// It works off a call only while somebody asks for its state, and its work is on the stream only
// after that, as NCCL's own threads do it in their time.
//
// TROUPE_NCCL_EMULATOR_FOLDER is where the files are. A process adds a line to `moved.txt` there
// for each communicator that ends: "rank 0 of 2: 4096 bytes", those it has moved by then.
// TROUPE_NCCL_EMULATOR has words with commas between: `version:N` is another version; `no-id`: no
// ids are made; `refuse`: communicators are refused at once, `fail`: later; `lose`: they are never
// made, and the process stands still when it first asks for one. At the N-th piece of bytes:
// `kill:N`, `stop:N` raise signals; `die:N` is killed as soon as another rank's communicator has
// failed because of it, as NCCL may notice a loss before anybody; `error:N` fails the communicator,
// whose work stays on the stream until it is aborted, as does `end:N`, with which the work ends
// there.
#pragma once

#include "runtime/collective/nccl_api.hpp"
#include "tests/cuda_emulator/hooks.hpp"
#include "tests/nccl_emulator/shared_file.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe_nccl_emulator {

using troupe::collective::nccl::Code;
using troupe::collective::nccl::DataType;

bool mode_has(std::string_view word);
std::optional<std::uint64_t> mode_number(std::string_view word);
[[noreturn]] void refuse(const std::string& what);
const troupe_emulator::Hooks& cuda();
std::uint64_t& moved_bytes();  // by this process, sent and received

// One direction between this rank and another of a communicator, in one operation.
struct Transfer {
  Transfer(const TransferHead& mine, char* bytes, std::size_t count)
      : head(mine), at(bytes), left(count) {}
  // True when all is there. Ends the process if the other rank is in something else.
  bool receive(SharedFile& file, int from, int rank, std::uint64_t& pieces);
  bool send(SharedFile& file, int rank, int to, std::uint64_t& pieces);
  // Counts a piece of bytes that has moved; true when it was the last.
  bool advance(std::size_t moved, std::uint64_t& pieces);

  TransferHead head, theirs;
  std::size_t head_done = 0;
  char* at = nullptr;
  std::size_t left = 0;
};

// The operations of one group: what this rank sends to and gets from each rank, in order.
class Work {
 public:
  explicit Work(int ranks)
      : out_(static_cast<std::size_t>(ranks)), in_(static_cast<std::size_t>(ranks)) {}
  void send(int to, const Transfer& transfer) {
    out_[static_cast<std::size_t>(to)].push_back(transfer);
  }
  void receive(int from, const Transfer& transfer) {
    in_[static_cast<std::size_t>(from)].push_back(transfer);
  }
  // Moves what can be moved; true when nothing is left. `pieces` counts.
  bool step(SharedFile& file, int rank, std::uint64_t& pieces);

 private:
  std::vector<std::deque<Transfer>> out_, in_;  // by the other rank
};

// Shared by a communicator and its work on streams, which may outlive it.
struct State {
  std::unique_ptr<SharedFile> file;
  int rank = 0;
  std::uint64_t pieces = 0;
  bool over = false;  // work on streams ends
  Code code = Code::kSuccess;
};

class Communicator {
 public:
  Communicator(const std::string& id, int ranks, int rank);
  ~Communicator();

  // The state; does first what is waiting to be done.
  Code ask();
  // Ends the process if this is not the time for an operation.
  void check_operation(const void* at, std::size_t count, DataType type, int peer, void* stream);
  void send(const void* from, std::size_t count, int to, void* stream);
  void receive(void* to, std::size_t count, int from, void* stream);
  void broadcast(const void* from, void* to, std::size_t count, int root, void* stream);
  // The group is complete.
  void submit();

 private:
  void check_range(const void* at, std::size_t count) const;
  Work& work_on(void* stream);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const int ranks_, device_;
  bool forming_ = true, asked_ = false;
  std::uint64_t broadcasts_ = 0;
  std::vector<std::uint64_t> sent_, received_;  // operations of pairs, by the other rank
  std::shared_ptr<Work> work_;  // of the group that is open, or waits to be enqueued
  void* stream_ = nullptr;      // of that
  bool submitted_ = false;
};

}  // namespace troupe_nccl_emulator
