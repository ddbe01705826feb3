// The environment role: what it asks of data and controller, what it delivers, and what a failing
// environment or a cut leaves of a group.
#include "actors/environment/environment_role.hpp"

#include "actors/environment/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/byte_tokenizer.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/experience/row.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <future>

namespace troupe::actors::environment {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int32_t kEnd = 256;

std::vector<std::int32_t> ids_of(const std::string& text, bool end = false) {
  std::vector<std::int32_t> out;
  for (const char c : text)
    out.push_back(static_cast<unsigned char>(c));
  if (end) out.push_back(kEnd);
  return out;
}

std::shared_ptr<const dialects::ServedModel> byte_model() {
  text::SpecialTokens special;
  special.eos = "<|end|>";
  special.eos_ids = {kEnd};
  auto model = std::make_shared<dialects::ServedModel>();
  model->names = {"tiny"};
  model->tokenizer = *text::Tokenizer::parse(cli::byte_tokenizer().dump(), special, "test");
  model->chat = *text::ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      special, "test");
  model->context = 400;
  model->positions_max = 400;
  model->vocab = 257;
  model->token_bytes_max = 8;
  return model;
}

// What the data role is asked and told.
class Data {
 public:
  explicit Data(RoleContext) {}
  async::task<core::Result<EpisodeTasks>> on(FetchEpisodes request) {
    EpisodeTasks reply;
    for (const experience::Ticket& ticket : request.tickets) {
      if (ticket.slot == 404) co_return core::fail(core::ErrorCode::kNotFound, "not open");
      EpisodeTask task;
      task.ticket = ticket;
      task.samples = 3;
      task.seed = ticket.slot;
      task.messages = R"([{"role":"user","content":"hi"}])";
      task.label = std::to_string(ticket.slot);
      task.tokens = ids_of("text");
      reply.tasks.push_back(std::move(task));
    }
    co_return reply;
  }
  async::task<core::Result<Ack>> on(PutGroup request) {
    put.push_back(std::move(request));
    co_return Ack{};
  }
  async::task<core::Result<Ack>> on(SetAside request) {
    aside.push_back(std::move(request));
    co_return Ack{};
  }
  std::vector<PutGroup> put;
  std::vector<SetAside> aside;
};

// Answers every call by the number of the call and its version.
class Caller {
 public:
  explicit Caller(RoleContext) {}
  async::task<core::Result<Completed>> on(Complete request) {
    Completed out;
    out.tokens = ids_of("say " + std::to_string(request.number), true);
    out.behaviour.assign(out.tokens.size(), -0.5f);
    out.versions = experience::VersionRuns::all(request.version_min, out.tokens.size());
    calls.push_back(std::move(request));
    co_return out;
  }
  std::vector<Complete> calls;
};

// Two turns an episode; the first episodes of a group fail as its label says.
class TwoTurns final : public Environment {
 public:
  class One final : public Episode {
   public:
    async::task<core::Result<EnvironmentTurn>> step(PolicyTurn turn, async::Deadline) override {
      EnvironmentTurn out;
      if (++turns_ == 2) {
        out.done = true;
        out.reward = 1.5;
      } else {
        out.reward = 0.25;
        out.messages = Json::array({{{"role", "user"}, {"content", "ok " + turn.text}}}).dump();
      }
      co_return out;
    }

   private:
    int turns_ = 0;
  };
  async::task<core::Result<OpenedEpisode>> open(EpisodeStart start, async::Deadline) override {
    opened.push_back(start);
    auto& losses = lost[start.label];
    if (!losses.empty()) {
      const core::ErrorCode code = losses.front();
      losses.pop_front();
      co_return core::fail(code, "the worker ended");
    }
    if (failures[start.label]-- > 0) co_return core::fail(core::ErrorCode::kData, "broken");
    OpenedEpisode out;
    out.episode = std::make_unique<One>();
    co_return out;
  }
  void begin(const RoleContext&) override {}
  std::string name() const override { return "the environment of the test"; }
  static std::map<std::string, int> failures;
  static std::map<std::string, std::deque<core::ErrorCode>> lost;  // by label, one an opening
  static std::vector<EpisodeStart> opened;
};
std::map<std::string, int> TwoTurns::failures;
std::map<std::string, std::deque<core::ErrorCode>> TwoTurns::lost;
std::vector<EpisodeStart> TwoTurns::opened;

class EnvironmentRoles : public ::testing::Test {
 protected:
  EnvironmentRoles() : device_("text"), io_(1), network_(timers_) {}

  // Asks for the groups of these slots, one after the other; returns the answers.
  std::vector<core::Result<Generated>> generate(std::vector<std::uint32_t> slots,
                                                EpisodeSettings settings = EpisodeSettings()) {
    settings.turn_timeout_s = settings.episode_timeout_s = std::chrono::minutes(1);
    settings_ = settings;
    std::promise<std::vector<core::Result<Generated>>> over;
    auto ended = over.get_future();
    io_.run(act(std::move(slots), &over));
    EXPECT_EQ(ended.wait_for(std::chrono::minutes(1)), std::future_status::ready);
    auto answers = ended.get();
    device_.close();
    io_.join();
    return answers;
  }

  std::shared_ptr<Data> data_;
  std::shared_ptr<Caller> caller_;
  std::vector<std::string> notes_;

 private:
  template <class Role, class Make>
  async::task<void> host(std::string name, Make make) {
    auto endpoint = network_.join({name, core::RunId{7}, 1}, io_.make_strand());
    EXPECT_TRUE(endpoint.has_value());
    cluster::RoleHost::Hooks hooks;
    hosts_.push_back(std::make_unique<cluster::RoleHost>(std::move(*endpoint), std::move(hooks),
                                                         &device_, &team_));
    auto factory = factory_of<Role>(std::move(make));
    auto started = co_await hosts_.back()->start(std::move(factory));
    EXPECT_TRUE(started.has_value());
  }

  async::task<void> act(std::vector<std::uint32_t> slots,
                        std::promise<std::vector<core::Result<Generated>>>* over) {
    auto data = host<Data>("data/0", [this](RoleContext context) {
      return data_ = std::make_shared<Data>(std::move(context));
    });
    co_await std::move(data);
    auto caller = host<Caller>("controller/0", [this](RoleContext context) {
      context_ = context;
      return caller_ = std::make_shared<Caller>(std::move(context));
    });
    co_await std::move(caller);
    auto environment = host<EnvironmentRole>("environment/0", [this](RoleContext context) {
      EnvironmentParts parts;
      parts.model = byte_model();
      parts.environment = std::make_unique<TwoTurns>();
      parts.settings = settings_;
      parts.episodes_max = 2;
      parts.note = [this](const std::string& note) { notes_.push_back(note); };
      return std::make_shared<EnvironmentRole>(std::move(context), std::move(parts));
    });
    co_await std::move(environment);
    std::vector<core::Result<Generated>> answers;
    for (const std::uint32_t slot : slots) {
      Generate request;
      request.tickets = std::vector<experience::Ticket>(1, experience::Ticket{0, slot, 0});
      request.sampling.max_new_tokens = 50;
      request.version_min = 4;
      answers.push_back(co_await ask(context_, "environment/0", std::move(request)));
    }
    for (auto place = hosts_.rbegin(); place != hosts_.rend(); ++place)
      co_await (*place)->stop();
    hosts_.clear();
    over->set_value(std::move(answers));
  }

  EpisodeSettings settings_;
  async::SteadyTimers timers_;
  core::SerialTeam team_;
  async::DeviceThread device_;
  async::IoThreads io_;
  cluster::LoopbackNetwork network_;
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts_;
  RoleContext context_;
};

TEST_F(EnvironmentRoles, AGroupOfEpisodesIsDeliveredAsTheyWere) {
  TwoTurns::failures.clear();
  const auto answers = generate({1});
  ASSERT_TRUE(answers[0]) << answers[0].error().message;
  EXPECT_EQ(answers[0]->samples, 3u);
  ASSERT_EQ(data_->put.size(), 1u);
  const PutGroup& group = data_->put[0];
  EXPECT_FALSE(group.cut);
  EXPECT_EQ(group.prompt, byte_model()->tokenizer->encode("<user>hi<|end|><assistant>")->ids);
  ASSERT_EQ(group.samples.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const experience::Trajectory& sample = group.samples[i];
    EXPECT_EQ(sample.episode, i + 1);
    EXPECT_EQ(sample.feedback, 1.75) << "rewards of turns add up";
    EXPECT_EQ(sample.versions.oldest(), 4u);
    const auto row = experience::row_of(sample);
    EXPECT_EQ(*byte_model()->tokenizer->decode(row.ids),
              "say 0<|end|><user>ok say 0<|end|><assistant>say 1<|end|>");
    ASSERT_EQ(sample.turns.size(), 2u);
    EXPECT_EQ(sample.turns[1].begin, 6u);
    EXPECT_EQ(sample.text, "say 1");
    EXPECT_TRUE(experience::check_delivered(sample));
  }
  ASSERT_EQ(caller_->calls.size(), 6u);
  std::set<std::uint64_t> seeds, sessions;
  for (const Complete& call : caller_->calls) {
    seeds.insert(call.seed);
    sessions.insert(call.session);
    EXPECT_EQ(call.version_min, 4u);
    EXPECT_EQ(call.sampling.max_new_tokens, 50);
  }
  EXPECT_EQ(seeds.size(), 6u);
  EXPECT_EQ(sessions.size(), 3u);
}

TEST_F(EnvironmentRoles, AnEpisodeThatFailsCostsItsSampleAndAGroupOfThemItsPrompt) {
  TwoTurns::failures = {{"1", 1}, {"2", 2}, {"3", 3}};
  const auto answers = generate({1, 2, 3, 404});
  ASSERT_TRUE(answers[0]);
  EXPECT_EQ(answers[0]->samples, 2u);
  ASSERT_EQ(data_->put.size(), 1u);
  EXPECT_TRUE(data_->put[0].cut);
  EXPECT_EQ(data_->put[0].samples.size(), 2u);
  ASSERT_EQ(data_->aside.size(), 2u) << "one episode is no group";
  EXPECT_NE(data_->aside[1].cause.find("broken"), std::string::npos);
  ASSERT_TRUE(answers[3]);
  EXPECT_EQ(answers[3]->samples, 0u) << "the ticket is not open";
  EXPECT_EQ(notes_.size(), 1u) << "the first failure is told";
}

// What ran an episode ended: it is run again from the same seeds, as often as others were the
// cause, and a few times when it may be the cause itself.
TEST_F(EnvironmentRoles, AnEpisodeThatLostItsWorkerIsRunAgain) {
  using core::ErrorCode;
  TwoTurns::failures.clear();
  TwoTurns::opened.clear();
  const ErrorCode innocent = ErrorCode::kInterrupted, suspect = ErrorCode::kClosed;
  TwoTurns::lost = {{"1", std::deque<ErrorCode>(40, innocent)},
                    {"2", {suspect, innocent, suspect, suspect}},
                    {"3", std::deque<ErrorCode>(12, suspect)}};
  const auto answers = generate({1, 2, 3});
  ASSERT_TRUE(answers[0]) << answers[0].error().message;
  ASSERT_TRUE(answers[1]);
  ASSERT_TRUE(answers[2]);
  ASSERT_EQ(data_->put.size(), 2u);
  for (const PutGroup& group : data_->put) {
    EXPECT_FALSE(group.cut) << "no episode was lost for good";
    EXPECT_EQ(group.samples.size(), 3u);
  }
  ASSERT_EQ(data_->aside.size(), 1u);
  EXPECT_NE(data_->aside[0].cause.find("the worker ended"), std::string::npos);
  std::map<std::string, std::uint32_t> most;
  for (const EpisodeStart& start : TwoTurns::opened)
    most[start.label] = std::max(most[start.label], start.losses);
  EXPECT_EQ(most.at("1"), 0u);
  EXPECT_GE(most.at("2"), 1u);
  EXPECT_EQ(most.at("3"), limits::kEpisodeLosses_max - 1);
  EXPECT_EQ(TwoTurns::opened.size(), 3u + 40 + 3 + 4 + 3 * limits::kEpisodeLosses_max);
  std::set<std::uint64_t> sessions;
  for (const Complete& call : caller_->calls)
    sessions.insert(call.session);
  EXPECT_EQ(sessions.size(), 6u) << "an episode that is run again keeps its session";
  TwoTurns::lost.clear();
}

TEST_F(EnvironmentRoles, LimitsEndAnEpisodeAndLeaveItsRewards) {
  TwoTurns::failures.clear();
  const auto answers = generate({1}, {.turns_max = 1});
  ASSERT_TRUE(answers[0]) << answers[0].error().message;
  ASSERT_EQ(data_->put.size(), 1u);
  EXPECT_EQ(data_->put[0].samples[0].feedback, 0.25);
  EXPECT_EQ(caller_->calls.size(), 3u);
}

TEST_F(EnvironmentRoles, RewardsStayAtTheirTurnsWhereTheyAreWanted) {
  TwoTurns::failures.clear();
  const auto answers = generate({1}, {.turn_rewards = true});
  ASSERT_TRUE(answers[0]);
  const experience::Trajectory& sample = data_->put.at(0).samples.at(0);
  EXPECT_EQ(sample.feedback, 0.0);
  EXPECT_EQ(sample.feedback_steps, (std::vector<experience::StepReward>{{5, 0.25}, {11, 1.5}}));
}

}  // namespace
}  // namespace troupe::actors::environment
