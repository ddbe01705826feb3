#include "runtime/config/trl_settings.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

namespace troupe::config {
namespace {

// TRL's defaults, of version 1.
constexpr std::int64_t kDeviceBatch = 8, kGroup = 8, kGroupOfRloo = 2;
constexpr const char* kEpsilon = "0.2";

class Joiner {
 public:
  explicit Joiner(PeerFile& file) : file_(file) {}

  void all() {
    if (file_.method == kPpo) {
      sampled_batch();
      clip();
    } else {
      batch();
    }
    dataset();
  }

 private:
  // The last setting of a name; null: none.
  const PeerSetting* find(std::string_view name) const {
    const auto found =
        std::find_if(file_.settings.rbegin(), file_.settings.rend(),
                     [&](const PeerSetting& one) { return one.written.name == name; });
    return found == file_.settings.rend() ? nullptr : &*found;
  }
  // Its value; empty: it is not given, or is null. Nothing: not one known word.
  std::optional<std::string> word(std::string_view name) const {
    const PeerSetting* const setting = find(name);
    if (setting == nullptr) return std::string();
    if (!setting->unknown.empty() || setting->written.values.size() != 1) return std::nullopt;
    const std::string& value = setting->written.values[0];
    return value == "null" || value == "None" ? std::string() : value;
  }
  // A number, `otherwise` where it is not given; 0: none.
  std::int64_t number(std::string_view name, std::int64_t otherwise) const {
    const auto text = word(name);
    if (!text) return 0;
    if (text->empty()) return otherwise;
    const auto value = core::number_of<std::int64_t>(*text);
    return value && *value > 0 && *value <= 1'000'000 ? *value : 0;
  }

  // Puts a setting in the place of these; `note`: what to say behind their names and values.
  // `keep`: they are taken for another key, too.
  void put(std::initializer_list<std::string_view> names,
           std::string key,
           std::string value,
           const std::string& note,
           bool keep = false) {
    const auto is_one = [&](const PeerSetting& one) {
      return std::ranges::find(names, one.written.name) != names.end();
    };
    std::string where;
    std::string told;
    for (const std::string_view name : names) {
      const PeerSetting* const one = find(name);
      if (one == nullptr) continue;
      where = one->written.where;
      told += joined(told.empty() ? "" : ", ", name, " ", core::joined(one->written.values, " "));
    }
    if (where.empty() && !made_.empty()) where = made_.back().written.where;
    if (!keep) std::erase_if(file_.settings, is_one);
    made_.push_back({{std::move(key), {std::move(value)}, false, where}, false, {}, told + note});
  }
  void finish() { std::ranges::move(std::exchange(made_, {}), std::back_inserter(file_.settings)); }

  void batch() {
    if (find("num_processes") == nullptr) return;  // the table multiplies the other two
    const std::int64_t step = number("per_device_train_batch_size", kDeviceBatch) *
                              number("gradient_accumulation_steps", 1) * number("num_processes", 1);
    if (step == 0) return;
    put({"per_device_train_batch_size", "gradient_accumulation_steps", "num_processes"},
        "train.batch_size", std::to_string(step),
        ": their product; TRL's device has 8 unless it is said");
    finish();
  }

  // Batches of TRL's GRPO and RLOO count completions: a generation has per_device_train_batch_size
  // x processes x steps_per_generation of them, num_generations to a prompt.
  void sampled_batch() {
    constexpr std::string_view kNames[] = {"per_device_train_batch_size",
                                           "gradient_accumulation_steps", "num_processes",
                                           "steps_per_generation", "generation_batch_size"};
    if (std::ranges::none_of(kNames, [&](auto name) { return find(name) != nullptr; })) return;
    const bool rloo = std::ranges::any_of(
        file_.implied, [](const Setting& one) { return one.values.front() == "rloo"; });
    const std::int64_t accumulated = number("gradient_accumulation_steps", 1);
    const std::int64_t together =
        number("per_device_train_batch_size", kDeviceBatch) * number("num_processes", 1);
    const std::int64_t group = number("num_generations", rloo ? kGroupOfRloo : kGroup);
    const std::int64_t generated =
        number("generation_batch_size", together * number("steps_per_generation", accumulated));
    if (std::min({together, accumulated, group, generated}) == 0 || generated % group != 0) return;
    const std::string of =
        joined(": completions by step, ", generated, " by generation, ", group, " to a prompt");
    put({"per_device_train_batch_size", "gradient_accumulation_steps", "num_processes"},
        "train.batch_size", std::to_string(together * accumulated), of, true);
    put({"per_device_train_batch_size", "gradient_accumulation_steps", "num_processes",
         "steps_per_generation", "generation_batch_size"},
        "rollout.batch_size", std::to_string(generated / group),
        joined(": prompts of a generation of ", generated, " completions"));
    if (find("num_generations") == nullptr)
      put({}, "rollout.n_samples_per_prompt", std::to_string(group), "TRL's default");
    finish();
  }

  void clip() {
    const auto high = word("epsilon_high"), low = word("epsilon");
    if (!high || !low || high->empty()) return;
    if (!core::number_of<double>(*high)) return;
    if (!low->empty() && !core::number_of<double>(*low)) return;
    const std::string below = low->empty() ? kEpsilon : *low;
    put({"epsilon", "epsilon_high"}, "actor.eps_clip_low_high", below,
        low->empty() ? joined(", and ", kEpsilon, " below, TRL's default") : "");
    made_.back().written.values.push_back(*high);
    made_.back().written.is_list = true;
    finish();
  }

  // OWNER/NAME[:CONFIG][:SPLIT], where the name is none of a path.
  void dataset() {
    const auto name = word("dataset_name"), config = word("dataset_config");
    const auto train = word("dataset_train_split"), test = word("dataset_test_split");
    if (!name || !config || !train || !test || !is_hub_name(*name)) return;
    if (config->empty() && train->empty() && test->empty()) return;
    const auto whole = [&](const std::string& split) {
      std::string out = *name;
      if (!config->empty()) out += ":" + *config;
      if (!split.empty()) out += (config->empty() ? "::" : ":") + split;
      return out;
    };
    const auto evaluates = word("eval_strategy").value_or("");
    const bool held_out = !test->empty() && !evaluates.empty() && evaluates != "no";
    const std::string where = find("dataset_name")->written.where;
    if (held_out) put({"dataset_test_split"}, "eval.dataset", whole(*test), "", true);
    put({"dataset_name", "dataset_config", "dataset_train_split"}, "dataset_name", whole(*train),
        "");
    made_.back().written.where = where;
    if (held_out) {
      std::erase_if(file_.settings, [](const PeerSetting& one) {
        return one.written.name == "dataset_test_split";
      });
    }
    finish();
  }

  static bool is_hub_name(const std::string& name) {
    std::error_code error;
    return std::ranges::count(name, '/') == 1 && name.find_first_of(":~") == name.npos &&
           name[0] != '/' && name[0] != '.' && name.back() != '/' &&
           !std::filesystem::exists(name, error);
  }

  PeerFile& file_;
  std::vector<PeerSetting> made_;
};

}  // namespace

void join_trl_settings(PeerFile& file) {
  Joiner(file).all();
}

}  // namespace troupe::config
