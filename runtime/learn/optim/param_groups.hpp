// Tensors with a learning rate and a weight decay of their own (`actor.param_groups`). Pure values.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learn {

// The tensors whose name holds `word`; a tensor belongs to the first group that fits.
struct ParamGroup {
  std::string word;
  double lr_scale = 1;                 // of the learning rate of the step
  std::optional<double> weight_decay;  // none: that of the optimiser
};

// Reads "WORD lr=0.1 weight_decay=0", with one or both settings. Errors (kConfig) name the text.
core::Result<std::vector<ParamGroup>> parse_param_groups(const std::vector<std::string>& texts);
// kConfig, naming `key` and the word: a group has no tensor of `trained`.
core::Result<void> check_param_groups(const std::vector<ParamGroup>& groups,
                                      const model::ParamLayout& trained,
                                      const std::string& key);

// The first group that a tensor of this name fits; -1: none.
int group_of(const std::vector<ParamGroup>& groups, const std::string& tensor);

// The kinds of the elements of a flat buffer: numbers that `kind_of` gives its tensors.
class KindSpans {
 public:
  using KindOf = std::function<int(const model::ParamView& tensor)>;
  KindSpans(const model::ParamLayout& trained, const KindOf& kind_of);

  // Calls `use` for neighbouring parts of `elements`, each of one kind.
  using Use = std::function<void(core::Range part, int kind)>;
  void each(core::Range elements, const Use& use) const;

 private:
  struct Span {
    std::int64_t end = 0;
    int kind = 0;
  };
  std::vector<Span> spans_;  // ascending
};

}  // namespace troupe::learn
