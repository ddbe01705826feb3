// What the model oracle tests drive: our forward, gradients and saving on a Hugging Face folder.
//
//   model_driver logits    FOLDER SEQUENCES.json OUT.safetensors   "<i>": [tokens, vocab]
//   model_driver logprobs  FOLDER SEQUENCES.json OUT.safetensors   "<i>.logprobs", "<i>.entropies"
//   model_driver gradients FOLDER SEQUENCES.json OUT.safetensors   one tensor per parameter, "loss"
//   model_driver values    FOLDER SEQUENCES.json OUT.safetensors   "<i>": [tokens] of a score head
//   model_driver value_gradients FOLDER SEQUENCES.json OUT.safetensors   of half their mean square
//   model_driver save      FOLDER OUT_FOLDER f32|bf16 SHARD_BYTES [score SEED]
//   model_driver adapter   FOLDER OUT_FOLDER RANK ALPHA TARGET,TARGET,... SEED
//     a random adapter of the model: PEFT's folder OUT_FOLDER, and OUT_FOLDER.merged
//   model_driver adapter_gradients FOLDER SEQUENCES.json OUT.safetensors ADAPTER
//     of the adapter's tensors, the loss as for `gradients`
//   model_driver match     PATTERNS.json   [[pattern, [names]]]: a line for each pattern
//
// SEQUENCES.json: {"sequences": [[ids]], "temperature": t, "balance": w, "fixed": id}. Log-probs
// are of tokens 1.. given those before; the gradient is of their mean negative log-prob over all
// sequences, all samples of one plan. With w the gradient of w times the load-balancing loss goes
// with it, whose value is "balance". The row of the token "fixed" in the input embedding gets no
// gradient. A score head is read where there is one; `save ... score SEED` makes one where there is
// none.
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/peft_folder.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "runtime/parse/name_pattern.hpp"
#include "runtime/store/safetensors.hpp"

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace {

using namespace troupe;
using store::TensorSource;

struct Input {
  std::vector<std::vector<std::int32_t>> sequences;
  float temperature = 1.0f;
  double balance = 0;
  std::int32_t fixed = -1;
};

Input read_input(const char* path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  return {json.at("sequences").get<std::vector<std::vector<std::int32_t>>>(),
          json.value("temperature", 1.0f), json.value("balance", 0.0), json.value("fixed", -1)};
}

class PairTeam final : public core::TeamRunner {
 public:
  void run(const std::function<void(core::Team)>& region) override {
    core::TeamBarrier barrier(2);
    std::jthread other([&] { region({1, 2, &barrier}); });
    region({0, 2, &barrier});
  }
  int size() const noexcept override { return 2; }
};

// Each sequence as a group of its own: its first token is the prompt.
model::GroupPlan plan_of(const Input& input, const model::ModelSpec& spec, int members) {
  std::vector<model::SampleGroup> groups;
  for (const auto& sequence : input.sequences) {
    const std::span<const std::int32_t> all(sequence);
    groups.push_back({all.first(1), {all.subspan(1)}});
  }
  model::GroupPlan plan;
  model::build_group_plan(groups, spec, members, plan).value();
  return plan;
}

// The outputs of one run; they own the memory that is written.
class Outputs {
 public:
  void add(std::string name, std::vector<std::int64_t> shape, std::vector<float> values) {
    values_.push_back(std::move(values));
    sources_.push_back({std::move(name), store::Dtype::kF32, std::move(shape), nullptr});
  }
  void write(const char* path) {
    for (std::size_t i = 0; i < sources_.size(); ++i)
      sources_[i].data = values_[i].data();
    store::write_safetensors(path, sources_, {}).value();
  }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<TensorSource> sources_;
};

struct Loaded {
  explicit Loaded(const char* folder,
                  model::HeadKind head = model::HeadKind::kLanguage,
                  kernels::PanelDtype dtype = kernels::PanelDtype::kF32)
      : params(model::load_model(folder, head).value()), weights(params->spec(), dtype) {
    weights.fill({}, *params, 0);
  }
  std::unique_ptr<model::ParamStore> params;
  model::PackedWeights weights;
};

template <kernels::PanelDtype dtype = kernels::PanelDtype::kF32>
void write_logits(const char* folder, const Input& input, const char* out) {
  const Loaded model(folder, model::HeadKind::kLanguage, dtype);
  const model::ModelSpec& spec = model.weights.spec();
  const std::int64_t ld = kernels::panels_of(spec.vocab) * kernels::kPanel;
  PairTeam team;
  model::ForwardScratch scratch;
  Outputs outputs;
  for (std::size_t i = 0; i < input.sequences.size(); ++i) {
    // The last token's row is wanted too, so a token is put behind it.
    Input one{{input.sequences[i]}};
    one.sequences[0].push_back(0);
    const model::GroupPlan plan = plan_of(one, spec, team.size());
    const std::int64_t rows = plan.plan.rows();
    model::KvPool pool(spec, spec.layers, rows / 16 + 2);
    scratch.reserve(core::host_memory(), spec, rows, rows);
    std::vector<float> padded(static_cast<std::size_t>(rows * ld));
    team.run([&](core::Team member) {
      model::forward_hidden(member, model.weights, plan.plan, pool, scratch);
      model::head_forward(member, model.weights, scratch.head_in.data(), rows, padded.data(), ld,
                          nullptr, nullptr, nullptr);
    });
    std::vector<float> logits;
    for (std::int64_t r = 0; r < rows; ++r) {
      logits.insert(logits.end(), padded.begin() + r * ld, padded.begin() + r * ld + spec.vocab);
    }
    outputs.add(std::to_string(i), {rows, spec.vocab}, std::move(logits));
  }
  outputs.write(out);
}

void write_logprobs(const char* folder, const Input& input, const char* out) {
  const Loaded model(folder);
  core::SerialTeam team;
  model::ScoreScratch scratch;
  Outputs outputs;
  for (std::size_t i = 0; i < input.sequences.size(); ++i) {
    const model::GroupPlan plan = plan_of({{input.sequences[i]}}, model.weights.spec(), 1);
    std::vector<float> logprobs(plan.targets.token.size()), entropies = logprobs;
    model::score_logprobs(team, model.weights, plan.plan, plan.targets, input.temperature, scratch,
                          logprobs, entropies);
    outputs.add(std::to_string(i) + ".logprobs", {plan.targets.size()}, std::move(logprobs));
    outputs.add(std::to_string(i) + ".entropies", {plan.targets.size()}, std::move(entropies));
  }
  outputs.write(out);
}

// Every token of every sequence has a head row: a token is put behind each.
model::GroupPlan plan_of_all_tokens(Input input, const model::ModelSpec& spec, int members) {
  for (auto& sequence : input.sequences)
    sequence.push_back(0);
  return plan_of(input, spec, members);
}

void write_values(const char* folder, const Input& input, const char* out) {
  const Loaded model(folder, model::HeadKind::kScore);
  PairTeam team;
  model::ScoreScratch scratch;
  Outputs outputs;
  for (std::size_t i = 0; i < input.sequences.size(); ++i) {
    const model::GroupPlan plan =
        plan_of_all_tokens({{input.sequences[i]}}, model.weights.spec(), team.size());
    std::vector<float> values(plan.plan.logit_rows.size());
    model::score_values(team, model.weights, plan.plan, scratch, values);
    const auto count = static_cast<std::int64_t>(values.size());
    outputs.add(std::to_string(i), {count}, std::move(values));
  }
  outputs.write(out);
}

void write_tensors(Outputs& outputs, const model::ParamStore& store) {
  for (const model::ParamView& view : store.layout().views) {
    const auto values = store.view(view.name);
    outputs.add(view.name, view.shape, {values.begin(), values.end()});
  }
}

void write_value_gradients(const char* folder, const Input& input, const char* out) {
  at::set_num_threads(1);
  const Loaded model(folder, model::HeadKind::kScore);
  PairTeam team;
  model::ParamStore grads = model.params->same_layout();
  const model::GroupPlan plan = plan_of_all_tokens(input, model.weights.spec(), team.size());
  model::TrainForward forward(team, *model.params, &grads);
  const at::Tensor values = forward.values(model.weights, plan.plan);
  const at::Tensor loss = values.square().mean() * 0.5;
  loss.backward();
  Outputs outputs;
  outputs.add("loss", {1}, {loss.item<float>()});
  write_tensors(outputs, grads);
  outputs.write(out);
}

void write_gradients(const char* folder, const Input& input, const char* out) {
  at::set_num_threads(1);
  const Loaded model(folder);
  PairTeam team;
  model::ParamStore grads = model.params->same_layout();
  const model::GroupPlan plan = plan_of(input, model.weights.spec(), team.size());
  model::TrainForward forward(team, *model.params, &grads);
  forward.set_balance(input.balance);
  forward.fix_embedding_of(input.fixed);
  const auto result =
      forward.logprobs(model.weights, plan.plan, plan.targets, input.temperature, false);
  const at::Tensor loss = -result.logprobs.mean();
  loss.backward();
  Outputs outputs;
  outputs.add("loss", {1}, {loss.item<float>()});
  if (input.balance != 0) outputs.add("balance", {1}, {static_cast<float>(forward.balance_loss())});
  write_tensors(outputs, grads);
  outputs.write(out);
}

void write_adapter_gradients(const char* folder,
                             const Input& input,
                             const char* out,
                             const char* adapter) {
  at::set_num_threads(1);
  Loaded model(folder);
  PairTeam team;
  const auto lora = model::load_adapter(adapter, *model.params).value();
  lora->merge(team, *model.params);
  model.weights.fill({}, *model.params, 1);
  model::ParamStore grads = lora->values().same_layout();
  const model::GroupPlan plan = plan_of(input, model.weights.spec(), team.size());
  model::TrainForward forward(team, *model.params, &grads, /*checkpointing=*/true, lora.get());
  const auto result =
      forward.logprobs(model.weights, plan.plan, plan.targets, input.temperature, false);
  const at::Tensor loss = -result.logprobs.mean();
  loss.backward();
  Outputs outputs;
  outputs.add("loss", {1}, {loss.item<float>()});
  write_tensors(outputs, grads);
  outputs.write(out);
}

int make_adapter(const char* folder, const std::string& out, char** words) {
  const auto params = model::load_model(folder).value();
  model::LoraSettings settings{std::stoll(words[0]), std::stod(words[1]), {}};
  std::stringstream targets(words[2]);
  for (std::string word; std::getline(targets, word, ',');)
    settings.target.push_back(word);
  const auto layout = model::trained_layout(params->spec(), {{}, settings, 0}, "actor").value();
  model::Lora lora(*params, layout, settings.alpha / static_cast<double>(settings.rank));
  model::randomise(lora.values(), std::stoull(words[3]), 0.2f);
  model::save_adapter(lora, settings, folder, out).value();
  core::SerialTeam team;
  lora.merge(team, *params);
  model::save_model(*params, out + ".merged", model::StorageDtype::kF32, {}).value();
  return 0;
}

int save(const char* folder,
         const char* out,
         const std::string& dtype,
         const char* shard_bytes,
         const char* score_seed) {
  const auto params =
      score_seed == nullptr
          ? model::load_model(folder).value()
          : model::load_model(folder, model::HeadKind::kScore, std::stoull(score_seed)).value();
  const auto stored = dtype == "bf16" ? model::StorageDtype::kBf16 : model::StorageDtype::kF32;
  const auto saved = model::save_model(*params, out, stored, folder, std::stoull(shard_bytes));
  if (!saved) std::fprintf(stderr, "%s\n", saved.error().message.c_str());
  return saved ? 0 : core::exit_status(saved.error().code);
}

// For each [pattern, [names]] of a JSON file a line: 1 or 0 for each name, or why not.
int match_names(const char* file) {
  std::ifstream in(file);
  for (const auto& item : nlohmann::json::parse(in)) {
    const auto pattern = parse::NamePattern::compile(item[0].get<std::string>());
    std::string line = pattern ? "" : "refused: " + pattern.error().message;
    if (pattern) {
      for (const auto& name : item[1]) {
        const auto matches = pattern->matches(name.get<std::string>());
        line += !matches ? '?' : *matches ? '1' : '0';
      }
    }
    std::printf("%s\n", line.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "save" && argc == 6) return save(argv[2], argv[3], argv[4], argv[5], nullptr);
  if (command == "save" && argc == 8) return save(argv[2], argv[3], argv[4], argv[5], argv[7]);
  if (command == "adapter" && argc == 8) return make_adapter(argv[2], argv[3], argv + 4);
  if (command == "adapter_gradients" && argc == 6) {
    write_adapter_gradients(argv[2], read_input(argv[3]), argv[4], argv[5]);
    return 0;
  }
  if (command == "match" && argc == 3) return match_names(argv[2]);
  if (argc != 5) {
    std::fprintf(stderr, "usage: see the head of model_driver.cpp\n");
    return 2;
  }
  const Input input = read_input(argv[3]);
  if (command == "logits") {
    write_logits(argv[2], input, argv[4]);
  } else if (command == "logits-bf16") {
    write_logits<kernels::PanelDtype::kBf16>(argv[2], input, argv[4]);
  } else if (command == "logits-int8") {
    write_logits<kernels::PanelDtype::kInt8>(argv[2], input, argv[4]);
  } else if (command == "logprobs") {
    write_logprobs(argv[2], input, argv[4]);
  } else if (command == "values") {
    write_values(argv[2], input, argv[4]);
  } else if (command == "value_gradients") {
    write_value_gradients(argv[2], input, argv[4]);
  } else if (command == "gradients") {
    write_gradients(argv[2], input, argv[4]);
  } else {
    std::fprintf(stderr, "unknown command %s\n", command.c_str());
    return 2;
  }
  return 0;
}
