// The rows of supervised training by their place in the order in which a run takes them: held in
// memory (SupervisedDataset), or read from the files as they come (StreamedDataset). A place always
// means the same row, so a resumed run needs only the place. One owner, one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/blend_order.hpp"
#include "runtime/data/supervised_dataset.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace troupe::data {

class PlacedRows {
 public:
  virtual ~PlacedRows() = default;
  virtual std::uint64_t size() const = 0;  // rows of the dataset
  virtual bool reads_files() const = 0;    // `at` may take long
  // The row at a place, valid until the next call. Errors: those of reading it.
  virtual core::Result<SupervisedRow> at(std::uint64_t place) = 0;
};

// Makes readers of the same rows, each for one owner. Any thread.
using MakePlacedRows = std::function<std::unique_ptr<PlacedRows>()>;

MakePlacedRows held_rows(std::shared_ptr<const SupervisedDataset> rows, BlendOrder order);

}  // namespace troupe::data
