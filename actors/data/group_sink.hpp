// Where finished groups are written when their update is committed: rollouts, evaluation results and
// the ledger of the run folder in practice. Called on the data role's strand, in slot order.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/data/prompt_source.hpp"
#include "actors/data/ticket_book.hpp"
#include "runtime/core/result.hpp"

namespace troupe::actors {

struct CommittedGroup {
  const BookGroup* group = nullptr;
  const Prompt* prompt = nullptr;
};

class GroupSink {
 public:
  virtual ~GroupSink() = default;
  virtual core::Result<void> commit(std::uint64_t update, std::uint64_t after_step,
                                    const std::vector<CommittedGroup>& groups) = 0;
};

}  // namespace troupe::actors
