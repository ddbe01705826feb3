// A generator role under its host on the loopback network, with a scripted data role and a script
// that plays the controller. The engine and the weights may be scripted too, so that order is
// certain.
#pragma once

#include "actors/generator/generator_role.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "tests/unit/actors/generator/scripted_engine.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::testing {

// The prompt of a ticket: some tokens of its slot. Its seed is its slot.
class PromptGiver {
 public:
  explicit PromptGiver(RoleContext) {}
  async::task<core::Result<PromptTasks>> on(FetchPrompts request) {
    PromptTasks reply;
    for (const experience::Ticket& ticket : request.tickets) {
      if (ticket.slot == 404) co_return core::fail(core::ErrorCode::kNotFound, "not open");
      PromptTask task;
      task.ticket = ticket;
      core::Rng rng(ticket.slot);
      task.tokens = engine::random_prompt(rng, 5 + ticket.slot % 20);
      task.samples = 3;
      task.seed = ticket.slot;
      reply.tasks.push_back(std::move(task));
    }
    co_return reply;
  }
  async::task<core::Result<Ack>> on(PutGroup request) {
    put.push_back(std::move(request));
    co_return Ack{};
  }
  std::vector<PutGroup> put;
};

// What the script has at hand. Everything runs on one thread but the engine and the fetches.
struct Scene {
  RoleContext context;
  std::shared_ptr<generator::GeneratorRole> generator;
  std::shared_ptr<PromptGiver> data;
  ScriptedSubscriber* subscriber = nullptr;
  EngineLog* log = nullptr;
};

inline Generate generate_of(std::vector<std::uint32_t> slots, core::Version version_min = 0) {
  Generate request;
  for (const std::uint32_t slot : slots)
    request.tickets.push_back({0, slot, 0});
  request.sampling.max_new_tokens = kLongResponse;
  request.version_min = version_min;
  return request;
}

// Looks again and again until it is true; false after a minute.
inline async::task<bool> comes_true(Scene scene, std::function<bool()> condition) {
  const core::TimePoint until = scene.context.timers->now() + std::chrono::minutes(1);
  while (!condition()) {
    if (scene.context.timers->now() > until) co_return false;
    co_await async::sleep_for(*scene.context.timers, std::chrono::milliseconds(1));
  }
  co_return true;
}

class GeneratorStage {
 public:
  using Script = std::function<async::task<void>(Scene)>;

  GeneratorStage() : fetch_("fetch"), device_("engine"), io_(1), network_(timers_) {}

  // Runs the script against a generator whose engine `maker` makes, and takes everything down.
  void act(generator::EngineMaker maker, Script script) {
    io_.run(start(std::move(maker), std::move(script)));
    const auto ended = over_.get_future().wait_for(std::chrono::minutes(2));
    EXPECT_EQ(ended, std::future_status::ready) << "the script hangs";
    subscriber.open(true);
    io_.run(stop());
    device_.close();
    fetch_.close();
    io_.join();
  }

  generator::EngineMaker scripted(ScriptedSteps::Ends ends) {
    return [this, ends](engine::Weights weights) -> core::Result<std::unique_ptr<engine::Engine>> {
      log.add("made with " + std::to_string(weights->version()));
      auto made = engine::make_engine(std::move(weights), engine::limits_of(16, 512, 4096), team_,
                                      {ScriptedSteps::kEnd});
      made->wrap_steps([&](auto) { return std::make_unique<ScriptedSteps>(ends, log); });
      return made;
    };
  }

  async::DeviceThread& device() { return device_; }

  EngineLog log;
  ScriptedSubscriber subscriber{log};
  bool sleep_idle = false;

 private:
  class Player final : public cluster::Role {
   public:
    Player(Scene scene, Script script, std::promise<void>& over)
        : scene_(std::move(scene)), script_(std::move(script)), over_(over) {}
    async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
      co_return core::fail(core::ErrorCode::kUnsupported, "the script answers nothing");
    }
    async::task<core::Result<void>> run() override {
      co_await script_(scene_);
      over_.set_value();
      co_return core::Result<void>();
    }

   private:
    Scene scene_;
    Script script_;
    std::promise<void>& over_;
  };

  async::task<void> host(std::string name,
                         cluster::RoleHost::Factory factory,
                         async::DeviceThread* device) {
    cluster::Identity identity{name, core::RunId{7}, 1};
    auto endpoint = network_.join(identity, io_.make_strand());
    EXPECT_TRUE(endpoint.has_value());
    cluster::RoleHost::Hooks hooks;
    hooks.failed = [](const cluster::PeerName& who, const core::Error& error) {
      ADD_FAILURE() << who << ": " << error.message;
    };
    hosts_.push_back(std::make_unique<cluster::RoleHost>(std::move(*endpoint), std::move(hooks),
                                                         device, &team_));
    auto started = co_await hosts_.back()->start(std::move(factory));
    EXPECT_TRUE(started.has_value());
  }

  async::task<void> start(generator::EngineMaker maker, Script script) {
    auto data_factory = factory_of<PromptGiver>([this](RoleContext context) {
      return data_ = std::make_shared<PromptGiver>(std::move(context));
    });
    co_await host("data/0", std::move(data_factory), nullptr);
    auto generator_factory =
        factory_of<generator::GeneratorRole>([this, maker](RoleContext context) {
          auto same = std::shared_ptr<weights::WeightSubscriber>(&subscriber, [](auto*) {});
          return generator_ = std::make_shared<generator::GeneratorRole>(
                     std::move(context), maker, std::make_shared<engine::NumberText>(), same,
                     fetch_, "data/0", sleep_idle);
        });
    co_await host("generator/0", std::move(generator_factory), &device_);
    cluster::RoleHost::Factory player =
        [this, script](
            const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
      Scene scene{context_of(services), generator_, data_, &subscriber, &log};
      return std::unique_ptr<cluster::Role>(
          std::make_unique<Player>(std::move(scene), script, over_));
    };
    co_await host("controller/0", std::move(player), nullptr);
  }

  async::task<void> stop() {
    generator_ = nullptr;
    for (auto place = hosts_.rbegin(); place != hosts_.rend(); ++place)
      co_await (*place)->stop();
    hosts_.clear();
  }

  async::SteadyTimers timers_;
  core::SerialTeam team_;
  async::DeviceThread fetch_;
  async::DeviceThread device_;
  async::IoThreads io_;
  cluster::LoopbackNetwork network_;
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts_;
  std::shared_ptr<generator::GeneratorRole> generator_;
  std::shared_ptr<PromptGiver> data_;
  std::promise<void> over_;
};

}  // namespace troupe::actors::testing
