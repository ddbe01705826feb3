// The frozen model that preference losses compare with: its panels, and what it says of rows, kept
// because it never changes (16 bytes a row). Owned by the trainer; one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/supervised/row_runner.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace troupe::learn {

class Reference {
 public:
  // Without panels nothing may be asked.
  explicit Reference(std::shared_ptr<const model::PackedWeights> weights)
      : weights_(std::move(weights)) {}

  // Sums of the reference's log-probs of rows that lie in `data`. `score` runs rows it has not seen
  // yet through the panels.
  using Score = std::function<core::Result<RowValues>(const model::PackedWeights& weights,
                                                      std::span<const data::SupervisedRow> rows)>;
  core::Result<RowValues> of(const data::SupervisedDataset& data,
                             std::span<const data::SupervisedRow> rows,
                             const Score& score);

  const model::PackedWeights& weights() const { return *weights_; }

 private:
  struct Kept {
    double first = 0, second = 0;
    bool known = false;
  };
  std::shared_ptr<const model::PackedWeights> weights_;
  std::map<const data::SupervisedDataset*, std::vector<Kept>> kept_;
};

}  // namespace troupe::learn
