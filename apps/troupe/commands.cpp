#include "apps/troupe/commands.hpp"

#include "apps/bench/bench.hpp"
#include "runtime/core/edit_distance.hpp"

#include <cstdio>
#include <string_view>
#include <vector>

namespace troupe::app {
namespace {

struct Command {
  std::string_view name;
  core::Result<void> (*run)(Words words);
};

constexpr Command kCommands[] = {
    {"train", run_train},
    {"config", run_config},
    {"plan", run_plan},
    {"pipeline", run_pipeline},
    {"generate", run_generate},
    {"chat", run_chat},
    {"doctor", run_doctor},
    {"bench", run_bench},
    {"node", run_node},
    {"attach", run_attach},
    {"detach", run_detach},
    {"re-weight", run_reweight},
    {"status", run_status},
    {"report", run_report},
    {"log", run_log},
    {"trace", run_trace},
    {"data", run_data},
    {"version", run_version},
    {"ca", run_ca},
    {"serve", run_serve},
    {"serve-reward", run_serve_reward},
    {"merge-lora", run_merge_lora},
    {"model", run_model},
    {"score", run_score},
    {"eval", run_eval},
};

constexpr const char* kCommandsHelp =
    "troupe: trains language models from feedback, on one machine or many\n"
    "\n"
    "usage: troupe COMMAND ...   (troupe COMMAND --help for its flags)\n"
    "\n"
    "train\n"
    "  train ppo CONFIG.yaml [--key v]   reinforcement learning from prompts and a reward\n"
    "  train sft|pretrain|rm|dpo|kto|... CONFIG.yaml   learning from texts and preferences\n"
    "  config show [CONFIG.yaml] [...]   all keys with the values that a run would use\n"
    "  config validate CONFIG.yaml [..]  check a configuration and say what it means\n"
    "  plan CONFIG.yaml [--cluster C]    what it takes of each device, and whether that fits\n"
    "  pipeline FILE.yaml                stages of these commands, with loops; resumable\n"
    "\n"
    "while a run goes on\n"
    "  status --join RUN                 who is in, who plays what, who waits for whom\n"
    "  attach reward --join RUN ...      add a reward; detach and re-weight change it\n"
    "  attach environment --join RUN ... add an environment of agents; detach takes it out\n"
    "  node --join HOST:PORT ...         play roles for it, from this or another host\n"
    "  node drain NAME --join RUN        take a node out once its work is done or moved\n"
    "\n"
    "look at runs\n"
    "  report RUN... [--out FILE]        one page of curves, rollouts, events; also of a live run\n"
    "  log RUN --to wandb                its metrics to wandb, mlflow or trackio\n"
    "  trace RUN                         its episodes as token ids and log-probs\n"
    "\n"
    "use a model\n"
    "  generate --model M --prompt TEXT  sample responses\n"
    "  chat --model M                    talk to a chat model\n"
    "  serve --model M                   OpenAI's and Anthropic's API over HTTP\n"
    "  merge-lora --model M --adapter A  one model of a base and a LoRA adapter\n"
    "\n"
    "work on whole files\n"
    "  generate --data F --n N --out O   sample every prompt, resumable\n"
    "  score --data F --out O ...        score responses; best of n, pairs, conditional rows\n"
    "  eval --model M --data F ...       pass@k, maj@k; --reward-model RM: pairs\n"
    "\n"
    "between programs and hosts\n"
    "  serve-reward --python FILE        give a reward over HTTP (OpenRLHF's JSON)\n"
    "  ca init --out DIR                 certificates for the nodes of one run\n"
    "\n"
    "look around\n"
    "  doctor                            processor, memory, disk, limits\n"
    "  bench NAME [--json]               measure this machine\n"
    "  data arithmetic --out DIR         write the one-digit arithmetic task\n"
    "  model random --shape S --out DIR  write a model of random weights\n"
    "  version                           version and build\n"
    "\n"
    "A model is a Hugging Face folder, or org/name when it is in the local hub cache (HF_HOME).\n"
    "Exit codes: 0 done, 1 bug, 2 configuration, 3 resources, 4 data, 5 peer lost, 6 numeric,\n"
    "130 interrupted. Reference of all keys: docs/configuration.md.\n";

}  // namespace

core::Result<void> run_command(Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(kCommandsHelp, stdout);
    return {};
  }
  if (words[0] == "--version") return run_version({});
  for (const Command& command : kCommands) {
    if (command.name == words[0]) return command.run(words.subspan(1));
  }
  std::vector<std::string_view> names;
  for (const Command& command : kCommands)
    names.push_back(command.name);
  const std::string near(core::nearest_word(words[0], names));
  return core::fail(
      core::ErrorCode::kConfig, "there is no command '" + words[0] + "'",
      (near.empty() ? "`troupe --help` lists them" : "did you mean `troupe " + near + "`?"));
}

}  // namespace troupe::app
