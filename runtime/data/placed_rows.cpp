#include "runtime/data/placed_rows.hpp"

#include <utility>

namespace troupe::data {
namespace {

class HeldRows final : public PlacedRows {
 public:
  HeldRows(std::shared_ptr<const SupervisedDataset> rows, BlendOrder order)
      : rows_(std::move(rows)), order_(std::move(order)) {}

  std::uint64_t size() const override { return rows_->size(); }
  bool reads_files() const override { return false; }
  Result<SupervisedRow> at(std::uint64_t place) override {
    return rows_->row(order_.row_at(place));
  }

 private:
  const std::shared_ptr<const SupervisedDataset> rows_;
  BlendOrder order_;
};

}  // namespace

MakePlacedRows held_rows(std::shared_ptr<const SupervisedDataset> rows, BlendOrder order) {
  return [rows = std::move(rows), order = std::move(order)] {
    return std::make_unique<HeldRows>(rows, order);
  };
}

}  // namespace troupe::data
