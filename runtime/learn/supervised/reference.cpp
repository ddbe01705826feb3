#include "runtime/learn/supervised/reference.hpp"

namespace troupe::learn {

core::Result<RowValues> Reference::of(const data::SupervisedDataset& data,
                                      std::span<const data::SupervisedRow> rows,
                                      const Score& score) {
  std::vector<Kept>& kept = kept_[&data];
  kept.resize(data.size());
  std::vector<data::SupervisedRow> fresh;
  for (const data::SupervisedRow& row : rows) {
    if (!kept[row.id].known) fresh.push_back(row);
  }
  if (!fresh.empty()) {
    TROUPE_TRY_ASSIGN(values, score(*weights_, fresh));
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      kept[fresh[i].id] = {values.first[i], values.second.empty() ? 0 : values.second[i], true};
    }
  }
  RowValues out;
  for (const data::SupervisedRow& row : rows) {
    out.first.push_back(kept[row.id].first);
    out.second.push_back(kept[row.id].second);
  }
  return out;
}

}  // namespace troupe::learn
