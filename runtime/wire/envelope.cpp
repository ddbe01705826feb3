#include "runtime/wire/envelope.hpp"

#include "runtime/core/shortage.hpp"
#include "runtime/wire/bodies.hpp"
#include "runtime/wire/limits.hpp"

#include <capnp/schema.h>

#include <cstring>
#include <string>

namespace troupe::wire {
namespace {

// The first segment. Each further one is as large as all before it, so long messages have few.
constexpr unsigned kFirstSegment_words = 1024;

capnp::ReaderOptions options_for(const Frame& frame) {
  capnp::ReaderOptions options;
  // A reader may visit each word about four times. A frame whose pointers lead to the same data
  // over and over is refused.
  options.traversalLimitInWords = 4 * frame.words().size() + 1024;
  options.nestingLimit = static_cast<int>(limits::kFrameNesting_max);
  return options;
}

kj::ArrayPtr<const capnp::word> words_of(const Frame& frame) {
  const auto words = frame.words();
  return {reinterpret_cast<const capnp::word*>(words.data()), words.size()};
}

std::string kind_of(schema::Envelope::Reader envelope) {
  const auto which = static_cast<std::uint16_t>(envelope.which());
  const auto schema = capnp::Schema::from<schema::Envelope>();
  KJ_IF_MAYBE (field, schema.getFieldByDiscriminant(which)) {
    return field->getProto().getName();
  }
  return "unknown";
}

}  // namespace

Outgoing::Outgoing(const Header& header)
    : message_(std::make_unique<capnp::MallocMessageBuilder>(kFirstSegment_words)),
      root_(message_->initRoot<schema::Envelope>()) {
  auto out = root_.initHeader();
  out.setProtocol(kProtocol);
  out.setRunId(header.run.value);
  out.setEpoch(header.epoch);
  out.setRequestId(header.request.value);
  out.setBudgetMs(header.budget_ms);
  out.setSender(header.sender);
  out.setReply(header.reply);
}

core::Result<Frame> Outgoing::finish() {
  const std::uint64_t bytes = capnp::computeSerializedSizeInWords(*message_) * sizeof(capnp::word);
  if (bytes > limits::kMessage_bytes_max) {
    return core::fail(ErrorCode::kInvalidArgument,
                      "a '" + kind_of(root_.asReader()) + "' message has " + std::to_string(bytes) +
                          " bytes, more than the " + std::to_string(limits::kMessage_bytes_max) +
                          " that one may have");
  }
  const auto flat = capnp::messageToFlatArray(*message_);
  const auto raw = flat.asBytes();
  return Frame::copy_of(std::as_bytes(std::span<const capnp::byte>(raw.begin(), raw.size())));
}

core::Failure translate(const kj::Exception& thrown) {
  // Cap'n Proto takes memory by itself and says so when there is none.
  if (thrown.getType() == kj::Exception::Type::OVERLOADED)
    return core::fail(ErrorCode::kResources, "no memory for a frame", core::kMoreMemory);
  return core::fail(ErrorCode::kData,
                    std::string("malformed frame: ") + thrown.getDescription().cStr());
}

Incoming::Incoming(Frame frame)
    : frame_(std::move(frame)),
      message_(
          std::make_unique<capnp::FlatArrayMessageReader>(words_of(frame_), options_for(frame_))) {}

core::Result<Incoming> Incoming::open(Frame frame) {
  try {
    Incoming incoming(std::move(frame));
    const auto in = incoming.message_->getRoot<schema::Envelope>().getHeader();
    if (in.getProtocol() != kProtocol) {
      return core::fail(ErrorCode::kUnsupported,
                        "a peer speaks protocol " + std::to_string(in.getProtocol()) +
                            ", this program speaks " + std::to_string(kProtocol) +
                            ": run the same version of troupe on every node");
    }
    incoming.header_ = Header{core::RunId{in.getRunId()},         in.getEpoch(),
                              core::RequestId{in.getRequestId()}, in.getBudgetMs(),
                              string_of(in.getSender()),          in.getReply()};
    return incoming;
  } catch (const kj::Exception& thrown) {
    return translate(thrown);
  }
}

std::uint16_t body_arm(const Frame& frame) {
  const auto arm = read_frame<std::uint16_t>(
      frame, [](EnvelopeReader envelope) { return static_cast<std::uint16_t>(envelope.which()); });
  return arm ? *arm : std::uint16_t{0};
}

std::string frame_kind(const Frame& frame) {
  auto kind = read_frame<std::string>(frame, kind_of);
  return kind ? std::move(kind).value() : "malformed";
}

}  // namespace troupe::wire
