// Finds the tokens of a call's prompt: those of the call it goes on from, as they are, and behind
// them what the template's rendering grew by. Immutable; any thread. Rendering is bounded by
// text::RenderLimits; it takes milliseconds, so do not call it on an io thread.
#pragma once

#include "runtime/dialects/served_model.hpp"
#include "runtime/sessions/session_tree.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::sessions {

// What a call does when its template writes the past otherwise than before (it leaves out thinking,
// or has another date): it begins a fork with what the template writes now, or keeps the tokens of
// the past, as far as the template shows what comes behind an answer.
enum class History { kTemplate, kKeep };

struct CallPrompt {
  std::vector<std::int32_t> tokens;
  SessionTree::Place place;
  Digest dialogue;         // of its messages; empty: it has none
  PastText past;           // of a call with messages
  bool rewritten = false;  // the template changed the past, so that it begins a fork
};

// The prompt of the one group of a request. Errors are those of dialects::encode_request.
std::variant<CallPrompt, dialects::ApiError> prompt_of_call(
    const dialects::ServedModel& model,
    const SessionTree& tree,
    const dialects::GenerateRequest& request,
    History history,
    std::int64_t now_unix_s);

}  // namespace troupe::sessions
