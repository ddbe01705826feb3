// The messages of a chat in canonical form, in which a session compares what a client sends back
// with what was said before: role, text, calls of tools with sorted arguments, and ids; fields that
// hold nothing do not count. Values and pure functions; any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/dialects/generate_request.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace troupe::sessions {

// SHA-256, as 64 hexadecimal digits, of a dialogue up to a message.
using Digest = std::string;

// The digest of a dialogue that goes on with `message`; of the first if `before` is of no message.
Digest digest_with(const Digest& before, const nlohmann::ordered_json& message);

struct Dialogue {
  nlohmann::ordered_json messages;  // a list
  // digests[k] is of the first k messages. Tools and variables of the template count from the
  // beginning on, since templates write them there.
  std::vector<Digest> digests;
};

// The dialogue of a chat. Error kInvalidArgument: its messages are no list of objects.
core::Result<Dialogue> dialogue_of(const dialects::GenerateRequest& request);

}  // namespace troupe::sessions
