// The weights of a model: one flat f32 buffer with a named view per Hugging Face tensor. The
// trainer owns one as its master copy; gradients and optimiser moments are stores of the same
// layout. Not thread-safe; readers may share it while nobody writes.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::model {

struct ParamView {
  std::string name;                 // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;  // as in the file: linear weights are [out, in]
  std::int64_t offset = 0;          // elements from the start of the buffer
  std::int64_t count = 0;
};

// Where each tensor of one layer starts, in elements of the flat buffer; -1 when absent.
struct LayerOffsets {
  std::int64_t input_norm, q, k, v, q_bias, k_bias, v_bias, o, post_norm, gate, up, down;
};

// The order and place of all tensors, the same for weights, gradients and moments.
struct ParamLayout {
  explicit ParamLayout(const ModelSpec& spec);
  std::vector<ParamView> views;  // in the fixed order of the buffer
  std::vector<LayerOffsets> layers;
  std::int64_t embedding = 0;
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  // equal to `embedding` when tied
  // Elements. Tensors start on multiples of 16, except that q, k, v lie side by side as one matrix
  // [qkv_width, hidden], so do their biases, and gate and up as one [2 ffn, hidden].
  std::int64_t total = 0;
};

class ParamStore {
 public:
  explicit ParamStore(const ModelSpec& spec);  // zeros
  ParamStore same_layout() const;              // zeros, for gradients and moments
  const ModelSpec& spec() const { return spec_; }
  const ParamLayout& layout() const { return *layout_; }
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }
  std::int64_t size() const { return layout_->total; }
  std::span<float> view(std::string_view name);  // empty when there is no such tensor
  std::span<const float> view(std::string_view name) const;

 private:
  ParamStore(const ModelSpec& spec, std::shared_ptr<const ParamLayout> layout);
  ModelSpec spec_;
  std::shared_ptr<const ParamLayout> layout_;
  core::Buffer<float> data_;
};

enum class StorageDtype { kF32, kBf16 };

// Reads model.safetensors or the shards of model.safetensors.index.json (f32, bf16, f16 storage).
// Every tensor must be there with its shape; `.bin`/`.pt` weights are refused with the way to
// convert.
core::Result<std::unique_ptr<ParamStore>> load_model(const std::filesystem::path& folder);

// Writes config.json, model.safetensors (sharded above `shard_bytes_max` with its index) so that
// transformers opens it unchanged, and copies the tokenizer files of `tokenizer_from` when not
// empty. Atomic: a temporary folder beside `folder`, fsync, rename.
core::Result<void> save_model(const ParamStore& params,
                              const std::filesystem::path& folder,
                              StorageDtype dtype,
                              const std::filesystem::path& tokenizer_from,
                              std::uint64_t shard_bytes_max = 4ull << 30);

// Fills in a random model (bell-shaped weights of deviation `std`, norms near 1), for tests and
// benches. The values depend on the seed alone.
void randomise(ParamStore& params, std::uint64_t seed, float std);

}  // namespace troupe::model
