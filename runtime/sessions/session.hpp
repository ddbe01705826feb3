// One session of a program with the model: its calls, which any thread may read and add to, and the
// rewards that it was given. Shared by the requests of the session and its owner. Thread-safe.
// Bounds: SessionBounds, beyond which calls are refused.
#pragma once

#include "runtime/sessions/history.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sessions {

// Answered requests that a retry may mean.
inline constexpr std::size_t kSessionRequests_kept = 64;

struct SessionBounds {
  std::size_t calls_max = 100'000;
  std::uint64_t tokens_max = std::uint64_t{1} << 26;  // new in each call, together
};

class Session final : public PastCalls {
 public:
  // `changed`: told on the calling thread of each call, reward and end; may be null.
  Session(std::string id, SessionBounds bounds, std::function<void()> changed = nullptr)
      : id_(std::move(id)), bounds_(bounds), changed_(std::move(changed)) {}

  const std::string& id() const noexcept { return id_; }

  std::optional<Before> before(std::span<const Digest> digests) const override;
  SessionTree::Place place(std::span<const std::int32_t> prompt) const override;

  // Why it takes no further call, if it does not: it has ended, or is at a bound.
  std::optional<std::string> refusal() const;
  // The answer did not reach its client.
  void drop(std::size_t call);
  // A request, which is being answered as long as its asker holds it. `superseded`: its client has
  // asked for the same again, so that what it draws does not count.
  struct Request {
    std::vector<std::int32_t> prompt;
    bool superseded = false;
    std::vector<std::size_t> calls{};  // added by this request
  };
  std::shared_ptr<Request> begin(const std::vector<std::int32_t>& prompt);
  // Adds a call of a request; returns its number.
  std::size_t add(Request& request, const CallPrompt& prompt, Call call);
  bool superseded(const Request& request) const;
  bool busy() const;  // a request is being answered
  // A client asks again for what it did not get: supersedes the last request with this prompt, and
  // drops its calls that nothing goes on from. Earlier requests with the prompt were answered.
  void retry(const std::vector<std::int32_t>& prompt);

  // Gives a reward to the whole, or to one call. Error kInvalidArgument: no such call, or the
  // session was closed; kData: not a finite number.
  core::Result<void> reward(double value, std::optional<std::size_t> call);
  // No calls follow; rewards may.
  void end();
  // Nothing follows.
  void close();

  std::size_t calls() const;
  std::uint64_t tokens() const;  // of all calls
  bool ended() const;
  std::optional<double> score() const;
  bool rewarded() const;  // the whole, or a call that counts
  std::uint64_t forked_by_template() const;
  void count_fork();
  SessionTree tree() const;  // a copy

 private:
  core::Result<void> take_reward(double value, std::optional<std::size_t> call);
  void told() const {
    if (changed_) changed_();
  }

  const std::string id_;
  const SessionBounds bounds_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  SessionTree tree_;
  std::deque<std::shared_ptr<Request>> requests_;  // the latest, and all that are being answered
  std::optional<double> score_;
  std::uint64_t forked_by_template_ = 0;
  bool ended_ = false, closed_ = false;
};

}  // namespace troupe::sessions
