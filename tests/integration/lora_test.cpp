// Runs that train adapters, or not everything: the company stays exact to the bit, a run that was
// killed goes on to the same adapters, and merge-lora makes the model that was trained.
#include "processes.hpp"
#include "runtime/model/params.hpp"

#include <cstring>

namespace troupe::test {
namespace {

const std::vector<std::string> kLora = {"--train.max_steps", "3", "--actor.lora.rank", "4"};

}  // namespace

TEST(LoraRun, IsExactResumesAndMerges) {
  const TinyRun files;
  const ProgramRun whole = run_troupe(with(files.words("whole"), kLora));
  ASSERT_EQ(whole.status, 0) << whole.output;
  // What the engine sampled with are the merged weights that the trainer computes on.
  const auto rows = metrics_of(files / "whole");
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& [step, row] : rows)
    EXPECT_EQ(row.value("kl/rollout_train", 1.0), 0.0) << step;

  kill_once(start_troupe(with(files.words("killed"), kLora), files / "killed.log"),
            [&] { return lines_in(files / "killed" / "metrics.jsonl") >= 1; });
  const ProgramRun resumed = run_troupe(with(files.words("killed"), kLora));
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  const auto hashes = hashes_of(files / "whole" / "ckpt" / "step_000003");
  EXPECT_TRUE(hashes.contains("adapter/adapter_model.safetensors"));
  EXPECT_EQ(hashes, hashes_of(files / "killed" / "ckpt" / "step_000003"));

  const auto last = files / "whole" / "ckpt" / "step_000003";
  const ProgramRun merged =
      run_troupe({"merge-lora", "--model", files.model(), "--adapter", (last / "adapter").string(),
                  "--output", (files / "merged").string()});
  ASSERT_EQ(merged.status, 0) << merged.output;
  EXPECT_EQ(text_of(files / "merged" / "model.safetensors"),
            text_of(last / "model" / "model.safetensors"));
  EXPECT_NE(text_of(files / "merged" / "model.safetensors"),
            text_of(std::filesystem::path(files.model()) / "model.safetensors"));
}

TEST(FrozenRun, CheckpointingChangesNothingAndFrozenTensorsStay) {
  const TinyRun files;
  const std::vector<std::string> freeze = {
      "--train.max_steps", "2", "--actor.freeze", "mlp,k_proj", "--actor.adam.weight_decay", "0.1"};
  ASSERT_EQ(run_troupe(with(files.words("plain"), freeze)).status, 0);
  ASSERT_EQ(run_troupe(with(with(files.words("again"), freeze),
                            {"--actor.gradient_checkpointing_enable", "true"}))
                .status,
            0);
  EXPECT_EQ(metrics_of(files / "plain"), metrics_of(files / "again"));
  const auto trained = model::load_model(files / "plain" / "ckpt" / "step_000002" / "model");
  const auto base = model::load_model(files.model());
  ASSERT_TRUE(trained && base);
  for (const model::ParamView& view : (*base)->layout().views) {
    const bool frozen =
        view.name.find("mlp") != std::string::npos || view.name.find("k_proj") != std::string::npos;
    const bool same = std::memcmp((*base)->data() + view.offset, (*trained)->data() + view.offset,
                                  static_cast<std::size_t>(view.count) * sizeof(float)) == 0;
    EXPECT_EQ(same, frozen) << view.name;
  }
  const ProgramRun wrong =
      run_troupe(with(files.words("wrong"), {"--actor.freeze", "kproj", "--train.max_steps", "1"}));
  EXPECT_EQ(wrong.status, 2);
}

}  // namespace troupe::test
