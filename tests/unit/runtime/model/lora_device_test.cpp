// Adapters on a device: their start, the merged weights, the gradients and the saved folder of the
// host, bit for bit.
#include "runtime/model/lora.hpp"
#include "runtime/model/peft_folder.hpp"
#include "runtime/model/trained_layout.hpp"
#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/model/gradient_problem.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

// A model with adapters, all of it in the memory of a team.
class AdaptedModel {
 public:
  AdaptedModel(core::TeamRunner& team, const ParamStore& base, const LoraSettings& settings)
      : team_(team),
        settings_(settings),
        layout_(trained_layout(base.spec(), {.freeze = {}, .lora = settings}, "actor").value()),
        master_(base.to(team.memory())),
        lora_(master_, layout_, settings.alpha / static_cast<double>(settings.rank)) {
    lora_.start(7);
  }
  // Gives every number that is trained another value, B among them.
  void randomise_values() {
    ParamStore values(master_.spec(), layout_);
    randomise(values, 77, 0.1f);
    lora_.values().memory().upload(lora_.values().data(), values.data(),
                                   static_cast<std::size_t>(values.size()) * sizeof(float));
  }
  void merge() { lora_.merge(team_, master_); }

  struct Gradients {
    std::vector<float> terms, grads;
    bool operator==(const Gradients&) const = default;
  };
  // Of two micro-batches, so that what the first one left behind counts.
  Gradients gradients(const GradientProblem& problem, TapeOptions options = {}) {
    PackedWeights weights(master_.spec(), kernels::PanelDtype::kF32, team_.memory());
    team_.run([&](core::Team member) { weights.fill(member, master_, 1); });
    ParamStore grads(master_.spec(), layout_, team_.memory());
    options.lora = &lora_;
    TrainTape tape(team_, master_, &grads, options);
    GroupPlan plan = problem.plan(1);
    plan.plan.place(team_.memory());
    for (int i = 0; i < 2; ++i) {
      problem.forward(tape, plan, weights);
      problem.backward(tape);
    }
    const bool scores = master_.spec().head == HeadKind::kScore;
    return {scores ? tape.head().values() : tape.head().logprobs(), numbers_of(grads)};
  }
  std::string saved(const fs::path& folder) const {
    EXPECT_TRUE(save_adapter(lora_, settings_, "some/base", folder));
    std::ifstream in(folder / "adapter_model.safetensors", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const ParamStore& master() const { return master_; }
  const Lora& lora() const { return lora_; }

 private:
  core::TeamRunner& team_;
  const LoraSettings settings_;
  std::shared_ptr<const ParamLayout> layout_;
  ParamStore master_;
  Lora lora_;
};

class LoraOnDevice : public OnDevice<testing::TestWithParam<ModelSpec>> {
 protected:
  LoraOnDevice()
      : folder_(fs::temp_directory_path() / ("troupe_lora_device_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~LoraOnDevice() override { fs::remove_all(folder_); }

  core::SerialTeam host_;
  const fs::path folder_;
};

TEST_P(LoraOnDevice, FreshAdaptersLeaveTheWeights) {
  const TestModel model(GetParam());
  AdaptedModel here(host_, model.params, {.rank = 3}), there(device(), model.params, {.rank = 3});
  EXPECT_EQ(numbers_of(there.lora().values()), numbers_of(here.lora().values()));
  EXPECT_EQ(there.lora().base_crc(), here.lora().base_crc());
  there.merge();
  EXPECT_EQ(numbers_of(there.master()), numbers_of(model.params));
}

// Rank 3 leaves rows that start between multiples of 16 bytes, rank 20 needs two panels.
TEST_P(LoraOnDevice, MergeGradientsAndFolderAreTheHosts) {
  const GradientProblem problem(GetParam());
  for (const std::int64_t rank : {3, 20}) {
    const LoraSettings settings{.rank = rank, .alpha = 5};
    AdaptedModel here(host_, problem.model.params, settings);
    AdaptedModel there(device(), problem.model.params, settings);
    for (AdaptedModel* model : {&here, &there}) {
      model->randomise_values();
      model->merge();
    }
    EXPECT_NE(numbers_of(here.master()), numbers_of(problem.model.params));
    EXPECT_EQ(numbers_of(there.master()), numbers_of(here.master())) << rank;
    const auto expected = here.gradients(problem);
    EXPECT_NE(expected.grads, std::vector<float>(expected.grads.size()));
    EXPECT_EQ(there.gradients(problem, {.checkpointing = rank == 20}), expected) << rank;
    const fs::path folder = folder_ / std::to_string(rank);
    EXPECT_EQ(there.saved(folder / "device"), here.saved(folder / "host")) << rank;
  }
}

TEST_P(LoraOnDevice, SomeMapsAlone) {
  const GradientProblem problem(GetParam());
  const LoraSettings settings{.rank = 5, .target = {"layers.0.self_attn.o_proj", "down_proj"}};
  AdaptedModel here(host_, problem.model.params, settings);
  AdaptedModel there(device(), problem.model.params, settings);
  for (AdaptedModel* model : {&here, &there}) {
    model->randomise_values();
    model->merge();
  }
  EXPECT_EQ(numbers_of(there.master()), numbers_of(here.master()));
  EXPECT_EQ(there.gradients(problem), here.gradients(problem));
}

INSTANTIATE_TEST_SUITE_P(
    Specs,
    LoraOnDevice,
    testing::Values(with_score_head(qwen_spec()), qwen3_spec(), phi3_spec(), gemma_spec()),
    [](const auto& i) { return i.param.architecture; });

}  // namespace
}  // namespace troupe::model
