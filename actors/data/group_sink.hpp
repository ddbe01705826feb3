// The interface to which the data role gives the groups of an update at its commit; RunFiles writes
// them to the run folder's rollouts, evaluation results and ledger. Called on the data role's
// strand, with groups in slot order.
#pragma once

#include "actors/data/prompt_source.hpp"
#include "actors/data/ticket_book.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors::data {

struct CommittedGroup {
  const BookGroup* group = nullptr;
  const Prompt* prompt = nullptr;
};

class GroupSink {
 public:
  virtual ~GroupSink() = default;
  virtual core::Result<void> commit(std::uint64_t update,
                                    std::uint64_t after_step,
                                    const std::vector<CommittedGroup>& groups) = 0;
};

}  // namespace troupe::actors::data
