// A device on virtual time: jobs run one after another, each at one moment, and take as long as
// they say by VirtualTime::pass. Their awaiters resume after that. Belongs to one simulated
// process: while that is frozen no job begins or ends. Outlives the roles that use it. Bound: as a
// DeviceThread.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/async/device_queue.hpp"
#include "tests/sim/virtual_time.hpp"

#include <deque>
#include <memory>
#include <string>

namespace troupe::cluster::sim {

class SimDevice final : public async::DeviceQueue {
 public:
  // `thread`: a strand of the process.
  SimDevice(VirtualTime& time, async::Executor thread, std::string name)
      : time_(time), thread_(std::move(thread)), name_(std::move(name)) {}
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;
  ~SimDevice() override { close(); }

  // Refuses new jobs, fails the waiting ones with kClosed, and ends the running one now.
  void close();

 private:
  async::task<core::Result<void>> submit(std::shared_ptr<Item> item) override;
  bool withdraw(const std::shared_ptr<Item>& item);
  void begin_next();
  void end_running();
  static void finish(const std::shared_ptr<Item>& item);

  VirtualTime& time_;
  const async::Executor thread_;
  const std::string name_;
  std::deque<std::shared_ptr<Item>> queue_;
  std::shared_ptr<Item> running_;
  async::Timer end_;
  // Tells handlers that are still queued on the strand whether this object is there.
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
  bool closed_ = false;
};

}  // namespace troupe::cluster::sim
