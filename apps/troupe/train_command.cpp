// `troupe train METHOD CONFIG.yaml [--key v]`: reads the configuration and does the whole run.
#include "apps/cli/stop_signal.hpp"
#include "apps/session/fitted_lengths.hpp"
#include "apps/session/kept_keys.hpp"
#include "apps/session/ppo_run.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/supervised_run.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/store/private_files.hpp"

#include <cstdio>
#include <map>

namespace troupe::app {
namespace {

core::Result<void> train(config::Methods method, Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(run_table(), words, method));
  for (const std::string& note : builder.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  TROUPE_TRY(keep_of_run(builder));
  TROUPE_TRY(fit_lengths(builder));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  TROUPE_TRY(learn::find_trainers());  // before anything is written
  limit_stop(
      static_cast<unsigned>(config.run.grace_s),
      "stopped at the end of run.grace_s; the same command goes on from the newest checkpoint "
      "and what was sampled since");
  store::write_privately(config.run.group_read);
  if (method == config::kPpo) return run_ppo(std::move(config), builder.origins());
  return run_supervised(std::move(config), builder.origins());
}

struct Page {
  std::string_view method;
  std::string_view summary;
  std::string_view text;
};

constexpr std::string_view kPairRows =
    "Rows: a better and a worse answer (data.chosen_key, data.rejected_key) to one prompt\n"
    "(data.prompt_key), as text or as lists of chat messages; without data.prompt_key both "
    "columns\n"
    "hold the whole dialogue. The prompt is computed once for both.\n";

constexpr Page kPages[] = {
    {"ppo", "reinforcement learning from rewards",
     "Trains a policy from rewards: samples groups of responses, scores them, and learns from "
     "them.\n"},
    {"sft", "supervised fine-tuning on answers",
     "Trains on the tokens of answers. Rows: a prompt (data.input_key) and an answer\n"
     "(data.output_key), or a dialogue: a list of chat messages (data.input_key, or a column\n"
     "`messages`), a ShareGPT or an Alpaca row. The last answer is learned, or every assistant\n"
     "turn with --data.multiturn true.\n"},
    {"pretrain", "next token over all of a text",
     "Trains on every token of plain texts. Rows: a text (data.input_key).\n"},
    {"rm", "a reward model from pairs",
     "Trains a model with a score head so that better answers score higher: the loss is\n"
     "-log sigmoid(better - worse - margin).\n"},
    {"dpo", "direct preference optimisation",
     "Trains a policy on preferences against a frozen reference (ref.model_name_or_path, else the\n"
     "model as it was).\n"},
    {"ipo", "identity preference optimisation",
     "As dpo, with a squared loss that does not push pairs apart without end.\n"},
    {"cdpo", "dpo with labels that may be wrong",
     "As dpo, where a share of the pairs (dpo.label_smoothing) is taken to be labelled the wrong\n"
     "way round.\n"},
    {"kto", "Kahneman-Tversky optimisation on rated answers",
     "Trains a policy on single answers that are good or bad, against a frozen reference.\n"
     "Rows: a prompt (data.input_key), an answer (data.output_key) and whether it is good\n"
     "(data.label_key: true or false).\n"},
    {"orpo", "odds-ratio preference optimisation",
     "Trains a policy on preferences without a reference: the next token of the better answers, "
     "and\n"
     "the odds of the better answer over the worse (orpo.beta).\n"},
    {"simpo", "simple preference optimisation",
     "Trains a policy on preferences without a reference: mean log-probs, which should differ by "
     "a\n"
     "margin (simpo.beta, simpo.gamma).\n"},
    {"cpo", "contrastive preference optimisation",
     "Trains a policy on preferences without a reference: the loss of dpo, and the next token of "
     "the\n"
     "better answers (cpo.beta, cpo.nll_loss_coef).\n"},
    {"bco", "binary classifier optimisation on rated answers",
     "Trains a policy on single answers that are good or bad, against a frozen reference and the "
     "mean\n"
     "reward so far. Rows: as for kto.\n"},
    {"distill", "towards a teacher's distribution over tokens",
     "Trains a policy on answers, and towards what a frozen teacher (teacher.model_name_or_path) "
     "would\n"
     "say at each of their tokens. Rows: as for sft. To learn from a teacher on the policy's own\n"
     "answers: troupe train ppo with a teacher (docs/distillation.md).\n"},
    {"prm", "process reward model, from labels of steps",
     "Trains a model to label each step of a text: at a placeholder (prm.placeholder_token) behind "
     "the\n"
     "step it chooses among tokens (prm.reward_tokens). Rows: a text with placeholders "
     "(data.input_key)\n"
     "and a list of labels, tokens or probabilities (data.label_key); or prompt, completions and "
     "labels.\n"},
};

bool pairs(std::string_view method) {
  return (config::method_named(method) & config::kPairs) != 0;
}

// The beginning of `troupe train [METHOD] --help`: how it is called, what the method does, which
// rows it reads. `method` empty: a line for each method.
std::string train_help(std::string_view method) {
  const std::string word(method.empty() ? "METHOD" : method);
  std::string text =
      "usage: troupe train " + word + " CONFIG.yaml [CONFIG.yaml ...] [--key v | key=v ...]\n\n";
  for (const Page& page : kPages) {
    if (method.empty()) {
      std::string name(page.method);
      name.resize(10, ' ');
      text += "  " + name + std::string(page.summary) + "\n";
    } else if (page.method == method) {
      text += page.text;
      if (pairs(method)) text += kPairRows;
    }
  }
  text +=
      "\nFiles are read from left to right, flags come last; an interrupted run goes on where it "
      "stopped\n"
      "(--resume auto). A run writes into its folder (--run.path): docs/run_folder.md.\n";
  if (method.empty()) text += "\nKeys: troupe train METHOD --help\n";
  return text;
}

core::Result<void> print_help(config::Methods method, const std::string& section_name) {
  // `--help rollout` describes the keys of one section.
  const std::string section = method == config::kNoMethod
                                  ? ""
                                  : config::section_help(run_table(), section_name, 100, method);
  if (!section.empty()) {
    std::fputs(section.c_str(), stdout);
    return {};
  }
  if (method != config::kNoMethod && !section_name.empty()) {
    return core::fail(
        core::ErrorCode::kConfig,
        "train " + config::method_names(method) + " has no section '" + section_name + "' of keys",
        "--help alone lists them");
  }
  std::fputs(train_help(config::method_names(method)).c_str(), stdout);
  if (method == config::kNoMethod) return {};
  std::fputs("\nKeys by section (--help SECTION describes them):\n", stdout);
  std::fputs(config::overview(100, method).c_str(), stdout);
  return {};
}

// Advice for a word that is no method. Other programs have a command for each variant of
// reinforcement learning, such as grpo; here a variant is a setting of `train ppo`.
std::string advice_for(const std::string& word) {
  std::vector<std::string_view> words(std::begin(config::kMethodNames),
                                      std::end(config::kMethodNames));
  std::map<std::string_view, std::string> settings;
  for (const char* key : {"algo.advantage.estimator", "algo.objective", "dpo.loss"}) {
    const std::string command = key == std::string("dpo.loss") ? "train dpo" : "train ppo";
    for (const core::Choice& choice : run_table().find(key)->words) {
      for (const std::string_view kind : {choice.name, choice.alias}) {
        if (kind.empty()) continue;
        words.push_back(kind);
        settings.emplace(kind, "`" + command + "` with --" + key + " " + std::string(choice.name));
      }
    }
  }
  const std::string near(core::nearest_word(word, words));
  const auto found = settings.find(near);
  if (config::method_named(near) == config::kNoMethod && found != settings.end()) {
    return (near == word ? "it" : near) + " is " + found->second + ", docs/recipes.md";
  }
  if (!near.empty()) return "did you mean `train " + near + "`?";
  return "choose one of " + config::method_names(config::kAllMethods);
}

}  // namespace

core::Result<void> run_train(Words words) {
  const config::Methods method = words.empty() ? config::kNoMethod : config::method_named(words[0]);
  if (words.empty() || wants_help(words)) {
    // `--help SECTION`: the word behind it.
    const bool named = words.size() > 1 && !wants_help(words.last(1)) && wants_help(words.last(2));
    return print_help(method, named ? words.back() : "");
  }
  if (method == config::kNoMethod) {
    return core::fail(core::ErrorCode::kConfig, "there is no `train " + words[0] + "`",
                      advice_for(words[0]));
  }
  return train(method, words.subspan(1));
}

}  // namespace troupe::app
