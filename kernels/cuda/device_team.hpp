// A team of one whose numbers are in device memory. The numeric code of runtime/model runs on it
// unchanged; its operations enqueue kernels. `run` returns when the work is enqueued; a download
// from `memory()` waits for it. One thread at a time may use it, and the thread may change between
// calls. It must outlive everything allocated from its memory.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/dispatch.hpp"
#include "runtime/core/team.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace troupe::kernels::cuda {

class DeviceTeam final : public core::TeamRunner {
 public:
  explicit DeviceTeam(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  void run(const std::function<void(core::Team)>& region) override {
    device_->enter();
    const UseOps use(device_->ops());
    region(core::Team{});
  }
  std::unique_ptr<core::Recording> record(const std::function<void(core::Team)>& region) override {
    device_->enter();
    const UseOps use(device_->ops());
    device_->begin_recording();
    try {
      region(core::Team{});
    } catch (...) {
      device_->drop_recording();
      throw;
    }
    return std::make_unique<Recorded>(*device_, device_->end_recording());
  }
  int size() const noexcept override { return 1; }
  core::Memory& memory() noexcept override { return device_->memory(); }
  Device& device() { return *device_; }
  const Device& device() const { return *device_; }

 private:
  class Recorded final : public core::Recording {
   public:
    Recorded(Device& device, std::unique_ptr<Graph> graph)
        : device_(device), graph_(std::move(graph)) {}
    void submit() override {
      device_.enter();
      graph_->launch();
    }

   private:
    Device& device_;
    const std::unique_ptr<Graph> graph_;
  };

  std::unique_ptr<Device> device_;
};

}  // namespace troupe::kernels::cuda
