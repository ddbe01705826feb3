// The device link by NCCL: its communicator never blocks, its work is on a stream next to
// the device's, and the only type is bytes. See device_link.hpp.
#pragma once

#include "kernels/cuda/device.hpp"
#include "runtime/collective/device_link.hpp"
#include "runtime/collective/nccl_library.hpp"

#include <memory>

namespace troupe::collective {

class NcclLink final : public DeviceLink {
 public:
  // Takes what is in the memory of `device`, which must outlive it. Throws core::DeviceError.
  NcclLink(NcclLibrary library, kernels::cuda::Device& device);
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;
  ~NcclLink() override { NcclLink::abort(); }

  std::string name() const override { return "NCCL " + library_.version_text(); }
  std::string device() const override { return device_.memory().shared_name(); }
  bool takes(const core::Memory& memory) const override { return &memory == &device_.memory(); }
  void prefer_interface(const std::string& name) override;
  core::Result<LinkId> new_id() override;
  core::Result<void> connect(const LinkId& id, int rank, int size) override;
  core::Result<void> start(std::span<const Move> moves) override;
  core::Result<bool> done() override;
  void abort() noexcept override;

 private:
  core::Result<void> begun(nccl::Code code, const char* what) const;
  core::Result<bool> at_rest() const;
  nccl::Code post(const Move& move) const;

  const NcclLibrary library_;
  kernels::cuda::Device& device_;
  const std::unique_ptr<kernels::cuda::Stream> stream_;
  nccl::Communicator* communicator_ = nullptr;
  const char* doing_ = "";  // for messages
};

// A link for Collectives::use, or why there is none: as open_nccl, and kResources (the device has
// no stream for it).
core::Result<std::unique_ptr<DeviceLink>> make_nccl_link(kernels::cuda::Device& device,
                                                         const std::filesystem::path& packages);

}  // namespace troupe::collective
