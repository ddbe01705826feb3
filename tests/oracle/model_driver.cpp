// What the model oracle tests drive: our forward, gradients and saving on a Hugging Face folder.
//
//   model_driver logits    FOLDER SEQUENCES.json OUT.safetensors   "<i>": [tokens, vocab]
//   model_driver logprobs  FOLDER SEQUENCES.json OUT.safetensors   "<i>.logprobs", "<i>.entropies"
//   model_driver gradients FOLDER SEQUENCES.json OUT.safetensors   one tensor per parameter, "loss"
//   model_driver save      FOLDER OUT_FOLDER f32|bf16 SHARD_BYTES
//
// SEQUENCES.json: {"sequences": [[ids]], "temperature": t}. Log-probs are of tokens 1.. given those
// before; the gradient is of their mean negative log-prob over all sequences, all samples of one
// plan.
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "runtime/store/safetensors.hpp"

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

namespace {

using namespace troupe;
using store::TensorSource;

struct Input {
  std::vector<std::vector<std::int32_t>> sequences;
  float temperature = 1.0f;
};

Input read_input(const char* path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  return {json.at("sequences").get<std::vector<std::vector<std::int32_t>>>(),
          json.value("temperature", 1.0f)};
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
  explicit Loaded(const char* folder)
      : params(model::load_model(folder).value()), weights(params->spec()) {
    weights.fill({}, *params, 0);
  }
  std::unique_ptr<model::ParamStore> params;
  model::PackedWeights weights;
};

void write_logits(const char* folder, const Input& input, const char* out) {
  const Loaded model(folder);
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
    scratch.reserve(spec, rows, rows);
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

void write_gradients(const char* folder, const Input& input, const char* out) {
  at::set_num_threads(1);
  const Loaded model(folder);
  PairTeam team;
  model::ParamStore grads = model.params->same_layout();
  const model::GroupPlan plan = plan_of(input, model.weights.spec(), team.size());
  model::TrainForward forward(team, *model.params, &grads);
  const auto result =
      forward.logprobs(model.weights, plan.plan, plan.targets, input.temperature, false);
  const at::Tensor loss = -result.logprobs.mean();
  loss.backward();
  Outputs outputs;
  outputs.add("loss", {1}, {loss.item<float>()});
  for (const model::ParamView& view : grads.layout().views) {
    const auto values = grads.view(view.name);
    outputs.add(view.name, view.shape, {values.begin(), values.end()});
  }
  outputs.write(out);
}

int save(const char* folder, const char* out, const std::string& dtype, const char* shard_bytes) {
  const auto params = model::load_model(folder).value();
  const auto stored = dtype == "bf16" ? model::StorageDtype::kBf16 : model::StorageDtype::kF32;
  const auto saved = model::save_model(*params, out, stored, folder, std::stoull(shard_bytes));
  if (!saved) std::fprintf(stderr, "%s\n", saved.error().message.c_str());
  return saved ? 0 : core::exit_status(saved.error().code);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "save" && argc == 6) return save(argv[2], argv[3], argv[4], argv[5]);
  if (argc != 5) {
    std::fprintf(stderr, "usage: see the head of model_driver.cpp\n");
    return 2;
  }
  const Input input = read_input(argv[3]);
  if (command == "logits") {
    write_logits(argv[2], input, argv[4]);
  } else if (command == "logprobs") {
    write_logprobs(argv[2], input, argv[4]);
  } else if (command == "gradients") {
    write_gradients(argv[2], input, argv[4]);
  } else {
    std::fprintf(stderr, "unknown command %s\n", command.c_str());
    return 2;
  }
  return 0;
}
