// What a run trains: all weights, all but frozen ones, or low-rank adapters (LoRA, Hu et al. 2021)
// in place of the linear maps they sit on. The answer is a layout: gradients and moments are stores
// of it, so what is not trained costs neither memory nor a product. Pure; any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::model {

struct LoraSettings {
  std::int64_t rank = 0;  // 0: no adapters, the weights themselves are trained
  double alpha = 16;      // W + (alpha / rank) B A
  // Modules with an adapter: "all-linear", or the end of their name ("q_proj", "mlp.up_proj",
  // "model.layers.3.mlp.up_proj"), as PEFT reads `target_modules`.
  std::vector<std::string> target = {"all-linear"};
};

struct TrainedSet {
  std::vector<std::string> freeze;  // tensors whose name holds one of these words are not trained
  LoraSettings lora;
  std::uint64_t seed = 0;  // of fresh adapters
  bool everything() const { return freeze.empty() && lora.rank == 0; }
};

// The layout of the trained tensors. With adapters these are A and B of the target modules, and the
// whole score head of a model that has one (it is new, an adapter could not make it). Errors
// (kConfig): a word of `<key>.freeze` or `<key>.lora.target` that names nothing (with the nearest
// names), nothing left to train.
core::Result<std::shared_ptr<const ParamLayout>> trained_layout(const ModelSpec& spec,
                                                                const TrainedSet& set,
                                                                const std::string& key);

// The lowest layer that has a gradient or has one below it (the embedding's is below all); `layers`
// when only what follows the layers is trained. The backward pass ends there.
std::int64_t first_trained_layer(const ParamLayout& trained);

}  // namespace troupe::model
