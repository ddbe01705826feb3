#include "tests/nccl_emulator/communicator.hpp"

#include "tests/cuda_emulator/modes.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace troupe_nccl_emulator {
namespace {

std::string words_of(const TransferHead& head) {
  return (head.kind == OperationKind::kPair
              ? "send or recv "
              : "broadcast from " + std::to_string(head.root) + ", ") +
         std::to_string(head.number) + " of " + std::to_string(head.count) + " bytes";
}

std::string path_of(const std::string& file) {
  const char* const folder = std::getenv("TROUPE_NCCL_EMULATOR_FOLDER");
  if (folder == nullptr) refuse("TROUPE_NCCL_EMULATOR_FOLDER is not set");
  return std::string(folder) + "/" + file;
}

// What happens at this piece of bytes, if the mode says so.
void maybe_fail(std::uint64_t piece, State& state) {
  if (mode_number("kill") == piece) ::raise(SIGKILL);
  if (mode_number("stop") == piece) ::raise(SIGSTOP);
  if (mode_number("die") == piece) {
    state.file->say_lost();
    while (!state.file->loss_is_known())
      ::sched_yield();
    ::raise(SIGKILL);
  }
  if (mode_number("error") != piece && mode_number("end") != piece) return;
  state.code = Code::kRemoteError;
  state.over = mode_number("end") == piece;
}

}  // namespace

bool mode_has(std::string_view word) {
  return troupe_emulator::mode_has("TROUPE_NCCL_EMULATOR", word);
}
std::optional<std::uint64_t> mode_number(std::string_view word) {
  return troupe_emulator::mode_number("TROUPE_NCCL_EMULATOR", word);
}

void refuse(const std::string& what) {
  std::fprintf(stderr, "nccl emulator: %s\n", what.c_str());
  std::abort();
}

const troupe_emulator::Hooks& cuda() {
  static const auto* const hooks = [] {
    const char* const path = std::getenv("TROUPE_CUDA_LIBRARY");
    void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    const void* const found =
        library == nullptr ? nullptr : ::dlsym(library, "troupe_cuda_emulator_hooks");
    if (found == nullptr) refuse("the emulated device is not in use (TROUPE_CUDA_LIBRARY)");
    return static_cast<const troupe_emulator::Hooks*>(found);
  }();
  return *hooks;
}

std::uint64_t& moved_bytes() {
  static std::uint64_t bytes = 0;
  return bytes;
}

bool Work::step(SharedFile& file, int rank, std::uint64_t& pieces) {
  bool done = true;
  for (int other = 0; other < static_cast<int>(out_.size()); ++other) {
    auto& out = out_[static_cast<std::size_t>(other)];
    auto& in = in_[static_cast<std::size_t>(other)];
    if (!out.empty() && out.front().send(file, rank, other, pieces)) out.pop_front();
    if (!in.empty() && in.front().receive(file, other, rank, pieces)) in.pop_front();
    done = done && out.empty() && in.empty();
  }
  return done;
}

bool Transfer::advance(std::size_t moved, std::uint64_t& pieces) {
  at += moved;
  left -= moved;
  moved_bytes() += moved;
  pieces += moved > 0 ? 1 : 0;
  return left == 0;
}

bool Transfer::send(SharedFile& file, int rank, int to, std::uint64_t& pieces) {
  const auto* const bytes = reinterpret_cast<const char*>(&head);
  head_done += file.write(rank, to, bytes + head_done, sizeof head - head_done);
  if (head_done < sizeof head) return false;
  return advance(file.write(rank, to, at, left), pieces);
}

bool Transfer::receive(SharedFile& file, int from, int rank, std::uint64_t& pieces) {
  if (head_done < sizeof theirs) {
    auto* const bytes = reinterpret_cast<char*>(&theirs);
    head_done += file.read(from, rank, bytes + head_done, sizeof theirs - head_done);
    if (head_done < sizeof theirs) return false;
    if (theirs.kind != head.kind || theirs.root != head.root || theirs.number != head.number ||
        theirs.count != head.count) {
      refuse("rank " + std::to_string(rank) + " is in " + words_of(head) + ", rank " +
             std::to_string(from) + " in " + words_of(theirs));
    }
  }
  return advance(file.read(from, rank, at, left), pieces);
}

Communicator::Communicator(const std::string& id, int ranks, int rank)
    : ranks_(ranks),
      device_(cuda().present_device()),
      sent_(static_cast<std::size_t>(ranks)),
      received_(static_cast<std::size_t>(ranks)) {
  state_->file = std::make_unique<SharedFile>(path_of("nccl-" + id), ranks);
  state_->rank = rank;
  if (!state_->file->arrive(rank, device_)) refuse("a rank is there twice");
}

Communicator::~Communicator() {
  state_->over = true;
  std::FILE* const file = std::fopen(path_of("moved.txt").c_str(), "ae");
  if (file == nullptr) return;  // the test is over
  std::fprintf(file, "rank %d of %d: %llu bytes\n", state_->rank, ranks_,
               static_cast<unsigned long long>(moved_bytes()));
  std::fclose(file);
}

Code Communicator::ask() {
  if (state_->code != Code::kSuccess) return state_->code;
  if (forming_) {
    if (mode_has("fail")) return state_->code = Code::kSystemError;
    const bool first = !std::exchange(asked_, true);
    if (first && mode_has("lose")) ::raise(SIGSTOP);
    if (first || mode_has("lose") || !state_->file->all_there()) return Code::kInProgress;
    forming_ = false;
    if (state_->file->twice_on_a_device() >= 0) return state_->code = Code::kInvalidUsage;
    return Code::kSuccess;
  }
  if (state_->file->lost()) return state_->code = Code::kRemoteError;
  if (!submitted_) return Code::kSuccess;
  if (!std::exchange(asked_, true)) return Code::kInProgress;
  submitted_ = false;
  cuda().add(stream_, [state = state_, work = std::move(work_)] {
    if (state->over || state->code != Code::kSuccess) return state->over;
    const std::uint64_t before = state->pieces;
    const bool done = work->step(*state->file, state->rank, state->pieces);
    for (std::uint64_t piece = before + 1; piece <= state->pieces; ++piece)
      maybe_fail(piece, *state);
    return state->code == Code::kSuccess ? done : state->over;
  });
  work_ = nullptr;
  return Code::kSuccess;
}

void Communicator::check_range(const void* at, std::size_t count) const {
  if (cuda().room_from(at) < count) refuse("an operation on memory that is not the device's");
}

void Communicator::check_operation(
    const void* at, std::size_t count, DataType type, int peer, void* stream) {
  if (forming_ || submitted_) refuse("an operation before the last call is done");
  if (state_->code != Code::kSuccess) refuse("an operation of a communicator that has failed");
  if (type != DataType::kInt8 && type != DataType::kUint8) refuse("an operation on no bytes");
  if (count == 0) refuse("an operation with nothing to move");
  if (peer < 0 || peer >= ranks_) refuse("an operation with a rank that is not there");
  if (cuda().device_of(stream) != device_) refuse("a stream that is not of the device");
  check_range(at, count);
}

Work& Communicator::work_on(void* stream) {
  if (work_ == nullptr) work_ = std::make_shared<Work>(ranks_);
  if (stream_ != stream && stream_ != nullptr) refuse("a communicator changes its stream");
  stream_ = stream;
  return *work_;
}

void Communicator::send(const void* from, std::size_t count, int to, void* stream) {
  TransferHead head{OperationKind::kPair, 0, sent_[static_cast<std::size_t>(to)]++, count};
  work_on(stream).send(to, {head, const_cast<char*>(static_cast<const char*>(from)), count});
}

void Communicator::receive(void* to, std::size_t count, int from, void* stream) {
  TransferHead head{OperationKind::kPair, 0, received_[static_cast<std::size_t>(from)]++, count};
  work_on(stream).receive(from, {head, static_cast<char*>(to), count});
}

void Communicator::broadcast(
    const void* from, void* to, std::size_t count, int root, void* stream) {
  const TransferHead head{OperationKind::kBroadcast, static_cast<std::uint32_t>(root),
                          broadcasts_++, count};
  Work& work = work_on(stream);
  if (root != state_->rank) {
    return work.receive(root, {head, static_cast<char*>(to), count});
  }
  if (from != to) refuse("a broadcast that is not in place");
  for (int other = 0; other < ranks_; ++other)
    if (other != root) work.send(other, {head, static_cast<char*>(to), count});
}

void Communicator::submit() {
  submitted_ = true;
  asked_ = false;
}

}  // namespace troupe_nccl_emulator
