// What every frame says before its body, for those that move frames without reading them:
// transports and role hosts. Plain values; no schema header is needed here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"

namespace troupe::wire {

// Generation of the schemas. It changes only when older programs cannot take part at all.
inline constexpr std::uint32_t kProtocol = 1;

struct Header {
  core::RunId run;
  std::uint64_t epoch = 0;      // starts of the run; frames of another epoch are strangers
  core::RequestId request;      // of the asker, also in the answer
  std::uint32_t budget_ms = 0;  // what was left of the asker's deadline
  std::string sender;           // "controller/0"
  bool reply = false;
};

// The header of an answer to `request`.
Header reply_header(const Header& request, std::string sender);

// Errors: kData (malformed), kUnsupported (another protocol generation).
core::Result<Header> read_header(const Frame& frame);

// The body's place among the arms of an envelope; 0, which is `empty`, for a malformed frame.
std::uint16_t body_arm(const Frame& frame);

// "putGroup", "failure", ...; "unknown" for an arm of a newer program, "malformed".
std::string frame_kind(const Frame& frame);

// The answer that carries an error, cut to fit a frame.
Frame failure_frame(const Header& header, const core::Error& error);

// The error that a frame carries, if that is its body. A malformed one is a kData error.
std::optional<core::Error> read_failure(const Frame& frame);

// Requests that a role's host answers itself.
enum class HostRequest { kNone, kPing, kShutdown, kQueryRole };
HostRequest read_host_request(const Frame& frame);

// Who a pong says it is from.
struct Pong {
  std::string role;
  std::string state;
};
core::Result<Pong> read_pong(const Frame& frame);

// The answer without content, and the messages of hosts.
Frame ack_frame(const Header& header);
Frame ping_frame(const Header& header);
Frame pong_frame(const Header& header, const std::string& role, const std::string& state);
Frame shutdown_frame(const Header& header);

}  // namespace troupe::wire
