// Decides what a run trains: all weights, all but the frozen ones, or low-rank adapters of linear
// maps (LoRA, Hu et al. 2021). The result is a layout for gradients and optimiser moments, so
// frozen tensors cost neither memory nor a product there. Pure functions; any thread.
#pragma once

#include "runtime/config/key_types.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::model {

using config::Float, config::Int, config::Texts;

// W + (alpha / rank) B A. An item of `target` may be the end of a module's name ("q_proj",
// "mlp.up_proj", "model.layers.3.mlp.up_proj"), as PEFT reads `target_modules`.
struct LoraSettings {
#define KEYS "runtime/model/lora_keys.def"
#include "runtime/config/fill.def"
};

struct TrainedSet {
  std::vector<std::string> freeze;  // tensors whose name contains a word are not trained
  LoraSettings lora;
  std::uint64_t seed = 0;  // for the initial values of new adapters
  bool everything() const { return freeze.empty() && lora.rank == 0; }
};

// The layout of the trained tensors. With adapters these are A and B of the target modules, and the
// whole score head if the model has one: it is new, and an adapter could not replace it. `key`: the
// configuration section of `set`, such as "actor". Errors (kConfig): a word of `<key>.freeze` or
// `<key>.lora.target` that matches nothing (the error lists the nearest names); an empty target; an
// alpha that is not above 0; nothing left to train.
core::Result<std::shared_ptr<const ParamLayout>> trained_layout(const ModelSpec& spec,
                                                                const TrainedSet& set,
                                                                const std::string& key);

// The lowest layer that the backward pass must reach: 0 if the embedding is trained, else the
// lowest layer with a trained tensor, or the number of layers if only the final norm or head is
// trained.
std::int64_t first_trained_layer(const ParamLayout& trained);

}  // namespace troupe::model
