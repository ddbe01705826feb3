// Parameter stores: layout, loading and saving, and what a broken model folder gives.
#include "runtime/model/params.hpp"

#include "runtime/store/safetensors.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using store::TensorSource;

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    parent_ = fs::path(testing::TempDir()) / (std::string("params_") + info->name());
    fs::remove_all(parent_);
    fs::create_directories(parent_);
    folder_ = parent_ / "model";
  }
  void TearDown() override { fs::remove_all(parent_); }

  static ParamStore random_model(const ModelSpec& spec) {
    ParamStore params(spec);
    randomise(params, 3, 0.1f);
    return params;
  }
  // Writes the tensors of `params` after `change` had its way with the list.
  template <class Change>
  void write_changed(const ParamStore& params, Change change) {
    ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}));
    std::vector<TensorSource> tensors;
    for (const ParamView& view : params.layout().views) {
      tensors.push_back({view.name, store::Dtype::kF32, view.shape, params.data() + view.offset});
    }
    change(tensors);
    ASSERT_TRUE(store::write_safetensors(folder_ / "model.safetensors", tensors, {}));
  }
  void expect_load_error(core::ErrorCode code, const std::string& part) {
    const auto loaded = load_model(folder_);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
  }
  void expect_same(const ParamStore& a, const ParamStore& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4), 0);
  }

  fs::path parent_, folder_;
};

TEST(ParamLayout, CountsParametersAndKeepsMatricesTogether) {
  for (const ModelSpec& spec :
       {tiny_spec(), qwen_spec(), with_score_head(tiny_spec()), qwen3_spec(), gemma_spec()}) {
    const ParamLayout layout(spec);
    std::int64_t count = 0;
    for (const ParamView& view : layout.views)
      count += view.count;
    EXPECT_EQ(count, spec.parameter_count());
    for (const LayerOffsets& at : layout.layers) {
      EXPECT_EQ(at.k, at.q + spec.q_width() * spec.hidden);
      EXPECT_EQ(at.v, at.k + spec.kv_width() * spec.hidden);
      EXPECT_EQ(at.up, at.gate + spec.ffn * spec.hidden);
      EXPECT_EQ(at.q % 16, 0);
      EXPECT_EQ(at.gate % 16, 0);
    }
    EXPECT_EQ(layout.head == layout.embedding, spec.tied);
  }
}

TEST(Randomise, DependsOnTheSeedAloneAndHasItsDeviation) {
  ParamStore a(tiny_spec()), b(tiny_spec()), c(tiny_spec());
  randomise(a, 1, 0.25f);
  randomise(b, 1, 0.25f);
  randomise(c, 2, 0.25f);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4), 0);
  EXPECT_NE(std::memcmp(a.data(), c.data(), static_cast<std::size_t>(a.size()) * 4), 0);
  double squares = 0;
  const auto view = a.view("model.embed_tokens.weight");
  for (const float x : view)
    squares += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(view.size())), 0.25, 0.01);
}

TEST_F(ModelFolder, SaveAndLoadKeepBits) {
  for (const ModelSpec& spec : {tiny_spec(), qwen_spec()}) {
    fs::remove_all(folder_);
    const ParamStore params = random_model(spec);
    ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}));
    const auto loaded = load_model(folder_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    expect_same(params, **loaded);
    EXPECT_EQ((*loaded)->spec().head_dim, spec.head_dim);
  }
}

TEST_F(ModelFolder, ShardsLoadToTheSameBits) {
  const ParamStore params = random_model(tiny_spec());
  ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}, 40'000));
  EXPECT_FALSE(fs::exists(folder_ / "model.safetensors"));
  EXPECT_TRUE(fs::exists(folder_ / "model.safetensors.index.json"));
  const auto loaded = load_model(folder_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_same(params, **loaded);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().rfind("model-00001-of-", 0) == 0) fs::remove(entry);
  }
  const auto broken = load_model(folder_);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("which is not there"), std::string::npos)
      << broken.error().message;
}

TEST_F(ModelFolder, Bf16SavesRoundedValuesOnce) {
  const ParamStore params = random_model(tiny_spec());
  ASSERT_TRUE(save_model(params, folder_, StorageDtype::kBf16, {}));
  const auto once = load_model(folder_);
  ASSERT_TRUE(once);
  fs::remove_all(folder_);
  ASSERT_TRUE(save_model(**once, folder_, StorageDtype::kBf16, {}));
  const auto twice = load_model(folder_);
  ASSERT_TRUE(twice);
  expect_same(**once, **twice);
}

TEST_F(ModelFolder, TokenizerFilesTravel) {
  fs::create_directories(parent_ / "from");
  std::ofstream(parent_ / "from" / "tokenizer.json") << "{}";
  std::ofstream(parent_ / "from" / "training_args.bin") << "no";
  ASSERT_TRUE(save_model(random_model(tiny_spec()), folder_, StorageDtype::kF32, parent_ / "from"));
  EXPECT_TRUE(fs::exists(folder_ / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(folder_ / "training_args.bin"));
}

TEST_F(ModelFolder, SaveRefusesAFilledFolder) {
  const ParamStore params = random_model(tiny_spec());
  ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}));
  const auto again = save_model(params, folder_, StorageDtype::kF32, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, core::ErrorCode::kConfig);
}

// A write that the system refuses (here: a file larger than the process may write) gives an error
// that names the file, and leaves neither a half folder nor a temporary one.
TEST_F(ModelFolder, AFailedSaveLeavesNothing) {
  const ParamStore params = random_model(tiny_spec());
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 50'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto saved = save_model(params, folder_, StorageDtype::kF32, {});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, core::ErrorCode::kResources);
  EXPECT_NE(saved.error().message.find("model.safetensors"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(ModelFolder, NamesMissingExtraAndMisshapenTensors) {
  const ParamStore params = random_model(tiny_spec());
  using enum core::ErrorCode;
  write_changed(params, [](auto& tensors) { tensors.erase(tensors.begin() + 3); });
  expect_load_error(kData,
                    "model.safetensors: tensor model.layers.0.self_attn.k_proj.weight is missing");
  fs::remove_all(folder_);
  write_changed(params, [](auto& tensors) { tensors[0].shape = {60, 257}; });
  expect_load_error(kData,
                    "tensor model.embed_tokens.weight has shape [60, 257]; config.json makes "
                    "it [257, 60]");
  fs::remove_all(folder_);
  write_changed(params, [](auto& tensors) {
    tensors.push_back(tensors[0]);
    tensors.back().name = "model.layers.2.mlp.up_proj.weight";
  });
  expect_load_error(kData, "tensor model.layers.2.mlp.up_proj.weight does not belong");
}

TEST_F(ModelFolder, AWeightThatIsNoNumberIsNamedWithItsPlace) {
  ParamStore params = random_model(tiny_spec());
  const auto columns = static_cast<std::size_t>(params.spec().hidden);
  const auto matrix = params.view("model.layers.1.mlp.up_proj.weight");
  const auto norm = params.view("model.norm.weight");
  for (const StorageDtype dtype : {StorageDtype::kF32, StorageDtype::kBf16}) {
    fs::remove_all(folder_);
    matrix[2 * columns + 7] = std::numeric_limits<float>::infinity();
    ASSERT_TRUE(save_model(params, folder_, dtype, {}));
    expect_load_error(core::ErrorCode::kData,
                      "tensor model.layers.1.mlp.up_proj.weight holds inf at [2, 7]");
    matrix[2 * columns + 7] = std::numeric_limits<float>::max() / 2;
    norm[3] = std::numeric_limits<float>::quiet_NaN();
    fs::remove_all(folder_);
    ASSERT_TRUE(save_model(params, folder_, dtype, {}));
    expect_load_error(core::ErrorCode::kData, "tensor model.norm.weight holds nan at [3]");
    norm[3] = -0.0f;
    fs::remove_all(folder_);
    ASSERT_TRUE(save_model(params, folder_, dtype, {}));
    EXPECT_TRUE(load_model(folder_)) << "large numbers and zeros are numbers";
  }
}

TEST_F(ModelFolder, ATiedModelMayCarryItsHeadTwice) {
  const ParamStore params = random_model(tiny_spec());
  write_changed(params, [](auto& tensors) {
    tensors.push_back(tensors[0]);
    tensors.back().name = "lm_head.weight";
  });
  const auto loaded = load_model(folder_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_same(params, **loaded);
  fs::remove_all(folder_);
  std::vector<float> other(static_cast<std::size_t>(params.layout().views[0].count), 1.0f);
  write_changed(params, [&](auto& tensors) {
    tensors.push_back(tensors[0]);
    tensors.back().name = "lm_head.weight";
    tensors.back().data = other.data();
  });
  expect_load_error(core::ErrorCode::kData, "lm_head.weight differs");
}

TEST_F(ModelFolder, OldRotaryBuffersAreIgnored) {
  const ParamStore params = random_model(tiny_spec());
  const float frequencies[10] = {};
  write_changed(params, [&](auto& tensors) {
    tensors.push_back(
        {"model.layers.0.self_attn.rotary_emb.inv_freq", store::Dtype::kF32, {10}, frequencies});
  });
  EXPECT_TRUE(load_model(folder_));
}

TEST_F(ModelFolder, RefusesPicklesAndEmptyFolders) {
  expect_load_error(core::ErrorCode::kNotFound, "no model folder at");
  fs::create_directories(folder_);
  expect_load_error(core::ErrorCode::kNotFound, "no config.json in");
  std::ofstream(folder_ / "config.json") << format_spec(tiny_spec());
  expect_load_error(core::ErrorCode::kNotFound, "no model.safetensors");
  std::ofstream(folder_ / "pytorch_model.bin") << "pickle";
  expect_load_error(core::ErrorCode::kData, "pickle");
  expect_load_error(core::ErrorCode::kData, "save_pretrained");
}

TEST_F(ModelFolder, AScoreModelTravels) {
  for (const ModelSpec& body : {tiny_spec(), qwen_spec()}) {
    fs::remove_all(folder_);
    const ParamStore params = random_model(with_score_head(body));
    EXPECT_EQ(params.view("score.weight").size(), static_cast<std::size_t>(body.hidden));
    EXPECT_TRUE(params.view("lm_head.weight").empty());
    ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}));
    const auto loaded = load_model(folder_, HeadKind::kScore, 77);
    ASSERT_TRUE(loaded) << loaded.error().message;
    expect_same(params, **loaded);
    expect_load_error(core::ErrorCode::kData, "ForSequenceClassification, which scores text");
  }
}

// The body is the file's; the head is bell-shaped of deviation 1 / (hidden + 1), from the seed.
TEST_F(ModelFolder, ALanguageModelGetsAFreshScoreHead) {
  ModelSpec wide = tiny_spec();
  wide.hidden = 2000;
  for (const ModelSpec& spec : {tiny_spec(), qwen_spec(), wide}) {
    fs::remove_all(folder_);
    const ParamStore params = random_model(spec);
    ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}));
    const auto one = load_model(folder_, HeadKind::kScore, 1);
    const auto same = load_model(folder_, HeadKind::kScore, 1);
    const auto other = load_model(folder_, HeadKind::kScore, 2);
    ASSERT_TRUE(one && same && other) << one.error().message;
    EXPECT_EQ((*one)->spec().head, HeadKind::kScore);
    expect_same(**one, **same);
    const auto a = (*one)->view("score.weight"), b = (*other)->view("score.weight");
    EXPECT_NE(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
    double squares = 0;
    for (const float value : a)
      squares += static_cast<double>(value) * static_cast<double>(value);
    const double deviation = std::sqrt(squares / static_cast<double>(a.size()));
    const double expected = 1.0 / (static_cast<double>(spec.hidden) + 1.0);
    EXPECT_NEAR(deviation / expected, 1.0, 3.0 / std::sqrt(2.0 * static_cast<double>(a.size())));
    for (const ParamView& view : params.layout().views) {
      if (view.name == "lm_head.weight") continue;
      const auto body = (*one)->view(view.name);
      ASSERT_EQ(std::memcmp(body.data(), params.data() + view.offset, body.size_bytes()), 0)
          << view.name;
    }
  }
}

TEST_F(ModelFolder, RefusesAnIndexThatLeavesTheFolder) {
  ASSERT_TRUE(save_model(random_model(tiny_spec()), folder_, StorageDtype::kF32, {}, 40'000));
  std::ofstream(folder_ / "model.safetensors.index.json")
      << R"({"weight_map": {"lm_head.weight": "../../etc/x.safetensors"}})";
  expect_load_error(core::ErrorCode::kData, "names no .safetensors file of this folder");
  std::ofstream(folder_ / "model.safetensors.index.json") << R"({"weight_map": 3})";
  expect_load_error(core::ErrorCode::kData, "weight_map");
}

// transformers would read the one, vLLM the other.
TEST_F(ModelFolder, RefusesWeightsBesideShards) {
  const ParamStore params = random_model(tiny_spec());
  ASSERT_TRUE(save_model(params, folder_, StorageDtype::kF32, {}, 40'000));
  const fs::path index = folder_ / "model.safetensors.index.json";
  const fs::path single = folder_ / "model.safetensors";
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with("model-00001")) fs::copy(entry.path(), single);
  }
  expect_load_error(core::ErrorCode::kData, "has weights twice: model.safetensors, ");
  fs::remove(single);
  EXPECT_TRUE(load_model(folder_));
  fs::remove(index);
  EXPECT_FALSE(load_model(folder_));
}

TEST_F(ModelFolder, NamedTemplatesAreCopied) {
  const fs::path from = folder_.string() + "_from";
  fs::remove_all(from);
  fs::create_directories(from / "additional_chat_templates");
  std::ofstream(from / "additional_chat_templates" / "tool_use.jinja") << "{{ tools }}";
  std::ofstream(from / "additional_chat_templates" / "notes.txt") << "x";
  ASSERT_TRUE(save_model(random_model(tiny_spec()), folder_, StorageDtype::kF32, from));
  std::ifstream copied(folder_ / "additional_chat_templates" / "tool_use.jinja");
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(copied), {}}), "{{ tools }}");
  EXPECT_FALSE(fs::exists(folder_ / "additional_chat_templates" / "notes.txt"));
  fs::remove_all(from);
}

TEST_F(ModelFolder, AnIndexIsHeldAgainstItsShards) {
  ASSERT_TRUE(save_model(random_model(tiny_spec()), folder_, StorageDtype::kF32, {}, 40'000));
  const fs::path path = folder_ / "model.safetensors.index.json";
  std::ifstream in(path);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos);
    std::ofstream(path) << text.replace(text.find(from), from.size(), to);
  };
  const auto shard_of = [&](const std::string& name) {
    return good.substr(good.find(name) + name.size() + 4, 32);  // NAME": "model-0000N-of-...
  };
  const std::string norm = "model.layers.0.input_layernorm.weight";
  const std::string head = "model.embed_tokens.weight";
  const std::string first = shard_of(norm), second = shard_of(head);
  ASSERT_EQ(first.substr(0, 6), "model-");
  ASSERT_NE(first, second);
  with(norm + "\": \"" + first, norm + "\": \"" + second);
  expect_load_error(core::ErrorCode::kData, "model.safetensors.index.json: says that tensor " +
                                                norm + " is in " + second + ", and it is in " +
                                                first);
  with(norm + "\"", "model.worm.weight\"");
  expect_load_error(core::ErrorCode::kData,
                    "says that tensor model.worm.weight is in " + first + ", and it is in no file");
  with("\"" + norm + "\": \"" + first + "\",", "");
  expect_load_error(core::ErrorCode::kData,
                    "does not name tensor " + norm + ", which is in " + first);
  with("\"" + norm + "\"", "\"" + head + "\"");
  expect_load_error(core::ErrorCode::kData,
                    "model.safetensors.index.json has the name `" + head + "` twice");
  std::ofstream(path) << good;
  ASSERT_TRUE(load_model(folder_));
  // One shard's tensors in another file as well, which the index names for a tensor of its own.
  fs::copy_file(folder_ / first, folder_ / "model-copy.safetensors");
  with(norm + "\": \"" + first, norm + "\": \"model-copy.safetensors");
  expect_load_error(core::ErrorCode::kData, " too");
}

}  // namespace
}  // namespace troupe::model
