// Policy and critic over the loopback network: an update's groups go over in pages,
// their values come back to the right tokens, the critic learns from the returns, and its figures
// join the policy's. The trainers are scripted, so that an update can be larger than a frame.
#include "actors/critic/critic_role.hpp"

#include "actors/policy/policy_role.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/experience/row.hpp"
#include "runtime/weights/local_channel.hpp"
#include "tests/unit/actors/host_support.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <mutex>

namespace troupe::actors::critic {
namespace {

// What both trainers did, in order. Written on their device threads, read when all is over.
struct CriticScript {
  void call(std::string what) {
    const std::lock_guard lock(mutex);
    calls.push_back(std::move(what));
  }
  std::mutex mutex;  // of `calls`
  std::vector<std::string> calls;
  std::vector<experience::Group> prepared;
  learn::TokenValues old, returns;
  std::vector<std::size_t> pages;  // groups of each call for values
  std::size_t contexts = 0;        // tokens of contexts that the critic was given
  core::Result<void> critic_learns, policy_learns;
  std::vector<core::Version> again;       // versions in the answers to repeated requests
  std::vector<core::ErrorCode> refusals;  // of requests that come again after a failure
  std::vector<std::string> saved;  // who was asked for his state afterwards, and had a whole one
};

float value_of(std::int32_t token) {
  return 0.25f * static_cast<float>(token) - 1;
}

class ScriptedCriticTrainer final : public learn::CriticTrainer {
 public:
  explicit ScriptedCriticTrainer(std::shared_ptr<CriticScript> script)
      : script_(std::move(script)), master_(learn::tiny_spec()) {}

  core::Result<learn::TokenValues> values(const std::vector<experience::Group>& groups) override {
    script_->pages.push_back(groups.size());
    learn::TokenValues result;
    for (const auto& group : groups) {
      result.emplace_back();
      for (const auto& sample : group.samples) {
        result.back().emplace_back();
        script_->contexts += experience::context_length(sample);
        for (const std::int32_t token : sample.tokens)
          result.back().back().push_back(value_of(token));
      }
    }
    return result;
  }
  core::Result<learn::CriticReport> update(const std::vector<experience::Group>&,
                                           const learn::TokenValues& old,
                                           const learn::TokenValues& returns) override {
    script_->call("critic learns");
    script_->old = old;
    script_->returns = returns;
    TROUPE_TRY(script_->critic_learns);
    return learn::CriticReport{3, {{"value/loss", 0.5}}};
  }
  const model::ParamStore& master() const override { return master_; }
  core::Version version() const override { return 0; }
  core::Result<void> save_model(const std::filesystem::path&,
                                const std::filesystem::path&) const override {
    return {};
  }
  core::Result<void> save_state(const std::filesystem::path&) const override {
    script_->saved.emplace_back("critic");
    return {};
  }
  core::Result<void> load_state(const std::filesystem::path&) override { return {}; }

 private:
  std::shared_ptr<CriticScript> script_;
  model::ParamStore master_;
};

class ScriptedPolicyTrainer final : public learn::PolicyTrainer {
 public:
  explicit ScriptedPolicyTrainer(std::shared_ptr<CriticScript> script)
      : script_(std::move(script)), master_(learn::tiny_spec()) {}

  core::Result<learn::ValueTargets> prepare(std::vector<experience::Group> groups) override {
    script_->call("policy prepares");
    learn::ValueTargets targets;
    for (const auto& group : groups) {
      targets.returns.emplace_back();
      for (const auto& sample : group.samples) {
        targets.returns.back().push_back(sample.values);
        for (float& value : targets.returns.back().back())
          value += 1;
      }
    }
    script_->prepared = std::move(groups);
    return targets;
  }
  core::Result<learn::UpdateReport> learn() override {
    script_->call("policy learns");
    TROUPE_TRY(script_->policy_learns);
    learn::UpdateReport report;
    report.version = 1;
    report.metrics = {{"policy/loss", 0.1}};
    return report;
  }
  std::shared_ptr<const model::PackedWeights> packed() override { return nullptr; }
  const model::ParamStore& master() const override { return master_; }
  core::Result<void> save_model(const std::filesystem::path&,
                                const std::filesystem::path&) const override {
    return {};
  }
  const model::ParamStore* average() const override { return nullptr; }
  core::Version version() const override { return 0; }
  core::Result<void> save_state(const std::filesystem::path&) const override {
    script_->saved.emplace_back("policy");
    return {};
  }
  core::Result<void> load_state(const std::filesystem::path&) override { return {}; }

 private:
  std::shared_ptr<CriticScript> script_;
  model::ParamStore master_;
};

// One group a page.
class MadePages {
 public:
  MadePages(std::size_t groups, std::size_t tokens) : groups_(groups), tokens_(tokens) {}
  async::task<core::Result<ExperiencePage>> on(FetchExperience request) {
    experience::Group group;
    group.ticket = {request.update, request.slots.front(), 0};
    group.prompt = {1, 2, 3};
    for (std::int32_t i = 0; i < 2; ++i) {
      experience::Trajectory sample;
      sample.tokens.assign(tokens_, static_cast<std::int32_t>(request.slots.front()) + i);
      sample.turns = {{0, {8}}, {2, {9, 9}}};
      group.samples.push_back(std::move(sample));
    }
    ExperiencePage page;
    page.groups.push_back(std::move(group));
    co_return page;
  }
  std::size_t groups() const { return groups_; }

 private:
  std::size_t groups_, tokens_;
};

class TrainAsker final : public cluster::Role {
 public:
  TrainAsker(RoleContext context,
             std::shared_ptr<CriticScript> script,
             std::uint32_t groups,
             std::promise<core::Result<Trained>>* answer)
      : context_(std::move(context)),
        script_(std::move(script)),
        groups_(groups),
        answer_(answer) {}
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "answers nothing");
  }
  async::task<core::Result<void>> run() override {
    TrainUpdate train{7, groups_};
    auto trained = co_await ask(context_, "policy/0", train);
    if (trained) {
      auto again = co_await ask(context_, "policy/0", train);
      if (again) script_->again.push_back(again->version);
      TrainCritic critic{7, groups_};
      auto learned = co_await ask(context_, "critic/0", critic);
      if (learned) script_->again.push_back(learned->version);
    } else {
      auto again = co_await ask(context_, "policy/0", train);
      if (!again) script_->refusals.push_back(again.error().code);
      TrainCritic critic{7, groups_};
      auto learned = co_await ask(context_, "critic/0", critic);
      if (!learned) script_->refusals.push_back(learned.error().code);
    }
    for (const char* role : {"policy/0", "critic/0"}) {
      SaveState save{folder_.path().string()};
      auto saved = co_await ask(context_, role, std::move(save));
      static_cast<void>(saved);  // the script has heard of it
    }
    answer_->set_value(std::move(trained));
    co_return core::Result<void>();
  }

 private:
  RoleContext context_;
  std::shared_ptr<CriticScript> script_;
  std::uint32_t groups_;
  std::promise<core::Result<Trained>>* answer_;
  troupe::test::TempFolder folder_;
};

// A network of this process on which roles play.
struct CriticStage {
  ~CriticStage() {
    for (auto place = hosts.rbegin(); place != hosts.rend(); ++place)
      io.run((*place)->stop());
    policy_device.close();
    critic_device.close();
    io.join();
  }
  void host(const std::string& name,
            async::DeviceThread* device,
            cluster::RoleHost::Factory factory) {
    auto endpoint = network.join({name, core::RunId{9}, 1}, io.make_strand());
    hosts.push_back(std::make_unique<cluster::RoleHost>(std::move(*endpoint),
                                                        cluster::RoleHost::Hooks{}, device, &team));
    io.run(start_host(hosts.back().get(), std::move(factory)));
  }
  void host_critic(const std::shared_ptr<CriticScript>& script) {
    host("critic/0", &critic_device, factory_of<CriticRole>([script](RoleContext context) {
           return std::make_shared<CriticRole>(std::move(context),
                                               std::make_unique<ScriptedCriticTrainer>(script), "");
         }));
  }
  template <class Asker, class... Words>
  core::Result<Trained> answer_to(Words... words) {
    std::promise<core::Result<Trained>> answer;
    host(
        "controller/0", nullptr,
        [&](const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
          return std::unique_ptr<cluster::Role>(
              std::make_unique<Asker>(context_of(services), words..., &answer));
        });
    return answer.get_future().get();
  }

  async::SteadyTimers timers;
  async::DeviceThread policy_device{"policy"}, critic_device{"critic"};
  async::IoThreads io{1};
  cluster::LoopbackNetwork network{timers};
  core::SerialTeam team;
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts;
};

// One update of `groups` groups with two samples of `tokens` tokens each.
core::Result<Trained> one_update(std::shared_ptr<CriticScript> script,
                                 std::size_t groups,
                                 std::size_t tokens,
                                 bool in_turn,
                                 bool with_critic = true) {
  CriticStage stage;
  auto pages = std::make_shared<MadePages>(groups, tokens);
  stage.host("data/0", nullptr, factory_of<MadePages>([pages](RoleContext) { return pages; }));
  if (with_critic) stage.host_critic(script);
  stage.host("policy/0", &stage.policy_device,
             factory_of<policy::PolicyRole>([script, in_turn](RoleContext context) {
               return std::make_shared<policy::PolicyRole>(
                   std::move(context), std::make_unique<ScriptedPolicyTrainer>(script),
                   std::make_shared<weights::LocalWeightChannel>(), "data/0", "",
                   policy::CriticLink{"critic/0", in_turn});
             }));
  return stage.answer_to<TrainAsker>(script, static_cast<std::uint32_t>(groups));
}

experience::Group group_of(std::uint32_t slot, std::int32_t token) {
  experience::Group group;
  group.ticket = {7, slot, 0};
  group.prompt = {1};
  group.samples.resize(1);
  group.samples[0].tokens = {token};
  return group;
}

// A critic's peers of one head, then those of the next, who were given other samples for the second
// ticket. The network brings the head's first request once more.
class TwoHeads final : public cluster::Role {
 public:
  TwoHeads(RoleContext context, std::promise<core::Result<Trained>>* answer)
      : context_(std::move(context)), answer_(answer) {}
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "answers nothing");
  }
  async::task<core::Result<void>> run() override {
    answer_->set_value(co_await learn());
    co_return core::Result<void>();
  }

 private:
  async::task<core::Result<void>> value(std::uint32_t cursor, std::int32_t token, float returned) {
    ScoreValues page{7, cursor, {}};
    page.groups.push_back(group_of(cursor, token));
    TROUPE_CO_TRY(co_await ask(context_, "critic/0", std::move(page)));
    PutReturns returns{7, cursor, {}};
    returns.groups.push_back({{{returned}}});
    if (returned != 0) TROUPE_CO_TRY(co_await ask(context_, "critic/0", std::move(returns)));
    co_return core::Result<void>();
  }
  async::task<core::Result<Trained>> learn() {
    LoadState load{"", 7};
    TROUPE_CO_TRY(co_await ask(context_, "critic/0", load));
    TROUPE_CO_TRY(co_await value(0, 4, 0));
    TROUPE_CO_TRY(co_await ask(context_, "critic/0", load));
    TROUPE_CO_TRY(co_await value(1, 5, 0));
    TROUPE_CO_TRY(co_await value(0, 4, 1));
    TROUPE_CO_TRY(co_await value(1, 5, 2));
    TROUPE_CO_TRY(co_await ask(context_, "critic/0", load));
    TROUPE_CO_TRY(co_await value(0, 4, 3));
    TROUPE_CO_TRY(co_await value(1, 6, 0));
    TROUPE_CO_TRY(co_await value(0, 4, 3));
    TROUPE_CO_TRY(co_await value(1, 6, 4));
    TrainCritic train{7, 2};
    co_return co_await ask(context_, "critic/0", train);
  }

  RoleContext context_;
  std::promise<core::Result<Trained>>* answer_;
};

}  // namespace

TEST(CriticRole, ValuesReachTheirTokensAndReturnsComeBackInPages) {
  auto script = std::make_shared<CriticScript>();
  // 240,000 tokens a group: 960 KB, so that a page holds four of nine.
  constexpr std::size_t kTokens = 120'000;
  const auto trained = one_update(script, 9, kTokens, true);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_GT(script->pages.size(), 2u);
  ASSERT_EQ(script->prepared.size(), 9u);
  for (std::size_t g = 0; g < 9; ++g) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto token = static_cast<std::int32_t>(g + i);
      const std::vector<float> values(kTokens, value_of(token)),
          returns(kTokens, value_of(token) + 1);
      EXPECT_EQ(script->prepared[g].samples[i].values, values) << g << "/" << i;
      EXPECT_EQ(script->old[g][i], values) << g << "/" << i;
      EXPECT_EQ(script->returns[g][i], returns) << g << "/" << i;
    }
  }
}

TEST(CriticRole, LearnsBeforeThePolicyWhenTheyTakeTurns) {
  auto script = std::make_shared<CriticScript>();
  const auto trained = one_update(script, 2, 5, true);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(script->calls,
            (std::vector<std::string>{"policy prepares", "critic learns", "policy learns"}));
  EXPECT_EQ(script->contexts, 2u * 2u * 3u) << "rows with what the policy did not draw";
  const std::vector<std::pair<std::string, double>> metrics = {{"policy/loss", 0.1},
                                                               {"value/loss", 0.5}};
  EXPECT_EQ(trained->metrics, metrics);
}

TEST(CriticRole, ARepeatedUpdateIsAnsweredAgainAndLearnedFromOnce) {
  auto script = std::make_shared<CriticScript>();
  const auto trained = one_update(script, 2, 5, true);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(script->again, (std::vector<core::Version>{trained->version, 3}));
  EXPECT_EQ(script->calls.size(), 3u) << "each trainer was asked once";
  EXPECT_EQ(script->pages.size(), 1u);
}

// Pages go by what is in them: a request to load that comes once more forgets none, and those of
// another head take the place of what they do not equal.
TEST(CriticRole, KeepsPagesUntilOthersTakeTheirPlace) {
  auto script = std::make_shared<CriticScript>();
  CriticStage stage;
  stage.host_critic(script);
  const auto trained = stage.answer_to<TwoHeads>();
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(script->pages.size(), 3u) << "equal groups are valued once";
  EXPECT_EQ(script->old, (learn::TokenValues{{{value_of(4)}}, {{value_of(6)}}}));
  EXPECT_EQ(script->returns, (learn::TokenValues{{{3}}, {{4}}}));
}

TEST(CriticRole, LearnsBesideThePolicyOtherwise) {
  auto script = std::make_shared<CriticScript>();
  const auto trained = one_update(script, 2, 5, false);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(script->calls.size(), 3u);
  EXPECT_EQ(trained->metrics.back().first, "value/loss");
}

TEST(CriticRole, ACriticThatIsAwayIsALostPeerByName) {
  auto script = std::make_shared<CriticScript>();
  const auto trained = one_update(script, 2, 5, true, false);
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(trained.error().message.find("critic/0"), std::string::npos) << trained.error().message;
}

TEST(CriticRole, WhatStopsTheCriticStopsTheUpdate) {
  for (const bool in_turn : {true, false}) {
    auto script = std::make_shared<CriticScript>();
    script->critic_learns = core::fail(core::ErrorCode::kNumeric, "not finite");
    const auto trained = one_update(script, 2, 5, in_turn);
    ASSERT_FALSE(trained);
    EXPECT_EQ(trained.error().code, core::ErrorCode::kNumeric);
    EXPECT_NE(trained.error().message.find("critic/0"), std::string::npos);
    EXPECT_TRUE(script->saved.empty()) << "both stand half-way through the update";
    EXPECT_EQ(script->refusals, (std::vector(2, core::ErrorCode::kPeerLost)))
        << "and neither is used again";
    EXPECT_EQ(std::count(script->calls.begin(), script->calls.end(), "critic learns"), 1);
  }
}

// A checkpoint needs both: one of them between two updates is none.
TEST(CriticRole, APolicyThatFailsHasNoStateToSave) {
  auto script = std::make_shared<CriticScript>();
  script->policy_learns = core::fail(core::ErrorCode::kNumeric, "not finite");
  ASSERT_FALSE(one_update(script, 2, 5, true));
  EXPECT_EQ(script->saved, std::vector<std::string>{"critic"});
  script = std::make_shared<CriticScript>();
  ASSERT_TRUE(one_update(script, 2, 5, true));
  EXPECT_EQ(script->saved, (std::vector<std::string>{"policy", "critic"}));
}

}  // namespace troupe::actors::critic
