#include "runtime/collective/nccl_link.hpp"

#include <cstdlib>
#include <cstring>

namespace troupe::collective {

using nccl::Code;

NcclLink::NcclLink(NcclLibrary library, kernels::cuda::Device& device)
    : library_(std::move(library)), device_(device), stream_(device.open_stream()) {}

// NCCL reads the environment at its first call, and has no other way for this.
void NcclLink::prefer_interface(const std::string& name) {
  if (!name.empty()) ::setenv("NCCL_SOCKET_IFNAME", name.c_str(), 0);
}

core::Result<LinkId> NcclLink::new_id() {
  nccl::UniqueId made{};
  TROUPE_TRY(begun(library_.api.ncclGetUniqueId(&made), "making an id"));
  LinkId id;
  static_assert(sizeof id == sizeof made.bytes);
  std::memcpy(id.data(), made.bytes, id.size());
  return id;
}

core::Result<void> NcclLink::connect(const LinkId& id, int rank, int size) {
  TROUPE_CHECK(communicator_ == nullptr, "connect is called once");
  device_.enter();  // a communicator is made for the thread's present device
  nccl::UniqueId meeting{};
  std::memcpy(meeting.bytes, id.data(), id.size());
  nccl::Config config;
  config.blocking = 0;
  doing_ = "connecting the devices";
  return begun(library_.api.ncclCommInitRankConfig(&communicator_, size, meeting, rank, &config),
               doing_);
}

core::Result<void> NcclLink::start(std::span<const Move> moves) {
  doing_ = "moving bytes between devices";
  TROUPE_TRY(begun(library_.api.ncclGroupStart(), doing_));
  Code code = Code::kSuccess;
  for (const Move& move : moves) {
    code = post(move);
    if (code != Code::kSuccess && code != Code::kInProgress) break;
  }
  const Code end = library_.api.ncclGroupEnd();  // also of a group that failed
  TROUPE_TRY(begun(code, doing_));
  return begun(end, doing_);
}

Code NcclLink::post(const Move& move) const {
  void* const stream = stream_->handle();
  const auto bytes = nccl::DataType::kUint8;
  switch (move.kind) {
    case Move::Kind::kBroadcast:
      return library_.api.ncclBroadcast(move.at, move.at, move.bytes, bytes, move.rank,
                                        communicator_, stream);
    case Move::Kind::kSend:
      return library_.api.ncclSend(move.at, move.bytes, bytes, move.rank, communicator_, stream);
    case Move::Kind::kReceive:
      return library_.api.ncclRecv(move.at, move.bytes, bytes, move.rank, communicator_, stream);
  }
  return Code::kInvalidArgument;
}

// Work is on the stream only once NCCL has accepted all of it; a failed call may leave some there.
core::Result<bool> NcclLink::done() {
  TROUPE_TRY_ASSIGN(taken, at_rest());
  if (!taken || !stream_->done()) return false;
  return at_rest();
}

core::Result<bool> NcclLink::at_rest() const {
  Code state = Code::kSuccess;
  TROUPE_TRY(begun(library_.api.ncclCommGetAsyncError(communicator_, &state), doing_));
  TROUPE_TRY(begun(state, doing_));
  return state == Code::kSuccess;
}

void NcclLink::abort() noexcept {
  if (communicator_ != nullptr) library_.api.ncclCommAbort(communicator_);
  communicator_ = nullptr;
}

core::Result<void> NcclLink::begun(Code code, const char* what) const {
  if (code == Code::kSuccess || code == Code::kInProgress) return {};
  const char* const last = library_.api.ncclGetLastError(communicator_);
  const bool known = last != nullptr && *last != '\0';
  return fail(ErrorCode::kResources, name() + ", " + what + ": " +
                                         library_.api.ncclGetErrorString(code) +
                                         (known ? std::string(" (") + last + ")" : ""));
}

core::Result<std::unique_ptr<DeviceLink>> make_nccl_link(kernels::cuda::Device& device,
                                                         const std::filesystem::path& packages) {
  TROUPE_TRY_ASSIGN(library, open_nccl(packages));
  try {
    return std::unique_ptr<DeviceLink>(std::make_unique<NcclLink>(std::move(library), device));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kResources, error.what());
  }
}

}  // namespace troupe::collective
