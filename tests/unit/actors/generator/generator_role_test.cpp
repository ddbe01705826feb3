// The generator role: weights before tickets, swaps between steps, cuts, failures, and the bits of
// the engine underneath.
#include "runtime/async/limits.hpp"
#include "tests/unit/actors/generator/generator_stage.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::generator {
namespace {

using namespace testing;

const std::string kPeer = "generator/0";

// Sample i of a group ends after as many tokens as its slot says, plus i.
bool ends_by_slot(const engine::GroupRequest& request, const engine::Sample& sample) {
  return sample.tokens.size() >= request.seed + static_cast<std::uint64_t>(sample.index);
}

// Nothing ends before three tokens of version 2 or newer were drawn.
bool ends_on_new_weights(const engine::GroupRequest&, const engine::Sample& sample) {
  return std::count_if(sample.versions.begin(), sample.versions.end(),
                       [](core::Version version) { return version >= 2; }) >= 3;
}

async::task<core::Result<void>> update_to(Scene scene, core::Version version, bool recompute) {
  UpdateWeights request;
  request.version = version;
  request.recompute_kv = recompute;
  auto taken = co_await ask(scene.context, kPeer, std::move(request));
  if (!taken) co_return taken.failure();
  co_return core::Result<void>();
}

double amount(const Scene& scene, const std::string& name) {
  for (const auto& [key, value] : scene.generator->amounts())
    if (key == name) return value;
  ADD_FAILURE() << "no amount " << name;
  return 0;
}

// Asks for groups and keeps the answer.
async::task<core::Result<void>> generate_into(
    Scene scene, Generate request, std::shared_ptr<std::optional<core::Result<Generated>>> answer) {
  answer->emplace(co_await ask(scene.context, kPeer, std::move(request)));
  co_return core::Result<void>();
}

using Answer = std::shared_ptr<std::optional<core::Result<Generated>>>;

Answer start_generate(Scene scene, Generate request) {
  auto answer = std::make_shared<std::optional<core::Result<Generated>>>();
  scene.context.scope->spawn("", generate_into(scene, std::move(request), answer));
  return answer;
}

async::task<void> wait_for(Scene scene, Answer answer) {
  std::function<bool()> there = [answer] { return answer->has_value(); };
  EXPECT_TRUE(co_await comes_true(scene, std::move(there)));
}

async::task<void> held_script(Scene scene) {
  EXPECT_EQ(scene.generator->state(), "stale");
  const Answer old = start_generate(scene, generate_of({4, 2}, 1));
  const Answer fresh = start_generate(scene, generate_of({3}, 2));
  scene.subscriber->publish(1);
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  co_await wait_for(scene, old);
  EXPECT_TRUE(old->value());
  EXPECT_FALSE(fresh->has_value());
  EXPECT_EQ(scene.log->count("begin 3"), 0u);
  EXPECT_EQ(scene.generator->state(), "waiting for weights");
  scene.subscriber->publish(2);
  EXPECT_TRUE(co_await update_to(scene, 2, true));
  co_await wait_for(scene, fresh);
  const Generated totals = old->value().value();
  EXPECT_EQ(totals.samples, 6u);
  EXPECT_EQ(totals.tokens, (4u + 5 + 6) + (2u + 3 + 4));
  for (const PutGroup& group : scene.data->put) {
    for (const auto& sample : group.samples) {
      for (const core::Version version : sample.versions) {
        EXPECT_EQ(version, group.ticket.slot == 3 ? 2u : 1u);
      }
    }
  }
  const auto lines = scene.log->all();
  EXPECT_LT(std::find(lines.begin(), lines.end(), "begin 2"),
            std::find(lines.begin(), lines.end(), "begin 4"));
}

async::task<void> swap_script(Scene scene, bool recompute) {
  scene.subscriber->publish(1, 4);
  EXPECT_TRUE(co_await update_to(scene, 1, recompute));
  EXPECT_EQ(scene.log->count("slice"), 0u) << "with nothing to run it packs without slicing";
  EXPECT_EQ(scene.log->count("pack"), 4u);
  const Answer answer = start_generate(scene, generate_of({1, 2}, 1));
  std::function<bool()> steps = [scene] { return scene.log->count("step") > 2; };
  EXPECT_TRUE(co_await comes_true(scene, std::move(steps)));
  scene.subscriber->publish(2, 5);
  EXPECT_TRUE(co_await update_to(scene, 2, recompute));
  co_await wait_for(scene, answer);
  EXPECT_TRUE(answer->value());
  EXPECT_EQ(scene.log->count("slice"), 5u);
  EXPECT_EQ(scene.log->count(recompute ? "on with 2 recompute" : "on with 2 keep"), 1u);
  // A step between any two slices, and the swap at a step boundary.
  const auto lines = scene.log->all();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_FALSE(lines[i] == "slice" && lines[i - 1] == "slice");
  }
  for (const PutGroup& group : scene.data->put) {
    for (const auto& sample : group.samples) {
      EXPECT_TRUE(std::is_sorted(sample.versions.begin(), sample.versions.end()));
      EXPECT_EQ(sample.versions.front(), 1u);
      EXPECT_EQ(sample.versions.back(), 2u);
    }
  }
}

struct Updates {
  int asked = 0;
  std::vector<core::Version> answered;
};

async::task<core::Result<void>> update_into(Scene scene,
                                            core::Version version,
                                            std::shared_ptr<Updates> updates) {
  ++updates->asked;
  TROUPE_CO_TRY(co_await update_to(scene, version, true));
  updates->answered.push_back(version);
  co_return core::Result<void>();
}

async::task<void> newest_script(Scene scene) {
  auto updates = std::make_shared<Updates>();
  scene.subscriber->open(false);
  scene.subscriber->publish(1);
  scene.context.scope->spawn("", update_into(scene, 1, updates));
  std::function<bool()> fetching = [scene] { return scene.subscriber->fetched().size() == 1; };
  EXPECT_TRUE(co_await comes_true(scene, std::move(fetching)));
  scene.context.scope->spawn("", update_into(scene, 2, updates));
  scene.context.scope->spawn("", update_into(scene, 3, updates));
  std::function<bool()> asked = [updates] { return updates->asked == 3; };
  EXPECT_TRUE(co_await comes_true(scene, std::move(asked)));
  CutGroups nothing;  // once this is answered, what was asked before it has been heard
  auto heard = co_await ask(scene.context, kPeer, std::move(nothing));
  EXPECT_TRUE(heard.has_value());
  scene.subscriber->publish(3);
  scene.subscriber->open(true);
  std::function<bool()> all = [updates] { return updates->answered.size() == 3; };
  EXPECT_TRUE(co_await comes_true(scene, std::move(all)));
  EXPECT_EQ(scene.subscriber->fetched(), (std::vector<core::Version>{1, 3}));
  EXPECT_EQ(updates->answered.front(), 1u);
  EXPECT_EQ(amount(scene, "version"), 3.0);
}

async::task<void> failing_fetch_script(Scene scene) {
  scene.subscriber->publish(1);
  const auto missing = co_await update_to(scene, 5, true);
  EXPECT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, core::ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("version 5"), std::string::npos);
  scene.subscriber->publish(2, -1);
  const auto torn = co_await update_to(scene, 2, true);
  EXPECT_FALSE(torn.has_value());
  EXPECT_EQ(torn.error().code, core::ErrorCode::kData);
  scene.subscriber->publish(3);
  EXPECT_TRUE(co_await update_to(scene, 3, true));
}

async::task<void> losing_fetch_script(Scene scene) {
  scene.subscriber->publish(1);
  scene.subscriber->lose(2);
  EXPECT_TRUE(co_await update_to(scene, 1, true)) << "the third try holds";
  EXPECT_EQ(scene.subscriber->fetched().size(), 3u);
  scene.subscriber->publish(2);
  scene.subscriber->lose(3);
  const auto lost = co_await update_to(scene, 2, true);
  EXPECT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, core::ErrorCode::kDeadline) << "or this role would count as lost";
  EXPECT_TRUE(co_await update_to(scene, 2, true)) << "it may be asked again";
}

async::task<void> taken_back_script(Scene scene) {
  scene.subscriber->publish(1);
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  scene.subscriber->publish(2);
  scene.subscriber->take_back(2);
  EXPECT_TRUE(co_await update_to(scene, 2, true)) << "the third intake is packed";
  EXPECT_EQ(scene.subscriber->fetched().size(), 4u);
}

async::task<void> cut_script(Scene scene) {
  scene.subscriber->publish(1);
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  const Answer shortened = start_generate(scene, generate_of({1}, 1));
  const Answer nothing = start_generate(scene, generate_of({2}, 1));
  const Answer held = start_generate(scene, generate_of({3}, 9));
  std::function<bool()> steps = [scene] { return scene.log->count("step") > 5; };
  EXPECT_TRUE(co_await comes_true(scene, std::move(steps)));
  CutGroups cut;
  cut.tickets = {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {0, 77, 0}};
  auto acknowledged = co_await ask(scene.context, kPeer, std::move(cut));
  EXPECT_TRUE(acknowledged.has_value());
  co_await wait_for(scene, shortened);
  co_await wait_for(scene, nothing);
  co_await wait_for(scene, held);
  EXPECT_TRUE(shortened->value().has_value());
  EXPECT_EQ(shortened->value().value().samples, 2u);
  EXPECT_EQ(nothing->value().error().code, core::ErrorCode::kDeadline);
  EXPECT_EQ(held->value().error().code, core::ErrorCode::kDeadline);
  EXPECT_EQ(scene.data->put.size(), 1u);
  EXPECT_TRUE(scene.data->put[0].cut);
  EXPECT_EQ(scene.generator->state(), "no tickets");
}

async::task<void> failure_script(Scene scene) {
  scene.subscriber->publish(1);
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  const Answer beside = start_generate(scene, generate_of({5}, 1));
  const Answer numeric = start_generate(scene, generate_of({666}, 1));
  co_await wait_for(scene, numeric);
  co_await wait_for(scene, beside);
  EXPECT_EQ(numeric->value().error().code, core::ErrorCode::kNumeric);
  EXPECT_TRUE(beside->value().has_value()) << "a group that fails on its own account fails alone";
  const Answer gone = start_generate(scene, generate_of({404}, 1));
  const Answer good = start_generate(scene, generate_of({6}, 1));
  co_await wait_for(scene, gone);
  co_await wait_for(scene, good);
  EXPECT_TRUE(gone->value().has_value()) << "a ticket that nobody wants any more is no failure";
  EXPECT_EQ(gone->value()->samples, 0u);
  EXPECT_TRUE(good->value().has_value());
}

async::task<core::Result<void>> occupy(async::DeviceThread* device, std::shared_future<void> gate) {
  auto job = [gate]() -> core::Result<void> {
    gate.wait();
    return {};
  };
  co_return co_await device->run(std::move(job));
}

async::task<void> full_device_script(Scene scene, async::DeviceThread* device) {
  scene.subscriber->publish(1);
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  const auto full = async::limits::kDeviceJobs_max;
  for (std::uint64_t job = 0; job <= full; ++job) {
    scene.context.scope->spawn("", occupy(device, opened));
    // The first is being done, the others wait.
    std::function<bool()> there = [device, job] { return device->waiting() == job; };
    EXPECT_TRUE(co_await comes_true(scene, std::move(there)));
  }
  const Answer answer = start_generate(scene, generate_of({3}, 1));
  std::function<bool()> sent = [scene] { return scene.generator->state() == "sampling"; };
  EXPECT_TRUE(co_await comes_true(scene, std::move(sent)));
  gate.set_value();
  co_await wait_for(scene, answer);
  EXPECT_TRUE(answer->value().has_value()) << "the engine never saw the turn that was refused";
  EXPECT_EQ(scene.log->count("begin 3"), 1u);
}

async::task<void> twice_script(Scene scene) {
  scene.subscriber->publish(1);
  const Answer first = start_generate(scene, generate_of({4}, 1));
  const Answer second = start_generate(scene, generate_of({4}, 1));
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  co_await wait_for(scene, first);
  co_await wait_for(scene, second);
  EXPECT_TRUE(first->value().has_value());
  EXPECT_TRUE(second->value().has_value());
  EXPECT_EQ(scene.data->put.size(), 1u);
}

async::task<void> bits_script(Scene scene) {
  scene.subscriber->publish(0);
  EXPECT_TRUE(co_await update_to(scene, 0, true));
  std::vector<Answer> answers;
  for (std::uint32_t slot = 1; slot <= 9; ++slot) {
    std::vector<std::uint32_t> one(1, slot);
    Generate request = generate_of(std::move(one), 0);
    request.sampling.max_new_tokens = 40;
    answers.push_back(start_generate(scene, std::move(request)));
  }
  for (const Answer& answer : answers) {
    co_await wait_for(scene, answer);
    EXPECT_TRUE(answer->value().has_value());
  }
  const auto amounts = scene.generator->amounts();
  EXPECT_GT(amounts.at(1).second, 0) << "tokens";
  const auto account = scene.context.activity;
  EXPECT_NE(account, nullptr);
}

// Work, rest, new weights while it rests, work again. A step of an engine that sleeps would fail.
async::task<void> rest_script(Scene scene) {
  std::function<bool()> rests = [scene] { return amount(scene, "resting") == 1.0; };
  scene.subscriber->publish(1);
  EXPECT_TRUE(co_await update_to(scene, 1, true));
  EXPECT_TRUE(co_await comes_true(scene, rests));
  const Answer first = start_generate(scene, generate_of({4}, 1));
  co_await wait_for(scene, first);
  EXPECT_TRUE(first->value());
  EXPECT_TRUE(co_await comes_true(scene, rests));
  scene.subscriber->publish(2);
  EXPECT_TRUE(co_await update_to(scene, 2, true));
  EXPECT_EQ(amount(scene, "resting"), 1.0) << "weights do not wake it";
  const Answer second = start_generate(scene, generate_of({3}, 2));
  co_await wait_for(scene, second);
  EXPECT_TRUE(second->value());
  EXPECT_TRUE(co_await comes_true(scene, rests));
}

}  // namespace

TEST(GeneratorRole, AnIdleEngineRestsAndWakesForGroups) {
  GeneratorStage stage;
  stage.sleep_idle = true;
  stage.act(stage.scripted(ends_by_slot), rest_script);
  std::vector<std::string> order;
  for (const std::string& line : stage.log.all())
    if (line != "step" && line != "pack" && line != "slice") order.push_back(line);
  // It rests as soon as it has weights and nothing to do.
  const std::vector<std::string> wanted = {"made with 1", "sleep",   "begin 4",
                                           "sleep",       "begin 3", "sleep"};
  EXPECT_EQ(order, wanted);
}

TEST(GeneratorRole, WithoutTheSettingItNeverSleeps) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), held_script);
  EXPECT_EQ(stage.log.count("sleep"), 0u);
}

TEST(GeneratorRole, HoldsGroupsUntilTheWeightsAreNewEnoughAndKeepsTicketOrder) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), held_script);
}

TEST(GeneratorRole, PacksInSlicesBetweenStepsAndSwapsAtABoundary) {
  for (const bool recompute : {false, true}) {
    GeneratorStage stage;
    stage.act(stage.scripted(ends_on_new_weights),
              [recompute](Scene scene) { return swap_script(std::move(scene), recompute); });
  }
}

TEST(GeneratorRole, TheNewestWeightsWantedAreFetchedNext) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), newest_script);
}

TEST(GeneratorRole, WeightsThatCannotBeHadAreAnErrorAndTheNextOnesAreTaken) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), failing_fetch_script);
}

TEST(GeneratorRole, ABrokenFetchIsTriedAgain) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), losing_fetch_script);
}

TEST(GeneratorRole, WeightsThatWereTakenBackAreFetchedAgain) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), taken_back_script);
}

TEST(GeneratorRole, ACutGroupIsDeliveredShortOrNotAtAll) {
  GeneratorStage stage;
  const auto ends = [](const engine::GroupRequest& request, const engine::Sample& sample) {
    return request.seed == 1 && sample.index != 1 && sample.tokens.size() == 3;
  };
  stage.act(stage.scripted(ends), cut_script);
}

TEST(GeneratorRole, FailuresEndTheirGroupsByName) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), failure_script);
}

TEST(GeneratorRole, ATurnThatAFullDeviceRefusesIsTakenLater) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), [&stage](Scene scene) {
    return full_device_script(std::move(scene), &stage.device());
  });
}

TEST(GeneratorRole, ATicketThatIsAskedForTwiceIsOneGroup) {
  GeneratorStage stage;
  stage.act(stage.scripted(ends_by_slot), twice_script);
}

TEST(GeneratorRole, DeliversTheBitsOfTheEngine) {
  core::SerialTeam team;
  const engine::EngineLimits limits = engine::limits_of(256, 512, 4096);
  std::vector<engine::GroupRequest> requests;
  for (std::uint32_t slot = 1; slot <= 9; ++slot) {
    core::Rng rng(slot);
    auto request = engine::request_of(slot, engine::random_prompt(rng, 5 + slot % 20), 3, 40);
    request.seed = slot;
    requests.push_back(std::move(request));
  }
  auto alone = engine::make_engine(long_weights(0), limits, team, {3});
  const engine::Samples wanted = engine::run_all(*alone, requests);

  GeneratorStage stage;
  std::vector<PutGroup> put;
  EngineMaker maker = [&](engine::Weights weights) {
    return engine::Engine::create(std::move(weights), limits, {3}, nullptr, team);
  };
  std::shared_ptr<PromptGiver> data;
  stage.act(maker, [&data](Scene scene) {
    data = scene.data;
    return bits_script(std::move(scene));
  });
  ASSERT_EQ(data->put.size(), 9u);
  for (const PutGroup& group : data->put) {
    ASSERT_EQ(group.samples.size(), 3u);
    for (std::int32_t i = 0; i < 3; ++i) {
      const auto& got = group.samples[static_cast<std::size_t>(i)];
      const auto& sample = wanted.at({group.ticket.slot, i});
      EXPECT_EQ(got.tokens, sample.tokens);
      EXPECT_TRUE(engine::same_bits(got.behaviour, sample.logprobs));
      EXPECT_EQ(got.versions, experience::VersionRuns(sample.versions));
    }
  }
}

}  // namespace troupe::actors::generator
