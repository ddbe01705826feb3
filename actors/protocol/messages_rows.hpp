// The messages of supervised training, as plain values (messages.hpp has the other ones): the
// trainer asks the data role for rows, page by page; the controller asks the trainer for
// evaluations. A step is a TrainUpdate whose `groups` are rows. Bound: a page has kPage_bytes, or
// one row.
#pragma once

#include "actors/protocol/messages.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

// One row of a dataset, encoded (data::SupervisedRow says what the fields hold).
struct TrainingRow {
  std::uint64_t id = 0;  // index in its dataset
  std::vector<std::int32_t> prompt, answer, rejected;
  std::vector<std::uint8_t> learn;
  double margin = 0;
  bool desirable = true;
  std::string file;
  std::uint64_t line = 0;
  std::uint32_t teacher = 0;
  std::vector<std::int32_t> labels{};
  std::vector<float> shares{};
  std::string category{};

  // Error kData: the flags do not fit the answer, or the labels do not fit the flags.
  core::Result<void> check() const {
    if (!learn.empty() && learn.size() != answer.size()) {
      return core::fail(core::ErrorCode::kData, "a row's flags do not match its tokens");
    }
    const std::size_t given = labels.size() + shares.size();
    const auto learned = learn.size() - static_cast<std::size_t>(std::count(
                                            learn.begin(), learn.end(), std::uint8_t{0}));
    if (given == 0 || given == learned) return {};
    return core::fail(core::ErrorCode::kData, "a row's labels do not match the tokens it learns");
  }
};

struct RowsPage {
  std::vector<TrainingRow> rows;  // from the first place asked for on, at least one
  std::uint64_t total = 0;        // rows of the dataset
};

// Asks for the rows at the places [first, first + count) of the order in which training takes them,
// or of the held-out rows. A page has as many as fit it; `count` 0 asks for no other bound.
struct FetchRows {
  using Reply = RowsPage;
  bool held_out = false;
  std::uint64_t first = 0;
  std::uint32_t count = 0;
};

// Answers with the figures of the held-out rows under the weights after `steps` steps. `last`: of
// the run; a reward model then keeps mean and deviation of its scores.
struct EvaluateRows {
  using Reply = Trained;
  std::uint64_t steps = 0;
  bool last = false;
};

}  // namespace troupe::actors
