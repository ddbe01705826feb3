#include "runtime/config/first_keys.hpp"

namespace troupe::config {
namespace {

constexpr FirstKeys kOfPpo = {"actor.model_name_or_path",
                              "data.prompt_dataset",
                              "reward.python",
                              "rollout.batch_size",
                              "rollout.n_samples_per_prompt",
                              "rollout.max_new_tokens",
                              "actor.adam.lr",
                              "algo.advantage.estimator",
                              "train.max_steps",
                              "run.path"};

// What a supervised method has of its own.
struct OwnKey {
  Methods methods;
  std::string_view key;
};
constexpr OwnKey kOwnKeys[] = {{kSft, "data.multiturn"},
                               {kPretrain, "data.input_key"},
                               {kRm, "data.margin_key"},
                               {kDpo | kIpo, "dpo.beta"},
                               {kCdpo, "dpo.label_smoothing"},
                               {kKto, "kto.beta"},
                               {kOrpo, "orpo.beta"},
                               {kSimpo, "simpo.beta"},
                               {kCpo, "cpo.beta"},
                               {kBco, "bco.beta"},
                               {kDistill, "teacher.model_name_or_path"},
                               {kPrm, "prm.placeholder_token"}};

}  // namespace

FirstKeys first_keys(Methods method) {
  if (method == kPpo) return kOfPpo;
  FirstKeys keys = {"actor.model_name_or_path",
                    "data.dataset",
                    "eval.dataset",
                    "",
                    "train.batch_size",
                    "train.max_epochs",
                    "actor.adam.lr",
                    "actor.lora.rank",
                    "data.max_len",
                    "run.path"};
  keys[3] = "train.seed";  // a method without a key of its own
  for (const OwnKey& own : kOwnKeys)
    if ((own.methods & method) != 0) keys[3] = own.key;
  return keys;
}

}  // namespace troupe::config
