// What answers requests: the one engine of `troupe serve`, or the generators of a run. Any thread.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/engine/group_watch.hpp"
#include "runtime/engine/types.hpp"

#include <cstddef>
#include <functional>

namespace troupe::dialects {

class Sampler {
 public:
  using Listener = std::function<void(engine::GroupNews)>;
  virtual ~Sampler() = default;

  virtual core::GroupId next_id() = 0;
  // Submits a group. Calls `listener` on `executor` with its news until all samples have finished,
  // an error is reported, or `abort` is called (news already posted may still arrive then). News
  // has `grown` only if `stream` is set.
  virtual void submit(engine::GroupRequest request,
                      bool stream,
                      async::Executor executor,
                      Listener listener) = 0;
  // Ends the group. Does nothing for unknown ids.
  virtual void abort(core::GroupId group) = 0;
  // From now on what is submitted may be refused: nothing uses it.
  virtual void close() {}
  // The version of the weights that sample now.
  virtual core::Version version() const = 0;
};

// Told of each event of a generation. Seconds count from the arrival of the request. Any thread.
class GenerationEvents {
 public:
  virtual ~GenerationEvents() = default;
  virtual void prompt(std::size_t tokens) = 0;  // a group with a prompt of this length is submitted
  virtual void first_token(double seconds) = 0;  // a group has its first token
  virtual void finished(std::size_t tokens,
                        engine::FinishReason reason,
                        double seconds) = 0;      // a sample
  virtual void aborted(std::size_t samples) = 0;  // unfinished samples of a client that left
};

}  // namespace troupe::dialects
