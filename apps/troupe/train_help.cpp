#include "apps/troupe/train_help.hpp"

namespace troupe::app {
namespace {

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
};

bool pairs(std::string_view method) {
  return method == "rm" || method == "dpo" || method == "ipo" || method == "cdpo";
}

}  // namespace

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

}  // namespace troupe::app
