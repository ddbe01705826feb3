// Training with weights, gradients and moments on a device: the metrics, weights and files of the
// host, bit for bit, and a state that goes from one to the other.
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;
using model::numbers_of;

class Folders : public testing::Test {
 protected:
  Folders() : folder_(fs::temp_directory_path() / ("troupe_device_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "host");
    fs::create_directories(folder_ / "device");
  }
  ~Folders() override { fs::remove_all(folder_); }

  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const fs::path folder_;
  core::SerialTeam host_;
};

class DeviceTraining : public model::OnDevice<Folders> {
 protected:
  static model::ModelSpec gemma_like() {
    model::ModelSpec spec = tiny_spec(false);
    spec.architecture = "Gemma3ForCausalLM";
    spec.activation = model::Activation::kGeluTanh;
    spec.qk_norm = spec.norm_plus_one = spec.post_norms = true;
    spec.embed_scale = 5.6f;
    spec.attention_softcap = 5;
    spec.final_softcap = 3;
    spec.window = 9;
    spec.sliding = {true, false};
    return spec;
  }
  static std::unique_ptr<PolicyTrainer> make(core::TeamRunner& team,
                                             const model::ModelSpec& spec,
                                             bool checkpointing = false,
                                             std::uint64_t seed = 1,
                                             std::int64_t lora_rank = 0) {
    TrainerSettings settings;
    settings.optim.trained.lora.rank = lora_rank;
    settings.optim.trained.seed = seed;
    settings.algo.entropy_coef = 0.01;
    settings.algo.kl.init_coef = 0.05;
    settings.algo.temperature = 0.9;
    settings.optim.adam.lr = 1e-2;
    settings.optim.adam.weight_decay = 0.01;
    settings.optim.gradient_checkpointing_enable = checkpointing;
    settings.total_steps = 12;
    settings.batch.mini_batches = 2;
    settings.batch.micro_tokens_max = 64;
    settings.ema_beta = 0.9;
    auto params = std::make_unique<model::ParamStore>(spec);
    model::randomise(*params, seed, 0.15f);
    auto made = PolicyTrainer::create(std::move(params), settings, team);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value();
  }
  static std::vector<std::pair<std::string, double>> update(PolicyTrainer& trainer,
                                                            std::vector<experience::Group> groups) {
    auto report = trainer.update(std::move(groups));
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->metrics : std::vector<std::pair<std::string, double>>{};
  }
  // Three updates of both, the host's and the device's.
  void expect_the_same_updates(PolicyTrainer& here, PolicyTrainer& there) {
    const auto start = numbers_of(here.master());
    for (std::uint64_t u = 0; u < 3; ++u) {
      const auto groups = random_groups(*here.packed(), u, 3, 3);
      EXPECT_EQ(update(there, groups), update(here, groups)) << u;
    }
    EXPECT_EQ(&there.master().memory(), &memory());
    EXPECT_EQ(numbers_of(there.master()), numbers_of(here.master()));
    EXPECT_NE(numbers_of(there.master()), start);
    EXPECT_EQ(numbers_of(*there.average()), numbers_of(*here.average()));
  }
};

TEST_F(DeviceTraining, ThreeUpdatesAndTheirFilesAreTheHosts) {
  for (const model::ModelSpec& spec : {tiny_spec(true), tiny_spec(false), gemma_like()})
    for (const bool checkpointing : {false, true}) {
      const auto here = make(host_, spec, checkpointing);
      const auto there = make(device(), spec, checkpointing);
      expect_the_same_updates(*here, *there);
      ASSERT_TRUE(here->save_state(folder_ / "host"));
      ASSERT_TRUE(there->save_state(folder_ / "device"));
      for (const auto& entry : fs::directory_iterator(folder_ / "host")) {
        const fs::path name = entry.path().filename();
        EXPECT_EQ(bytes_of(folder_ / "device" / name), bytes_of(entry.path())) << name;
      }
    }
}

TEST_F(DeviceTraining, AStateGoesFromTheHostToTheDevice) {
  const model::ModelSpec spec = tiny_spec(true);
  const auto here = make(host_, spec);
  const auto there = make(device(), spec, false, 99);  // other weights, all replaced
  (void)there->packed();
  update(*here, random_groups(*here->packed(), 0, 2, 3));
  ASSERT_TRUE(here->save_state(folder_ / "host"));
  ASSERT_TRUE(there->load_state(folder_ / "host"));
  const auto groups = random_groups(*here->packed(), 1, 2, 3);
  EXPECT_EQ(update(*there, groups), update(*here, groups));
  EXPECT_EQ(numbers_of(there->master()), numbers_of(here->master()));
}

TEST_F(DeviceTraining, AdaptersAndTheirFilesAreTheHosts) {
  for (const bool checkpointing : {false, true}) {
    const model::ModelSpec spec = checkpointing ? gemma_like() : tiny_spec(true);
    const auto here = make(host_, spec, checkpointing, 1, 5);
    const auto there = make(device(), spec, checkpointing, 1, 5);
    expect_the_same_updates(*here, *there);
    for (const auto& [trainer, name] : {std::pair{here.get(), "host"}, {there.get(), "device"}}) {
      fs::remove_all(folder_ / name);
      fs::create_directories(folder_ / name);
      ASSERT_TRUE(trainer->save_state(folder_ / name));
      ASSERT_TRUE(trainer->save_model(folder_ / name / "model", {}));
    }
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "host")) {
      if (!entry.is_regular_file()) continue;
      ++files;
      const fs::path name = fs::relative(entry.path(), folder_ / "host");
      EXPECT_EQ(bytes_of(folder_ / "device" / name), bytes_of(entry.path())) << name;
    }
    EXPECT_GE(files, 9);
    EXPECT_TRUE(fs::exists(folder_ / "host" / "adapter" / "adapter_model.safetensors"));
    // The device goes on from the host's files, with fresh adapters until then.
    const auto other = make(device(), spec, checkpointing, 1, 5);
    (void)other->packed();
    ASSERT_TRUE(other->load_state(folder_ / "host"));
    EXPECT_EQ(numbers_of(other->master()), numbers_of(here->master()));
    const auto groups = random_groups(*here->packed(), 3, 3, 3);
    EXPECT_EQ(update(*other, groups), update(*here, groups));
    EXPECT_EQ(numbers_of(other->master()), numbers_of(here->master()));
    // Adapters of another base are refused there, too.
    EXPECT_FALSE(make(device(), spec, checkpointing, 99, 5)->load_state(folder_ / "host"));
  }
}

TEST_F(DeviceTraining, AGradientThatIsNotFiniteIsNamed) {
  const model::ParamStore there = model::ParamStore(tiny_spec()).to(memory());
  EXPECT_EQ(first_nonfinite(device(), there), "");
  EXPECT_EQ(global_norm(device(), there.data(), there.size()), 0.0);
  model::ParamStore wrong(tiny_spec());
  wrong.view("model.norm.weight")[3] = std::numeric_limits<float>::infinity();
  wrong.view("model.norm.weight")[1] = 3.0f;
  const model::ParamStore wrong_there = wrong.to(memory());
  EXPECT_EQ(first_nonfinite(device(), wrong_there), "model.norm.weight");
  EXPECT_EQ(global_norm(device(), wrong_there.data(), wrong_there.size()),
            std::numeric_limits<double>::infinity());
}

TEST_F(DeviceTraining, ADeviceWithoutRoomIsAMissingResource) {
  model::ArenaTeam small;
  const auto trainer = make(small, tiny_spec(true));
  const auto groups = random_groups(*make(host_, tiny_spec(true))->packed(), 0, 3, 3);
  (void)trainer->packed();
  small.memory().close();
  const auto report = trainer->update(groups);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::ErrorCode::kResources) << report.error().message;
  EXPECT_NE(report.error().message.find("the arena is full"), std::string::npos);
  EXPECT_NE(report.error().message.find("train.micro_tokens_max"), std::string::npos);
}

TEST_F(DeviceTraining, ExpertsAreRefusedWithTheFlag) {
  auto params = std::make_unique<model::ParamStore>(tiny_moe_spec());
  const auto made = PolicyTrainer::create(std::move(params), {}, device());
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("--actor.device cpu"), std::string::npos)
      << made.error().message;
}

class DeviceCritic : public model::OnDevice<Folders> {};

TEST_F(DeviceCritic, ThreeUpdatesAreTheHosts) {
  const auto make = [](core::TeamRunner& team) {
    CriticSettings settings;
    settings.optim.adam.lr = 1e-2;
    settings.total_steps = 9;
    settings.batch.micro_tokens_max = 64;
    auto params = std::make_unique<model::ParamStore>(model::with_score_head(tiny_spec(false)));
    model::randomise(*params, 4, 0.15f);
    return std::move(CriticTrainer::create(std::move(params), settings, team)).value();
  };
  const auto here = make(host_), there = make(device());
  core::Rng rng(11);
  std::vector<experience::Group> groups;
  TokenValues returns;
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    experience::Group group;
    group.ticket = {0, slot, 0};
    group.prompt = random_tokens(rng, 3 + rng.next_below(12));
    returns.emplace_back();
    for (int i = 0; i < 3; ++i) {
      group.samples.emplace_back();
      group.samples.back().tokens = random_tokens(rng, 1 + rng.next_below(14));
      returns.back().emplace_back(group.samples.back().tokens.size(), i % 2 == 0 ? 1.0f : -1.0f);
    }
    groups.push_back(std::move(group));
  }
  for (int u = 0; u < 3; ++u) {
    const auto values = here->values(groups), values_there = there->values(groups);
    ASSERT_TRUE(values && values_there);
    EXPECT_EQ(*values_there, *values);
    const auto report = here->update(groups, *values, returns);
    const auto report_there = there->update(groups, *values, returns);
    ASSERT_TRUE(report && report_there);
    EXPECT_EQ(report_there->metrics, report->metrics);
  }
  EXPECT_EQ(numbers_of(there->master()), numbers_of(here->master()));
}

}  // namespace
}  // namespace troupe::learn
