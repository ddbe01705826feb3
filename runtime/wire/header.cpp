#include "runtime/wire/header.hpp"

#include "runtime/wire/bodies.hpp"

namespace troupe::wire {
namespace {

constexpr std::size_t kFailureText_bytes_max = 4096;

ErrorCode code_of(schema::ErrorKind kind) {
  // An unknown code, from a newer program, is still an error.
  if (kind > schema::ErrorKind::NO_ROOM) return ErrorCode::kInternal;
  return static_cast<ErrorCode>(static_cast<std::uint16_t>(kind));
}

static_assert(Enumerators<schema::ErrorKind>::in_order<ErrorCode>());

struct Nothing {};  // the body of a message without content

}  // namespace

Header reply_header(const Header& request, std::string sender) {
  Header header = request;
  header.sender = std::move(sender);
  header.budget_ms = 0;
  header.reply = true;
  return header;
}

core::Result<Header> read_header(const Frame& frame) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.header();
}

Frame failure_frame(const Header& header, const core::Error& error) {
  Outgoing outgoing(header);
  auto failure = outgoing.envelope().initFailure();
  failure.setKind(static_cast<schema::ErrorKind>(error.code));
  failure.setMessage(wire_of(std::string(cut(error.message, kFailureText_bytes_max))));
  failure.setAdviceAt(static_cast<std::uint32_t>(error.advice_at));
  return finished(outgoing);
}

std::optional<core::Error> read_failure(const Frame& frame) {
  using Found = std::optional<core::Error>;
  auto found = read_frame<Found>(frame, [](EnvelopeReader envelope) {
    if (!envelope.isFailure()) return Found();
    const auto failure = envelope.getFailure();
    core::Error error{code_of(failure.getKind()), string_of(failure.getMessage())};
    error.advice_at = failure.getAdviceAt();
    return Found(std::move(error));
  });
  if (!found) return found.error();
  return std::move(found).value();
}

HostRequest read_host_request(const Frame& frame) {
  const auto found = read_frame<HostRequest>(frame, [](EnvelopeReader envelope) {
    if (envelope.getHeader().getReply()) return HostRequest::kNone;
    if (envelope.isPing()) return HostRequest::kPing;
    if (envelope.isQueryRole()) return HostRequest::kQueryRole;
    return envelope.isShutdown() ? HostRequest::kShutdown : HostRequest::kNone;
  });
  return found ? *found : HostRequest::kNone;
}

core::Result<Pong> read_pong(const Frame& frame) {
  return body_of<Pong>(frame, &EnvelopeReader::isPong, &EnvelopeReader::getPong,
                       "not the answer to a ping");
}

Frame ack_frame(const Header& header) {
  return frame_of(header, &EnvelopeBuilder::initAck, Nothing{});
}

Frame ping_frame(const Header& header) {
  return frame_of(header, &EnvelopeBuilder::initPing, Nothing{});
}

Frame pong_frame(const Header& header, const std::string& role, const std::string& state) {
  return frame_of(header, &EnvelopeBuilder::initPong, Pong{role, state});
}

Frame shutdown_frame(const Header& header) {
  return frame_of(header, &EnvelopeBuilder::initShutdown, Nothing{});
}

}  // namespace troupe::wire
