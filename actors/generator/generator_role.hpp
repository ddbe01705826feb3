// The generator role: one engine, fed with tickets. It fetches the prompts of its tickets from the
// data role, and sends each group back there as soon as its last sample has ended; the controller
// hears counts alone. The engine runs on the device thread, one step a job, so that other roles of a
// process get their turns. Bounds: the engine's limits; one delivery in flight a group.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/weights/weight_channel.hpp"

namespace troupe::actors {

class GeneratorRole {
 public:
  GeneratorRole(RoleContext context, std::unique_ptr<engine::Engine> engine,
                std::shared_ptr<const engine::TokenText> text,
                std::shared_ptr<weights::WeightSubscriber> subscriber, std::string data_peer);

  async::task<core::Result<Generated>> on(Generate request);
  async::task<core::Result<Ack>> on(UpdateWeights request);

 private:
  // One Generate call and what it still waits for.
  struct Round {
    std::size_t open_groups = 0;
    Generated totals;
    std::optional<core::Error> error;
    std::shared_ptr<async::Event> done = std::make_shared<async::Event>();
  };
  struct OpenGroup {
    core::Ticket ticket;
    std::int32_t wanted = 0;
    std::vector<engine::Sample> samples;
    std::shared_ptr<Round> round;
  };

  async::task<core::Result<std::size_t>> submit(std::vector<PromptTask> tasks,
                                                SamplingSpec sampling,
                                                std::shared_ptr<Round> round);
  async::task<core::Result<void>> pump();
  async::task<core::Result<void>> deliver(OpenGroup group);
  void finish(Round& round, std::optional<core::Error> error);
  void fail_all(const core::Error& error);

  RoleContext context_;
  std::unique_ptr<engine::Engine> engine_;  // used on the device thread alone
  std::shared_ptr<const engine::TokenText> text_;
  std::shared_ptr<weights::WeightSubscriber> subscriber_;
  std::string data_peer_;
  std::uint64_t next_group_ = 1;
  std::map<core::GroupId, OpenGroup> open_;
  bool pumping_ = false;
};

}  // namespace troupe::actors
