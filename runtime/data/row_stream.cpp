#include "runtime/data/row_stream.hpp"

#include "runtime/core/check.hpp"
#include "runtime/data/limits.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::data {

RowStream::RowStream(std::shared_ptr<const RowIndex> index,
                     BufferOrder order,
                     std::string key,
                     parse::Numbers numbers)
    : index_(std::move(index)), order_(std::move(order)), key_(std::move(key)), numbers_(numbers) {}

Result<const StreamedRow*> RowStream::at(std::uint64_t place) {
  if (const auto again = given_.find(place); again != given_.end()) return &again->second;
  const std::uint64_t row = order_.row_at(place);
  const bool onward =
      latest_ && place > *latest_ && place / order_.rows() == *latest_ / order_.rows();
  if (!onward) turn_to(row);
  if (onward && place - *latest_ > 1)
    std::erase_if(held_,
                  [&](const auto& one) { return one.first != row && !order_.holds(one.first); });
  latest_.reset();  // until the row is there
  TROUPE_TRY(read_to(row));
  latest_ = place;
  auto found = held_.extract(row);
  TROUPE_CHECK(!found.empty(), "a stream holds all rows that it passed and has yet to give");
  const auto [given, fresh] = given_.emplace(place, std::move(found.mapped()));
  if (given_.size() > limits::kStream_kept_rows) {
    const bool oldest = given_.begin() != given;
    given_.erase(oldest ? given_.begin() : std::prev(given_.end()));
  }
  return &given->second;
}

// Begins anew at the first row that is needed, when `row` comes next.
void RowStream::turn_to(std::uint64_t row) {
  source_.reset();
  held_.clear();
  next_ = std::min(row, order_.first_left());
}

Result<void> RowStream::read_to(std::uint64_t row) {
  for (; next_ <= row; ++next_) {
    if (next_ != row && !order_.holds(next_)) continue;
    TROUPE_TRY_ASSIGN(read_row, read(next_));
    held_.emplace(next_, std::move(read_row));
  }
  return {};
}

Result<StreamedRow> RowStream::read(std::uint64_t row) {
  const RowIndex::Place place = index_->place_of(row);
  TROUPE_TRY(go_to(place));
  TROUPE_TRY_ASSIGN(json, source_->next());
  if (json == nullptr) {
    return fail(ErrorCode::kData, index_->name(place.file) + ": ends before row " +
                                      std::to_string(place.number + 1) + ", which it had");
  }
  ++at_.number;
  return StreamedRow{row, place.file, *json, source_->where()};
}

Result<void> RowStream::go_to(const RowIndex::Place& place) {
  if (!source_ || at_.file != place.file) {
    TROUPE_TRY_SET(source_, index_->open(place.file, key_, numbers_));
    at_ = {place.file, 0};
  }
  TROUPE_TRY(source_->skip(place.number - at_.number));
  at_.number = place.number;
  return {};
}

}  // namespace troupe::data
