// The methods of `troupe train` and their own defaults (docs/algorithms.md, "Optimisation").
#include "runtime/config/train_method.hpp"

#include <array>
#include <utility>

namespace troupe::config {
namespace {

constexpr std::array<std::pair<std::string_view, Methods>, 8> kNames = {{{"ppo", kPpo},
                                                                         {"sft", kSft},
                                                                         {"pretrain", kPretrain},
                                                                         {"rm", kRm},
                                                                         {"dpo", kDpo},
                                                                         {"ipo", kIpo},
                                                                         {"cdpo", kCdpo},
                                                                         {"kto", kKto}}};

constexpr MethodDefault kDefaults[] = {
    {kSft | kPretrain, "actor.adam.lr", "5e-6"},
    {kRm, "actor.adam.lr", "9e-6"},
    {kPreference, "actor.adam.lr", "5e-7"},
    {kSupervised, "train.batch_size", "128"},
    {kCdpo, "dpo.label_smoothing", "0.1"},
    {kKto, "data.label_key", "label"},
    {kSft | kPretrain, "run.path", "runs/sft"},
    {kRm, "run.path", "runs/rm"},
    {kPreference, "run.path", "runs/dpo"},
};

}  // namespace

Methods method_bit(std::string_view name) {
  for (const auto& [word, bit] : kNames) {
    if (word == name) return bit;
  }
  return 0;
}

std::string method_names(Methods methods) {
  std::string text;
  for (const auto& [word, bit] : kNames) {
    if ((methods & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

std::span<const MethodDefault> method_defaults() {
  return kDefaults;
}

}  // namespace troupe::config
