// Adapters on disk: there and back to the same bits, and what is refused by name.
#include "runtime/model/peft_folder.hpp"

#include "runtime/store/safetensors.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using store::TensorSource;

class PeftFolder : public testing::Test {
 protected:
  PeftFolder()
      : parent_(fs::temp_directory_path() / ("troupe_peft_folder_" + std::to_string(::getpid()))) {
    fs::remove_all(parent_);
    fs::create_directories(parent_);
    folder_ = parent_ / "adapter";
  }
  ~PeftFolder() override { fs::remove_all(parent_); }

  static LoraSettings settings(std::vector<std::string> target = {"q_proj", "down_proj"}) {
    return {.rank = 3, .alpha = 6, .target = std::move(target)};
  }
  static Lora random_lora(const ParamStore& base, const LoraSettings& lora) {
    const TrainedSet set{.freeze = {}, .lora = lora};
    Lora out(base, trained_layout(base.spec(), set, "actor").value(), 2.0);
    randomise(out.values(), 5, 0.2f);
    return out;
  }
  void save(const ParamStore& base, const LoraSettings& lora) {
    fs::remove_all(folder_);
    const auto saved = save_adapter(random_lora(base, lora), lora, "org/base", folder_);
    ASSERT_TRUE(saved) << saved.error().message;
  }
  nlohmann::json config() const {
    std::ifstream file(folder_ / "adapter_config.json");
    return nlohmann::json::parse(file);
  }
  void write_config(const nlohmann::json& json) const {
    std::ofstream(folder_ / "adapter_config.json") << json;
  }
  // The file's tensors after `change` had its way with the list; without metadata, as PEFT writes.
  template <class Change>
  void rewrite(Change change) {
    const fs::path path = folder_ / "adapter_model.safetensors";
    std::vector<std::vector<float>> values;
    std::vector<TensorSource> tensors;
    {
      const auto file = store::SafetensorsFile::open(path);
      ASSERT_TRUE(file);
      for (const store::TensorInfo& tensor : file->tensors()) {
        values.emplace_back(static_cast<std::size_t>(tensor.count));
        ASSERT_TRUE(file->read_f32(tensor, values.back().data()));
        tensors.push_back({tensor.name, store::Dtype::kF32, tensor.shape, nullptr});
      }
    }
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i].data = values[i].data();
    change(tensors);
    ASSERT_TRUE(store::write_safetensors(path, tensors, {}));
  }
  void expect_refusal(const ParamStore& base, ErrorCode code, const std::string& part) const {
    const auto loaded = load_adapter(folder_, base);
    ASSERT_FALSE(loaded) << part;
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
  }

  fs::path parent_, folder_;
};

TEST_F(PeftFolder, ThereAndBackToTheSameBits) {
  for (const ModelSpec& spec :
       {tiny_spec(), qwen_spec(), with_score_head(qwen_spec()), gemma_spec()}) {
    const TestModel model(spec);
    for (const LoraSettings& lora :
         {settings(), settings({"all-linear"}), settings({"layers.1.self_attn.v_proj"})}) {
      save(model.params, lora);
      const Lora expected = random_lora(model.params, lora);
      const auto loaded = load_adapter(folder_, model.params);
      ASSERT_TRUE(loaded) << loaded.error().message;
      EXPECT_EQ((*loaded)->scale(), 2.0);
      ASSERT_EQ((*loaded)->values().size(), expected.values().size());
      EXPECT_EQ(std::memcmp((*loaded)->values().data(), expected.values().data(),
                            static_cast<std::size_t>(expected.values().size()) * sizeof(float)),
                0);
      const auto read = read_adapter_config(folder_);
      ASSERT_TRUE(read);
      EXPECT_EQ(read->base, "org/base");
      EXPECT_EQ(read->head, spec.head);
    }
  }
}

TEST_F(PeftFolder, TargetsAreShortNamesWhereAllLayersHaveThem) {
  const TestModel model(qwen_spec());
  save(model.params, settings({"all-linear"}));
  EXPECT_EQ(config()["target_modules"].size(), 7u);
  EXPECT_EQ(config()["target_modules"][0], "q_proj");
  save(model.params, settings({"layers.1.self_attn.v_proj", "q_proj"}));
  EXPECT_EQ(config()["target_modules"],
            nlohmann::json({"model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj",
                            "model.layers.1.self_attn.v_proj"}));
  EXPECT_TRUE(config()["modules_to_save"].is_null());
  const TestModel score(with_score_head(qwen_spec()));
  save(score.params, settings());
  EXPECT_EQ(config()["modules_to_save"], nlohmann::json({"score"}));
}

TEST_F(PeftFolder, ScalesAsPeft) {
  const TestModel model(tiny_spec());
  save(model.params, settings());
  auto json = config();
  json["use_rslora"] = true;
  json["r"] = 4;
  write_config(json);
  EXPECT_EQ(read_adapter_config(folder_)->scale, 3.0);  // 6 / sqrt(4)
}

TEST_F(PeftFolder, OtherWeightsAreRefusedUnlessAskedFor) {
  const TestModel model(tiny_spec()), other(tiny_spec(), 0.12f, 6);
  save(model.params, settings());
  expect_refusal(other.params, ErrorCode::kData,
                 "was trained on other weights than these (on org/base)");
  EXPECT_TRUE(load_adapter(folder_, other.params, /*any_base=*/true));
  // Weights that no adapter sits on do not matter.
  TestModel same(tiny_spec());
  same.params.view("model.norm.weight")[0] += 1;
  EXPECT_TRUE(load_adapter(folder_, same.params));
}

TEST_F(PeftFolder, NamesTensorsThatDoNotFit) {
  const TestModel model(tiny_spec());
  ModelSpec wide = tiny_spec();
  wide.ffn = 80;
  ModelSpec shallow = tiny_spec();
  shallow.layers = 1;
  save(model.params, settings());
  rewrite([](auto&) {});
  EXPECT_TRUE(load_adapter(folder_, model.params));
  expect_refusal(TestModel(wide).params, ErrorCode::kData,
                 "mlp.down_proj.lora_A.weight has shape [3, 72] where this model has [rank, 80]");
  expect_refusal(
      TestModel(shallow).params, ErrorCode::kData,
      "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight belongs to no module of "
      "this model (LlamaForCausalLM with 1 layers)");
  rewrite([](auto& tensors) { tensors.pop_back(); });
  expect_refusal(model.params, ErrorCode::kData, "lora_B.weight is missing");
  save(model.params, settings());
  rewrite([](auto& tensors) {
    tensors[0].name = "base_model.model.model.layers.0.attn.lora_A.weight";
  });
  expect_refusal(model.params, ErrorCode::kData,
                 "layers.0.attn.lora_A.weight belongs to no module");
  save(model.params, settings());
  rewrite([](auto& tensors) { tensors[0].name = "lora.weight"; });
  expect_refusal(model.params, ErrorCode::kData,
                 "lora.weight does not begin with base_model.model.");
  save(model.params, settings());
  rewrite([](auto& tensors) {
    tensors[0].shape = {1, tensors[0].shape[1]};  // A of rank 1 beside B of rank 3
  });
  expect_refusal(model.params, ErrorCode::kData, "has rank 3, its other half 1");
  const TestModel score(with_score_head(tiny_spec()));
  save(score.params, settings());
  rewrite([](auto&) {});
  expect_refusal(model.params, ErrorCode::kData, "score.weight is not a weight of this model");
}

// What PEFT warns of as missing or unexpected keys.
TEST_F(PeftFolder, TensorsAndTargetsMustBeTheSameModules) {
  const TestModel model(tiny_spec());
  const auto with = [&](const nlohmann::json& changes) {
    save(model.params, settings());
    rewrite([](auto&) {});
    auto json = config();
    json.update(changes);
    write_config(json);
  };
  const auto drop_layer = [&](const std::string& layer) {
    rewrite([&](auto& tensors) {
      std::erase_if(tensors, [&](const TensorSource& tensor) {
        return tensor.name.find(layer) != std::string::npos;
      });
    });
  };
  with(nlohmann::json::object());
  EXPECT_TRUE(load_adapter(folder_, model.params));
  drop_layer("layers.1.self_attn.q_proj");
  expect_refusal(model.params, ErrorCode::kData,
                 "it has no tensors of model.layers.1.self_attn.q_proj, which adapter_config.json "
                 "names in `target_modules`");
  with({{"target_modules", {"q_proj", "down_proj", "v_proj"}}});
  expect_refusal(model.params, ErrorCode::kData, "no tensors of model.layers.0.self_attn.v_proj");
  with({{"target_modules", "all-linear"}});
  expect_refusal(model.params, ErrorCode::kData, "it has no tensors of model.layers.0.");
  for (const nlohmann::json& words : {nlohmann::json({"nothing"}), nlohmann::json({"q_proj"})}) {
    with({{"target_modules", words}});
    expect_refusal(model.params, ErrorCode::kData, "does not name in `target_modules`");
  }
  with({{"layers_to_transform", {0}}});
  expect_refusal(model.params, ErrorCode::kData, "it has tensors of model.layers.1.");
  drop_layer("layers.1.");
  EXPECT_TRUE(load_adapter(folder_, model.params));
  with({{"layers_to_transform", 0}});
  drop_layer("layers.1.");
  EXPECT_TRUE(load_adapter(folder_, model.params));
  with({{"exclude_modules", {"layers.1.mlp.down_proj"}}});
  drop_layer("layers.1.mlp.down_proj");
  EXPECT_TRUE(load_adapter(folder_, model.params));
  for (const char* const all :
       {".*(q_proj|down_proj)", R"(model\.layers\.\d+\..*\.(q|down)_proj)"}) {
    with({{"target_modules", all}});
    EXPECT_TRUE(load_adapter(folder_, model.params)) << all;
    drop_layer("layers.1.self_attn.q_proj");
    expect_refusal(model.params, ErrorCode::kData,
                   "it has no tensors of model.layers.1.self_attn.q_proj");
  }
  with({{"target_modules", ".*q_proj"}});
  expect_refusal(model.params, ErrorCode::kData, "does not name in `target_modules`");
  with({{"target_modules", "All-Linear"}});
  expect_refusal(model.params, ErrorCode::kData, "it has no tensors of model.layers.0.");
  with({{"exclude_modules", R"(.*layers\.1\.mlp\..*)"}});
  drop_layer("layers.1.mlp.down_proj");
  EXPECT_TRUE(load_adapter(folder_, model.params));
  with({{"target_modules", R"(.*(?<=q)_proj)"}});
  expect_refusal(model.params, ErrorCode::kUnsupported,
                 "the regular expression in `target_modules`: a look-behind, (?<...) is not "
                 "evaluated here");
  with({{"target_modules", {7}}});
  expect_refusal(model.params, ErrorCode::kData, "`target_modules` is not a list of modules");
}

TEST_F(PeftFolder, HeadsAndEmbeddingsHaveNoAdapters) {
  const TestModel model(tiny_spec());
  for (const std::string name : {"lm_head.lora_A.weight", "model.embed_tokens.lora_embedding_A",
                                 "model.embed_tokens.base_layer.weight"}) {
    save(model.params, settings());
    rewrite([&](auto& tensors) { tensors[0].name = "base_model.model." + name; });
    expect_refusal(model.params, ErrorCode::kData, "heads and embeddings have no adapters here");
  }
}

TEST_F(PeftFolder, NamesSettingsThatMeanAnotherComputation) {
  const TestModel model(tiny_spec());
  save(model.params, settings());
  const auto good = config();
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto changed = good;
    changed[key] = value;
    write_config(changed);
  };
  with("peft_type", "LOHA");
  expect_refusal(model.params, ErrorCode::kUnsupported, "peft_type `LOHA`; offered is LORA");
  with("use_dora", true);
  expect_refusal(model.params, ErrorCode::kUnsupported, "use_dora = true");
  with("bias", "all");
  expect_refusal(model.params, ErrorCode::kUnsupported, "bias `all`");
  with("rank_pattern", {{"q_proj", 2}});
  expect_refusal(model.params, ErrorCode::kUnsupported, "rank_pattern");
  with("r", 0);
  expect_refusal(model.params, ErrorCode::kData, "`r` is 0");
  std::ofstream(folder_ / "adapter_config.json") << "{";
  expect_refusal(model.params, ErrorCode::kData, "is not valid JSON");
  fs::remove(folder_ / "adapter_config.json");
  expect_refusal(model.params, ErrorCode::kNotFound, "it is not a PEFT adapter");
  write_config(good);
  fs::rename(folder_ / "adapter_model.safetensors", folder_ / "adapter_model.bin");
  expect_refusal(model.params, ErrorCode::kData, "a pickle can run any code");
}

}  // namespace
}  // namespace troupe::model
