// The input embedding of the model's pad token in a run: trained like any other, or left as it was
// (actor.freeze_pad_embedding). Gradients beside transformers:
// tests/oracle/model_gradients_test.py.
#include "supervised_support.hpp"

namespace troupe::test {
namespace {

std::vector<float> embedding_of(const std::filesystem::path& model, char byte) {
  const auto params = model::load_model(model);
  EXPECT_TRUE(params) << params.error().message;
  if (!params) return {};
  const auto width = static_cast<std::size_t>((*params)->spec().hidden);
  const auto all = (*params)->view("model.embed_tokens.weight");
  const auto* const row = all.data() + static_cast<std::size_t>(byte) * width;
  return {row, row + width};
}

}  // namespace

TEST(PadEmbedding, StaysAsItWasWhereTheKeySaysSo) {
  const TinySupervised files;
  const char pad = '+';  // in every prompt
  const std::filesystem::path config = std::filesystem::path(files.model()) / "config.json";
  auto json = nlohmann::json::parse(text_of(config));
  json["pad_token_id"] = static_cast<unsigned>(pad);
  std::ofstream(config) << json.dump();
  const auto before = embedding_of(files.model(), pad), other = embedding_of(files.model(), '=');
  for (const std::string frozen : {"false", "true"}) {
    const auto words = files.words(methods()[0], frozen, 2) +
                       std::vector<std::string>{"--actor.freeze_pad_embedding", frozen,
                                                "--cluster.transport", "loopback"};
    const ProgramRun run = run_troupe(words);
    ASSERT_EQ(run.status, 0) << run.output;
    const auto model = files / frozen / "ckpt/step_000002/model";
    EXPECT_EQ(embedding_of(model, pad) == before, frozen == "true");
    EXPECT_NE(embedding_of(model, '='), other);
  }
}

}  // namespace troupe::test
