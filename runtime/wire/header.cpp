#include "runtime/wire/header.hpp"

#include "runtime/core/check.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/layout.hpp"

namespace troupe::wire {
namespace {

using core::ErrorCode;

constexpr std::size_t kFailureText_bytes_max = 4096;

schema::ErrorKind kind_of(ErrorCode code) {
  return static_cast<schema::ErrorKind>(static_cast<std::uint16_t>(code));
}

ErrorCode code_of(schema::ErrorKind kind) {
  // A code of a newer program is still an error.
  if (kind > schema::ErrorKind::INTERNAL) return ErrorCode::kInternal;
  return static_cast<ErrorCode>(static_cast<std::uint16_t>(kind));
}

static_assert(Enumerators<schema::ErrorKind>::in_order<ErrorCode>());

Frame small(Outgoing& outgoing) {
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "a message without content fits a frame");
  return std::move(frame).value();
}

// Cut at a byte that begins a character.
std::string_view cut(std::string_view text) {
  if (text.size() <= kFailureText_bytes_max) return text;
  std::size_t end = kFailureText_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

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
  failure.setKind(kind_of(error.code));
  const std::string_view text = cut(error.message);
  failure.setMessage(capnp::Text::Reader(std::string(text).c_str(), text.size()));
  return small(outgoing);
}

std::optional<core::Error> read_failure(const Frame& frame) {
  auto incoming = Incoming::open(frame);
  if (!incoming) return incoming.error();
  using Found = std::optional<core::Error>;
  auto found = incoming->read([](schema::Envelope::Reader envelope) -> core::Result<Found> {
    if (!envelope.isFailure()) return Found();
    const auto failure = envelope.getFailure();
    const auto text = failure.getMessage();
    return Found(core::Error{code_of(failure.getKind()), std::string(text.begin(), text.size())});
  });
  if (!found) return found.error();
  return std::move(found).value();
}

HostRequest read_host_request(const Frame& frame) {
  auto incoming = Incoming::open(frame);
  if (!incoming || incoming->header().reply) return HostRequest::kNone;
  auto found = incoming->read([](schema::Envelope::Reader envelope) -> core::Result<HostRequest> {
    if (envelope.isPing()) return HostRequest::kPing;
    if (envelope.isQueryRole()) return HostRequest::kQueryRole;
    return envelope.isShutdown() ? HostRequest::kShutdown : HostRequest::kNone;
  });
  return found ? *found : HostRequest::kNone;
}

core::Result<Pong> read_pong(const Frame& frame) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.read([](schema::Envelope::Reader envelope) -> core::Result<Pong> {
    if (!envelope.isPong()) return core::fail(ErrorCode::kData, "not the answer to a ping");
    const auto role = envelope.getPong().getRole();
    const auto state = envelope.getPong().getState();
    return Pong{std::string(role.begin(), role.size()), std::string(state.begin(), state.size())};
  });
}

Frame ack_frame(const Header& header) {
  Outgoing outgoing(header);
  outgoing.envelope().initAck();
  return small(outgoing);
}

Frame ping_frame(const Header& header) {
  Outgoing outgoing(header);
  outgoing.envelope().initPing();
  return small(outgoing);
}

Frame pong_frame(const Header& header, const std::string& role, const std::string& state) {
  Outgoing outgoing(header);
  auto pong = outgoing.envelope().initPong();
  pong.setRole(role);
  pong.setState(state);
  return small(outgoing);
}

Frame shutdown_frame(const Header& header) {
  Outgoing outgoing(header);
  outgoing.envelope().initShutdown();
  return small(outgoing);
}

}  // namespace troupe::wire
