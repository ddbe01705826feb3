// Rows of a dataset as messages carry them, and as trainers read them. Pure functions.
#pragma once

#include "actors/protocol/messages_rows.hpp"
#include "runtime/data/supervised_dataset.hpp"

#include <span>
#include <vector>

namespace troupe::actors {

inline TrainingRow stored(const troupe::data::SupervisedRow& row) {
  TrainingRow out;
  out.id = row.id;
  out.prompt.assign(row.prompt.begin(), row.prompt.end());
  out.answer.assign(row.answer.begin(), row.answer.end());
  out.rejected.assign(row.rejected.begin(), row.rejected.end());
  out.learn.assign(row.learn.begin(), row.learn.end());
  out.margin = row.margin;
  out.desirable = row.desirable;
  out.file = row.file;
  out.line = row.line;
  out.teacher = row.teacher;
  out.category = row.category;
  out.labels.assign(row.labels.begin(), row.labels.end());
  out.shares.assign(row.shares.begin(), row.shares.end());
  return out;
}

// A view that is valid as long as `row`.
inline troupe::data::SupervisedRow view_of(const TrainingRow& row) {
  troupe::data::SupervisedRow out;
  out.id = row.id;
  out.prompt = row.prompt;
  out.answer = row.answer;
  out.rejected = row.rejected;
  out.learn = row.learn;
  out.margin = row.margin;
  out.desirable = row.desirable;
  out.file = row.file;
  out.line = row.line;
  out.teacher = row.teacher;
  out.category = row.category;
  out.labels = row.labels;
  out.shares = row.shares;
  return out;
}

inline std::vector<troupe::data::SupervisedRow> views_of(const std::vector<TrainingRow>& rows) {
  std::vector<troupe::data::SupervisedRow> out;
  out.reserve(rows.size());
  for (const TrainingRow& row : rows)
    out.push_back(view_of(row));
  return out;
}

}  // namespace troupe::actors
