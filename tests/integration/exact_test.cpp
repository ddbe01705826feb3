// `troupe bench exact` on a tiny random model: the engine's log-probs and those of the training
// forward, computed in another process, have the same bits; a change of one ulp does not go unseen.
#include "tests/integration/exact_support.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <fstream>
#include <set>
#include <string>

namespace troupe::test {
namespace {

TEST(Exact, EngineAndTrainerAgreeInEveryBitOf100000Tokens) {
  const ScratchFolder folder;
  const ProgramRun run = run_troupe(
      {"bench", "exact", "--model", make_tiny_model(folder), "--tokens", "100000", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.line["tokens"], 100000);
  EXPECT_EQ(run.line["differing_bits"], 0);
  EXPECT_EQ(run.line["scorer_differing_bits"], 0);

  const auto& engine = run.line["engine"];
  using Range = std::vector<int>;
  EXPECT_EQ(engine["batch"], Range({1, 64}));
  EXPECT_EQ(engine["step_tokens"], Range({1, 512}));
  EXPECT_EQ(engine["threads"], Range({1, 2}));
  EXPECT_EQ(engine["samples_per_group"], Range({1, 8}));
  EXPECT_GE(engine["temperatures"].size(), 2u);
  const auto covers = engine["covers"].get<std::set<std::string>>();
  for (const char* name : {"batch", "chunked_prefill", "threads", "preemption", "prefix_hits",
                           "eviction", "abort_and_resubmit", "pause_abort", "pause_keep",
                           "pause_recompute", "sleep_kv", "sleep_weights", "sleep_weights_and_kv",
                           "weight_swap_recompute", "other_weights_on_the_same_prompts"}) {
    EXPECT_EQ(covers.count(name), 1u) << name;
  }

  const auto& trainer = run.line["trainer"];
  EXPECT_EQ(trainer["tokens"], 100000);
  EXPECT_GT(trainer["micro_batches"], 10);
  EXPECT_GT(trainer["grad_norm"], 0);
}

TEST(Exact, TheTrainerMayRunTheReferenceKernels) {
  const ScratchFolder folder;
  const ProgramRun run = run_troupe({"bench", "exact", "--model", make_tiny_model(folder),
                                     "--tokens", "2000", "--trainer-isa", "reference", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.line["differing_bits"], 0);
  EXPECT_EQ(run.line["trainer"]["isa"], "reference");
}

TEST(Exact, OneUlpInOneWeightIsSeen) {
  const ScratchFolder folder;
  const ProgramRun run = run_troupe({"bench", "exact", "--model", make_tiny_model(folder),
                                     "--tokens", "2000", "--plant-ulp", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 6);
  EXPECT_GT(run.line["differing_bits"], 0);
  EXPECT_GT(run.line["trainer"]["differing_tokens"], 1000) << "most tokens should show it";
  EXPECT_EQ(run.line["scorer_differing_bits"], 0) << "the change was on the trainer's side only";
}

// Its norms multiply by 1 + their weights.
TEST(Exact, OneUlpIsSeenWhereNormsAddOne) {
  const ScratchFolder folder;
  model::ModelSpec spec = model::gemma_spec();
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = false;  // as Gemma has it
  // One ulp of this weight is lost when 1 is added to it.
  const std::string model = make_tiny_model(folder, spec, [](model::ParamStore& params) {
    params.view("model.layers.0.input_layernorm.weight").front() = 0.1f;
  });
  const ProgramRun run =
      run_troupe({"bench", "exact", "--model", model, "--tokens", "600", "--plant-ulp", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 6) << run.output;
  EXPECT_GT(run.line["differing_bits"], 0);
}

TEST(Exact, ADtypeWithoutATrainerIsRefused) {
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder);
  for (const std::string dtype : {"int8", "bf16-compute"}) {
    const ProgramRun run =
        run_troupe({"bench", "exact", "--model", model, "--tokens", "60", "--dtype", dtype});
    EXPECT_EQ(run.status, 2) << dtype << run.output;
  }
}

TEST(Exact, ASoakLosesNoBlockAndNoBit) {
  const ScratchFolder folder;
  const ProgramRun run =
      run_troupe({"bench", "exact", "--model", make_tiny_model(folder), "--soak", "6", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.line["leaked_blocks"], 0);
  EXPECT_EQ(run.line["differing_samples"], 0);
  EXPECT_GT(run.line["samples"], 0);
  EXPECT_GT(run.line["events"].size(), 0u);
}

TEST(Exact, TheTrainersSideRefusesADamagedTranscript) {
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder);
  const std::string file = (folder / "transcript.bin").string();
  const std::vector<std::string> side = {"bench",   "exact", "--side", "trainer",
                                         "--model", model,   "--file", file};
  EXPECT_EQ(
      run_troupe({"bench", "exact", "--model", model, "--tokens", "200", "--file", file}).status,
      0);
  EXPECT_EQ(run_troupe(side).status, 0);
  {
    std::fstream change(file, std::ios::in | std::ios::out | std::ios::binary);
    change.seekp(200);
    change.put(static_cast<char>(0x5A));
    change.put(static_cast<char>(0xA5));
  }
  EXPECT_EQ(run_troupe(side).status, 4);
}

}  // namespace
}  // namespace troupe::test
