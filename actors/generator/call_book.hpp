// The calls of episodes that a generator was asked for: held until its weights are new enough, then
// in its engine, each as a group of one sample. A pure state machine, as GroupBook. A repeated
// request joins the call that the book has. Bound: those that the controller sends at a time.
#pragma once

#include "actors/protocol/messages_calls.hpp"
#include "runtime/async/event.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/token_guide.hpp"
#include "runtime/engine/types.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace troupe::actors::generator {

class CallBook {
 public:
  using Answer = async::Oneshot<core::Result<Completed>>;

  // `guide`: made of the request's grammar; null: it has none.
  std::shared_ptr<Answer> ask(Complete request,
                              std::shared_ptr<const engine::TokenGuide> guide = nullptr);
  // Engine requests for the held calls that an engine with this version may answer.
  std::vector<engine::GroupRequest> submit(core::Version version);
  // Whether the book has submitted this group.
  bool has(core::GroupId id) const { return running_.contains(id); }
  void put_sample(engine::Sample sample);
  void fail(core::GroupId id, const core::Error& error);
  std::vector<core::GroupId> running_groups() const;

  std::size_t held() const noexcept { return calls_.size() - running_.size(); }
  std::size_t running() const noexcept { return running_.size(); }

 private:
  using Name = std::tuple<experience::Ticket, std::uint64_t, std::uint64_t>;
  struct Call {
    Complete request;
    std::shared_ptr<const engine::TokenGuide> guide;
    std::vector<std::shared_ptr<Answer>> answers;  // of the request, and of repeated ones
    bool running = false;
  };
  static Name name_of(const Complete& request);
  void end(core::GroupId id, const core::Result<Completed>& result);

  std::map<Name, Call> calls_;
  std::map<core::GroupId, Name> running_;
  std::uint64_t next_ = std::uint64_t{1} << 62;  // groups of tickets count from 1
};

}  // namespace troupe::actors::generator
