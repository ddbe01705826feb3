// Which modules of a model an adapter is for, as its adapter_config.json says (PEFT's
// `target_modules`, `exclude_modules`, `layers_to_transform`). A value; pure.
#pragma once

#include "runtime/model/spec_json.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::parse {
class NamePattern;
}

namespace troupe::model {

class PeftTargets {
 public:
  // Error kData: a key has a value of another kind, or a regular expression that is not evaluated
  // here (parse::NamePattern).
  static core::Result<PeftTargets> read(const ConfigReader& config);

  // Whether the configuration says it.
  bool are_known() const noexcept { return known_; }

  // `module`: "model.layers.3.self_attn.q_proj". Error kData: a regular expression takes too many
  // steps.
  core::Result<bool> have(const std::string& module, std::int64_t layer) const;

 private:
  // What one key says: names, or an expression that a whole name must match.
  struct Choice {
    std::vector<std::string> words;
    std::shared_ptr<const parse::NamePattern> pattern;  // null: the words count
  };
  static core::Result<Choice> read_choice(const ConfigReader& config, const char* key);
  static core::Result<bool> has(const Choice& choice, const std::string& module);

  bool known_ = true, all_ = false;
  Choice wanted_, excluded_;
  std::vector<std::int64_t> layers_;  // empty: all; of names alone, as PEFT has it
};

// True for an output head or an input embedding, to which no adapter can be put here.
bool is_head_or_embedding(const std::string& module);
inline constexpr const char* kNoSuchAdapters = "heads and embeddings have no adapters here";

}  // namespace troupe::model
