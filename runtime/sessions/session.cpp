#include "runtime/sessions/session.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::sessions {

std::optional<PastCalls::Before> Session::before(std::span<const Digest> digests) const {
  const std::lock_guard lock(mutex_);
  return TreeCalls(tree_).before(digests);
}

SessionTree::Place Session::place(std::span<const std::int32_t> prompt) const {
  const std::lock_guard lock(mutex_);
  return tree_.place(prompt);
}

std::optional<std::string> Session::refusal() const {
  const std::lock_guard lock(mutex_);
  if (ended_) return "session " + id_ + " has ended";
  if (tree_.size() >= bounds_.calls_max) {
    return "session " + id_ + " has " + std::to_string(bounds_.calls_max) +
           " calls, which is the most; begin another";
  }
  if (tree_.tokens() >= bounds_.tokens_max) {
    return "session " + id_ + " has " + std::to_string(bounds_.tokens_max) +
           " tokens, which is the most; begin another";
  }
  return std::nullopt;
}

std::size_t Session::add(Request& request, const CallPrompt& prompt, Call call) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = tree_.add(prompt.tokens, prompt.place, std::move(call));
    request.calls.push_back(number);
  }
  told();
  return number;
}

void Session::drop(std::size_t call) {
  const std::lock_guard lock(mutex_);
  tree_.drop(call);
}

std::shared_ptr<Session::Request> Session::begin(const std::vector<std::int32_t>& prompt) {
  const std::lock_guard lock(mutex_);
  if (requests_.size() >= kSessionRequests_kept) {
    const auto oldest = std::find_if(requests_.begin(), requests_.end(),
                                     [](const auto& one) { return one.use_count() == 1; });
    if (oldest != requests_.end()) requests_.erase(oldest);
  }
  return requests_.emplace_back(std::make_shared<Request>(Request{prompt}));
}

bool Session::superseded(const Request& request) const {
  const std::lock_guard lock(mutex_);
  return request.superseded;
}

void Session::retry(const std::vector<std::int32_t>& prompt) {
  const std::lock_guard lock(mutex_);
  const auto last = std::find_if(requests_.rbegin(), requests_.rend(),
                                 [&](const auto& one) { return one->prompt == prompt; });
  if (last == requests_.rend()) return;
  (*last)->superseded = true;
  for (const std::size_t call : (*last)->calls)
    tree_.drop(call);
}

bool Session::busy() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const auto& one) { return one.use_count() > 1; });
}

core::Result<void> Session::reward(double value, std::optional<std::size_t> call) {
  TROUPE_TRY(take_reward(value, call));
  told();
  return {};
}

core::Result<void> Session::take_reward(double value, std::optional<std::size_t> call) {
  const std::lock_guard lock(mutex_);
  if (!std::isfinite(value))
    return core::fail(ErrorCode::kData, "a reward must be a finite number");
  if (closed_) return core::fail(ErrorCode::kInvalidArgument, "session " + id_ + " is closed");
  if (!call) {
    score_ = value;
    return {};
  }
  if (*call >= tree_.size() || tree_.at(*call).dropped) {
    return core::fail(ErrorCode::kInvalidArgument,
                      "session " + id_ + " has no call " + std::to_string(*call));
  }
  tree_.reward(*call, value);
  return {};
}

void Session::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  told();
}

void Session::close() {
  const std::lock_guard lock(mutex_);
  ended_ = closed_ = true;
}

std::uint64_t Session::tokens() const {
  const std::lock_guard lock(mutex_);
  return tree_.tokens();
}

std::size_t Session::calls() const {
  const std::lock_guard lock(mutex_);
  return tree_.size();
}

bool Session::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::optional<double> Session::score() const {
  const std::lock_guard lock(mutex_);
  return score_;
}

bool Session::rewarded() const {
  const std::lock_guard lock(mutex_);
  return score_ || tree_.rewarded();
}

std::uint64_t Session::forked_by_template() const {
  const std::lock_guard lock(mutex_);
  return forked_by_template_;
}

void Session::count_fork() {
  const std::lock_guard lock(mutex_);
  ++forked_by_template_;
}

SessionTree Session::tree() const {
  const std::lock_guard lock(mutex_);
  return tree_;
}

}  // namespace troupe::sessions
