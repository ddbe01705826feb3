// The header of every frame, for code that moves frames without reading their bodies: transports
// and role hosts. Plain values; needs no schema header.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::wire {

// Version of the protocol. It changes only when older programs cannot take part at all.
inline constexpr std::uint32_t kProtocol = 1;

struct Header {
  core::RunId run;
  std::uint64_t epoch = 0;      // starts of the asker; answers to an earlier one are dropped
  core::RequestId request;      // set by the asker, repeated in the answer
  std::uint32_t budget_ms = 0;  // time left until the asker's deadline, in ms
  std::string sender;           // "controller/0"
  bool reply = false;
};

// The header of an answer to `request`.
Header reply_header(const Header& request, std::string sender);

// Errors: kData (malformed), kUnsupported (another protocol version).
core::Result<Header> read_header(const Frame& frame);

// Which arm of the envelope's union the body is; 0, the arm `empty`, for a malformed frame.
std::uint16_t body_arm(const Frame& frame);

// The name of the body's arm, such as "putGroup" or "failure"; "unknown" for an arm of a newer
// program, "malformed" for a malformed frame.
std::string frame_kind(const Frame& frame);

// An answer that carries an error; the message is cut to fit a frame.
Frame failure_frame(const Header& header, const core::Error& error);

// The error that a frame carries, or nullopt if it has another body. A malformed frame gives a
// kData error.
std::optional<core::Error> read_failure(const Frame& frame);

// The requests that a role's host answers itself.
enum class HostRequest { kNone, kPing, kShutdown, kQueryRole };
HostRequest read_host_request(const Frame& frame);

// The contents of a pong: the role that answers, and its state.
struct Pong {
  std::string role;
  std::string state;
};
core::Result<Pong> read_pong(const Frame& frame);

// An answer without content, and the messages that hosts exchange.
Frame ack_frame(const Header& header);
Frame ping_frame(const Header& header);
Frame pong_frame(const Header& header, const std::string& role, const std::string& state);
Frame shutdown_frame(const Header& header);

}  // namespace troupe::wire
