// The entry points: which communicators there are, groups, and what is handed to a communicator.
#include "tests/nccl_emulator/communicator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>

using namespace troupe_nccl_emulator;
namespace nccl = troupe::collective::nccl;

namespace {

// The callers' opaque pointers are addresses of these.
std::vector<std::unique_ptr<Communicator>>& communicators() {
  static std::vector<std::unique_ptr<Communicator>> all;
  return all;
}

auto place_of(nccl::Communicator* handle) {
  auto& all = communicators();
  return std::find_if(all.begin(), all.end(), [handle](const auto& one) {
    return static_cast<void*>(one.get()) == static_cast<void*>(handle);
  });
}

Communicator* known(nccl::Communicator* handle) {
  const auto at = place_of(handle);
  if (at == communicators().end()) refuse("a communicator that is not there, or no longer");
  return at->get();
}

bool group_open = false;
std::set<Communicator*> in_group;  // those with operations in the open group

Communicator* in_a_group(nccl::Communicator* handle) {
  Communicator* const one = known(handle);
  if (!group_open) refuse("an operation outside of a group");
  in_group.insert(one);
  return one;
}

}  // namespace

#define TROUPE_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

TROUPE_NCCL_EXPORT Code ncclGetVersion(int* version) {
  *version = static_cast<int>(mode_number("version").value_or(22809));
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT const char* ncclGetErrorString(Code code) {
  switch (code) {
    case Code::kSystemError:
      return "unhandled system error";
    case Code::kInvalidUsage:
      return "invalid usage";
    case Code::kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "another error";
  }
}

TROUPE_NCCL_EXPORT const char* ncclGetLastError(nccl::Communicator* handle) {
  if (handle != nullptr) known(handle);
  return "emulated";
}

TROUPE_NCCL_EXPORT Code ncclGetUniqueId(nccl::UniqueId* id) {
  if (mode_has("no-id")) return Code::kSystemError;
  std::random_device random;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "%08x%08x", random(), random());
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclCommInitRankConfig(
    nccl::Communicator** out, int ranks, nccl::UniqueId id, int rank, nccl::Config* config) {
  if (rank < 0 || rank >= ranks) refuse("a communicator for a rank that cannot be");
  if (config->size != sizeof *config || config->magic != nccl::kConfigMagic ||
      config->version != 21700 || config->blocking != 0 || config->unused != nccl::kUndefined)
    refuse("a communicator that may block, or a configuration that is none");
  if (group_open) refuse("a communicator is made within a group");
  if (mode_has("refuse")) return Code::kSystemError;
  communicators().push_back(std::make_unique<Communicator>(id.bytes, ranks, rank));
  *out = reinterpret_cast<nccl::Communicator*>(communicators().back().get());
  return Code::kInProgress;
}

TROUPE_NCCL_EXPORT Code ncclCommGetAsyncError(nccl::Communicator* handle, Code* code) {
  if (group_open) refuse("a communicator is asked within a group");
  *code = known(handle)->ask();
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclCommAbort(nccl::Communicator* handle) {
  Communicator* const one = known(handle);
  if (group_open && in_group.contains(one)) refuse("a communicator is aborted within a group");
  communicators().erase(place_of(handle));
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclGroupStart() {
  if (group_open) refuse("a group in a group");
  group_open = true;
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclGroupEnd() {
  if (!group_open) refuse("a group ends that has not begun");
  group_open = false;
  for (Communicator* const one : in_group)
    one->submit();
  const bool any = !in_group.empty();
  in_group.clear();
  return any ? Code::kInProgress : Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclSend(const void* from,
                                 std::size_t count,
                                 DataType type,
                                 int to,
                                 nccl::Communicator* handle,
                                 void* stream) {
  Communicator* const one = in_a_group(handle);
  one->check_operation(from, count, type, to, stream);
  one->send(from, count, to, stream);
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclRecv(void* to,
                                 std::size_t count,
                                 DataType type,
                                 int from,
                                 nccl::Communicator* handle,
                                 void* stream) {
  Communicator* const one = in_a_group(handle);
  one->check_operation(to, count, type, from, stream);
  one->receive(to, count, from, stream);
  return Code::kSuccess;
}

TROUPE_NCCL_EXPORT Code ncclBroadcast(const void* from,
                                      void* to,
                                      std::size_t count,
                                      DataType type,
                                      int root,
                                      nccl::Communicator* handle,
                                      void* stream) {
  Communicator* const one = in_a_group(handle);
  one->check_operation(to, count, type, root, stream);
  one->broadcast(from, to, count, root, stream);
  return Code::kSuccess;
}

// How many communicators were made and not aborted.
TROUPE_NCCL_EXPORT int troupe_nccl_emulator_open() {
  return static_cast<int>(communicators().size());
}

// Bytes that this process sent and received.
TROUPE_NCCL_EXPORT std::uint64_t troupe_nccl_emulator_moved() {
  return moved_bytes();
}
