// Every recipe of configs/ through the real program: it is valid as it stands, names no key that
// its method does not read, is valid with its own sizes once model and data are given, and takes
// two steps on a tiny model once its batches are small.
#include "processes.hpp"
#include "runtime/model/process_reward.hpp"

#include <algorithm>

namespace troupe::test {
namespace {

// Named when it is built: the tests are listed, one a recipe, before any environment is set.
const std::filesystem::path kRecipes = TROUPE_RECIPES_DIR;

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kRecipes)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "method: dpo" of a recipe; ppo where there is none.
std::string method_of(const std::string& text) {
  const auto at = text.find("\nmethod: ");
  if (at == text.npos) return "ppo";
  const auto begin = at + 9;
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

class Recipes : public ::testing::TestWithParam<std::string> {
 protected:
  Recipes() {
    std::ofstream pairs(files_ / "pairs.jsonl"), rated(files_ / "rated.jsonl"),
        texts(files_ / "texts.jsonl"), steps(files_ / "steps.jsonl"), coded(files_ / "coded.jsonl");
    for (int i = 0; i < 8; ++i) {
      const std::string prompt = std::to_string(i) + "+1=";
      pairs << nlohmann::json({{"prompt", prompt}, {"chosen", "yes"}, {"rejected", "no"}}) << '\n';
      rated << nlohmann::json({{"prompt", prompt}, {"response", "yes"}, {"label", i % 2 == 0}})
            << '\n';
      texts << nlohmann::json({{"text", prompt + " is a sum"}}) << '\n';
      steps << nlohmann::json({{"input", prompt + "1#\nyes#"}, {"label", {"+", "-"}}}) << '\n';
      const auto tests = nlohmann::json::array({"assert 1 == 1"});
      coded << nlohmann::json({{"prompt", prompt}, {"tests", tests}}) << '\n';
    }
  }

  // The smallest run of the recipe: paths, then batches.
  std::vector<std::string> words(const std::string& method, const std::string& text) {
    std::vector<std::string> out = {"train",
                                    method,
                                    recipe(),
                                    "--actor.model_name_or_path",
                                    files_.model(),
                                    "--run.path",
                                    path("run"),
                                    "--train.max_steps",
                                    "2",
                                    "--train.threads",
                                    "1",
                                    "--logger.tensorboard",
                                    "false"};
    const auto add = [&](std::vector<std::string> more) {
      out.insert(out.end(), more.begin(), more.end());
    };
    if (text.find("teacher") != text.npos) add({"--teacher.model_name_or_path", files_.model()});
    if (method != "ppo") {
      const bool answers = method == "sft" || method == "distill";
      const std::string rows = answers                              ? "train.jsonl"
                               : method == "pretrain"               ? "texts.jsonl"
                               : method == "kto" || method == "bco" ? "rated.jsonl"
                               : method == "prm"                    ? "steps.jsonl"
                                                                    : "pairs.jsonl";
      add({"--data.dataset", path(rows), "--train.batch_size", "4", "--data.max_len", "64"});
      return out;
    }
    const bool single = text.find("n_samples_per_prompt: 1 ") != text.npos ||
                        text.find("n_samples_per_prompt: 1\n") != text.npos;
    const bool code = text.find("rule: code") != text.npos;
    add({"--data.prompt_dataset", path(code ? "coded.jsonl" : "train.jsonl"),
         "--data.prompt_max_len", "32", "--rollout.batch_size", "4",
         "--rollout.n_samples_per_prompt", single ? "1" : "4", "--rollout.max_new_tokens", "6",
         "--train.batch_size", single ? "2" : "8"});
    if (text.find("overlong_buffer_len") != text.npos) add({"--reward.overlong_buffer_len", "2"});
    if (text.find("workers:") != text.npos) add({"--reward.workers", "1"});
    if (text.find("process:") != text.npos) {
      add({"--reward.process.model_name_or_path", make_process_model()});
    } else if (text.find("rule:") == text.npos) {
      add({"--reward.model_name_or_path", make_reward_model()});
    } else if (!code) {
      add({"--reward.rule", "regex", "--reward.rule_pattern", "[A-Za-z]{2}"});
    }
    if (text.find("eval:") != text.npos) {
      add({"--eval.dataset", path("train.jsonl"), "--eval.n_samples_per_prompt", "2"});
    }
    return out;
  }

  // The recipe as it stands: models and data are given, sizes are its own. A prompt is as long as
  // they may be, models have a context for all of a sample, and there are rows for a step.
  std::vector<std::string> own_sizes(const std::string& method, const std::string& text) {
    const std::vector<std::string> all = words(method, text);
    std::vector<std::string> kept = {"config", "validate", recipe()};
    for (std::size_t i = 3; i + 1 < all.size(); i += 2) {
      const bool model = all[i].ends_with("model_name_or_path"), rows = all[i].ends_with("dataset");
      if (!model && !rows && all[i] != "--run.path") continue;
      kept.push_back(all[i]);
      kept.push_back(model  ? with_long_context(all[i + 1])
                     : rows ? with_many_rows(all[i + 1], text)
                            : all[i + 1]);
    }
    return kept;
  }
  std::string with_long_context(const std::string& model) {
    const std::string folder = model + "-long";
    if (!std::filesystem::exists(folder)) std::filesystem::copy(model, folder);
    auto config = nlohmann::json::parse(text_of(folder + "/config.json"));
    config["max_position_embeddings"] = 8192;
    std::ofstream(folder + "/config.json") << config.dump();
    return folder;
  }
  std::string with_many_rows(const std::string& rows, const std::string& recipe_text) {
    const std::string file = rows + ".many.jsonl", known = text_of(rows);
    std::ofstream out(file);
    const auto at = recipe_text.find("prompt_max_len: ");
    if (at != recipe_text.npos) {
      const std::string longest(std::stoul(recipe_text.substr(at + 16)), 'x');
      out << nlohmann::json({{"prompt", longest}, {"answer", "1"}, {"tests", {"assert 1 == 1"}}})
          << '\n';
    }
    for (int i = 0; i < 16; ++i)
      out << known;
    return file;
  }

  std::string make_reward_model() {
    auto params = model::load_model(files_.model(), model::HeadKind::kScore, 1);
    EXPECT_TRUE(params) << (params ? "" : params.error().message);
    const auto folder = files_ / "rm";
    const auto saved =
        model::save_model(**params, folder, model::StorageDtype::kF32, files_.model());
    EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
    return folder.string();
  }

  // The policy's own weights as a process reward model.
  std::string make_process_model() {
    auto params = model::load_model(files_.model());
    EXPECT_TRUE(params) << (params ? "" : params.error().message);
    (*params)->set_config_json(
        model::with_process_reward((*params)->spec().config_json, {"#", {"+", "-"}, "a"}));
    const auto folder = files_ / "prm";
    const auto saved =
        model::save_model(**params, folder, model::StorageDtype::kF32, files_.model());
    EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
    return folder.string();
  }

  std::string recipe() const { return (kRecipes / (GetParam() + ".yaml")).string(); }
  std::string path(const std::string& name) const { return (files_ / name).string(); }

  TinyRun files_;
};

}  // namespace

TEST_P(Recipes, TakesTwoSteps) {
  const std::string text = text_of(recipe());
  EXPECT_EQ(text.rfind("# ", 0), 0u) << "a recipe says what it is";
  const std::string method = method_of(text);
  const Ended ended = troupe_ends(words(method, text), files_ / "log.txt", 60);
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto rows = metrics_of(files_ / "run");
  ASSERT_TRUE(rows.contains(2)) << text_of(files_ / "run/metrics.jsonl");
  EXPECT_FALSE(rows.contains(3));
  bool learned = false;
  std::ifstream in(files_ / "run/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    for (const auto& [name, value] : row.items()) {
      if (row["step"] != 2 || !name.ends_with("/loss")) continue;
      learned = true;
      EXPECT_TRUE(value.is_number()) << name << " is " << value;
    }
  }
  EXPECT_TRUE(learned) << text_of(files_ / "run/metrics.jsonl");
  EXPECT_TRUE(std::filesystem::exists(files_ / "run/ckpt/step_000002/model/config.json"));
}

TEST_P(Recipes, AreValidWithTheirOwnSizes) {
  const std::string text = text_of(recipe());
  const Ended ended = troupe_ends(own_sizes(method_of(text), text), files_ / "log.txt", 60);
  EXPECT_EQ(ended.status, 0) << ended.text;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& recipe) {
  return recipe.param;
}

INSTANTIATE_TEST_SUITE_P(All, Recipes, ::testing::ValuesIn(recipe_names()), name_of);

}  // namespace troupe::test
