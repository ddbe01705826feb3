// The weights of a model: one flat f32 buffer with a named view per Hugging Face tensor. The
// trainer owns one as its master copy; gradients and optimiser moments are stores of the same
// layout, or of a smaller one with only what is trained (trained_layout.hpp). Not thread-safe;
// several threads may read while none writes.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/linears.hpp"
#include "runtime/model/moe_offsets.hpp"
#include "runtime/model/spec.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::model {

inline constexpr const char* kScoreWeight = "score.weight";  // the head of a model that scores

// "[49152, 576]".
std::string shape_text(const std::vector<std::int64_t>& shape);

struct ParamView {
  std::string name;                 // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;  // as in the file; linear weights are [out, in]
  std::int64_t offset = 0;          // elements from the start of the buffer
  std::int64_t count = 0;
};

// Where each tensor of one layer starts, in elements of the flat buffer; -1 when absent. If the
// file has q, k and v as one tensor, `q` is its offset; likewise `gate` for gate and up.
struct LayerOffsets {
  std::int64_t input_norm = -1, q = -1, k = -1, v = -1, q_bias = -1, k_bias = -1, v_bias = -1;
  std::int64_t q_norm = -1, k_norm = -1, o = -1, o_bias = -1, attention_out_norm = -1;
  std::int64_t ffn_norm = -1, gate = -1, up = -1, gate_bias = -1, up_bias = -1;
  std::int64_t down = -1, down_bias = -1, ffn_out_norm = -1;
  MoeOffsets moe;  // of a mixture-of-experts layer, which has no gate, up and down of its own
  std::int64_t of(Linear linear) const {
    const std::int64_t all[] = {q, k, v, o, gate, up, down};
    return all[index_of(linear)];
  }
  // Whether there is a norm or a bias.
  bool has_vectors() const {
    return std::max({input_norm, q_bias, k_bias, v_bias, q_norm, k_norm, o_bias, attention_out_norm,
                     ffn_norm, gate_bias, up_bias, down_bias, ffn_out_norm}) >= 0;
  }
};

// A low-rank adapter of one linear map: A [rank, columns] and B [rows, rank]. Rank 0: none.
struct AdapterOffsets {
  std::int64_t rank = 0, a = -1, b = -1;
};
using LayerAdapters = std::array<AdapterOffsets, kLinears>;

// Which tensors a layout has: the model's tensors for which `keep` is true, and an adapter for each
// linear map for which `rank` is above 0.
struct LayoutChoice {
  std::function<bool(const std::string& name)> keep;
  std::function<std::int64_t(std::int64_t layer, Linear linear)> rank;
  // Where each part of the model (weights_gate.hpp) begins, a multiple of 16; parts may have the
  // same place. Null: each begins where the last one ends.
  std::function<std::int64_t(std::int64_t part)> begin = nullptr;
};

// The order and offsets of all tensors, the same for weights, gradients and optimiser moments.
struct ParamLayout {
  explicit ParamLayout(const ModelSpec& spec);  // all tensors of the model, no adapters
  ParamLayout(const ModelSpec& spec, const LayoutChoice& choice);
  std::vector<ParamView> views;  // in buffer order
  std::vector<LayerOffsets> layers;
  std::vector<LayerAdapters> adapters;  // by layer
  // -1 when absent.
  std::int64_t embedding = 0;
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  // lm_head, or `embedding` when tied, or score [1, hidden]
  const ParamView* find(std::string_view name) const;  // null when absent
  // Elements in the buffer. Tensors start on multiples of 16, except that those of one matrix are
  // adjacent: q, k, v [qkv_width, hidden], their biases, gate, up [2 ffn, hidden], their biases,
  // and the experts' (moe_offsets.hpp).
  std::int64_t total = 0;
};

class ParamStore {
 public:
  explicit ParamStore(const ModelSpec& spec);  // zeros
  // Zeros in `memory`, that of the team that computes with them.
  ParamStore(const ModelSpec& spec,
             std::shared_ptr<const ParamLayout> layout,
             core::Memory& memory = core::host_memory());
  ParamStore same_layout() const;             // zeros in the same memory, for gradients and moments
  ParamStore to(core::Memory& memory) const;  // a copy; one side must be the host, or both the same
  core::Memory& memory() const { return data_.memory(); }
  const ModelSpec& spec() const { return spec_; }
  // The mean and deviation that normalise a score head's values; stored in config.json.
  void set_score_scale(double mean, double std) {
    spec_.score_mean = mean;
    spec_.score_std = std;
  }
  // The text that save_model writes as config.json.
  void set_config_json(std::string text) { spec_.config_json = std::move(text); }
  const ParamLayout& layout() const { return *layout_; }
  const std::shared_ptr<const ParamLayout>& shared_layout() const { return layout_; }
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }
  std::int64_t size() const { return layout_->total; }
  // A tensor of a store on the host; empty when there is no such tensor.
  std::span<float> view(std::string_view name);
  std::span<const float> view(std::string_view name) const;

 private:
  ModelSpec spec_;
  std::shared_ptr<const ParamLayout> layout_;
  core::Buffer<float> data_;
};

// Host access to the numbers of a store: the store itself, or a copy if it is on a device. Create
// it on the thread that owns the device's team, and leave the store unchanged while it lives.
class HostCopy {
 public:
  explicit HostCopy(const ParamStore& store);
  const ParamStore& operator*() const { return copy_ ? *copy_ : store_; }
  const ParamStore* operator->() const { return &**this; }

 private:
  const ParamStore& store_;
  std::optional<ParamStore> copy_;
};

enum class StorageDtype { kF32, kBf16 };

// Reads model.safetensors or the shards of model.safetensors.index.json (f32, bf16 or f16 storage).
// Every tensor must be present with its shape. `.bin` and `.pt` weights are refused with a hint how
// to convert them. `head` is the head that the caller needs. For kScore, a model with a language
// head gets a new score head, drawn from `seed`: normal with standard deviation 1 / (hidden + 1).
// For kLanguage, a model with a score head is an error.
core::Result<std::unique_ptr<ParamStore>> load_model(const std::filesystem::path& folder,
                                                     HeadKind head = HeadKind::kLanguage,
                                                     std::uint64_t seed = 0);

// The paths of the files that load_model reads weights from. Opens each and checks its header.
core::Result<std::vector<std::filesystem::path>> weight_files(const std::filesystem::path& folder);

// Writes config.json and model.safetensors (above `shard_bytes_max` bytes as shards with an index)
// so that transformers can open them. Copies the tokenizer files of `tokenizer_from` unless that is
// empty. Atomic: a temporary folder next to `folder`, fsync, rename.
core::Result<void> save_model(const ParamStore& params,
                              const std::filesystem::path& folder,
                              StorageDtype dtype,
                              const std::filesystem::path& tokenizer_from,
                              std::uint64_t shard_bytes_max = 4ull << 30);

// Fills in random weights for tests and benches: nearly normal with deviation `std`, and norms near
// 1. The values depend on the seed alone.
void randomise(ParamStore& params, std::uint64_t seed, float std);

}  // namespace troupe::model
