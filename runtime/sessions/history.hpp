// Finds the tokens of a call's prompt: those of the call it goes on from, as they are, and behind
// them what the template's rendering grew by. Immutable; any thread. Rendering is bounded by
// text::RenderLimits; it takes milliseconds, so do not call it on an io thread.
#pragma once

#include "runtime/dialects/served_model.hpp"
#include "runtime/sessions/session_tree.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace troupe::sessions {

// What a call does when its template writes the past otherwise than before (it leaves out thinking,
// or has another date): it begins a fork with what the template writes now, or keeps the tokens of
// the past if the template shows what it writes after an answer.
enum class History { kTemplate, kKeep };

struct CallPrompt {
  std::vector<std::int32_t> tokens;
  SessionTree::Place place;
  Digest dialogue;         // of its messages; empty: it has none
  PastText past;           // of a call with messages
  bool rewritten = false;  // the template changed the past, so that it begins a fork
};

// What a prompt is made from: the calls of a session, which others may add to meanwhile. Any
// thread.
class PastCalls {
 public:
  struct Before {  // the call that a dialogue goes on from
    std::size_t call = 0;
    std::size_t messages = 0;  // how many of the dialogue's it holds, its answer included
    PastText past;
    std::vector<std::int32_t> sequence;
  };
  virtual ~PastCalls() = default;
  virtual std::optional<Before> before(std::span<const Digest> digests) const = 0;
  virtual SessionTree::Place place(std::span<const std::int32_t> prompt) const = 0;
};

// The calls of a tree that one thread uses.
class TreeCalls final : public PastCalls {
 public:
  explicit TreeCalls(const SessionTree& tree) : tree_(tree) {}
  std::optional<Before> before(std::span<const Digest> digests) const override;
  SessionTree::Place place(std::span<const std::int32_t> prompt) const override {
    return tree_.place(prompt);
  }

 private:
  const SessionTree& tree_;
};

// The prompt of the one group of a request. Errors are those of dialects::encode_request.
std::variant<CallPrompt, dialects::ApiError> prompt_of_call(
    const dialects::ServedModel& model,
    const PastCalls& calls,
    const dialects::GenerateRequest& request,
    History history,
    std::int64_t now_unix_s);

}  // namespace troupe::sessions
