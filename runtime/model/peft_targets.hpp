// Which modules of a model an adapter is for, as its adapter_config.json says (PEFT's
// `target_modules`, `exclude_modules`, `layers_to_transform`). A value; pure.
#pragma once

#include "runtime/model/spec_json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::model {

class PeftTargets {
 public:
  // Error kData: a key has a value of another kind.
  static core::Result<PeftTargets> read(const ConfigReader& config);

  // Whether the configuration says it with words. A regular expression is not evaluated, for the
  // folder may be a stranger's, and nothing bounds what one costs.
  bool are_known() const noexcept { return known_; }

  // `module`: "model.layers.3.self_attn.q_proj".
  bool have(const std::string& module, std::int64_t layer) const;

 private:
  bool known_ = true, all_ = false;
  std::vector<std::string> words_, excluded_;
  std::vector<std::int64_t> layers_;  // empty: all
};

// True for an output head or an input embedding, to which no adapter can be put here.
bool is_head_or_embedding(const std::string& module);
inline constexpr const char* kNoSuchAdapters = "heads and embeddings have no adapters here";

}  // namespace troupe::model
